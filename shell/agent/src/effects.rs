//! Makes the machine's effects visible. Runs on the machine's threads and never waits.

use std::sync::Arc;

use tepui_container::Containerizer;
use tepui_core_agent::{Effect, State, Transition};
use tepui_http::Exchanges;
use tepui_log::TransitionLog;
use tokio::sync::watch;

use crate::access::Access;
use crate::link::Links;
use crate::program::Kind;

/// The reason why an agent stops its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentEnd {
    pub message: String,
    pub failed: bool,
}

pub(crate) struct Effects {
    pub exchanges: Exchanges<Kind>,
    pub links: Links,
    pub containerizer: Containerizer,
    pub publisher: watch::Sender<Arc<State>>,
    pub exit: watch::Sender<Option<AgentEnd>>,
    pub access: Access,
    pub log: TransitionLog<Transition>,
}

impl Effects {
    /// The snapshot goes first: the receiver of an event must find its content in the documents.
    pub fn make_visible(&mut self, effects: Vec<Effect>) {
        let (snapshots, others): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Publish { .. }));
        let mut transitions = Vec::new();
        snapshots
            .into_iter()
            .chain(others)
            .for_each(|effect| self.make_one_visible(effect, &mut transitions));
        self.log.push(transitions);
    }

    fn make_one_visible(&mut self, effect: Effect, transitions: &mut Vec<Transition>) {
        match effect {
            Effect::Transition(transition) => transitions.push(*transition),
            Effect::Connect { link } => self.links.connect(link),
            Effect::Master { link, call } => self.links.send(link, &call),
            Effect::Answer { conn, answer } => self.exchanges.reply(conn, answer),
            Effect::OpenExecutor { conn } => self.exchanges.open(conn, &[]),
            Effect::Executor { conn, event } | Effect::Kill { conn, event } => {
                self.exchanges.push(conn, &*event)
            }
            Effect::CloseExecutor { conn } => self.exchanges.close(conn),
            Effect::Container(mut op) => {
                self.access.equip(&self.publisher.borrow(), &mut op);
                self.containerizer.submit(op);
            }
            Effect::Publish { state } => {
                self.publisher.send_replace(Arc::new(state));
            }
            Effect::Exit { message, failed } => {
                self.exit.send_replace(Some(AgentEnd { message, failed }));
            }
        }
    }
}
