//! Executors: run tasks on an agent and report their state.
//!
//! [`connect_from_env`] gives an [`Executor`] from the environment that the agent sets: events from
//! [`Executor::next_event`], updates by [`Reporter::update`], which are delivered exactly once in order, also across
//! a restart of the agent if the framework checkpoints. [`Session`] is the same protocol without any I/O.

mod driver;
mod environment;
mod event;
mod session;

use tepui_proto::mesos::v1::TaskStatus;
use tokio::sync::mpsc;

use crate::fault::Fault;
use crate::format::Format;

pub use environment::{Environment, EnvironmentError};
pub use event::Event;
pub use session::{Config, HEARTBEAT_INTERVAL, Outcome, SUBSCRIBE_FIRST_TIMEOUT, Session, State};

/// Events waiting for [`Executor::next_event`]. When full, nothing more is read from the agent.
pub const EVENTS_QUEUE_MAX: usize = 256;
/// Updates and messages waiting to be sent. When full, [`Reporter`] waits.
pub const REPORTS_QUEUE_MAX: usize = 1024;

/// Subscribes to the agent that started this process. Must be called inside a tokio runtime.
pub fn connect_from_env() -> Result<Executor, EnvironmentError> {
    Ok(connect(&Environment::from_env()?, Format::default()))
}

/// Subscribes with a given environment. Returns at once; the first event is [`Event::Subscribed`].
pub fn connect(environment: &Environment, format: Format) -> Executor {
    driver::start(environment, format)
}

/// A subscribed executor.
#[derive(Debug)]
pub struct Executor {
    events: mpsc::Receiver<Event>,
    reporter: Reporter,
}

impl Executor {
    /// The next event; `None` after the session has terminated: the executor should end its tasks and itself.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// A handle for updates and messages from other tasks.
    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }
}

impl std::ops::Deref for Executor {
    type Target = Reporter;

    fn deref(&self) -> &Reporter {
        &self.reporter
    }
}

/// The calls of an executor. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter {
    reports: mpsc::Sender<Report>,
}

#[derive(Debug)]
enum Report {
    Update(TaskStatus),
    Message(Vec<u8>),
}

impl Reporter {
    /// Reports the state of a task. Source, and where unset uuid and timestamp, are filled in.
    ///
    /// Returns when the update is queued. It is sent again after every reconnection until the agent acknowledges it
    /// ([`Event::Acknowledged`]).
    pub async fn update(&self, status: TaskStatus) -> Result<(), Fault> {
        self.reports.send(Report::Update(status)).await.map_err(|_| Fault::Ended)
    }

    /// Sends bytes to the framework; they may get lost.
    pub async fn message(&self, data: Vec<u8>) -> Result<(), Fault> {
        self.reports.send(Report::Message(data)).await.map_err(|_| Fault::Ended)
    }
}
