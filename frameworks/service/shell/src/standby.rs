//! One of several schedulers: it stands by, becomes active, and stands by again, for as long as the process lives.
//!
//! Losing the leadership does not end the process: the scheduler is thrown away, and the next term begins from what etcd holds.

use std::sync::Arc;

use tepui_runtime::RuntimeFault;
use tepui_store::etcd::{Candidate, Etcd, EtcdAddress, EtcdRecords, EtcdTls, Leadership, Observed};
use tepui_store::{Store, StoreFault};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::driver::Halt;
use crate::fault::{End, ServiceFault};
use crate::front::Front;
use crate::options::Options;
use crate::term::{ApiAddress, Published, Term};

pub(crate) struct Standby {
    pub options: Options,
    pub api: ApiAddress,
    pub front: Arc<Front>,
    pub published: Published,
    pub stop: watch::Receiver<bool>,
}

/// Why a term ended.
enum TermEnd {
    /// The process is to stop.
    Stopped,
    /// Another may be active now.
    Lost,
    Halted(Halt),
}

impl Standby {
    /// Until the process is to stop, or something is wrong that another term would not heal.
    pub async fn run(mut self, address: EtcdAddress) -> Result<End, ServiceFault> {
        // A renewal must have reached every member before the lease ends.
        let patience = self.options.leader_lease / 4;
        let tls = self.options.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::new(address, patience, tls);
        loop {
            let introduction = self.api.authority().into_bytes();
            let candidate = Candidate::new(etcd.clone(), self.options.leader_lease, introduction);
            let leadership = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => return Ok(End::Stopped),
                leadership = candidate.campaign(|observed| observe(&self.front, observed)) => leadership,
            };
            info!("scheduler is active");
            let store = Store::Etcd(EtcdRecords::new(etcd.clone(), leadership.clone()));
            match self.term(store, leadership).await? {
                TermEnd::Stopped => return Ok(End::Stopped),
                TermEnd::Lost => warn!("leadership lost"),
                TermEnd::Halted(Halt::Finished(framework)) => return Ok(End::Uninstalled(framework)),
                TermEnd::Halted(Halt::Failed(why)) => return Err(ServiceFault::Stopped(why)),
            }
        }
    }

    async fn term(&mut self, store: Store, leadership: Leadership) -> Result<TermEnd, ServiceFault> {
        let keeper = leadership.clone();
        // Ends with the leadership, at the latest by `resign`.
        let mut keeping = tokio::spawn(async move { keeper.keep().await });
        let begun = Term::begin(&self.options, &self.api, store, Some(leadership.clone())).await;
        let mut term = match begun {
            Ok(term) => term,
            Err(fault) => {
                leadership.resign().await;
                return match fault {
                    ServiceFault::Store(fault) if is_loss(&fault) => Ok(TermEnd::Lost),
                    other => Err(other),
                };
            }
        };
        self.front.activate(term.handle.clone());
        self.published.send_replace(Some(term.views()));
        let end = tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => TermEnd::Stopped,
            _ = &mut keeping => TermEnd::Lost,
            halt = term.ended() => halt.map_or(TermEnd::Lost, TermEnd::Halted),
        };
        self.front.stand_by();
        self.published.send_replace(None);
        let ended = term.end().await;
        leadership.resign().await;
        match (end, ended) {
            (TermEnd::Lost, Err(RuntimeFault::Store { fault, .. })) if is_loss(&fault) => Ok(TermEnd::Lost),
            (TermEnd::Lost, Err(fault)) => Err(fault.into()),
            (end, _) => Ok(end),
        }
    }
}

fn observe(front: &Front, observed: Observed) {
    match observed {
        Observed::Leader(introduction) => {
            front.observe_leader(Some(String::from_utf8_lossy(&introduction).into_owned()));
        }
        Observed::NoLeader => front.observe_leader(None),
        Observed::Unknown(why) => warn!(why, "cannot read the election from etcd"),
    }
}

/// Whether a fault of the store only means that this scheduler is not, or cannot be, the active one.
fn is_loss(fault: &StoreFault) -> bool {
    matches!(fault, StoreFault::Deposed | StoreFault::Unavailable { .. })
}
