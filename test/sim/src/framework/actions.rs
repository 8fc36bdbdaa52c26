//! Random actions of a framework: kills, reconciliation, messages, suppression, teardown; and its actions while healing.

use tepui_client::scheduler::calls;
use tepui_client::shorthand::task_id;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::OfferConstraints;

use super::{Step, call, draw_roles, plan};
use crate::chance::{MS, SECOND, between, pick};
use crate::world::World;

pub(super) fn act(world: &mut World, index: usize) {
    let wait = between(&mut world.rng, 500 * MS, 8 * SECOND);
    plan(world, index, wait, Step::Act);
    if world.is_healing() {
        return;
    }
    match world.rng.below(16) {
        0..=3 => kill_one(world, index),
        4 => reconcile_all(world, index),
        5 => suppress(world, index),
        6..=8 => revive(world, index),
        9 => message(world, index),
        10 => shutdown_one(world, index),
        11 if world.rng.chance(0.1) => teardown(world, index),
        12 => update_info(world, index),
        _ => plan(world, index, 1, Step::Consider),
    }
}

/// Explicit reconciliation of live tasks, then implicit reconciliation.
pub(super) fn reconcile_all(world: &mut World, index: usize) {
    let framework = &world.frameworks[index];
    let live = framework.live_tasks();
    let tasks: Vec<_> = live.map(|(id, task)| (task_id(id.clone()), Some(task.agent_id.clone()))).collect();
    if !tasks.is_empty() {
        call(world, index, calls::reconcile(tasks));
    }
    call(world, index, calls::reconcile([]));
}

fn live(world: &World, index: usize) -> Vec<(String, pb::AgentID, Option<pb::ExecutorID>)> {
    let live = world.frameworks[index].live_tasks();
    live.map(|(id, task)| (id.clone(), task.agent_id.clone(), task.executor_id.clone())).collect()
}

fn kill_one(world: &mut World, index: usize) {
    let live = live(world, index);
    if let Some((task, agent, _)) = pick(&mut world.rng, &live) {
        let agent = world.rng.chance(0.5).then(|| agent.clone());
        call(world, index, calls::kill(task_id(task.clone()), agent, None));
    }
}

fn message(world: &mut World, index: usize) {
    let live = live(world, index);
    if let Some((_, agent, Some(executor))) = pick(&mut world.rng, &live) {
        call(world, index, calls::message(agent.clone(), executor.clone(), b"hello".into()));
    }
}

fn shutdown_one(world: &mut World, index: usize) {
    let live = live(world, index);
    if let Some((_, agent, Some(executor))) = pick(&mut world.rng, &live) {
        call(world, index, calls::shutdown(executor.clone(), agent.clone()));
    }
}

fn suppress(world: &mut World, index: usize) {
    if call(world, index, calls::suppress(Vec::new())) {
        world.frameworks[index].suppressed = true;
    }
}

fn revive(world: &mut World, index: usize) {
    if world.frameworks[index].suppressed && call(world, index, calls::revive(Vec::new())) {
        world.frameworks[index].suppressed = false;
    }
}

/// Changes roles or name.
fn update_info(world: &mut World, index: usize) {
    let mut info = world.frameworks[index].memory.info.clone();
    info.roles = draw_roles(&mut world.rng);
    info.name = format!("framework {index} at {}", world.queue.now());
    let constraints = avoidance(world, &info.roles);
    call(world, index, calls::update_framework(info, Vec::new(), constraints));
}

/// Some frameworks avoid an agent, in all of their roles.
fn avoidance(world: &mut World, roles: &[String]) -> Option<OfferConstraints> {
    use tepui_proto::mesos::v1::scheduler::AttributeConstraint;
    use tepui_proto::mesos::v1::scheduler::attribute_constraint::predicate::TextNotEquals;
    use tepui_proto::mesos::v1::scheduler::attribute_constraint::selector::PseudoattributeType;
    use tepui_proto::mesos::v1::scheduler::attribute_constraint::{Predicate, Selector};
    use tepui_proto::mesos::v1::scheduler::offer_constraints::{RoleConstraints, role_constraints::Group};
    if !world.plan.constraints || world.is_healing() || world.rng.chance(0.3) {
        return None;
    }
    world.counts.constrained += 1;
    let host = world.rng.below(world.agents.len() as u64);
    let avoid = TextNotEquals { value: format!("host{host}"), ..Default::default() };
    let constraint = AttributeConstraint {
        selector: Selector {
            pseudoattribute_type: Some(PseudoattributeType::HOSTNAME),
            ..Default::default()
        }
        .into(),
        predicate: Predicate { text_not_equals: avoid.into(), ..Default::default() }.into(),
        ..Default::default()
    };
    let group = Group { attribute_constraints: vec![constraint], ..Default::default() };
    let of_role = RoleConstraints { groups: vec![group], ..Default::default() };
    let role_constraints = roles.iter().map(|role| (role.clone(), of_role.clone())).collect();
    Some(OfferConstraints { role_constraints, ..Default::default() })
}

fn teardown(world: &mut World, index: usize) {
    call(world, index, calls::teardown());
}

/// Keeps whatever it is offered from now on.
pub(crate) fn revive_all(world: &mut World, index: usize) {
    clear_constraints(world, index);
    call(world, index, calls::revive(Vec::new()));
}

fn clear_constraints(world: &mut World, index: usize) {
    if world.plan.constraints {
        let info = world.frameworks[index].memory.info.clone();
        call(world, index, calls::update_framework(info, Vec::new(), None));
    }
}

/// Declines all offers, kills all tasks, reconciles those without a terminal state.
pub(super) fn repair(world: &mut World, index: usize) {
    let wait = between(&mut world.rng, 5 * SECOND, 15 * SECOND);
    plan(world, index, wait, Step::Repair);
    if !world.is_settling() {
        return;
    }
    plan(world, index, 1, Step::Consider);
    clear_constraints(world, index);
    suppress(world, index);
    reconcile_all(world, index);
    for (task, agent, _) in live(world, index) {
        call(world, index, calls::kill(task_id(task), Some(agent), None));
    }
    let operations = world.frameworks[index].memory.operations.iter();
    let operations = operations.map(|(id, operation)| pb::scheduler::call::reconcile_operations::Operation {
        operation_id: pb::OperationID { value: id.clone(), ..Default::default() }.into(),
        agent_id: operation.agent_id.clone().into(),
        ..Default::default()
    });
    let operations: Vec<_> = operations.collect();
    if !operations.is_empty() {
        call(world, index, calls::reconcile_operations(operations));
    }
}
