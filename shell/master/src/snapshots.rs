//! The newest state for readers. The machine publishes it when a reader asks, which takes one turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tepui_core_master::{Input, State};
use tepui_runtime::{Commits, Handle};
use tokio::sync::watch;

/// How old the state is at most that readers get while nothing becomes durable.
pub(crate) const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Published {
    pub state: Arc<State>,
    /// The newest of the readers that it is for.
    pub ticket: u64,
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Snapshots {
    pub published: watch::Receiver<Published>,
    /// The ticket of the newest reader. The machine takes it at the end of each turn, so that readers do not wait behind
    /// the inputs in its mailbox.
    pub tickets: Arc<AtomicU64>,
    pub handle: Handle<Input>,
    pub commits: Arc<Commits>,
}

impl Snapshots {
    /// With everything that was visible before this call. While nothing becomes durable: the last one.
    pub async fn newest(&self) -> Arc<State> {
        let ticket = self.tickets.fetch_add(1, Ordering::AcqRel) + 1;
        self.handle.wake(Input::Publish { ticket });
        let mut published = self.published.clone();
        tokio::select! {
            // An error: the machine has stopped.
            _ = published.wait_for(|published| published.ticket >= ticket) => (),
            () = self.commits.stuck() => (),
        }
        self.last()
    }

    /// The one that was published last.
    pub fn last(&self) -> Arc<State> {
        self.published.borrow().state.clone()
    }
}
