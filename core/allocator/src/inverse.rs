//! Inverse offers: outstanding ones, and refusals by frameworks.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tepui_fsm::{Deadlines, Mono};

use crate::slab::{AgentSlot, FrameworkSlot};

type Pair = (AgentSlot, FrameworkSlot);

#[derive(Clone, Debug, Default)]
pub(crate) struct Inverse {
    outstanding: BTreeSet<Pair>,
    refused: Deadlines<Pair>,
    /// Pairs in `refused`, which has no list of its own.
    refusing: BTreeSet<Pair>,
}

impl Inverse {
    /// Records an inverse offer; false if there is one already, or a refusal.
    pub(crate) fn start_inverse_offer(&mut self, agent: AgentSlot, framework: FrameworkSlot) -> bool {
        !self.refusing.contains(&(agent, framework)) && self.outstanding.insert((agent, framework))
    }

    pub(crate) fn answered(
        &mut self,
        agent: AgentSlot,
        framework: FrameworkSlot,
        refused_until: Option<Mono>,
    ) {
        self.outstanding.remove(&(agent, framework));
        if let Some(until) = refused_until {
            self.refused.set((agent, framework), until);
            self.refusing.insert((agent, framework));
        }
    }

    pub(crate) fn next_end(&self) -> Option<Mono> {
        self.refused.next()
    }

    /// Ends one refusal that is due; returns its agent.
    pub(crate) fn pop_due(&mut self, now: Mono) -> Option<AgentSlot> {
        let pair = self.refused.pop_due(now)?;
        self.refusing.remove(&pair);
        Some(pair.0)
    }

    pub(crate) fn remove_agent(&mut self, agent: AgentSlot) {
        self.remove(|(own, _)| *own == agent);
    }

    pub(crate) fn remove_framework(&mut self, framework: FrameworkSlot) {
        self.remove(|(_, own)| *own == framework);
    }

    /// The framework may receive an inverse offer at once.
    pub(crate) fn revive(&mut self, framework: FrameworkSlot) {
        let pairs: Vec<Pair> = self.refusing.iter().copied().filter(|(_, own)| *own == framework).collect();
        pairs.iter().for_each(|pair| self.end_refusal(pair));
    }

    fn remove(&mut self, of: impl Fn(&Pair) -> bool) {
        self.outstanding.retain(|pair| !of(pair));
        let pairs: Vec<Pair> = self.refusing.iter().copied().filter(&of).collect();
        pairs.iter().for_each(|pair| self.end_refusal(pair));
    }

    fn end_refusal(&mut self, pair: &Pair) {
        self.refusing.remove(pair);
        self.refused.clear(pair);
    }
}
