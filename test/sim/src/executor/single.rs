//! Executors with one task: the machine of the command executor and of the docker executor, over a pretend process.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tepui_client::v1::TaskInfo;
use tepui_client::v1::task_status::Reason;
use tepui_executors::checks::{CheckKind, Outcome};
use tepui_executors::command::machine::{CommandMachine, Effect, Ended, IoEvent, Limited, Started};
use tepui_executors::machine::Machine;
use tepui_types::ContainerId;

use super::drive::{self, Input};
use super::{Executor, Program, exit, get, plan, report};
use crate::chance::{MS, SECOND, between};
use crate::check::{Fact, TaskEnd};
use crate::host;
use crate::probe;
use crate::script::{CommandExit, Script};
use crate::world::World;

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

#[derive(Debug)]
pub(super) struct Single {
    machine: CommandMachine,
    in_docker: bool,
    process: Process,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    None,
    Starting,
    Running(SignalResponse),
    Ended,
}

/// What a process does about signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalResponse {
    Obeys,
    /// Only SIGKILL terminates it.
    Ignores,
    /// No signal terminates it, like a process in uninterruptible sleep.
    Stuck,
}

/// What happens to the process.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Started { fails: bool },
    Ends { status: i32, out_of_memory: bool },
    Probed { kind: CheckKind, outcome: Outcome },
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Started { .. } => "task-started",
            Step::Ends { .. } => "task-ends",
            Step::Probed { .. } => "probed",
        }
    }
}

impl Single {
    pub(super) fn command(grace: Duration) -> Self {
        let machine = CommandMachine::new("command", grace, None);
        Self { machine, in_docker: false, process: Process::None }
    }

    pub(super) fn docker(grace: Duration) -> Self {
        let machine = CommandMachine::new("docker", grace, Some(grace));
        Self { machine, in_docker: true, process: Process::None }
    }
}

fn single<'w>(world: &'w mut World, agent: usize, id: &ContainerId) -> Option<&'w mut Single> {
    single_of(get(world, agent, id)?)
}

fn single_of(executor: &mut Executor) -> Option<&mut Single> {
    match &mut executor.program {
        Program::Single(single) => Some(single),
        Program::Pretend | Program::Group(_) | Program::Container(_) => None,
    }
}

/// The name and the script of its one task.
fn task_of(executor: &Executor) -> Option<(String, Script)> {
    executor.tasks.iter().next().map(|(name, task)| (name.clone(), task.script))
}

pub(super) fn drive(world: &mut World, agent: usize, id: &ContainerId, input: Input<IoEvent>) {
    let now = world.elapsed();
    let World { rng, agents, .. } = world;
    let Some(single) = agents[agent].host.executor_mut(id).and_then(single_of) else { return };
    let effects = drive::feed(&mut single.machine, now, rng, input);
    let deadline = single.machine.deadline();
    effects.into_iter().for_each(|effect| perform(world, agent, id, effect));
    drive::plan_due(world, agent, id, deadline);
}

/// Ignored after the exit of the executor.
fn perform(world: &mut World, agent: usize, id: &ContainerId, effect: Effect) {
    match effect {
        Effect::Update(status) => report(world, agent, id, status),
        Effect::Spawn(task) => spawn(world, agent, id, &task),
        Effect::Signal(sent) => signal(world, agent, id, sent as i32),
        Effect::Probe(kind, _) => {
            let (wait, outcome) = probe::draw(world);
            let step = Step::Probed { kind, outcome };
            plan(world, agent, id, wait, super::Step::Single(step));
        }
        Effect::Exit(code) => exit(world, agent, id, i32::from(code) << 8, false),
    }
}

pub(super) fn step(world: &mut World, agent: usize, id: &ContainerId, step: Step) {
    match step {
        Step::Started { fails } => started(world, agent, id, fails),
        Step::Ends { status, out_of_memory } => ends(world, agent, id, status, out_of_memory),
        Step::Probed { kind, outcome } => {
            let task = get(world, agent, id).and_then(|executor| task_of(executor));
            if let Some((task, _)) = task.filter(|_| probe::is_bad(&outcome)) {
                world.checks.observe(&Fact::ProbeFails { container: id, task: &task });
            }
            drive(world, agent, id, Input::IoEvent(IoEvent::Probed(kind, outcome)));
        }
    }
}

/// A command starts at once; an engine takes a while.
fn spawn(world: &mut World, agent: usize, id: &ContainerId, task: &TaskInfo) {
    let fails = world.rng.chance(world.plan.bad_containers / 3.0);
    let Some(single) = single(world, agent, id) else { return };
    single.process = Process::Starting;
    let in_docker = single.in_docker;
    let wait = if in_docker { Script::parse(&task.name).start } else { 0 };
    world.counts.docker_tasks += u64::from(in_docker);
    world.counts.command_tasks += u64::from(!in_docker);
    plan(world, agent, id, wait, super::Step::Single(Step::Started { fails }));
}

fn started(world: &mut World, agent: usize, id: &ContainerId, fails: bool) {
    let (draw, rest) = (world.rng.chance(0.5), world.rng.chance(0.1));
    let Some(executor) = get(world, agent, id) else { return };
    let (Some((task, script)), hangs) = (task_of(executor), executor.hangs) else { return };
    let Program::Single(single) = &mut executor.program else { return };
    if fails {
        single.process = Process::Ended;
        world.checks.observe(&Fact::TaskEnds { container: id, task: &task, end: TaskEnd::NotStarted });
        let why = Err("pretended failure".into());
        return drive(world, agent, id, Input::IoEvent(IoEvent::Spawned(why)));
    }
    single.process = Process::Running(match (hangs, draw) {
        (true, true) => SignalResponse::Stuck,
        (true, false) => SignalResponse::Ignores,
        (false, _) if rest => SignalResponse::Ignores,
        (false, _) => SignalResponse::Obeys,
    });
    if script.ending == CommandExit::Crash && script.run == 0 {
        return exit(world, agent, id, 256, false); // The executor dies with it, before any update.
    }
    drive(world, agent, id, Input::IoEvent(IoEvent::Spawned(Ok(Started::default()))));
    if let Some(step) = next_step(&script) {
        plan(world, agent, id, script.run, step);
    }
}

/// How a task terminates without a kill.
fn next_step(script: &Script) -> Option<super::Step> {
    let ends = |status, out_of_memory| Some(super::Step::Single(Step::Ends { status, out_of_memory }));
    match script.ending {
        CommandExit::Finish => ends(0, false),
        CommandExit::Fail => ends(script.exit_code() << 8, false),
        CommandExit::Crash => Some(super::Step::Exit { status: 256 }),
        CommandExit::Oom => ends(SIGKILL, true),
        CommandExit::Stay => None,
    }
}

fn signal(world: &mut World, agent: usize, id: &ContainerId, signal: i32) {
    let politely = world.rng.chance(0.3);
    let Some(Process::Running(nerve)) = single(world, agent, id).map(|single| single.process) else { return };
    let (status, longest) = match (nerve, signal) {
        (SignalResponse::Stuck, _) => {
            world.counts.unheard_kills += 1;
            return; // The agent has to destroy it with its executor.
        }
        (SignalResponse::Ignores, SIGTERM) => return,
        (SignalResponse::Obeys, SIGTERM) => (if politely { 0 } else { SIGTERM }, SECOND),
        (SignalResponse::Obeys | SignalResponse::Ignores, _) => (SIGKILL, 50 * MS),
    };
    let wait = between(&mut world.rng, MS, longest);
    plan(world, agent, id, wait, super::Step::Single(Step::Ends { status, out_of_memory: false }));
}

/// The process exited; its executor receives the status in the form of its kind.
fn ends(world: &mut World, agent: usize, id: &ContainerId, status: i32, out_of_memory: bool) {
    let engine_fails = world.rng.chance(world.plan.bad_containers / 5.0);
    let Some(executor) = get(world, agent, id) else { return };
    let Some((task, _)) = task_of(executor) else { return };
    let Program::Single(single) = &mut executor.program else { return };
    if !matches!(single.process, Process::Running(_)) {
        return;
    }
    single.process = Process::Ended;
    let in_docker = single.in_docker;
    let is_unknown = in_docker && engine_fails;
    let end = match (is_unknown, in_docker && out_of_memory) {
        (true, _) => TaskEnd::Unknown,
        (false, true) => TaskEnd::OutOfMemory,
        (false, false) => TaskEnd::Exited(status),
    };
    world.checks.observe(&Fact::TaskEnds { container: id, task: &task, end });
    world.counts.out_of_memory += u64::from(out_of_memory);
    if out_of_memory && !in_docker {
        host::oom_kill(world, agent, id);
    }
    let ended = match is_unknown {
        true => Err("pretended failure of the engine".into()),
        false => Ok(wait_result(world.sabotage.forge_exit(status), in_docker, out_of_memory)),
    };
    drive(world, agent, id, Input::IoEvent(IoEvent::Ended(ended)));
}

/// A Docker engine reports exit codes and OOM kills only.
fn wait_result(status: i32, in_docker: bool, out_of_memory: bool) -> Ended {
    if !in_docker {
        return Ended::from(ExitStatus::from_raw(status));
    }
    let code = if status & 0x7f == 0 { status >> 8 } else { 128 + (status & 0x7f) };
    let reason = Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY);
    Ended {
        exit: ExitStatus::from_raw((code & 0xff) << 8),
        message: format!("Container exited with status {code}"),
        limited: out_of_memory.then_some(Limited { reason, limitation: None }),
    }
}
