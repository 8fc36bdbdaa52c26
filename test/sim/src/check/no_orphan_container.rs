//! No orphan container: every running container belongs to its agent, as an executor or by a call, unless it is being
//! destroyed.

use std::collections::BTreeSet;

use tepui_core_agent::{Agent, Phase};
use tepui_types::ContainerId;

use super::{Check, Fact};
use crate::host::Host;

#[derive(Debug, Default)]
pub(super) struct NoOrphanContainer;

impl Check for NoOrphanContainer {
    fn name(&self) -> &'static str {
        "no_orphan_container"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::AgentTurn { agent, machine, host, .. } if machine.state().phase == Phase::Running => {
                orphan(machine, host)
                    .map_or(Ok(()), |id| Err(format!("container {id} on A{agent} is nobody's")))
            }
            _ => Ok(()),
        }
    }
}

fn orphan(machine: &Agent, host: &Host) -> Option<ContainerId> {
    let owned = owned(machine);
    host.running().find(|id| !owned.contains(id)).cloned()
}

/// The containers that an agent thinks live.
pub(super) fn owned(machine: &Agent) -> BTreeSet<&ContainerId> {
    let executors = machine.state().frameworks.values().flat_map(|framework| framework.executors.values());
    let executors =
        executors.filter(|executor| !executor.is_terminated()).map(|executor| &executor.container_id);
    let called = machine.state().containers.values().filter(|container| !container.is_ended());
    executors.chain(called.map(|container| &container.id)).collect()
}
