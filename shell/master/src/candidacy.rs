//! One of several masters: it waits for its turn, leads, and steps down, for as long as the process lives.
//!
//! Losing the leadership does not end the process: the machine is thrown away and the next term begins from what etcd
//! holds. Nothing of the old term is believed.

use std::net::SocketAddr;
use std::sync::Arc;

use tepui_program::Process;
use tepui_proto::json;
use tepui_proto::mesos::v1::MasterInfo;
use tepui_runtime::RuntimeFault;
use tepui_store::Store;
use tepui_store::etcd::{self, Etcd, EtcdAddress, EtcdTls, StepDown};
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

impl Candidacy {
    /// Until stopped, or until something is wrong that another term would not heal.
    pub async fn run(self, address: EtcdAddress) -> Result<(), MasterFault> {
        let lease_time = self.options.leader_lease;
        let tls = self.options.process.etcd_tls.clone().map(|tls| EtcdTls::new(move || tls.config()));
        let etcd = Etcd::for_election(address, lease_time, tls);
        loop {
            let info = master_info(&self.options, self.bound)?;
            let introduction = json::to_vec(&info);
            let observe = |observed| self.front.observe(observed);
            let term = async |store, elected| self.term(info, store, elected).await;
            let end = etcd.lead(lease_time, introduction, self.stop.clone(), observe, term).await;
            match end.transpose()? {
                None | Some(StepDown::Stopped) => return Ok(()),
                Some(StepDown::Lost) => tracing::warn!("leadership lost"),
            }
        }
    }

    async fn term(
        &self,
        info: MasterInfo,
        store: Store,
        mut elected: etcd::Term,
    ) -> Result<StepDown, MasterFault> {
        tracing::info!(master_id = info.id, "elected leader");
        let leadership = Some(elected.leadership.clone());
        let begun = Term::begin(&self.options, &self.process, info, store, leadership).await;
        let mut term = match begun {
            Ok(term) => term,
            Err(MasterFault::Store(fault)) if fault.is_loss() => return Ok(StepDown::Lost),
            Err(fault) => return Err(fault),
        };
        self.front.lead(term.program.clone());
        let end = tokio::select! {
            end = elected.step_down() => end,
            () = term.ended() => StepDown::Lost,
        };
        self.front.step_down();
        let halted = term.halted();
        let ended = match end {
            StepDown::Stopped => term.end().await,
            StepDown::Lost => term.abandon().await,
        };
        match (halted, ended) {
            (Some(fault), _) => Err(fault),
            (None, Ok(())) => Ok(end),
            (None, Err(RuntimeFault::Store { fault, .. })) if fault.is_loss() => Ok(StepDown::Lost),
            (None, Err(fault)) => Err(fault.into()),
        }
    }
}
