//! Volumes stay: what an agent keeps for somebody is there until its destruction was asked for, and while a task uses it.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent::{Agent, Effect, Phase};
use tepui_resources::Resources;
use tepui_types::{ContainerOp, TaskStateExt};

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct VolumesStay {
    /// Those on each agent's disk.
    there: BTreeMap<usize, BTreeSet<String>>,
    /// Those somebody asked to destroy; ids are never used again.
    unwanted: BTreeSet<String>,
}

impl Check for VolumesStay {
    fn name(&self) -> &'static str {
        "volumes_stay"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::VolumeUnwanted { volume } => {
                self.unwanted.insert((*volume).into());
            }
            Fact::AgentWiped { agent } => {
                self.there.remove(agent);
            }
            Fact::AgentSays { agent, effect: Effect::Container(ContainerOp::CreateVolume { path }) } => {
                self.there.entry(*agent).or_default().insert(id_of(path));
            }
            Fact::AgentSays { agent, effect: Effect::Container(ContainerOp::DestroyVolume { path }) } => {
                let id = id_of(path);
                if !self.unwanted.contains(&id) {
                    return Err(format!("A{agent} destroys volume {id}, which nobody asked for"));
                }
            }
            Fact::AgentTurn { agent, machine, .. } => return self.look(*agent, machine),
            _ => (),
        }
        Ok(())
    }
}

impl VolumesStay {
    fn look(&self, agent: usize, machine: &Agent) -> Result<(), String> {
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
