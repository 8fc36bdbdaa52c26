//! Expiry of agents that have been unreachable or gone for long, so that the registry stays bounded.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Now, Wall};
use tepui_registry::Operation as Record;
use tepui_types::AgentId;

use crate::Config;
use crate::entities::task;
use crate::master::{Master, Out};
use crate::values::timers::Timer;

/// Removes entries beyond the limits of age and number, and sets the next time.
pub(crate) fn collect(master: &mut Master, now: Now, out: &mut Out) {
    master.timers.set(Timer::RegistryGc, now.mono + master.config.registry_gc_interval);
    let unreachable = too_many(&master.config, now, &master.registry.unreachable);
    let gone = too_many(&master.config, now, &master.registry.gone);
    if unreachable.is_empty() && gone.is_empty() {
        return;
    }
    master.changed = true;
    for id in &unreachable {
        master.state.unreachable_agents.remove_mut(id);
        master.ends.forget(id);
        for (framework_id, task_id) in master.unreachable_tasks.get(id).cloned().unwrap_or_default() {
            task::take_unreachable(master, &framework_id, &task_id);
        }
    }
    for id in &gone {
        master.state.gone_agents.remove_mut(id);
    }
    master.record(Record::Prune { unreachable, gone }, out);
}

/// Those older than the limit, and the oldest of the rest above the limit of their number.
fn too_many(config: &Config, now: Now, agents: &BTreeMap<AgentId, Wall>) -> Vec<AgentId> {
    let max_age = u64::try_from(config.registry_max_agent_age.as_nanos()).unwrap_or(u64::MAX);
    let mut by_age: Vec<(&Wall, &AgentId)> = agents.iter().map(|(id, since)| (since, id)).collect();
    by_age.sort();
    let surplus = by_age.len().saturating_sub(config.registry_max_agent_count);
    let old = by_age.iter().filter(|(since, _)| now.wall.0.saturating_sub(since.0) > max_age).count();
    by_age.truncate(surplus.max(old));
    by_age.into_iter().map(|(_, id)| id.clone()).collect()
}
