//! Acknowledged terminal statuses, until their agents must have received the acknowledgement.
//!
//! An acknowledgement is lost with its link, or crosses a repeated update. The id may belong to another task by then,
//! which these statuses do not concern. The answer to an in-order ping that was sent after an acknowledgement shows
//! that it arrived, and that all earlier messages have arrived here; other pings and answers overtake both while
//! records cannot be written. On a new link all of them are sent again before the first ping.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_types::{AgentId, FrameworkId, TaskId};

/// Acknowledgements on one agent, of tasks that are not in the books, that are remembered; a scheduler may make such up.
const UNKNOWN_ENDS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct TerminalAcknowledgements {
    by_agent: BTreeMap<AgentId, OnAgent>,
}

#[derive(Debug, Default)]
struct OnAgent {
    /// Of both kinds, on the present link. Agents of older versions do not mark their answers: once every ping is answered, the
    /// in-order ones are.
    pings: u64,
    pongs: u64,
    /// The number of the last in-order ping.
    in_order: u64,
    ends: BTreeMap<(FrameworkId, TaskId), End>,
}

#[derive(Debug)]
struct End {
    /// How many pings were sent before the acknowledgement.
    pings: u64,
    /// The update.
    uuid: Vec<u8>,
    /// The master had the task, and this is its terminal update.
    is_known: bool,
}

impl TerminalAcknowledgements {
    pub(crate) fn acknowledged(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        task: &TaskId,
        uuid: &[u8],
    ) {
        self.insert(agent, framework, task, uuid, true);
    }

    /// The same for a task that the master does not have: its termination was reported without waiting for an
    /// acknowledgement. A known end stays: this may be a late repetition that acknowledges an earlier update.
    pub(crate) fn acknowledged_unknown(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        task: &TaskId,
        uuid: &[u8],
    ) {
        let on = self.by_agent.get(agent);
        let has_room = on.is_none_or(|on| on.ends.len() < UNKNOWN_ENDS_MAX);
        let key = (framework.clone(), task.clone());
        let is_known = on.and_then(|on| on.ends.get(&key)).is_some_and(|end| end.is_known);
        if has_room && !is_known {
            self.insert(agent, framework, task, uuid, false);
        }
    }

    fn insert(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        task: &TaskId,
        uuid: &[u8],
        is_known: bool,
    ) {
        let on = self.by_agent.entry(agent.clone()).or_default();
        let end = End { pings: on.pings, uuid: uuid.into(), is_known };
        on.ends.insert((framework.clone(), task.clone()), end);
    }

    /// The update that ended the task which had this id before.
    pub(crate) fn of(&self, agent: &AgentId, framework: &FrameworkId, task: &TaskId) -> Option<&[u8]> {
        let ends = &self.by_agent.get(agent)?.ends;
        ends.get(&(framework.clone(), task.clone())).map(|end| end.uuid.as_slice())
    }

    /// Those that the agent may not have heard of.
    pub(crate) fn on(&self, agent: &AgentId) -> impl Iterator<Item = (&FrameworkId, &TaskId, &[u8])> {
        let ends = self.by_agent.get(agent).into_iter().flat_map(|on| &on.ends);
        ends.map(|((framework, task), end)| (framework, task, end.uuid.as_slice()))
    }

    /// There is a new link; what was sent on the one before may be lost.
    pub(crate) fn linked(&mut self, agent: &AgentId) {
        // Pings count from the first one on: an answer to one that was sent before an acknowledgement does not
        // confirm it.
        let on = self.by_agent.entry(agent.clone()).or_default();
        (on.pings, on.pongs, on.in_order) = (0, 0, 0);
        on.ends.values_mut().for_each(|end| end.pings = 0);
    }

    /// A ping is sent; returns whether an in-order one has to follow. At most one of those is pending on a link.
    pub(crate) fn pinged(&mut self, agent: &AgentId) -> bool {
        let Some(on) = self.by_agent.get_mut(agent) else { return false };
        let is_in_order_due = on.pings == on.pongs && !on.ends.is_empty();
        on.pings += 1;
        if is_in_order_due {
            on.pings += 1;
            on.in_order = on.pings;
        }
        is_in_order_due
    }

    pub(crate) fn ponged(&mut self, agent: &AgentId) {
        let Some(on) = self.by_agent.get_mut(agent) else { return };
        on.pongs += 1;
        if on.pongs == on.pings {
            let in_order = on.in_order;
            on.ends.retain(|_, end| end.pings >= in_order);
        }
    }

    pub(crate) fn forget(&mut self, agent: &AgentId) {
        self.by_agent.remove(agent);
    }
}
