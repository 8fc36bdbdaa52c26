//! Reachability of agents: pings, missing answers, and the agent's state after them.
//!
//! Marking an agent unreachable is recorded before it is visible, and rate limited so that a fault on the master's
//! own side does not remove all agents at once.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_registry::Operation as Record;
use tepui_types::AgentId;

use crate::Effect;
use crate::entities::removal::{self, Loss};
use crate::master::{Master, Out};
use crate::state::Silence;
use crate::values::counters::Counter;
use crate::values::event::to_agent;
use crate::values::timers::Timer;

/// How many missing agents are named.
const MISSING_NAMED_MAX: usize = 20;

/// Pings an agent, or marks it unreachable if it did not answer for too long.
pub(crate) fn ping(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    if master.agent(id).is_none() {
        return;
    }
    master.timers.set(Timer::Ping(id.clone()), now.mono + master.config.agent_ping_timeout);
    match master.liveness.silent.entry(id.clone()).or_insert(Silence::Unanswered(0)) {
        Silence::RemovalScheduled => return,
        Silence::Unanswered(pings) if *pings >= master.config.max_agent_ping_timeouts => {
            return give_up(master, now, id, out);
        }
        Silence::Unanswered(pings) => *pings += 1,
    }
    let is_in_order_due = master.ends.pinged(id);
    master.send_to_agent(id, to_agent::ping(), out);
    if is_in_order_due {
        master.send_to_agent(id, to_agent::ping_in_order(), out);
    }
}

/// An agent whose link broke did not re-register in time.
pub(crate) fn not_back(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    if master.agent(id).is_some_and(|agent| agent.conn().is_none()) {
        give_up(master, now, id, out);
    }
}

/// Agents that an earlier master knew did not come to this one.
pub(crate) fn recovered_not_back(master: &mut Master, now: Now, out: &mut Out) {
    let missing: Vec<AgentId> = master.state.recovered_agents.keys().cloned().collect();
    if let Some(why) = too_many_missing(master, &missing) {
        return out.effect(Effect::Halt { why });
    }
    for id in missing {
        master.count(Counter::RecoveryAgentRemovals);
        give_up(master, now, &id, out);
    }
}

/// Why so many missing agents are rather a fault of this master or its network.
fn too_many_missing(master: &Master, missing: &[AgentId]) -> Option<String> {
    let (known, limit) = (master.liveness.known_at_start, master.config.recovery_agent_removal_limit);
    let part = missing.len() as f64 / known.max(1) as f64;
    (part > limit).then(|| {
        let ids: Vec<&str> = missing.iter().take(MISSING_NAMED_MAX).map(AgentId::as_str).collect();
        format!(
            "{} of {known} known agents ({:.1}%) did not come back within {:?}, and --recovery_agent_removal_limit is {}%: \
             find out why, or raise it; missing are {}",
            missing.len(),
            part * 100.0,
            master.config.agent_reregister_timeout,
            limit * 100.0,
            ids.join(", ")
        )
    })
}

/// Marks an agent unreachable as soon as the rate limit allows. A sign of life until then saves it.
fn give_up(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    if master.liveness.silent.get(id) == Some(&Silence::RemovalScheduled) {
        return;
    }
    master.count(Counter::AgentUnreachableScheduled);
    let Some((agents, per)) = master.config.agent_removal_rate_limit else {
        return mark_unreachable(master, now, id, out);
    };
    let slot = master.liveness.next_removal.max(now.mono);
    master.liveness.next_removal = slot + per / agents.max(1);
    if slot <= now.mono {
        mark_unreachable(master, now, id, out);
    } else {
        master.liveness.silent.insert(id.clone(), Silence::RemovalScheduled);
        master.timers.set(Timer::Unreachable(id.clone()), slot);
    }
}

/// The agent is unreachable: recorded first, then reported to all subscribers.
pub(crate) fn mark_unreachable(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    master.liveness.silent.remove(id); // A removal that takes place is not canceled.
    let known = master.agent(id).map(|agent| &agent.info);
    let Some(info) = known.or_else(|| master.state.recovered_agents.get(id)) else { return };
    let hostname = info.hostname.clone();
    master.count(Counter::AgentUnreachableCompleted);
    if master.agent(id).is_some() {
        master.count(Counter::AgentRemovalsUnhealthy);
    }
    master.record(Record::MarkUnreachable { id: id.clone(), at: now.wall, hostname }, out);
    removal::remove(master, now, id, Loss::Unreachable { since: now.wall }, out);
    master.state.unreachable_agents.insert_mut(id.clone(), now.wall);
}
