//! Kills end: an executor that comes with the agent and has nothing but tasks that were to be killed is being ended when
//! their time and its own are over, whatever it does.

use std::collections::BTreeMap;

use tepui_core_agent::{Agent, Executor, Phase};
use tepui_types::ContainerId;

use super::{Check, Fact};
use crate::chance::SECOND;

/// What tasks without a kill policy have, and the executor to report their end.
const PATIENCE: u64 = (5 + 10) * SECOND;

#[derive(Debug, Default)]
pub(super) struct KillsEnd {
    /// Since when each has nothing else.
    asked: BTreeMap<(usize, ContainerId), u64>,
}

impl Check for KillsEnd {
    fn name(&self) -> &'static str {
        "kills_end"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::AgentTurn { agent, machine, now, .. } = fact else { return Ok(()) };
        let asked: Vec<ContainerId> = asked(machine).map(|executor| executor.container_id.clone()).collect();
        self.asked.retain(|(at, id), _| at != agent || asked.contains(id));
        for id in asked {
            let since = *self.asked.entry((*agent, id.clone())).or_insert(*now);
            if now - since > PATIENCE {
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
fn asked(machine: &Agent) -> impl Iterator<Item = &Executor> {
    let state = machine.state();
    let known = state.frameworks.values().filter(|_| state.phase != Phase::Recovering);
    let executors = known.flat_map(|framework| framework.executors.values()).map(|executor| &**executor);
    executors.filter(|executor| {
        !executor.is_ending() && executor.live_tasks().next().is_some() && executor.is_asked_to_end()
    })
}
