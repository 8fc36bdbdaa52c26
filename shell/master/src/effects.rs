//! Makes the machine's effects visible. Runs on the machine's threads and never waits.

use std::sync::Arc;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue};
use tepui_authz::Authorizer;
use tepui_core_master::{Effect, State, Transition};
use tepui_http::{Audit, Exchanges, Pushes, Renderings};
use tepui_log::TransitionLog;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::audit::Decisions;
use crate::documents::Key;
use crate::explain::Explainer;
use crate::log;
use crate::metered::AllocationTimes;
use crate::program::Kind;
use crate::subscribers::{self, Feed, Item};

pub(crate) const STREAM_ID: HeaderName = HeaderName::from_static("mesos-stream-id");

pub(crate) struct Effects {
    exchanges: Exchanges<Kind>,
    publisher: watch::Sender<Arc<State>>,
    subscribers: Feed,
    explainer: Explainer,
    times: Arc<AllocationTimes>,
    log: TransitionLog<Transition>,
    decisions: Decisions,
    /// Why this process must end.
    halt: watch::Sender<Option<String>>,
}

impl Effects {
    /// Must be called inside a tokio runtime. The task delivers operator events and ends after this is dropped.
    pub fn start(
        exchanges: Exchanges<Kind>,
        publisher: watch::Sender<Arc<State>>,
        authorizer: Authorizer,
        renderings: Renderings<Key>,
        times: Arc<AllocationTimes>,
        halt: watch::Sender<Option<String>>,
        audit: Audit,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let log = log::start()?;
        let (subscribers, delivery) =
            subscribers::start(exchanges.clone(), authorizer.clone(), renderings.clone());
        let explainer = Explainer { exchanges: exchanges.clone(), authorizer, renderings };
        let decisions = Decisions { audit, exchanges: exchanges.clone() };
        Ok((Self { exchanges, publisher, subscribers, explainer, times, log, decisions, halt }, delivery))
    }

    /// The snapshot goes first: the receiver of an event must find its content in the documents.
    pub fn make_visible(&mut self, effects: Vec<Effect>) {
        let (snapshots, others): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Publish { .. }));
        let (mut transitions, mut pushes) = (Vec::new(), Pushes::default());
        for effect in snapshots.into_iter().chain(others) {
            self.make_one_visible(effect, &mut transitions, &mut pushes);
        }
        self.exchanges.flush(&mut pushes);
        self.log.push(transitions);
    }

    fn make_one_visible(&mut self, effect: Effect, transitions: &mut Vec<Transition>, pushes: &mut Pushes) {
        match effect {
            Effect::Transition(transition) => {
                self.decisions.observe(&self.publisher.borrow(), &transition);
                transitions.push(*transition);
            }
            Effect::Answer { conn, answer } => self.exchanges.reply(conn, answer),
            Effect::OpenScheduler { conn, stream_id } => {
                let value = HeaderValue::from_str(&stream_id).expect("stream ids are UUIDs");
                self.exchanges.open(conn, &[(STREAM_ID, value)]);
            }
            // One chunk for each event, as v1 has it; agents read records wherever they begin.
            Effect::Scheduler { conn, event } => self.exchanges.collect(pushes, conn, &*event),
            Effect::OpenAgent { conn } => self.exchanges.open(conn, &[]),
            Effect::Agent { conn, event } | Effect::Kill { conn, event } => {
                self.exchanges.collect_joined(pushes, conn, &*event);
            }
            Effect::OpenOperator { conn, state, next } => {
                self.subscribers.push(Item::Subscribe { conn, state, next });
            }
            Effect::Operator { event } => {
                // A snapshot without a reader is dropped with its turn, while its memory is cached.
                let rules = self.explainer.authorizer.is_set();
                let state = rules.then(|| self.publisher.borrow().clone());
                self.subscribers.push(Item::Event { event, state });
            }
            Effect::CloseOperator { conn } => self.subscribers.push(Item::Unsubscribe { conn }),
            Effect::CloseScheduler { conn } | Effect::CloseAgent { conn } => {
                self.exchanges.flush(pushes);
                self.exchanges.close(conn);
            }
            Effect::Explained { conn, now, report } => {
                let state = self.publisher.borrow().clone();
                self.explainer.answer(conn, now, report, state);
            }
            Effect::SlackTakenBack { took, .. } => self.times.take_back.add(Instant::now(), took),
            Effect::Halt { why } => {
                self.halt.send_replace(Some(why));
            }
            Effect::Publish { state } => {
                self.publisher.send_replace(state);
            }
        }
    }
}
