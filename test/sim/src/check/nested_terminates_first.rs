//! Nested terminates first: a container never outlives its parent, neither on its machine nor in its agent's state.

use tepui_core_agent::{Agent, Container, ContainerStage, Phase};
use tepui_types::ContainerId;

use super::no_orphan_container::is_owned;
use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct NestedTerminatesFirst;

impl Check for NestedTerminatesFirst {
    fn name(&self) -> &'static str {
        "nested_terminates_first"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::AgentTurn { agent, machine, host, .. } = fact else { return Ok(()) };
        let outlives = host.alive().find(|id| {
            let parent = id.parent().and_then(|parent| host.containers.get(parent));
            id.parent().is_some() && !parent.is_some_and(|parent| parent.is_alive())
        });
        match outlives.or_else(|| unowned(machine)) {
            Some(id) => Err(format!("{id} on A{agent} outlives its parent")),
            None => Ok(()),
        }
    }
}

/// A container that runs without its parent according to its agent. A pending launch is excluded.
fn unowned(machine: &Agent) -> Option<&ContainerId> {
    if machine.state().phase != Phase::Running {
        return None;
    }
    let runs = |container: &Container| matches!(container.stage, ContainerStage::Running { .. });
    let mut running = machine.state().containers.values().filter(|container| runs(container));
    let id = running.find(|container| container.id.parent().is_some_and(|parent| !is_owned(machine, parent)));
    id.map(|container| &container.id)
}
