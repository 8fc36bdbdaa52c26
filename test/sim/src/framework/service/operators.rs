//! Operators of a service: they change it at random while there are faults, and repair it afterwards.
//!
//! Once faults have ended the plans of the service complete, or say why they do not; then it is uninstalled and leaves nothing.

use tepui_resources::{Resource, Resources};
use tepui_service::plan::Action;
use tepui_service::scheduler::{Command, Origin, View};
use tepui_types::AgentId;

use super::{Goal, command, service, spec};
use crate::chance::{MS, SECOND, between, pick};
use crate::check::Fact;
use crate::framework::{self, Step};
use crate::world::World;

/// Time after the repair in which plans have to complete, unless the cluster has no room. Longer than an agent drains that has an
/// operation of a framework unknown to the master, which acknowledges it after 600 s.
const COMPLETES_WITHIN: u64 = 1200 * SECOND;

/// One random command.
pub(in crate::framework) fn act(world: &mut World, index: usize) {
    let is_healing = world.is_healing();
    let Some(own) = service(world, index) else { return };
    let wait = between(&mut own.rng, 500 * MS, 12 * SECOND);
    framework::plan(world, index, wait, Step::Act);
    let Some(own) = service(world, index) else { return };
    let Some(view) = own.process.machine.as_ref().map(|own| own.view()).filter(|_| !is_healing) else {
        return;
    };
    if own.goal != Goal::Run {
        return;
    }
    let pods = view.pod_names();
    let pod = pick(&mut own.rng, &pods).cloned().unwrap_or_default();
    let chosen = match own.rng.below(16) {
        0 => Command::RestartPod { pod },
        1 => Command::ReplacePod { pod },
        2 => Command::PausePod { pod, tasks: Vec::new() },
        3 | 4 => Command::ResumePod { pod, tasks: Vec::new() },
        5 => Command::Plan { plan: "deploy".into(), action: Action::Interrupt { phase: None } },
        6 | 7 => Command::Plan { plan: "deploy".into(), action: Action::Continue { phase: None } },
        8 => Command::Plan { plan: "deploy".into(), action: Action::Restart { phase: None, step: None } },
        9..=11 => {
            own.spec = spec::draw(&mut own.rng);
            Command::SetTarget { spec: Box::new(own.spec.clone()), origin: Origin::Files }
        }
        12 => return framework::crash(world, index),
        _ => return,
    };
    world.counts.service_commands += 1;
    command(world, index, chosen);
}

/// While healing: what waits for an operator goes on; then the service is uninstalled.
pub(in crate::framework) fn repair(world: &mut World, index: usize) {
    let wait = service(world, index).map_or(SECOND, |own| between(&mut own.rng, 5 * SECOND, 15 * SECOND));
    framework::plan(world, index, wait, Step::Repair);
    let Some(own) = service(world, index) else { return };
    let Some(view) = own.process.machine.as_ref().map(|own| own.view()) else { return };
    match own.goal {
        Goal::Run => repair_running(world, index, &view),
        Goal::Uninstall => give_up_lost(world, index, &view),
        Goal::Finished | Goal::Gone => (),
    }
}

fn repair_running(world: &mut World, index: usize, view: &View) {
    let now = world.queue.now();
    let Some(own) = service(world, index) else { return };
    let Some(repaired_at) = own.repaired_at else {
        own.repaired_at = Some(now);
        own.spec = spec::sound();
        let target = Command::SetTarget { spec: Box::new(own.spec.clone()), origin: Origin::Files };
        return command(world, index, target);
    };
    resume(world, index, view);
    replace_stranded(world, index, view);
    give_up_lost(world, index, view);
    let is_complete =
        is_complete(view) && view.garbage.values().all(|own| !exists(world, &own.agent, &own.id));
    if is_complete {
        world.counts.services_complete += 1;
        let Some(master) = world.leader() else { return };
        let totals: Vec<Resources> =
            master.state().agents.values().map(|agent| agent.total.clone()).collect();
        world.checks.observe(&Fact::ServiceComplete { view, totals: &totals });
    } else if now < repaired_at + COMPLETES_WITHIN {
        return;
    } else {
        world.checks.observe(&Fact::ServiceWaits { view });
    }
    let Some(own) = service(world, index) else { return };
    own.goal = Goal::Uninstall;
    command(world, index, Command::Uninstall);
}

fn is_complete(view: &View) -> bool {
    view.connected
        && view.plan_names().iter().all(|name| view.plan(name).is_some_and(|plan| plan.status == "COMPLETE"))
}

fn resume(world: &mut World, index: usize, view: &View) {
    for name in view.plan_names() {
        if view.plan(&name).is_some_and(|plan| plan.status != "COMPLETE") {
            command(world, index, Command::Plan { plan: name, action: Action::Continue { phase: None } });
        }
    }
}

/// The master has forgotten the agent of a pod, or its machine was wiped and has lost the reservations: the scheduler waits for them.
fn replace_stranded(world: &mut World, index: usize, view: &View) {
    let stranded: Vec<String> = view
        .pods
        .values()
        .filter(|pod| {
            let mut made = pod.reservations.iter().filter(|own| own.operation.is_none());
            made.any(|own| !exists(world, &pod.agent, &own.id))
        })
        .map(|pod| pod.instance.name())
        .collect();
    for pod in stranded {
        command(world, index, Command::ReplacePod { pod });
    }
}

/// Reservations that do not exist any more are given up.
fn give_up_lost(world: &mut World, index: usize, view: &View) {
    for name in view.plan_names() {
        let Some(plan) = view.plan(&name) else { continue };
        for phase in &plan.phases {
            let open = phase.steps.iter().filter(|step| step.status != "COMPLETE");
            let lost = open.filter(|step| {
                let garbage = step.name.strip_prefix("unreserve-").and_then(|id| view.garbage.get(id));
                garbage.is_some_and(|garbage| !exists(world, &garbage.agent, &garbage.id))
            });
            for step in lost.map(|step| step.name.clone()).collect::<Vec<_>>() {
                let action = Action::ForceComplete { phase: Some(phase.name.clone()), step: Some(step) };
                command(world, index, Command::Plan { plan: name.clone(), action });
            }
        }
    }
}

/// Whether the master knows the agent, and a reservation of this id on it.
fn exists(world: &World, agent: &str, id: &str) -> bool {
    let Some(master) = world.leader() else { return true };
    let agent = master.state().agents.get(&AgentId::new(agent));
    let has_id = |resource: &Resource| {
        let labels = resource.reservation().and_then(|level| level.labels.as_ref());
        labels.is_some_and(|all| all.iter().any(|(_, value)| value.as_deref() == Some(id)))
    };
    agent.is_some_and(|agent| agent.total.iter().any(has_id))
}
