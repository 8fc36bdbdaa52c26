//! Kills complete: a built-in executor with only killed tasks is destroyed after their grace period and its own margin,
//! whatever it does.

use std::collections::BTreeMap;

use tepui_core_agent::{Agent, Executor, Phase};
use tepui_types::ContainerId;

use super::{Check, Fact};
use crate::chance::SECOND;

/// The grace period without a kill policy, and the margin of the executor.
const KILL_TIMEOUT: u64 = (5 + 10) * SECOND;

#[derive(Debug, Default)]
pub(super) struct KillsComplete {
    /// Since when each has only killed tasks.
    pending: BTreeMap<(usize, ContainerId), u64>,
}

impl Check for KillsComplete {
    fn name(&self) -> &'static str {
        "kills_complete"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::AgentTurn { agent, machine, now, .. } = fact else { return Ok(()) };
        let pending: Vec<ContainerId> =
            pending(machine).map(|executor| executor.container_id.clone()).collect();
        self.pending.retain(|(at, id), _| at != agent || pending.contains(id));
        for id in pending {
            let since = *self.pending.entry((*agent, id.clone())).or_insert(*now);
            if now - since > KILL_TIMEOUT {
                return Err(format!(
                    "{id} on A{agent} was to end its tasks {} s ago",
                    (now - since) / SECOND
                ));
            }
        }
        Ok(())
    }
}

/// After a restart the time begins anew.
fn pending(machine: &Agent) -> impl Iterator<Item = &Executor> {
    let state = machine.state();
    let known = state.frameworks.values().filter(|_| state.phase != Phase::Recovering);
    let executors = known.flat_map(|framework| framework.executors.values()).map(|executor| &**executor);
    executors.filter(|executor| {
        !executor.is_ending() && executor.live_tasks().next().is_some() && executor.is_shutdown_requested()
    })
}
