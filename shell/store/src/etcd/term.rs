//! A term of a program of which one at a time leads: it waits for the leadership, leads, and resigns.
//!
//! Absent: what a leader does, and whether another term follows.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Candidate, Etcd, EtcdAddress, EtcdRecords, EtcdTls, Leadership, Observed};
use crate::{Store, StoreFault};

/// Why a leader steps down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDown {
    /// The process is to stop.
    Stopped,
    /// Another may lead now.
    Lost,
}

/// The leadership for one term.
pub struct Term {
    pub leadership: Leadership,
    stop: watch::Receiver<bool>,
    /// Ends with the leadership, at the latest when it is resigned; it has nothing to panic by.
    keeping: JoinHandle<()>,
}

impl Term {
    /// Waits until the leader has to step down. Cancel safe.
    pub async fn step_down(&mut self) -> StepDown {
        tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => StepDown::Stopped,
            _ = &mut self.keeping => StepDown::Lost,
        }
    }
}

impl Etcd {
    /// For an election: a renewal reaches every member before the lease ends.
    pub fn for_election(address: EtcdAddress, lease_time: Duration, tls: Option<EtcdTls>) -> Self {
        Self::new(address, lease_time / 4, tls)
    }

    /// Campaigns, runs `term` as the leader, and resigns when it has returned. `None`: the process is to stop, and no term
    /// began. `observe` receives what happens during the campaign.
    pub async fn lead<T>(
        &self,
        lease_time: Duration,
        introduction: Vec<u8>,
        mut stop: watch::Receiver<bool>,
        observe: impl FnMut(Observed),
        term: impl AsyncFnOnce(Store, Term) -> T,
    ) -> Option<T> {
        let candidate = Candidate::new(self.clone(), lease_time, introduction);
        let leadership = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return None,
            leadership = candidate.campaign(observe) => leadership,
        };
        let keeper = leadership.clone();
        let keeping = tokio::spawn(async move { keeper.keep().await });
        let store = Store::Etcd(EtcdRecords::new(self.clone(), leadership.clone()));
        let result = term(store, Term { leadership: leadership.clone(), stop, keeping }).await;
        leadership.resign().await;
        Some(result)
    }
}

impl StoreFault {
    /// Whether it only means that this process is not, or cannot be, the leader.
    pub fn is_loss(&self) -> bool {
        matches!(self, StoreFault::Deposed | StoreFault::Unavailable { .. })
    }
}
