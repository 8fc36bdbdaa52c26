//! Without faults the manager, its records, the engines and the master agree; then clients remove all containers.

use tepui_core_master::FrameworkLink;
use tepui_swarm::Phase as ContainerPhase;
use tepui_types::{FrameworkId, OfferId, TaskId, TaskStateExt};

use super::{Step, Swarm, client, plan};
use crate::chance::SECOND;
use crate::check::Fact;
use crate::world::World;

/// How far the manager is on the way to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Working,
    /// Everything was consistent once: containers are removed.
    Removing,
}

pub(crate) fn begin_healing(world: &mut World) {
    if let Some(swarm) = &mut world.swarm {
        swarm.cut_off_until = 0;
        plan(world, SECOND, Step::Start);
    }
}

/// Goes on to the removal of all containers once everything is consistent.
pub(crate) fn advance(world: &mut World) {
    let Some(swarm) = &world.swarm else { return };
    let view = swarm.view.clone();
    match swarm.rest {
        Rest::Working => {
            let mut open = Vec::new();
            inconsistent(world, swarm, &mut open);
            if open.is_empty() {
                world.trace_line(|| "swarm is consistent".into());
                world.checks.observe(&Fact::SwarmRests(&view));
                if let Some(swarm) = &mut world.swarm {
                    swarm.rest = Rest::Removing;
                }
            }
        }
        Rest::Removing => {
            let named = view.containers.values().filter(|it| !it.occupant.id.is_empty());
            named.for_each(|container| client::remove(world, container));
        }
    }
}

pub(crate) fn unsettled(world: &World, open: &mut Vec<String>) {
    let Some(swarm) = &world.swarm else { return };
    match swarm.rest {
        Rest::Working => inconsistent(world, swarm, open),
        Rest::Removing => {
            let left = swarm.view.containers.values();
            open.extend(left.map(|it| format!("swarm has {} on {}: {:?}", it.task, it.agent, it.phase)));
            connection(world, swarm, open);
        }
    }
}

impl Swarm {
    /// Whether it holds an offer of the master.
    pub(crate) fn holds(&self, offer: &OfferId) -> bool {
        self.view.agents.values().any(|agent| agent.offers.contains_key(offer))
    }
}

fn connection(world: &World, swarm: &Swarm, open: &mut Vec<String>) {
    let known = world.leader().zip(swarm.framework_id());
    let known = known.and_then(|(machine, id)| machine.state().frameworks.get(&FrameworkId::new(id)));
    let is_connected = swarm.process.is_up()
        && swarm.link.is_subscribed()
        && known.is_some_and(|it| matches!(it.link, FrameworkLink::Connected { .. }));
    if !is_connected {
        open.push("swarm is not connected".into());
    }
}

fn inconsistent(world: &World, swarm: &Swarm, open: &mut Vec<String>) {
    connection(world, swarm, open);
    open.extend(swarm.clients.unanswered());
    let down = swarm.engines.iter().enumerate().filter(|(_, engine)| !engine.is_up());
    open.extend(down.map(|(machine, _)| format!("engine {machine} is down")));
    records_match_engines(world, swarm, open);
    engines_match_records(swarm, open);
    tasks_are_recorded(world, swarm, open);
}

/// Whether the master has the task, without a terminal state.
fn is_live(world: &World, swarm: &Swarm, task: &TaskId) -> bool {
    let framework = swarm.framework_id().map(FrameworkId::new);
    let state = world.leader().map(|machine| machine.state());
    let framework = state.zip(framework).and_then(|(state, id)| state.frameworks.get(&id));
    framework.and_then(|it| it.tasks.get(task)).is_some_and(|task| !task.task.state.is_terminal())
}

fn records_match_engines(world: &World, swarm: &Swarm, open: &mut Vec<String>) {
    for (task, container) in swarm.view.containers.iter() {
        let (id, name) = (&container.occupant.id, &container.occupant.name);
        let found = swarm.engines.iter().find_map(|engine| engine.containers().get(id));
        let live = is_live(world, swarm, task);
        match &container.phase {
            ContainerPhase::Launching => open.push(format!("{task} is launching")),
            // There may be no node for it.
            ContainerPhase::Rescheduling if !live => (),
            ContainerPhase::Rescheduling => open.push(format!("{task} is back and waits for another node")),
            ContainerPhase::Created if !live || found.is_none() => {
                open.push(format!("{task} is created, but there is no container or no task of it"));
            }
            ContainerPhase::Ended { .. } if live || found.is_none() => {
                open.push(format!("{task} has terminated, but its task has not, or its container is gone"));
            }
            ContainerPhase::Created | ContainerPhase::Ended { .. } => (),
        }
        if let Some(found) = found {
            if found.name != *name {
                open.push(format!("{task} is named {name}, and {} on its engine", found.name));
            }
            if found.is_running() && !live {
                open.push(format!("{task} runs without a task"));
            }
        }
    }
}

/// No unknown container is left behind. One that was renamed cannot be distinguished from another client's container,
/// but it does not run.
fn engines_match_records(swarm: &Swarm, open: &mut Vec<String>) {
    for (machine, engine) in swarm.engines.iter().enumerate() {
        for (id, container) in engine.containers() {
            let is_known = swarm.view.containers.values().any(|it| it.occupant.id == *id);
            let is_harmless = container.is_renamed && !container.is_running();
            if !is_known && !is_harmless {
                let number = container.create();
                open.push(format!("create {number} left {} on engine {machine}", super::engine::short(id)));
            }
        }
    }
}

/// No task holds resources that no container uses.
fn tasks_are_recorded(world: &World, swarm: &Swarm, open: &mut Vec<String>) {
    let framework = swarm.framework_id().map(FrameworkId::new);
    let state = world.leader().map(|machine| machine.state());
    let Some(framework) = state.zip(framework).and_then(|(state, id)| state.frameworks.get(&id)) else {
        return;
    };
    for (task, it) in framework.tasks.iter() {
        if !it.task.state.is_terminal() && !swarm.view.containers.contains_key(task) {
            open.push(format!("{task} is of no container of swarm"));
        }
    }
}
