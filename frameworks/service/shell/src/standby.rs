//! One of several schedulers: it stands by, becomes active, and stands by again, for as long as the process lives.
//!
//! Losing the leadership does not end the process: the scheduler is thrown away, and the next term begins from what etcd holds.

use std::sync::Arc;

use tepui_runtime::RuntimeFault;
use tepui_store::Store;
use tepui_store::etcd::{self, Etcd, EtcdAddress, EtcdTls, Observed, StepDown};
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
    SteppedDown(StepDown),
    Halted(Halt),
}

impl Standby {
    /// Until the process is to stop, or something is wrong that another term would not heal.
    pub async fn run(self, address: EtcdAddress) -> Result<End, ServiceFault> {
        let lease_time = self.options.leader_lease;
        let tls = self.options.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::for_election(address, lease_time, tls);
        loop {
            let introduction = self.api.authority().into_bytes();
            let observe = |observed| observe(&self.front, observed);
            let term = async |store, elected| self.term(store, elected).await;
            let end = etcd.lead(lease_time, introduction, self.stop.clone(), observe, term).await;
            match end.transpose()? {
                None | Some(TermEnd::SteppedDown(StepDown::Stopped)) => return Ok(End::Stopped),
                Some(TermEnd::SteppedDown(StepDown::Lost)) => warn!("leadership lost"),
                Some(TermEnd::Halted(Halt::Finished(framework))) => return Ok(End::Uninstalled(framework)),
                Some(TermEnd::Halted(Halt::Failed(why))) => return Err(ServiceFault::Stopped(why)),
            }
        }
    }

    async fn term(&self, store: Store, mut elected: etcd::Term) -> Result<TermEnd, ServiceFault> {
        info!("scheduler is active");
        let leadership = Some(elected.leadership.clone());
        let mut term = match Term::begin(&self.options, &self.api, store, leadership).await {
            Ok(term) => term,
            Err(ServiceFault::Store(fault)) if fault.is_loss() => {
                return Ok(TermEnd::SteppedDown(StepDown::Lost));
            }
            Err(fault) => return Err(fault),
        };
        self.front.activate(term.handle.clone());
        self.published.send_replace(Some(term.views()));
        let end = tokio::select! {
            end = elected.step_down() => TermEnd::SteppedDown(end),
            halt = term.ended() => halt.map_or(TermEnd::SteppedDown(StepDown::Lost), TermEnd::Halted),
        };
        self.front.stand_by();
        self.published.send_replace(None);
        match (end, term.end().await) {
            (TermEnd::SteppedDown(_), Err(RuntimeFault::Store { fault, .. })) if fault.is_loss() => {
                Ok(TermEnd::SteppedDown(StepDown::Lost))
            }
            (TermEnd::SteppedDown(_), Err(fault)) => Err(fault.into()),
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
