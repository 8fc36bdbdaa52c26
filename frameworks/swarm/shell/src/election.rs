//! One of several managers: it stands by, leads, and steps down, for as long as the process lives.
//!
//! The leader's key in etcd is `<prefix>/docker/swarm/leader`, as in classic Swarm, with the address that the leader
//! advertises; the records lie beside it. A leader that lost its lease throws its machine away: the next term begins from the
//! records.

use std::sync::Arc;

use tepui_store::Store;
use tepui_store::etcd::{self, Etcd, EtcdAddress, EtcdTls, Observed, StepDown};
use tepui_swarm::{Manage, Replication};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::access::Access;
use crate::fault::ManagerFault;
use crate::front::Front;
use crate::term::Term;
use crate::tls::Tls;

/// Below the prefix of the cluster.
const PREFIX: &str = "docker/swarm";

pub(crate) struct Election {
    pub manage: Arc<Manage>,
    pub replication: Replication,
    pub tls: Option<Tls>,
    pub access: Access,
    pub front: Front,
    pub stop: watch::Receiver<bool>,
}

impl Election {
    /// Until the process is to stop, or until something is wrong that another term would not heal.
    pub async fn run(self) -> Result<(), ManagerFault> {
        let mut address: EtcdAddress = self.manage.master.parse().map_err(ManagerFault::Master)?;
        address.prefix = format!("{}/{PREFIX}", address.prefix);
        let (lease_time, advertise) = (self.replication.ttl, self.replication.advertise.as_bytes());
        let tls = self.access.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::for_election(address, lease_time, tls);
        loop {
            let observe = |observed: Observed| match observed {
                Observed::Leader(leader) => self.front.stand_by(Some(leader).filter(|it| it != advertise)),
                Observed::NoLeader => self.front.stand_by(None),
                Observed::Unknown(error) => warn!(error, "cannot read the leader from etcd"),
            };
            let term = async |store, elected| self.term(store, elected).await;
            let end = etcd.lead(lease_time, advertise.to_vec(), self.stop.clone(), observe, term).await;
            match end.transpose()? {
                None | Some(StepDown::Stopped) => return Ok(()),
                Some(StepDown::Lost) => warn!("leadership lost"),
            }
        }
    }

    async fn term(&self, store: Store, mut elected: etcd::Term) -> Result<StepDown, ManagerFault> {
        info!(advertise = self.replication.advertise, "elected leader");
        let mut term = match Term::begin(self.manage.clone(), store, self.tls.as_ref(), &self.access).await {
            Ok(term) => term,
            Err(fault) if fault.is_loss() => return Ok(StepDown::Lost),
            Err(fault) => return Err(fault),
        };
        self.front.lead(term.api.clone());
        let (end, fault) = tokio::select! {
            end = elected.step_down() => (end, None),
            fault = term.ended() => (StepDown::Lost, Some(fault)),
        };
        self.front.stand_by(None);
        // A new leader has taken the session over, or the lease ended: not a fault of this manager.
        let is_lost = !elected.leadership.holds();
        match (term.end().await, fault) {
            (Err(fault), _) if fault.is_loss() => Ok(end),
            (Ok(()), Some(_)) if is_lost => Ok(end),
            (Err(fault), _) | (Ok(()), Some(fault)) => Err(fault),
            (Ok(()), None) => Ok(end),
        }
    }
}
