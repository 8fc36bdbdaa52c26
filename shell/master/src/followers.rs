//! Tells those who follow the operators' event stream what happens, and those who asked for an explanation what was
//! found, on a thread of its own and of low priority.
//!
//! The machine only hands over what there is to tell, however many follow; what came meanwhile is told together. Order is
//! kept: a follower's state is of the moment when it subscribed, and what happened after that comes behind it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tepui_authz::Authorizer;
use tepui_core_master::explain::Report;
use tepui_core_master::{State, event_seen};
use tepui_fsm::Mono;
use tepui_http::auth::subject;
use tepui_http::{Exchanges, Query, be_nice, json};
use tepui_proto::mesos::v1::master::Event;
use tepui_types::ConnId;
use tokio::runtime;

use crate::explain::{self, Reader};
use crate::read;
use crate::routes::Kind;

/// What may wait to be told; with more the machine waits too.
const TELLINGS_MAX: usize = 64 * 1024;

/// How much nicer the thread is than who decides and launches.
const TELLER_NICE: i32 = 10;

/// What is told together.
const BATCH_EVENTS_MAX: usize = 1024;

/// Something to tell.
#[derive(Debug)]
pub(crate) enum Telling {
    /// A new follower, the state to begin with, and what comes next.
    Open {
        conn: ConnId,
        state: Box<State>,
        next: Arc<Event>,
    },
    /// To all who follow and may see it; the state says who may.
    Event {
        event: Arc<Event>,
        state: Arc<State>,
    },
    /// The answer to a question, found at `now`.
    Explained {
        conn: ConnId,
        now: Mono,
        report: Box<Report>,
        state: Arc<State>,
    },
    Close {
        conn: ConnId,
    },
}

/// The machine's end of it. Dropping it ends the thread after everything was told.
#[derive(Debug)]
pub(crate) struct Followers {
    tellings: SyncSender<Telling>,
}

impl Followers {
    /// Must be called inside a tokio runtime, where large states are rendered.
    pub fn start(exchanges: Exchanges<Kind>, authorizer: Authorizer) -> std::io::Result<Self> {
        let (tellings, receiver) = sync_channel(TELLINGS_MAX);
        let teller =
            Teller { exchanges, authorizer, runtime: runtime::Handle::current(), tellings: receiver };
        // Ends when the machine does. It has nothing to fail by; if it did, the followers would hear nothing more.
        std::thread::Builder::new().name("followers".to_owned()).spawn(move || teller.run())?;
        Ok(Self { tellings })
    }

    pub fn tell(&self, telling: Telling) {
        if self.tellings.send(telling).is_err() {
            tracing::error!("nobody tells followers what happens");
        }
    }
}

struct Teller {
    exchanges: Exchanges<Kind>,
    authorizer: Authorizer,
    runtime: runtime::Handle,
    tellings: Receiver<Telling>,
}

impl Teller {
    fn run(self) {
        be_nice(TELLER_NICE);
        let mut next = None;
        while let Some(telling) = next.take().or_else(|| self.tellings.recv().ok()) {
            match telling {
                Telling::Open { conn, state, next } => self.open(conn, state, &next),
                Telling::Event { event, state } if self.authorizer.is_set() => {
                    self.event_seen(&event, &state)
                }
                Telling::Event { event, .. } => next = self.events(event),
                Telling::Explained { conn, now, report, state } => self.explained(conn, now, &report, &state),
                Telling::Close { conn } => self.exchanges.close(conn),
            }
        }
    }

    /// Tells this event and those that wait behind it; what comes after them.
    fn events(&self, first: Arc<Event>) -> Option<Telling> {
        let (mut events, mut next) = (vec![first], None);
        while events.len() < BATCH_EVENTS_MAX {
            match self.tellings.try_recv() {
                Ok(Telling::Event { event, .. }) => events.push(event),
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let events: Vec<&Event> = events.iter().map(|event| &**event).collect();
        self.exchanges.push_all(Kind::Operator, &events);
        next
    }

    /// Each follower hears what they may see.
    fn event_seen(&self, event: &Event, state: &State) {
        for (conn, reader) in self.exchanges.readers(Kind::Operator) {
            if let Some(event) = event_seen(state, event, &self.authorizer, subject(reader.as_ref())) {
                self.exchanges.show(conn, &event);
            }
        }
    }

    fn explained(&self, conn: ConnId, now: Mono, report: &Report, state: &State) {
        let principal = self.exchanges.principal(conn);
        let seen = state.visible_to(&self.authorizer, subject(principal.as_ref()));
        let reader = Reader { seen: &seen, authorizer: &self.authorizer, principal: principal.as_ref(), now };
        let document = explain::document(&reader, report);
        self.exchanges.answer(conn, |_| json(&Query::default(), document));
    }

    /// The whole state is the stream's first record. It is rendered elsewhere; what happens meanwhile waits behind it.
    fn open(&self, conn: ConnId, state: Box<State>, next: &Event) {
        let Some(encoding) = self.exchanges.open_held(conn) else { return };
        self.exchanges.show(conn, next);
        let (exchanges, authorizer) = (self.exchanges.clone(), self.authorizer.clone());
        let reader = exchanges.principal(conn);
        self.runtime.spawn_blocking(move || {
            let seen = state.visible_to(&authorizer, subject(reader.as_ref()));
            exchanges.start_with(conn, &read::subscribed(&seen, encoding));
        });
    }
}
