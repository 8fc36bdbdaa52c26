//! Custom executors: a model with random behaviour, not always correct.

use tepui_client::executor::Event as ExecutorEvent;
use tepui_client::shorthand::is_terminal;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_types::ContainerId;

use super::{Step, begin_task, exit, get, plan, report, send};
use crate::chance::{MS, SECOND, between, mostly};
use crate::script::{CommandExit, Script};
use crate::world::World;

pub(super) fn event(world: &mut World, agent: usize, id: &ContainerId, event: ExecutorEvent) {
    match event {
        ExecutorEvent::Subscribed(_) => leave_if_unused(world, agent, id),
        ExecutorEvent::Launch(task) => launch(world, agent, id, &task),
        ExecutorEvent::LaunchGroup(tasks) => tasks.iter().for_each(|task| launch(world, agent, id, task)),
        ExecutorEvent::Kill { task_id, .. } => kill(world, agent, id, &task_id.value),
        ExecutorEvent::Acknowledged { .. } => leave_if_idle(world, agent, id),
        ExecutorEvent::Shutdown => shutdown(world, agent, id),
        ExecutorEvent::Error(_) => exit(world, agent, id, 256, false),
        ExecutorEvent::Disconnected | ExecutorEvent::Message(_) => (),
    }
}

fn launch(world: &mut World, agent: usize, id: &ContainerId, info: &pb::TaskInfo) {
    if begin_task(world, agent, id, info) {
        let start = Script::parse(&info.name).start;
        plan(world, agent, id, start, Step::Run { task: info.task_id.value.clone() });
    }
}

pub(super) fn run(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(running) = get(world, agent, id).and_then(|executor| executor.tasks.get(task)) else { return };
    if is_terminal(running.state) || running.killed {
        return;
    }
    let script = running.script;
    if script.ending == CommandExit::Crash && script.run == 0 {
        return exit(world, agent, id, 256, false); // It never ran.
    }
    if script.says_starting {
        update(world, agent, id, task, TaskState::TASK_STARTING);
    }
    update(world, agent, id, task, TaskState::TASK_RUNNING);
    if world.rng.chance(0.2) {
        send_message(world, agent, id);
    }
    match script.ending {
        CommandExit::Stay => (),
        CommandExit::Finish | CommandExit::Fail | CommandExit::Crash | CommandExit::Oom => {
            plan(world, agent, id, script.run, Step::Finish { task: task.into() });
        }
    }
}

/// A message to the framework, which may get lost.
fn send_message(world: &mut World, agent: usize, id: &ContainerId) {
    let message = get(world, agent, id).and_then(|executor| executor.session.message(b"hello".into()));
    if let Some(call) = message {
        send(world, agent, id, call);
    }
}

pub(super) fn finish(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(running) = get(world, agent, id).and_then(|executor| executor.tasks.get(task)) else { return };
    if is_terminal(running.state) || running.killed {
        return;
    }
    match running.script.ending {
        CommandExit::Finish => update(world, agent, id, task, TaskState::TASK_FINISHED),
        CommandExit::Fail => update(world, agent, id, task, TaskState::TASK_FAILED),
        CommandExit::Crash => exit(world, agent, id, 256, false),
        CommandExit::Oom => exit(world, agent, id, 9, true),
        CommandExit::Stay => (),
    }
}

fn kill(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(executor) = get(world, agent, id) else { return };
    let hangs = executor.hangs;
    let Some(running) = executor.tasks.get_mut(task) else { return };
    if is_terminal(running.state) || std::mem::replace(&mut running.killed, true) {
        return;
    }
    if world.rng.chance(0.3) {
        update(world, agent, id, task, TaskState::TASK_KILLING);
    }
    let longest = if hangs { 30 * SECOND } else { SECOND };
    let wait = between(&mut world.rng, MS, longest);
    plan(world, agent, id, wait, Step::Killed { task: task.into() });
}

fn shutdown(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    if executor.hangs {
        // It will be destroyed before, unless the agent is not there to do it.
        let wait = between(&mut world.rng, 10 * SECOND, 40 * SECOND);
        return plan(world, agent, id, wait, Step::Exit { status: 9 });
    }
    let live = executor.tasks.iter().filter(|(_, task)| !is_terminal(task.state));
    let live: Vec<String> = live.map(|(task, _)| task.clone()).collect();
    if world.rng.chance(0.7) {
        live.iter().for_each(|task| update(world, agent, id, task, TaskState::TASK_KILLED));
    }
    let wait = between(&mut world.rng, MS, SECOND);
    plan(world, agent, id, wait, Step::Exit { status: 0 });
}

pub(super) fn update(world: &mut World, agent: usize, id: &ContainerId, task: &str, state: TaskState) {
    let uuid = world.rng.uuid();
    let Some(running) = get(world, agent, id).and_then(|executor| executor.tasks.get(task)) else { return };
    if is_terminal(running.state) {
        return;
    }
    let task_id = pb::TaskID { value: task.into(), ..Default::default() };
    let uuid = Some(uuid.to_vec());
    let status = pb::TaskStatus { task_id: task_id.into(), state, uuid, ..Default::default() };
    report(world, agent, id, status);
    if is_terminal(state) {
        leave_if_idle(world, agent, id);
    }
}

/// An executor without tasks exits.
fn leave_if_unused(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    let stirred = executor.stirred;
    if !executor.had_tasks {
        let wait = between(&mut world.rng, 10 * SECOND, 30 * SECOND);
        plan(world, agent, id, wait, Step::Leave { stirred });
    }
}

/// An executor without anything to do leaves after a while.
fn leave_if_idle(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    let stirred = executor.stirred;
    if !executor.had_tasks || !executor.is_idle() {
        return;
    }
    let wait = mostly(&mut world.rng, 10 * MS, 3 * SECOND, 0.2, 10 * SECOND);
    plan(world, agent, id, wait, Step::Leave { stirred });
}
