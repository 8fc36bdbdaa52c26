//! Agents that the offer constraints of a framework exclude, for operators.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_allocator::admits;
use tepui_types::AgentId;

use crate::rules::allocator_spec;
use crate::state::{Framework, State};

/// By role, for roles that leave out any.
pub fn excluded_agents(state: &State, framework: &Framework) -> BTreeMap<String, Vec<AgentId>> {
    // They were checked when the framework subscribed.
    let constraints = allocator_spec::constraints(framework.offer_constraints.as_deref(), &framework.roles())
        .unwrap_or_default();
    let mut excluded: BTreeMap<String, Vec<AgentId>> = BTreeMap::new();
    if constraints.roles.is_empty() {
        return excluded;
    }
    for agent in state.agents.values() {
        let spec = allocator_spec::agent(agent);
        let left_out = constraints.roles.iter().filter(|(_, groups)| !admits(groups, &spec));
        for (role, _) in left_out {
            excluded.entry(role.as_str().to_string()).or_default().push(agent.id.clone());
        }
    }
    excluded
}
