//! One of several masters: it waits for its turn, leads, and steps down, for as long as the process lives.
//!
//! Losing the leadership does not end the process: the machine is thrown away and the next term begins from what etcd
//! holds. Nothing of the old term is believed.

use std::net::SocketAddr;
use std::sync::Arc;

use tepui_program::Process;
use tepui_proto::json;
use tepui_runtime::RuntimeFault;
use tepui_store::etcd::{Candidate, Etcd, EtcdAddress, EtcdRecords, EtcdTls, Leadership};
use tepui_store::{Store, StoreFault};
use tokio::sync::watch;

use crate::fault::MasterFault;
use crate::front::Front;
use crate::options::Options;
use crate::term::{Term, master_info};

pub(crate) struct Candidacy {
    pub options: Options,
    pub process: Process,
    pub bound: SocketAddr,
    pub front: Arc<Front>,
    pub stop: watch::Receiver<bool>,
}

/// Why a term ended.
enum End {
    /// The process is to stop.
    Asked,
    /// Another may lead now.
    Lost,
    Failed(RuntimeFault),
}

impl Candidacy {
    /// Until asked to stop, or until something is wrong that another term would not heal.
    pub async fn run(mut self, address: EtcdAddress) -> Result<(), MasterFault> {
        // A renewal must have asked every member before the lease ends.
        let patience = self.options.leader_lease / 4;
        let tls = self.options.process.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::new(address, patience, tls);
        loop {
            let info = master_info(&self.options, self.bound)?;
            let candidate = Candidate::new(etcd.clone(), self.options.leader_lease, json::to_vec(&info));
            let leadership = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
                leadership = candidate.campaign(|observed| self.front.observe(observed)) => leadership,
            };
            tracing::info!(master_id = info.id, "elected leader");
            let store = Store::Etcd(EtcdRecords::new(etcd.clone(), leadership.clone()));
            match self.term(info, store, leadership).await? {
                End::Asked => return Ok(()),
                End::Lost => tracing::warn!("leadership lost"),
                End::Failed(fault) => return Err(fault.into()),
            }
        }
    }

    async fn term(
        &mut self,
        info: tepui_proto::mesos::v1::MasterInfo,
        store: Store,
        leadership: Leadership,
    ) -> Result<End, MasterFault> {
        let keeper = leadership.clone();
        // Ends with the leadership, at the latest by `resign`; it has nothing to panic by.
        let mut keeping = tokio::spawn(async move { keeper.keep().await });
        let begun = Term::begin(&self.options, &self.process, info, store, Some(leadership.clone())).await;
        let mut term = match begun {
            Ok(term) => term,
            Err(fault) => {
                leadership.resign().await;
                return match fault {
                    MasterFault::Store(fault) if is_loss(&fault) => Ok(End::Lost),
                    other => Err(other),
                };
            }
        };
        self.front.lead(term.program.clone());
        let asked = tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => true,
            _ = &mut keeping => false,
            () = term.ended() => false,
        };
        self.front.step_down();
        let halted = term.halted();
        let ended = match asked {
            true => term.end().await,
            false => term.abandon().await,
        };
        leadership.resign().await;
        if let Some(fault) = halted {
            return Err(fault);
        }
        Ok(match ended {
            Ok(()) if asked => End::Asked,
            Ok(()) => End::Lost,
            Err(RuntimeFault::Store { fault, .. }) if is_loss(&fault) => End::Lost,
            Err(fault) => End::Failed(fault),
        })
    }
}

/// Whether a fault of the store only means that this master is not, or cannot be, the leader.
fn is_loss(fault: &StoreFault) -> bool {
    matches!(fault, StoreFault::Deposed | StoreFault::Unavailable { .. })
}
