//! No overcommit: nothing is offered or used twice.
//!
//! In the master's state: per agent, offered and used resources do not exceed its total, and the allocator's own audit
//! holds; slack is offered only of idle reservations. On the machine: running tasks never use more cpus than it has.

use std::collections::BTreeMap;

use tepui_core_master::{Agent, Master};
use tepui_resources::{Quantities, Resource, Resources, Revocable};
use tepui_types::{AgentId, TaskStateExt};

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct NoOvercommit;

impl Check for NoOvercommit {
    fn name(&self) -> &'static str {
        "no_overcommit"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterBooks(master) => books(master),
            Fact::TaskStarts { agent, task, cpus, .. } if cpus.used > cpus.total => Err(format!(
                "with {task}, tasks on A{agent} need {} of {} cpus",
                milli(cpus.used),
                milli(cpus.total)
            )),
            _ => Ok(()),
        }
    }
}

fn milli(amount: u64) -> f64 {
    amount as f64 / 1000.0
}

fn books(master: &Master) -> Result<(), String> {
    master.audit()?;
    let state = master.state();
    let mut all_offered: BTreeMap<&AgentId, Resources> = BTreeMap::new();
    for offer in state.offers.values() {
        *all_offered.entry(&offer.agent_id).or_default() += &offer.resources;
    }
    for agent in state.agents.values() {
        let offered = all_offered.remove(&agent.id).unwrap_or_default();
        let mut used = Resources::new();
        for (framework, task) in agent.tasks.iter() {
            let task = state.frameworks.get(framework).and_then(|framework| framework.tasks.get(task));
            let task = task.ok_or_else(|| format!("{} has a task of {framework} nobody knows", agent.id))?;
            if !task.task.state.is_terminal() {
                used += &task.resources;
            }
        }
        for executor in agent.executors.values() {
            used += &executor.resources;
        }
        within(agent, &offered.unallocate(), &used.unallocate())?;
    }
    Ok(())
}

/// Offered resources exist. Used resources existed when allocated, but their reservation may have changed since, and so may the
/// estimate of usage slack: it is offered only as far as it exceeds what is used.
fn within(agent: &Agent, offered: &Resources, used: &Resources) -> Result<(), String> {
    let own = |resources: &Resources| resources.filter(|one| !is_slack(one));
    let (own_offered, own_used) = (own(offered).single_copies(), own(used));
    let firm = |resources: &Resources| resources.filter(|one| !is_estimated(one)).quantities();
    let estimated = |resources: &Resources| resources.filter(is_estimated).quantities();
    let fits = agent.total.contains(&own_offered)
        && firm(&agent.total).contains(&firm(&(&own_offered + &own_used)))
        && (estimated(&agent.total) - &estimated(&own_used)).contains(&estimated(&own_offered));
    fits.then_some(())
        .ok_or_else(|| format!("{} has {}, {offered} is offered and {used} used", agent.id, agent.total))?;
    let left = idle(agent, &own_used) - &used.filter(is_slack).quantities();
    let lent = offered.filter(is_slack).quantities();
    left.contains(&lent).then_some(()).ok_or_else(|| {
        format!("{} has {}, {used} is used, and {lent} of it is offered as slack", agent.id, agent.total)
    })
}

/// What is reserved and not used by its owners.
fn idle(agent: &Agent, used: &Resources) -> Quantities {
    let reserved = |resources: &Resources| {
        resources
            .filter(|one| one.is_reserved() && !one.is_persistent_volume() && !one.is_shared())
            .quantities()
    };
    reserved(&agent.total) - &reserved(used)
}

fn is_estimated(resource: &Resource) -> bool {
    resource.revocable() == Revocable::UsageSlack
}

fn is_slack(resource: &Resource) -> bool {
    resource.revocable() == Revocable::AllocationSlack
}
