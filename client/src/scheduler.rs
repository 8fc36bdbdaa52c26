//! Frameworks: subscribe to a master, receive offers and updates, launch and kill tasks.
//!
//! [`connect`] returns a [`Scheduler`]: events from [`Scheduler::next_event`], calls as methods. It finds the leader,
//! resubscribes under the same framework id when the link is lost, and ends after the master's ERROR. [`Session`] is
//! the same protocol without any I/O, for simulations and other transports; [`calls`] builds calls.

pub mod calls;
mod driver;
mod event;
mod sender;
mod session;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::{
    AgentID, ExecutorID, Filters, FrameworkID, FrameworkInfo, KillPolicy, OfferID, TaskID, TaskStatus, offer,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::credential::Credential;
use crate::endpoint::{AddressError, Masters};
use crate::fault::Fault;
use crate::format::Format;

pub use event::Event;
pub use session::{HEARTBEATS_MISSED_MAX, Link, Outcome, Session, State};

/// Events waiting for [`Scheduler::next_event`]. When full, nothing more is read from the master, which disconnects a
/// scheduler that stays behind.
pub const EVENTS_QUEUE_MAX: usize = 1024;
/// Calls waiting to be sent. When full, the methods of [`Caller`] wait.
pub const CALLS_QUEUE_MAX: usize = 1024;

/// How to connect; `Options::default()` is right for most.
#[derive(Clone, Debug)]
pub struct Options {
    pub format: Format,
    pub credential: Option<Credential>,
    /// The longest pause between attempts to subscribe.
    pub backoff_max: Duration,
    /// Roles that are suppressed at first.
    pub suppressed_roles: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::default(),
            credential: None,
            backoff_max: session::BACKOFF_MAX,
            suppressed_roles: Vec::new(),
        }
    }
}

/// Subscribes `framework` to the leader among `masters` (`host:port`, several separated by commas).
///
/// Returns at once; the first event is [`Event::Subscribed`]. Must be called inside a tokio runtime.
pub fn connect(masters: &str, framework: FrameworkInfo) -> Result<Scheduler, AddressError> {
    connect_with(masters, framework, Options::default())
}

/// [`connect`] with options.
pub fn connect_with(
    masters: &str,
    framework: FrameworkInfo,
    options: Options,
) -> Result<Scheduler, AddressError> {
    let masters: Masters = masters.parse()?;
    Ok(driver::start(masters, framework, options))
}

/// A subscribed framework. Dropping it closes the connection: the master keeps the tasks for `failover_timeout`.
#[derive(Debug)]
pub struct Scheduler {
    events: mpsc::Receiver<Event>,
    caller: Caller,
}

impl Scheduler {
    /// The next event; `None` after the session has terminated (an [`Event::Error`] has the reason).
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// A handle for calls from other tasks.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }
}

impl std::ops::Deref for Scheduler {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// The calls of a framework. Cheap to clone; calls go out in the order in which they were made, on one connection and
/// without waiting for the answers to earlier ones ([`CALLS_IN_FLIGHT_MAX`](crate::CALLS_IN_FLIGHT_MAX)).
#[derive(Clone, Debug)]
pub struct Caller {
    calls: mpsc::Sender<(Call, sender::Reply)>,
    link: watch::Receiver<Option<sender::Route>>,
}

/// The answer to a call that was queued. After [`Fault::Lost`] the call may have been carried out.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Result<(), Fault>>);

impl Future for Pending {
    type Output = Result<(), Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(answer.unwrap_or(Err(Fault::Ended)))
    }
}

impl Caller {
    /// The id that the master gave, while subscribed.
    pub fn framework_id(&self) -> Option<FrameworkID> {
        self.link.borrow().as_ref().map(|route| route.link.framework_id.clone())
    }

    /// Sends any call; its framework id is filled in. `Ok` means that the master accepted it; its outcome comes as
    /// events.
    pub async fn call(&self, call: Call) -> Result<(), Fault> {
        self.begin(call).await?.await
    }

    /// Sends any call without waiting for its answer, so that many can be on their way at once. Returns when the call is
    /// queued; it is sent also if the [`Pending`] answer is dropped.
    pub async fn begin(&self, call: Call) -> Result<Pending, Fault> {
        let (reply, answer) = oneshot::channel();
        self.calls.send((call, reply)).await.map_err(|_| Fault::Ended)?;
        Ok(Pending(answer))
    }

    /// Uses offers of one agent: launches tasks, reserves, creates volumes. What is left over is declined.
    pub async fn accept(
        &self,
        offers: impl IntoIterator<Item = OfferID>,
        operations: Vec<offer::Operation>,
        filters: Option<Filters>,
    ) -> Result<(), Fault> {
        self.call(calls::accept(offers, operations, filters)).await
    }

    /// Gives offers back.
    pub async fn decline(
        &self,
        offers: impl IntoIterator<Item = OfferID>,
        filters: Option<Filters>,
    ) -> Result<(), Fault> {
        self.call(calls::decline(offers, filters)).await
    }

    /// Confirms an update. Updates without a uuid need no confirmation; for these nothing is sent.
    pub async fn acknowledge(&self, status: &TaskStatus) -> Result<(), Fault> {
        match calls::acknowledge(status) {
            Some(call) => self.call(call).await,
            None => Ok(()),
        }
    }

    pub async fn kill(
        &self,
        task: TaskID,
        agent: Option<AgentID>,
        policy: Option<KillPolicy>,
    ) -> Result<(), Fault> {
        self.call(calls::kill(task, agent, policy)).await
    }

    /// Requests the state of the given tasks, of all if there are none.
    pub async fn reconcile(
        &self,
        tasks: impl IntoIterator<Item = (TaskID, Option<AgentID>)>,
    ) -> Result<(), Fault> {
        self.call(calls::reconcile(tasks)).await
    }

    /// Sends bytes to an executor; they may get lost.
    pub async fn message(&self, agent: AgentID, executor: ExecutorID, data: Vec<u8>) -> Result<(), Fault> {
        self.call(calls::message(agent, executor, data)).await
    }

    /// Ends an executor and all its tasks.
    pub async fn shutdown(&self, executor: ExecutorID, agent: AgentID) -> Result<(), Fault> {
        self.call(calls::shutdown(executor, agent)).await
    }

    /// Revives `roles`, all roles if empty: removes their suppression and all filters.
    pub async fn revive(&self, roles: Vec<String>) -> Result<(), Fault> {
        self.call(calls::revive(roles)).await
    }

    /// Suppresses offers for `roles`, for all roles if empty.
    pub async fn suppress(&self, roles: Vec<String>) -> Result<(), Fault> {
        self.call(calls::suppress(roles)).await
    }

    /// Ends the framework: all its tasks are killed and its id cannot be used again.
    pub async fn teardown(&self) -> Result<(), Fault> {
        self.call(calls::teardown()).await
    }
}
