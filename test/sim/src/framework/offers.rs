//! What a framework does with its offers: launches of every kind, reservations and volumes, refusals.

use std::collections::{BTreeMap, BTreeSet};

use tepui_client::scheduler::calls;
use tepui_client::shorthand::{duration_info, executor_id, scalar, shell, task_id};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_proto::mesos::v1::scheduler::Call;

use super::{Framework, Operation, Task, call, volumes};
use crate::chance::{Rng, SECOND, between, pick};
use crate::check::Fact;
use crate::script::{CommandExit, Script};
use crate::world::World;

/// The limit of live tasks per framework.
const LIVE_TASKS_MAX: usize = 8;
/// A framework that launched this many tasks is content.
const TASKS_MAX: usize = 40;

pub(super) fn consider(world: &mut World, index: usize) {
    if world.is_healing() && !world.is_settling() {
        return; // It holds the offers without using them.
    }
    let offers: Vec<pb::Offer> = world.frameworks[index].offers.values().cloned().collect();
    for offer in offers {
        let framework = &world.frameworks[index];
        let busy = framework.live_tasks().count() >= LIVE_TASKS_MAX || framework.memory.launches >= TASKS_MAX;
        let healing = world.is_healing();
        match world.rng.below(10) {
            _ if healing => decline(world, index, &offer, 600.0),
            0 => (), // Keeps it for a while.
            1..=6 if !busy => accept(world, index, &offer),
            _ => {
                let seconds = between(&mut world.rng, 0, 10) as f64;
                decline(world, index, &offer, seconds);
            }
        }
    }
}

fn decline(world: &mut World, index: usize, offer: &pb::Offer, seconds: f64) {
    world.frameworks[index].offers.remove(&offer.id.value);
    let filters = pb::Filters { refuse_seconds: Some(seconds), ..Default::default() };
    call(world, index, calls::decline([(*offer.id).clone()], Some(filters)));
}

/// The connection broke before these calls were answered. Whether they arrived is unknown: declining again does no harm,
/// and launched tasks are reconciled.
pub(super) fn decline_unanswered(world: &mut World, index: usize, lost: Vec<Call>) {
    for pending in lost {
        let offers = pending.accept.offer_ids.iter().chain(&pending.decline.offer_ids).cloned();
        let offers: Vec<_> = offers.collect();
        if !offers.is_empty() {
            call(world, index, calls::decline(offers, None));
        }
    }
}

/// What is left of an offer while operations are made up.
pub(super) struct Pool {
    agent_id: pb::AgentID,
    role: String,
    pub(super) resources: Vec<pb::Resource>,
    /// Ids of terminated tasks, and the probability of reuse.
    reusable: Vec<String>,
    reused_ids: f64,
    /// Some tasks have checks.
    checks: bool,
    /// Some tasks have limits above their requests.
    limits: bool,
    /// Some tasks use the user root.
    roots: bool,
}

impl Pool {
    /// Takes an amount of ordinary resources out.
    fn take(&mut self, name: &str, amount: f64) -> Option<pb::Resource> {
        let plain = |resource: &&mut pb::Resource| {
            resource.name == name && !resource.disk.is_set() && resource.scalar.value >= amount
        };
        let from = self.resources.iter_mut().find(plain)?;
        let left = ((from.scalar.value - amount) * 1000.0).round() / 1000.0;
        let mut taken = from.clone();
        taken.scalar = scalar(name, amount).scalar;
        from.scalar = scalar(name, left).scalar;
        Some(taken)
    }

    fn take_some(&mut self, rng: &mut Rng) -> Option<Vec<pb::Resource>> {
        let (cpus, mem) = (between(rng, 1, 10) as f64 / 10.0, between(rng, 32, 256) as f64);
        let cpus = self.take("cpus", cpus)?;
        let mem = self.take("mem", mem)?;
        Some(vec![cpus, mem])
    }
}

fn accept(world: &mut World, index: usize, offer: &pb::Offer) {
    let mut pool = Pool {
        agent_id: (*offer.agent_id).clone(),
        role: offer.allocation_info.role.clone().unwrap_or_default(),
        resources: offer.resources.clone(),
        reusable: reusable(world, index),
        reused_ids: world.plan.reused_ids,
        checks: world.plan.checks,
        limits: world.plan.limits,
        roots: world.plan.authorization,
    };
    // Revocable and non-revocable resources cannot be mixed; only cpus are oversubscribed.
    if pool.resources.iter().any(|resource| resource.revocable.is_set()) {
        let (borrows, slack) = (world.rng.chance(0.6), world.plan.slack);
        pool.resources
            .retain(|resource| resource.revocable.is_set() == borrows || !slack && resource.name != "cpus");
    }
    let mut operations = Vec::new();
    for _ in 0..=world.rng.below(2) {
        let with_volumes = world.plan.volumes && world.rng.chance(0.4);
        let (rng, framework) = (&mut world.rng, &mut world.frameworks[index]);
        let made = match rng.below(12) {
            _ if with_volumes => volumes::change_volume(rng, framework, &mut pool),
            0..=4 => launch_commands(rng, framework, &mut pool),
            5..=7 => launch_custom(rng, framework, &mut pool),
            8..=9 => launch_group(rng, framework, &mut pool),
            10 => reserve(rng, &mut pool),
            _ => unreserve_or_volume(rng, framework, &mut pool),
        };
        operations.extend(made);
    }
    // An operation must name resources as another one of the same call creates them; these never do.
    for operation in &mut operations {
        if !is_launch(operation) && world.rng.chance(0.7) {
            let name = world.frameworks[index].name("o");
            let made =
                Operation { agent_id: pool.agent_id.clone(), state: pb::OperationState::OPERATION_PENDING };
            world.frameworks[index].memory.operations.insert(name.clone(), made);
            operation.id = pb::OperationID { value: name, ..Default::default() }.into();
            world.counts.operations += 1;
        }
    }
    world.frameworks[index].offers.remove(&offer.id.value);
    record_launches(world, index, offer, &operations);
    let filters =
        pb::Filters { refuse_seconds: Some(between(&mut world.rng, 0, 5) as f64), ..Default::default() };
    call(world, index, calls::accept([(*offer.id).clone()], operations, Some(filters)));
}

/// Ids of terminated tasks; empty if the plan has no reuse.
fn reusable(world: &World, index: usize) -> Vec<String> {
    let tasks = world.frameworks[index].memory.tasks.iter().filter(|(_, task)| task.over);
    match world.plan.reused_ids > 0.0 {
        true => tasks.map(|(id, _)| id.clone()).collect(),
        false => Vec::new(),
    }
}

fn is_launch(operation: &pb::offer::Operation) -> bool {
    matches!(operation.r#type, Some(Type::LAUNCH | Type::LAUNCH_GROUP))
}

/// Records launched tasks before the call is sent, as the call may never be answered.
fn record_launches(world: &mut World, index: usize, offer: &pb::Offer, operations: &[pb::offer::Operation]) {
    let id = world.frameworks[index].id().unwrap_or_default().to_owned();
    for operation in operations {
        for volume in &operation.destroy.volumes {
            world.checks.observe(&Fact::VolumeUnwanted { volume: &volume.disk.persistence.id });
        }
        let launched = operation.launch.task_infos.iter();
        for info in launched.chain(&operation.launch_group.task_group.tasks) {
            let executor = info.executor.as_option().or(operation.launch_group.executor.as_option());
            let task = Task {
                agent_id: (*offer.agent_id).clone(),
                executor_id: executor.map(|executor| (*executor.executor_id).clone()),
                state: TaskState::TASK_STAGING,
                received: BTreeSet::new(),
                over: false,
            };
            world.counts.tasks += 1;
            world.counts.limited += u64::from(!info.limits.is_empty());
            world.checks.observe(&Fact::FrameworkLaunches { id: &id, task: &info.task_id.value });
            let memory = &mut world.frameworks[index].memory;
            memory.launches += 1;
            if let Some(before) = memory.tasks.insert(info.task_id.value.clone(), task) {
                world.counts.reused_ids += 1;
                memory.past.extend(before.received);
            }
        }
    }
}

pub(super) fn task(rng: &mut Rng, framework: &mut Framework, pool: &mut Pool) -> Option<pb::TaskInfo> {
    let resources = pool.take_some(rng)?;
    let name = match pool.reusable.pop() {
        Some(name) if rng.chance(pool.reused_ids) => name,
        _ => framework.name("t"),
    };
    let script = Script::draw(rng);
    let is_checked = pool.checks && rng.chance(0.3);
    let limit = pool.limits && rng.chance(0.3);
    Some(pb::TaskInfo {
        limits: if limit { limits(&resources) } else { Default::default() },
        health_check: is_checked.then(|| health_check(rng)).into(),
        check: (is_checked && rng.chance(0.5)).then(check).into(),
        name: script.to_string(),
        max_completion_time: script.longest().map(duration_info).into(),
        task_id: task_id(name).into(),
        agent_id: pool.agent_id.clone().into(),
        resources,
        ..Default::default()
    })
}

fn health_check(rng: &mut Rng) -> pb::HealthCheck {
    pb::HealthCheck {
        r#type: Some(pb::health_check::Type::TCP),
        tcp: pb::health_check::TCPCheckInfo { port: 80, ..Default::default() }.into(),
        delay_seconds: Some(0.5),
        interval_seconds: Some(1.0),
        grace_period_seconds: Some(between(rng, 0, 5) as f64),
        consecutive_failures: Some(2),
        ..Default::default()
    }
}

/// What a check by command runs: most succeed, some fail, some take too long.
fn check_command(rng: &mut Rng) -> pb::CommandInfo {
    let ending = match rng.below(20) {
        0..=14 => CommandExit::Finish,
        15..=17 => CommandExit::Fail,
        _ => CommandExit::Stay,
    };
    let script = Script { start: 0, run: between(rng, 0, 2 * SECOND), says_starting: false, ending };
    pb::CommandInfo { value: Some(script.to_string()), ..Default::default() }
}

/// Some tasks are checked by a command instead, which groups run in a container below the task's.
fn check_by_command(rng: &mut Rng, task: &mut pb::TaskInfo) {
    if let Some(check) = task.health_check.as_option_mut().filter(|_| rng.chance(0.5)) {
        check.r#type = Some(pb::health_check::Type::COMMAND);
        (check.tcp, check.command) = (Default::default(), check_command(rng).into());
        check.timeout_seconds = Some(between(rng, 1, 3) as f64);
    }
    if let Some(check) = task.check.as_option_mut().filter(|_| rng.chance(0.5)) {
        check.r#type = Some(pb::check_info::Type::COMMAND);
        let command = pb::check_info::Command { command: check_command(rng).into(), ..Default::default() };
        (check.tcp, check.command) = (Default::default(), command.into());
        check.timeout_seconds = Some(between(rng, 1, 3) as f64);
    }
}

fn check() -> pb::CheckInfo {
    pb::CheckInfo {
        r#type: Some(pb::check_info::Type::TCP),
        tcp: pb::check_info::Tcp { port: 80, ..Default::default() }.into(),
        delay_seconds: Some(0.5),
        interval_seconds: Some(2.0),
        ..Default::default()
    }
}

fn launch_commands(
    rng: &mut Rng,
    framework: &mut Framework,
    pool: &mut Pool,
) -> Option<pb::offer::Operation> {
    let count = between(rng, 1, 3);
    let tasks = (0..count).filter_map(|_| {
        let task = task(rng, framework, pool)?;
        let in_docker = rng.chance(0.3).then(docker);
        let command = command(rng, pool, &task).into();
        Some(pb::TaskInfo { command, container: in_docker.into(), ..task })
    });
    let tasks: Vec<_> = tasks.collect();
    (!tasks.is_empty()).then(|| calls::launch(tasks))
}

/// The command of a task is its script, the only input of its executor.
pub(super) fn command(rng: &mut Rng, pool: &Pool, task: &pb::TaskInfo) -> pb::CommandInfo {
    let user = (pool.roots && rng.chance(0.2)).then(|| "root".into());
    pb::CommandInfo { user, ..shell(task.name.clone()) }
}

/// Twice the requests of the task.
fn limits(requests: &[pb::Resource]) -> BTreeMap<String, pb::value::Scalar> {
    let double = |resource: &pb::Resource| {
        let value = 2.0 * resource.scalar.value;
        (resource.name.clone(), pb::value::Scalar { value, ..Default::default() })
    };
    requests.iter().map(double).collect()
}

fn own_cgroups() -> pb::ContainerInfo {
    let linux_info = pb::LinuxInfo { share_cgroups: Some(false), ..Default::default() };
    pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        linux_info: linux_info.into(),
        ..Default::default()
    }
}

fn docker() -> pb::ContainerInfo {
    let docker = pb::container_info::DockerInfo { image: "pretend".into(), ..Default::default() };
    pb::ContainerInfo {
        r#type: pb::container_info::Type::DOCKER,
        docker: docker.into(),
        ..Default::default()
    }
}

/// A new executor, or one that may be running there.
fn executor(rng: &mut Rng, framework: &mut Framework, pool: &mut Pool) -> Option<pb::ExecutorInfo> {
    let used: Vec<pb::ExecutorID> = framework
        .live_tasks()
        .filter(|(_, task)| task.agent_id.value == pool.agent_id.value)
        .filter_map(|(_, task)| task.executor_id.clone().filter(|id| id.value.starts_with('e')))
        .collect();
    let id = match pick(rng, &used) {
        Some(id) if rng.chance(0.6) => id.clone(),
        _ => executor_id(framework.name("e")),
    };
    // The same description every time: an executor cannot change.
    Some(pb::ExecutorInfo {
        executor_id: id.into(),
        r#type: Some(pb::executor_info::Type::CUSTOM),
        command: shell("pretend executor").into(),
        resources: vec![pool.take("cpus", 0.1)?, pool.take("mem", 32.0)?],
        ..Default::default()
    })
}

fn launch_custom(rng: &mut Rng, framework: &mut Framework, pool: &mut Pool) -> Option<pb::offer::Operation> {
    let executor = executor(rng, framework, pool)?;
    let count = between(rng, 1, 3);
    let tasks = (0..count).filter_map(|_| {
        let task = task(rng, framework, pool)?;
        Some(pb::TaskInfo { executor: executor.clone().into(), ..task })
    });
    let tasks: Vec<_> = tasks.collect();
    (!tasks.is_empty()).then(|| calls::launch(tasks))
}

fn launch_group(rng: &mut Rng, framework: &mut Framework, pool: &mut Pool) -> Option<pb::offer::Operation> {
    let executor = pb::ExecutorInfo {
        executor_id: executor_id(framework.name("g")).into(),
        framework_id: framework.memory.info.id.clone(),
        r#type: Some(pb::executor_info::Type::DEFAULT),
        resources: vec![pool.take("cpus", 0.1)?, pool.take("mem", 32.0)?, pool.take("disk", 10.0)?],
        ..Default::default()
    };
    let count = between(rng, 1, 3);
    let tasks = (0..count).filter_map(|_| {
        let mut task = task(rng, framework, pool)?;
        check_by_command(rng, &mut task);
        let command = command(rng, pool, &task).into();
        // Limits of a task in a group require its own cgroups.
        let container = (!task.limits.is_empty()).then(own_cgroups);
        Some(pb::TaskInfo { command, container: container.into(), ..task })
    });
    let tasks: Vec<_> = tasks.collect();
    (!tasks.is_empty()).then(|| calls::launch_group(executor, tasks))
}

fn reserve(rng: &mut Rng, pool: &mut Pool) -> Option<pb::offer::Operation> {
    let name = *pick(rng, &["cpus", "mem", "disk"])?;
    reserve_some(pool, name, if name == "cpus" { 0.5 } else { 64.0 })
}

pub(super) fn reserve_some(pool: &mut Pool, name: &str, amount: f64) -> Option<pb::offer::Operation> {
    let mut taken = pool.take(name, amount)?;
    if !taken.reservations.is_empty() {
        return None;
    }
    taken.reservations.push(pb::resource::ReservationInfo {
        r#type: Some(pb::resource::reservation_info::Type::DYNAMIC),
        role: Some(pool.role.clone()),
        ..Default::default()
    });
    Some(pb::offer::Operation {
        r#type: Some(Type::RESERVE),
        reserve: pb::offer::operation::Reserve { resources: vec![taken], ..Default::default() }.into(),
        ..Default::default()
    })
}

/// Uses reserved resources: creates or destroys a volume, or unreserves.
fn unreserve_or_volume(
    rng: &mut Rng,
    framework: &mut Framework,
    pool: &mut Pool,
) -> Option<pb::offer::Operation> {
    use pb::offer::operation::{Create, Destroy, Unreserve};
    let is_volume = |resource: &pb::Resource| resource.disk.persistence.is_set();
    let reserved = |resource: &pb::Resource| !resource.reservations.is_empty() && resource.scalar.value > 0.0;
    let at = pool.resources.iter().position(reserved)?;
    let mut resource = pool.resources.swap_remove(at);
    if is_volume(&resource) {
        return Some(pb::offer::Operation {
            r#type: Some(Type::DESTROY),
            destroy: Destroy { volumes: vec![resource], ..Default::default() }.into(),
            ..Default::default()
        });
    }
    if resource.name == "disk" && rng.chance(0.7) {
        resource.disk = volume(framework.name("v")).into();
        return Some(pb::offer::Operation {
            r#type: Some(Type::CREATE),
            create: Create { volumes: vec![resource], ..Default::default() }.into(),
            ..Default::default()
        });
    }
    Some(pb::offer::Operation {
        r#type: Some(Type::UNRESERVE),
        unreserve: Unreserve { resources: vec![resource], ..Default::default() }.into(),
        ..Default::default()
    })
}

pub(crate) fn volume(id: String) -> pb::resource::DiskInfo {
    let persistence = pb::resource::disk_info::Persistence { id, ..Default::default() };
    let volume =
        pb::Volume { container_path: "data".into(), mode: pb::volume::Mode::RW, ..Default::default() };
    pb::resource::DiskInfo { persistence: persistence.into(), volume: volume.into(), ..Default::default() }
}
