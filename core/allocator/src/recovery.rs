//! The pause after a master's start: with quota set, nothing is offered before most of the known agents have
//! re-registered. Before that little of the roles' consumption is known, and guarantees would count as met or limits
//! as unused.

use tepui_fsm::Mono;

use crate::Allocator;
use crate::allocator::Recovery;

impl Allocator {
    /// A master with so many known agents started at `now`: agents, quota and frameworks follow.
    pub fn recover(&mut self, now: Mono, known_agents: usize) {
        let agents = (known_agents as f64 * self.options.agent_recovery_factor) as usize;
        self.recovery = (agents > 0).then(|| Recovery { agents, until: now + self.options.recovery_timeout });
    }

    /// The end of the pause, if only time will end it.
    pub(crate) fn recovering_until(&self) -> Option<Mono> {
        let recovery = self.recovery.filter(|recovery| self.agent_ids.len() < recovery.agents)?;
        self.tree.has_quota().then_some(recovery.until)
    }

    pub(crate) fn waits_for_agents(&mut self, now: Mono) -> bool {
        if self.recovering_until().is_some_and(|until| now < until) {
            return true;
        }
        // Agents that go later do not bring the pause back; quota that comes later does not begin one.
        self.recovery = None;
        false
    }
}
