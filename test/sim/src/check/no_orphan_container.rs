//! No orphan container: every running container belongs to its agent, as an executor or by a call, unless it is being
//! destroyed.

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
    host.running().find(|id| !is_owned(machine, id)).cloned()
}

/// Whether an agent thinks that this container lives. A look-up is cheaper than a set of all after every turn.
pub(super) fn is_owned(machine: &Agent, id: &ContainerId) -> bool {
    let called = machine.state().containers.get(id).is_some_and(|container| !container.is_ended());
    let mut executors =
        machine.state().frameworks.values().flat_map(|framework| framework.executors.values());
    called || executors.any(|executor| executor.container_id == *id && !executor.is_terminated())
}
