//! Bookkeeping of the agent: data of handlers that readers do not see.
//!
//! Plain data with small methods; absent: decisions, sending.

mod eviction;
mod history;
mod link;
mod oversubscription;
mod recovery;
mod requests;
mod slack;
mod stream;
mod touched;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;

use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ConnId, ExecutorId, FrameworkId, TaskId};

pub(crate) use eviction::{Evicting, Releasing};
pub use eviction::{Eviction, MachineMemory, MemoryUse, SandboxUse};
pub use history::HistoryEntry;
pub use link::LinkId;
pub(crate) use link::{Link, LinkStage};
pub use oversubscription::{Estimator, Load, QosController, Used};
pub(crate) use oversubscription::{Oversubscription, Watched};
pub(crate) use recovery::Recovery;
pub(crate) use requests::{Requests, WaitForm};
pub(crate) use slack::{ExecutorKey, Slack};
pub(crate) use stream::{RETRY_MAX, RETRY_MIN, Stream};
pub(crate) use touched::Touched;

/// UUID of an operation.
pub(crate) type Uuid = [u8; 16];

/// Status update streams of tasks.
pub(crate) type Streams = BTreeMap<(FrameworkId, TaskId), Stream>;

/// Updates of an executor that wait until its containers are known.
pub(crate) type WaitingUpdates = VecDeque<pb::TaskStatus>;

/// Unused directories and since when they are. A directory stays here until its removal is done.
pub(crate) type UnusedPaths = BTreeMap<String, Wall>;

/// A pending timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Open a link to the master.
    Connect,
    /// The link was silent, or did not come up, for too long.
    LinkSilent,
    /// The time of executors to resubscribe after a restart is over.
    Reregistration,
    /// The executor had its time to subscribe.
    Registration(FrameworkId, ExecutorId),
    /// The executor had its time to end.
    Shutdown(FrameworkId, ExecutorId),
    /// The executor had its time to end a task.
    Kill(FrameworkId, TaskId),
    /// The task had its time to end, and its executor to end it.
    Completion(FrameworkId, TaskId),
    /// The executor's stream needs a sign of life.
    Heartbeat(FrameworkId, ExecutorId),
    /// The head of a status update stream was not acknowledged.
    Retry(FrameworkId, TaskId),
    /// The outcome of an operation was not acknowledged.
    RetryOperation(Uuid),
    /// A directory was kept long enough.
    Collect,
    /// A new estimate of what may be offered again.
    Estimate,
}

/// An executor that subscribed before its launch was reported. It waits for that: every status contains its process ID.
#[derive(Debug)]
pub(crate) struct EarlySubscription {
    pub(crate) conn: ConnId,
    pub(crate) framework: FrameworkId,
    pub(crate) id: ExecutorId,
    pub(crate) call: pb::executor::call::Subscribe,
}
