//! The life of one framework's link to its master, without any I/O.
//!
//! Fed by the owner of the connection: `subscribe` before sending, `opened` or `refused` with the answer, `receive` for
//! every event, `lost` when the stream ends. It decides when a silent master is lost and when to retry. Absent:
//! sockets, clocks, randomness; time is the time since any fixed moment.

use std::time::Duration;

use tepui_proto::MessageField;
use tepui_proto::mesos::v1::scheduler::{Call, Event as WireEvent, OfferConstraints, call};
use tepui_proto::mesos::v1::{FrameworkID, FrameworkInfo};

use super::calls;
use super::event::Event;
use crate::backoff::Backoff;

/// A master that stays silent for this many of its heartbeat intervals is given up.
pub const HEARTBEATS_MISSED_MAX: u32 = 5;
/// The interval to assume if the master does not name one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Limit of the time between an accepted subscription and SUBSCRIBED.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(60);
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// The protocol state of a framework.
#[derive(Clone, Debug)]
pub struct Session {
    framework: FrameworkInfo,
    suppressed_roles: Vec<String>,
    offer_constraints: MessageField<OfferConstraints>,
    backoff: Backoff,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// No stream; the next attempt is due at `retry_at`.
    Disconnected { retry_at: Duration },
    /// SUBSCRIBE was sent; `stream_id` is known once the answer's head has come.
    Subscribing { stream_id: Option<String>, give_up_at: Duration },
    /// Calls can be sent.
    Subscribed { link: Link, heartbeat: Duration, silent_at: Duration },
    /// The framework was torn down, or the master refused or ended the session; nothing follows.
    Ended,
}

/// What every call of a subscription carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub framework_id: FrameworkID,
    /// The value of the `Mesos-Stream-Id` header.
    pub stream_id: Option<String>,
}

impl Link {
    /// Fills in the framework id.
    pub fn stamp(&self, mut call: Call) -> Call {
        call.framework_id = self.framework_id.clone().into();
        if let Some(update) = call.update_framework.as_option_mut() {
            update.framework_info.get_or_insert_default().id = self.framework_id.clone().into();
        }
        call
    }
}

/// What comes of a refused subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Another master, or the same one later, may take it: the stream counts as [`Session::lost`].
    Retry,
    /// A retry is pointless; the framework receives this event.
    Ended(Event),
}

impl Session {
    /// A framework with an id resubscribes as that framework (failover); one without gets an id.
    pub fn new(framework: FrameworkInfo) -> Self {
        Self {
            framework,
            suppressed_roles: Vec::new(),
            offer_constraints: MessageField::none(),
            backoff: Backoff::new(BACKOFF_FIRST, BACKOFF_MAX),
            state: State::Disconnected { retry_at: Duration::ZERO },
        }
    }

    pub fn with_suppressed_roles(mut self, roles: Vec<String>) -> Self {
        self.suppressed_roles = roles;
        self
    }

    pub fn with_backoff_max(mut self, max: Duration) -> Self {
        self.backoff = Backoff::new(BACKOFF_FIRST, max);
        self
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The framework as it will be subscribed the next time, with its id once it has one.
    pub fn framework(&self) -> &FrameworkInfo {
        &self.framework
    }

    pub fn link(&self) -> Option<&Link> {
        match &self.state {
            State::Subscribed { link, .. } => Some(link),
            State::Disconnected { .. } | State::Subscribing { .. } | State::Ended => None,
        }
    }

    /// The call that subscribes; send it on a connection of its own, without a stream id.
    pub fn subscribe(&mut self, now: Duration) -> Call {
        self.state = State::Subscribing { stream_id: None, give_up_at: now + SUBSCRIBE_TIMEOUT };
        calls::subscribe(&self.framework, &self.suppressed_roles, &self.offer_constraints)
    }

    /// The master answered 200, with this stream id: events follow.
    pub fn opened(&mut self, id: Option<String>) {
        if let State::Subscribing { stream_id, .. } = &mut self.state {
            *stream_id = id;
        }
    }

    /// The master answered something else than 200 (redirects are followed before).
    pub fn refused(&mut self, status: u16, message: &str) -> Outcome {
        match status {
            // Not leading, still recovering, shutting down, or a proxy in between.
            307 | 404 | 408 | 429 | 500.. => Outcome::Retry,
            _ => {
                self.state = State::Ended;
                Outcome::Ended(Event::Error(format!(
                    "the master rejected the subscription: {status} {message}"
                )))
            }
        }
    }

    /// Handles an event of the master; returns the framework's event, none for heartbeats.
    pub fn receive(&mut self, now: Duration, event: WireEvent) -> Option<Event> {
        if let State::Subscribed { heartbeat, silent_at, .. } = &mut self.state {
            *silent_at = now + *heartbeat * HEARTBEATS_MISSED_MAX;
        }
        let event = Event::from_wire(event)?;
        match &event {
            Event::Subscribed(subscribed) => {
                let heartbeat = subscribed
                    .heartbeat_interval_seconds
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                    .unwrap_or(HEARTBEAT_INTERVAL);
                self.subscribed(now, (*subscribed.framework_id).clone(), heartbeat);
            }
            Event::Error(_) => self.state = State::Ended,
            Event::Disconnected
            | Event::Offers(_)
            | Event::InverseOffers(_)
            | Event::Rescind(_)
            | Event::RescindInverseOffer(_)
            | Event::Update(_)
            | Event::UpdateOperation(_)
            | Event::Message(_)
            | Event::Failure(_) => (),
        }
        Some(event)
    }

    fn subscribed(&mut self, now: Duration, framework_id: FrameworkID, heartbeat: Duration) {
        let stream_id = match &mut self.state {
            State::Subscribing { stream_id, .. } => stream_id.take(),
            State::Subscribed { link, .. } => link.stream_id.take(),
            State::Disconnected { .. } | State::Ended => None,
        };
        self.framework.id = framework_id.clone().into();
        self.backoff.reset();
        self.state = State::Subscribed {
            link: Link { framework_id, stream_id },
            heartbeat,
            silent_at: now + heartbeat * HEARTBEATS_MISSED_MAX,
        };
    }

    /// The stream is gone, or could not be had. Gives [`Event::Disconnected`] if the framework was subscribed.
    pub fn lost(&mut self, now: Duration, random: u64) -> Option<Event> {
        let was = std::mem::replace(&mut self.state, State::Ended);
        match was {
            State::Ended => None,
            State::Subscribed { .. } => {
                self.state = State::Disconnected { retry_at: now + self.backoff.next(random) };
                Some(Event::Disconnected)
            }
            State::Disconnected { .. } | State::Subscribing { .. } => {
                self.state = State::Disconnected { retry_at: now + self.backoff.next(random) };
                None
            }
        }
    }

    /// When to look again: the next attempt while disconnected, the end of patience otherwise.
    pub fn deadline(&self) -> Option<Duration> {
        match self.state {
            State::Disconnected { retry_at } => Some(retry_at),
            State::Subscribing { give_up_at, .. } => Some(give_up_at),
            State::Subscribed { silent_at, .. } => Some(silent_at),
            State::Ended => None,
        }
    }

    /// Whether the master has been silent for too long; then the stream counts as [`Session::lost`].
    pub fn is_silent(&self, now: Duration) -> bool {
        match self.state {
            State::Subscribing { give_up_at: until, .. } | State::Subscribed { silent_at: until, .. } => {
                now >= until
            }
            State::Disconnected { .. } | State::Ended => false,
        }
    }

    /// Whether [`apply_accepted`](Self::apply_accepted) does anything with an accepted call.
    pub fn is_remembered(call: &Call) -> bool {
        use call::Type::{REVIVE, SUPPRESS, TEARDOWN, UPDATE_FRAMEWORK};
        matches!(call.r#type, Some(SUPPRESS | REVIVE | UPDATE_FRAMEWORK | TEARDOWN))
    }

    /// Applies an accepted call to later subscriptions, which replace the master's description of the framework.
    pub fn apply_accepted(&mut self, sent: &Call) {
        match sent.r#type {
            Some(call::Type::SUPPRESS) => {
                let roles = &sent.suppress.roles;
                let wanted = if roles.is_empty() { self.roles() } else { roles.clone() };
                self.suppressed_roles.extend(wanted);
                self.suppressed_roles.sort();
                self.suppressed_roles.dedup();
            }
            Some(call::Type::REVIVE) => {
                let roles = &sent.revive.roles;
                self.suppressed_roles.retain(|role| !roles.is_empty() && !roles.contains(role));
            }
            Some(call::Type::UPDATE_FRAMEWORK) => {
                self.framework = (*sent.update_framework.framework_info).clone();
                self.suppressed_roles = sent.update_framework.suppressed_roles.clone();
                self.offer_constraints = sent.update_framework.offer_constraints.clone();
            }
            Some(call::Type::TEARDOWN) => self.state = State::Ended,
            _ => (), // All other calls are about offers and tasks, not about the framework.
        }
    }

    #[allow(deprecated)] // A framework without MULTI_ROLE has one role, in the deprecated field.
    fn roles(&self) -> Vec<String> {
        match self.framework.roles.is_empty() {
            true => self.framework.role.clone().into_iter().collect(),
            false => self.framework.roles.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
