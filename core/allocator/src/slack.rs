//! Allocation slack as the master reads it, and whether an agent lends.

use alloc::sync::Arc;

use tepui_resources::{Resources, Role};
use tepui_types::AgentId;

use crate::agent::Agent;
use crate::slab::AgentSlot;
use crate::slack_books::{SlackBooks, SlackTerms, is_slack};
use crate::{Allocator, Options};

/// The slack of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slack {
    /// With the reservations, marked as slack.
    pub total: Resources,
    pub idle: Resources,
    /// Lent: unreserved, allocated to the borrowers' roles.
    pub offered: Resources,
    pub used: Resources,
}

impl Allocator {
    pub fn slack(&self, agent: &AgentId) -> Option<Slack> {
        let ledger = &self.agents[self.agent_slot(agent)?].ledger;
        let SlackBooks { total, idle, .. } = ledger.slack().into_owned();
        let offered = ledger.held().map(|(_, held)| held.offered.filter(is_slack)).sum();
        let used = ledger.held().map(|(_, held)| held.used.filter(is_slack)).sum();
        Some(Slack { total, idle, offered, used })
    }

    /// Agents on which more is lent than is idle.
    pub fn over_lent_agents(&self) -> impl Iterator<Item = &AgentId> + '_ {
        self.over_lent.iter().map(|slot| &self.agents[slot].id)
    }

    /// Lent resources of an agent that are not idle any more: to be reclaimed.
    pub fn over_lent(&self, agent: &AgentId) -> Resources {
        let slot = self.agent_slot(agent);
        slot.map_or(Resources::new(), |slot| self.agents[slot].ledger.slack().over.clone())
    }

    /// Whether something of an agent can be lent, and a possible borrower exists.
    pub(crate) fn lends(&mut self, slot: AgentSlot) -> bool {
        let Self { agents, tree, .. } = self;
        let Agent { ledger, owners, .. } = &mut agents[slot];
        let mut borrowers =
            |owner: &Role| owners.node(tree, owner).map_or(0, |owner| tree.borrowers_from(owner));
        if !ledger.may_lend() || !ledger.lenders().iter().any(|owner| borrowers(owner) > 0) {
            return false;
        }
        ledger.settle_slack();
        ledger.may_lend()
    }
}

impl Options {
    pub(crate) fn slack_terms(&self) -> SlackTerms {
        self.allocation_slack.then(|| Arc::new(self.allocation_slack_opt_out.clone()))
    }
}
