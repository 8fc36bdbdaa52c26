//! Makes the machine's effects visible. Runs on the machine's threads and never waits.

use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use tepui_authz::Authorizer;
use tepui_core_master::{Effect, State, event_seen};
use tepui_http::auth::subject;
use tepui_http::{Exchanges, HttpError, Response, accepted, empty, message};
use tepui_proto::Wire;
use tepui_proto::mesos::v1::master::Event;
use tepui_types::{Answer, ConnId};
use tokio::runtime;
use tokio::sync::watch;

use crate::read;
use crate::routes::Kind;

const STREAM_ID: HeaderName = HeaderName::from_static("mesos-stream-id");

pub(crate) struct Effects {
    exchanges: Exchanges<Kind>,
    publisher: watch::Sender<Arc<State>>,
    authorizer: Authorizer,
    /// Where large snapshots are rendered.
    runtime: runtime::Handle,
}

impl Effects {
    pub fn new(
        exchanges: Exchanges<Kind>,
        publisher: watch::Sender<Arc<State>>,
        authorizer: Authorizer,
    ) -> Self {
        Self { exchanges, publisher, authorizer, runtime: runtime::Handle::current() }
    }

    /// The snapshot goes first: who was told something by an event must find it in the documents.
    pub fn make_visible(&mut self, effects: Vec<Effect>) {
        let (snapshots, others): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Publish { .. }));
        snapshots.into_iter().chain(others).for_each(|effect| self.make_one_visible(effect));
    }

    fn make_one_visible(&mut self, effect: Effect) {
        match effect {
            Effect::Answer { conn, answer } => answer_with(&self.exchanges, conn, answer),
            Effect::OpenScheduler { conn, stream_id } => {
                let value = HeaderValue::from_str(&stream_id).expect("stream ids are UUIDs");
                self.exchanges.open(conn, &[(STREAM_ID, value)]);
            }
            Effect::Scheduler { conn, event } => self.exchanges.push(conn, &*event),
            Effect::OpenAgent { conn } => self.exchanges.open(conn, &[]),
            Effect::Agent { conn, event } => self.exchanges.push(conn, &*event),
            Effect::OpenOperator { conn, state } => self.open_operator(conn, state),
            Effect::Operator { event } => self.tell_operators(&event),
            Effect::CloseScheduler { conn }
            | Effect::CloseAgent { conn }
            | Effect::CloseOperator { conn } => {
                self.exchanges.close(conn);
            }
            Effect::Publish { state } => {
                self.publisher.send_replace(Arc::new(state));
            }
        }
    }

    /// Each operator hears what they may see.
    fn tell_operators(&self, event: &Event) {
        if !self.authorizer.is_set() {
            return self.exchanges.push_all(Kind::Operator, event);
        }
        let state = self.publisher.borrow().clone();
        for (conn, reader) in self.exchanges.readers(Kind::Operator) {
            if let Some(event) = event_seen(&state, event, &self.authorizer, subject(reader.as_ref())) {
                self.exchanges.push(conn, &event);
            }
        }
    }

    /// The whole state is the stream's first record. It is rendered elsewhere; what happens meanwhile waits behind it.
    fn open_operator(&self, conn: ConnId, state: State) {
        let Some(encoding) = self.exchanges.open_held(conn) else { return };
        let (exchanges, authorizer) = (self.exchanges.clone(), self.authorizer.clone());
        let reader = exchanges.principal(conn);
        self.runtime.spawn_blocking(move || {
            let seen = state.visible_to(&authorizer, subject(reader.as_ref()));
            exchanges.start_with(conn, &read::subscribed(&seen, encoding));
        });
    }
}

fn answer_with<M: Wire>(exchanges: &Exchanges<Kind>, conn: ConnId, answer: Answer<M>) {
    exchanges.answer(conn, |encoding| -> Response {
        match answer {
            Answer::Accepted => accepted(),
            Answer::Ok => empty(http::StatusCode::OK),
            Answer::NoContent => empty(http::StatusCode::NO_CONTENT),
            Answer::Body(body) => message(encoding, &*body),
            Answer::Refused(refusal) => HttpError::from(&refusal).into(),
        }
    });
}
