//! The life of one executor's link to its agent, without any I/O.
//!
//! Owns what the agent has not confirmed: tasks without an acknowledged update, and updates. Both are part of every
//! subscription, so nothing is lost when the agent restarts; the agent detects duplicates by their uuid. Absent:
//! sockets, clocks, randomness; time is the time since any fixed moment.

use std::time::Duration;

use tepui_proto::mesos::v1::executor::{Call, Event as WireEvent, call};
use tepui_proto::mesos::v1::task_status::Source;
use tepui_proto::mesos::v1::{ExecutorID, FrameworkID, TaskInfo, TaskStatus};

use super::event::Event;
use crate::backoff::Backoff;

/// Heartbeat interval of an executor.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// An agent that started an executor must take its first subscription in this time.
pub const SUBSCRIBE_FIRST_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit of the time between an accepted subscription and SUBSCRIBED (or SHUTDOWN).
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(60);
const BACKOFF_FIRST: Duration = Duration::from_millis(200);

/// The executor, and its timeouts.
#[derive(Clone, Debug)]
pub struct Config {
    pub framework_id: String,
    pub executor_id: String,
    /// Whether executors survive their agent's restart.
    pub checkpoint: bool,
    /// How long to wait for a restarting agent.
    pub recovery_timeout: Duration,
    /// How long a restarted agent waits for its executors.
    pub backoff_max: Duration,
}

/// The protocol state of an executor.
#[derive(Clone, Debug)]
pub struct Session {
    config: Config,
    backoff: Backoff,
    /// In the order of their launch.
    unacknowledged_tasks: Vec<TaskInfo>,
    /// In the order in which they were made.
    unacknowledged_updates: Vec<TaskStatus>,
    /// How many of the updates, at the end, were made since SUBSCRIBE was sent and wait for SUBSCRIBED.
    held_back: usize,
    /// When the agent counts as gone for good; None while subscribed.
    gone_at: Option<Duration>,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// No stream; the next attempt is due at `retry_at`.
    Disconnected { retry_at: Duration },
    /// SUBSCRIBE was sent.
    Subscribing { give_up_at: Duration },
    /// Calls can be sent; the next heartbeat is due at `heartbeat_at`.
    Subscribed { heartbeat_at: Duration },
    /// The agent is gone for good or refused this executor; nothing follows.
    Ended,
}

/// What comes of a refused call or a deadline.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing to do but to wait.
    Continue,
    /// Time to subscribe (while disconnected).
    Subscribe,
    /// Send this call.
    Send(Call),
    /// The stream counts as [`Session::lost`].
    Lost,
    /// The session has terminated, with this event.
    Ended(Event),
}

impl Session {
    pub fn new(config: Config, now: Duration) -> Self {
        Self {
            // A recovering agent waits for its executors as long as that maximum: two attempts in this time.
            backoff: Backoff::new(BACKOFF_FIRST, config.backoff_max / 2),
            config,
            unacknowledged_tasks: Vec::new(),
            unacknowledged_updates: Vec::new(),
            held_back: 0,
            gone_at: Some(now + SUBSCRIBE_FIRST_TIMEOUT),
            state: State::Disconnected { retry_at: now },
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn is_subscribed(&self) -> bool {
        matches!(self.state, State::Subscribed { .. })
    }

    /// Updates that the agent has not confirmed yet.
    pub fn unacknowledged_updates(&self) -> &[TaskStatus] {
        &self.unacknowledged_updates
    }

    fn call(&self, kind: call::Type) -> Call {
        Call {
            executor_id: ExecutorID { value: self.config.executor_id.clone(), ..Default::default() }.into(),
            framework_id: FrameworkID { value: self.config.framework_id.clone(), ..Default::default() }
                .into(),
            r#type: Some(kind),
            ..Default::default()
        }
    }

    /// The call that subscribes, with everything that is not confirmed.
    pub fn subscribe(&mut self, now: Duration) -> Call {
        self.state = State::Subscribing { give_up_at: now + SUBSCRIBE_TIMEOUT };
        self.held_back = 0;
        let updates = self.unacknowledged_updates.iter();
        let subscribe = call::Subscribe {
            unacknowledged_tasks: self.unacknowledged_tasks.clone(),
            unacknowledged_updates: updates.map(|status| update(status.clone())).collect(),
            ..Default::default()
        };
        Call { subscribe: subscribe.into(), ..self.call(call::Type::SUBSCRIBE) }
    }

    /// The agent answered a call with something else than 2xx.
    pub fn refused(&mut self, status: u16, message: &str) -> Outcome {
        match status {
            // Recovering, not yet listening under this path, or it forgot the subscription (403).
            404 | 408 | 429 | 500.. => Outcome::Lost,
            403 if self.is_subscribed() => Outcome::Lost,
            _ => {
                self.state = State::Ended;
                Outcome::Ended(Event::Error(format!("the agent rejected the request: {status} {message}")))
            }
        }
    }

    /// Handles an event of the agent; returns the executor's event, none for heartbeats.
    pub fn receive(&mut self, now: Duration, event: WireEvent) -> Option<Event> {
        let event = Event::from_wire(event)?;
        match &event {
            Event::Subscribed(_) => {
                self.backoff.reset();
                self.gone_at = None;
                self.state = State::Subscribed { heartbeat_at: now + HEARTBEAT_INTERVAL };
            }
            Event::Launch(task) => self.unacknowledged_tasks.push(task.clone()),
            Event::LaunchGroup(tasks) => self.unacknowledged_tasks.extend(tasks.iter().cloned()),
            Event::Acknowledged { task_id, uuid } => {
                self.unacknowledged_updates.retain(|status| status.uuid.as_ref() != Some(uuid));
                self.unacknowledged_tasks.retain(|task| task.task_id.value != task_id.value);
            }
            Event::Error(_) => self.state = State::Ended,
            Event::Disconnected | Event::Kill { .. } | Event::Message(_) | Event::Shutdown => (),
        }
        Some(event)
    }

    /// Takes an update in. Gives the call to send if there is a subscription; else it goes along with the next one, or
    /// follows it ([`Session::held_back`]).
    ///
    /// `uuid` and `timestamp` (seconds since the epoch) are used where the status has none.
    pub fn update(&mut self, mut status: TaskStatus, uuid: [u8; 16], timestamp: f64) -> Option<Call> {
        status.source = Some(Source::SOURCE_EXECUTOR);
        status.uuid.get_or_insert_with(|| uuid.to_vec());
        status.timestamp.get_or_insert(timestamp);
        self.unacknowledged_updates.push(status.clone());
        if !self.is_subscribed() {
            self.held_back += 1;
            return None;
        }
        Some(self.update_call(status))
    }

    /// The updates made while the subscription was under way: to be sent, in order, after [`Event::Subscribed`].
    pub fn held_back(&mut self) -> Vec<Call> {
        let held_back = std::mem::take(&mut self.held_back).min(self.unacknowledged_updates.len());
        let first = self.unacknowledged_updates.len() - held_back;
        self.unacknowledged_updates[first..].iter().map(|status| self.update_call(status.clone())).collect()
    }

    fn update_call(&self, status: TaskStatus) -> Call {
        Call { update: update(status).into(), ..self.call(call::Type::UPDATE) }
    }

    /// A message to the framework; None, and the message lost, while there is no subscription.
    pub fn message(&self, data: Vec<u8>) -> Option<Call> {
        let message = call::Message { data, ..Default::default() };
        self.is_subscribed().then(|| Call { message: message.into(), ..self.call(call::Type::MESSAGE) })
    }

    /// The stream is gone, or could not be had.
    ///
    /// Gives [`Event::Disconnected`] if there was a subscription and it will be tried again, [`Event::Shutdown`] if not.
    pub fn lost(&mut self, now: Duration, random: u64) -> Option<Event> {
        let was_subscribed = match self.state {
            State::Ended => return None,
            State::Subscribed { .. } => true,
            State::Disconnected { .. } | State::Subscribing { .. } => false,
        };
        if was_subscribed && !self.config.checkpoint {
            self.state = State::Ended;
            return Some(Event::Shutdown);
        }
        let gone_at = *self.gone_at.get_or_insert(now + self.config.recovery_timeout);
        if now >= gone_at {
            self.state = State::Ended;
            return Some(Event::Shutdown);
        }
        let retry_at = (now + self.backoff.next(random)).min(gone_at);
        self.state = State::Disconnected { retry_at };
        was_subscribed.then_some(Event::Disconnected)
    }

    /// When to call [`Session::due`].
    pub fn deadline(&self) -> Option<Duration> {
        match self.state {
            State::Disconnected { retry_at } => Some(retry_at),
            State::Subscribing { give_up_at } => Some(give_up_at),
            State::Subscribed { heartbeat_at } => Some(heartbeat_at),
            State::Ended => None,
        }
    }

    /// Actions that are due.
    pub fn due(&mut self, now: Duration) -> Outcome {
        match &mut self.state {
            State::Disconnected { retry_at } if now >= *retry_at => Outcome::Subscribe,
            State::Subscribing { give_up_at } if now >= *give_up_at => Outcome::Lost,
            State::Subscribed { heartbeat_at } if now >= *heartbeat_at => {
                *heartbeat_at = now + HEARTBEAT_INTERVAL;
                Outcome::Send(self.call(call::Type::HEARTBEAT))
            }
            State::Disconnected { .. }
            | State::Subscribing { .. }
            | State::Subscribed { .. }
            | State::Ended => Outcome::Continue,
        }
    }
}

fn update(status: TaskStatus) -> call::Update {
    call::Update { status: status.into(), ..Default::default() }
}

#[cfg(test)]
mod tests;
