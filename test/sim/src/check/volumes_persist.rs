//! Volumes persist: a volume exists until its destruction is requested, and while a task uses it.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent::{Agent, Effect, Phase, Record};
use tepui_resources::Resources;
use tepui_types::{ContainerOp, TaskStateExt};

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct VolumesPersist {
    /// Those on each agent's disk.
    there: BTreeMap<usize, BTreeSet<String>>,
    /// Volumes whose destruction was requested; ids are never reused.
    unwanted: BTreeSet<String>,
}

impl Check for VolumesPersist {
    fn name(&self) -> &'static str {
        "volumes_persist"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::VolumeUnwanted { volume } => {
                self.unwanted.insert((*volume).into());
            }
            Fact::AgentWiped { agent } => {
                self.there.remove(agent);
            }
            // An agent that unregisters discards its identity, and may crash before the operator wipes its machine.
            Fact::AgentStores { agent, record: Record::Discarded { keys } }
                if keys.iter().any(|key| key == "agent") =>
            {
                self.there.remove(agent);
            }
            Fact::AgentEffect { agent, effect: Effect::Container(ContainerOp::CreateVolume { path }) } => {
                self.there.entry(*agent).or_default().insert(id_of(path));
            }
            Fact::AgentEffect { agent, effect: Effect::Container(ContainerOp::DestroyVolume { path }) } => {
                let id = id_of(path);
                if !self.unwanted.contains(&id) {
                    return Err(format!("A{agent} destroys volume {id}, which nobody asked for"));
                }
            }
            Fact::AgentTurn { agent, machine, .. } => return self.check_volumes(*agent, machine),
            _ => (),
        }
        Ok(())
    }
}

impl VolumesPersist {
    fn check_volumes(&self, agent: usize, machine: &Agent) -> Result<(), String> {
        let now = volumes(&machine.state().total);
        let mut there = self.there.get(&agent).into_iter().flatten();
        if let Some(lost) = there.find(|id| !now.contains(*id) && !self.unwanted.contains(*id)) {
            return Err(format!("volume {lost} on A{agent} is lost"));
        }
        match used(machine).find(|(_, id)| !now.contains(id)) {
            Some((task, id)) => Err(format!("{task} on A{agent} uses volume {id}, which is not there")),
            None => Ok(()),
        }
    }
}

/// Volumes are in directories of their name.
fn id_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).into()
}

fn volumes(resources: &Resources) -> BTreeSet<String> {
    resources.iter().filter_map(|resource| resource.persistence_id().map(str::to_owned)).collect()
}

/// The volumes of living tasks that an executor has or will get.
fn used(machine: &Agent) -> impl Iterator<Item = (String, String)> + '_ {
    let running = machine.state().phase == Phase::Running;
    let frameworks =
        machine.state().frameworks.values().filter(move |framework| running && !framework.terminating);
    let tasks = frameworks
        .flat_map(|framework| framework.executors.values())
        .flat_map(|executor| executor.tasks.values())
        .filter(|task| !task.task.state.is_terminal());
    tasks.flat_map(|task| {
        volumes(&task.resources).into_iter().map(|volume| (task.id.to_string(), volume)).collect::<Vec<_>>()
    })
}
