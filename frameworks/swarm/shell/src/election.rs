//! One of several managers: it stands by, leads, and steps down, for as long as the process lives.
//!
//! The leader's key in etcd is `<prefix>/docker/swarm/leader`, as in classic Swarm, with the address that the leader
//! advertises; the records lie beside it. A leader that lost its lease throws its machine away: the next term begins from the
//! records.

use std::sync::Arc;

use tepui_store::Store;
use tepui_store::etcd::{Candidate, Etcd, EtcdAddress, EtcdRecords, EtcdTls, Leadership, Observed};
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
    pub async fn run(mut self) -> Result<(), ManagerFault> {
        let mut address: EtcdAddress = self.manage.master.parse().map_err(ManagerFault::Master)?;
        address.prefix = format!("{}/{PREFIX}", address.prefix);
        // A renewal must have asked every member before the lease ends.
        let tls = self.access.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::new(address, self.replication.ttl / 4, tls);
        let introduction = self.replication.advertise.clone().into_bytes();
        let candidate = Candidate::new(etcd.clone(), self.replication.ttl, introduction);
        loop {
            let (front, advertise) = (self.front.clone(), self.replication.advertise.clone());
            let observe = move |observed: Observed| match observed {
                Observed::Leader(leader) => {
                    front.stand_by(Some(leader).filter(|it| *it != advertise.as_bytes()))
                }
                Observed::NoLeader => front.stand_by(None),
                Observed::Unknown(error) => warn!(error, "cannot read the leader from etcd"),
            };
            let leadership = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
                leadership = candidate.campaign(observe) => leadership,
            };
            info!(advertise = self.replication.advertise, "elected leader");
            let store = Store::Etcd(EtcdRecords::new(etcd.clone(), leadership.clone()));
            if self.term(store, leadership).await? {
                return Ok(());
            }
            warn!("leadership lost");
        }
    }

    /// Leads until the leadership is lost, or, which gives true, until the process is to stop.
    async fn term(&mut self, store: Store, leadership: Leadership) -> Result<bool, ManagerFault> {
        let keeper = leadership.clone();
        // Ends with the leadership, at the latest by `resign`; it has nothing to panic by.
        let mut keeping = tokio::spawn(async move { keeper.keep().await });
        let mut term = match Term::begin(self.manage.clone(), store, self.tls.as_ref(), &self.access).await {
            Ok(term) => term,
            Err(fault) => {
                leadership.resign().await;
                return if fault.is_loss() { Ok(false) } else { Err(fault) };
            }
        };
        self.front.lead(term.api.clone());
        let (is_asked, fault) = tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => (true, None),
            _ = &mut keeping => (false, None),
            fault = term.ended() => (false, Some(fault)),
        };
        self.front.stand_by(None);
        // A new leader has taken the session over, or the lease ended: not a fault of this manager.
        let is_lost = !leadership.holds();
        let ended = term.end().await;
        leadership.resign().await;
        match (ended, fault) {
            (Err(fault), _) if fault.is_loss() => Ok(is_asked),
            (Ok(()), Some(_)) if is_lost => Ok(is_asked),
            (Err(fault), _) | (Ok(()), Some(fault)) => Err(fault),
            (Ok(()), None) => Ok(is_asked),
        }
    }
}
