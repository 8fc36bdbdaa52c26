//! From records to the agent's state: frameworks with their executors, these with their tasks and updates.
//!
//! A task keeps its stage: pending if it was never delivered or is held back, else delivered, or terminal by its
//! newest update. Records without their parent are left out.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Wall;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::Resources;
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId, Termination};

use super::load::Loaded;
use crate::agent::Agent;
use crate::entities::lifecycle;
use crate::entities::status;
use crate::handlers::operator;
use crate::rules::checkpoint::{rebuilt_executor, rebuilt_framework};
use crate::rules::history;
use crate::state::bookkeeping::Stream;
use crate::state::key::Key;
use crate::state::{Completion, Container, ContainerStage, Delivery, Drain, Kill, Task, TaskStage};

/// Fills a new agent with what was recorded; the keys of what was left out.
pub(super) fn rebuild(agent: &mut Agent, loaded: Loaded) -> Vec<String> {
    let mut left_out = loaded.unreadable;
    for (id, framework) in loaded.frameworks {
        agent.state.frameworks.insert_mut(id.clone(), Arc::new(rebuilt_framework(id, framework)));
    }
    for (key, executor) in loaded.executors {
        if !add_executor(agent, &key.0, &key.1, executor) {
            left_out.push(Key::Executor(key.0, key.1).text());
        }
    }
    let mut deliveries = Vec::new();
    for (key, task) in loaded.tasks {
        if agent.state.executor(&key.0, &key.1).is_none() {
            left_out.push(Key::Task(key.0, key.1, key.2).text());
            continue;
        }
        deliveries.push((task.0.delivery, task.0.group == Some(true), key.clone()));
        add_task(agent, &key.0, &key.1, task);
    }
    for (key, update) in loaded.updates {
        if agent.state.framework(&key.0).is_none() {
            left_out.push(Key::Update(key.0, key.1, key.2).text());
            continue;
        }
        add_update(agent, key, update);
    }
    queue(agent, deliveries);
    for (id, container) in loaded.containers {
        if !add_container(agent, &id, &container) {
            left_out.push(Key::Container(id.to_string()).text());
        }
    }
    for (uuid, operation) in loaded.operations {
        if let Some(operation) = operation.operation.into_option() {
            agent.state.operations.insert_mut(uuid, Arc::new(operation));
        }
    }
    left_out.extend(history::restore(agent, loaded.history));
    agent.state.drain = loaded.drain.map(|drain| {
        let started = Wall(u64::try_from(drain.started.nanoseconds).unwrap_or(0));
        Arc::new(Drain { config: drain.config.into_option().unwrap_or_default(), started })
    });
    left_out
}

fn add_executor(
    agent: &mut Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    (executor, own): (stored::StoredExecutor, Resources),
) -> bool {
    let executor = rebuilt_executor(agent, framework, executor, own);
    let container_id = executor.container_id.clone();
    let Some(owner) = agent.state.framework_mut(framework) else { return false };
    owner.executors.insert_mut(id.clone(), Arc::new(executor));
    agent.executors_by_container.insert(container_id, (framework.clone(), id.clone()));
    true
}

fn add_task(
    agent: &mut Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    (task, resources): (stored::StoredTask, Resources),
) {
    let delivery = task.delivery;
    let group = task.group == Some(true);
    let held_back = task.held_back == Some(true);
    let kill = match task.kill.into_option() {
        Some(kill) => Kill::Requested { policy: kill.policy.into_option() },
        None => Kill::NotRequested,
    };
    let info = task.info.into_option().unwrap_or_default();
    let mut task = lifecycle::new_task(agent, framework, info, resources);
    task.delivery = (delivery, group);
    let Some(executor) = agent.state.executor_mut(framework, executor) else { return };
    executor.deliveries = executor.deliveries.max(delivery);
    let handed_over = executor.delivered && !held_back;
    task.stage = match handed_over {
        true => TaskStage::Launched { kill, completion: Completion::InTime },
        false => TaskStage::Queued { held_back },
    };
    executor.tasks.insert_mut(task.id.clone(), Arc::new(task));
}

/// Updates come in the order of their numbers.
fn add_update(agent: &mut Agent, key: (FrameworkId, TaskId, u64), update: stored::StoredUpdate) {
    let (framework, task, seq) = key;
    let status = update.status.into_option().unwrap_or_default();
    if let Some(executor) = agent.state.executor_of(&framework, &task).map(|executor| executor.id.clone())
        && let Some(task) = agent.state.task_mut(&framework, &executor, &task)
    {
        status::restore(task, &status);
    }
    let stream = agent.streams.entry((framework, task)).or_insert_with(Stream::new);
    stream.restore(seq, status, update.acknowledged);
}

/// What waited, waits again, in the same order and company.
fn queue(agent: &mut Agent, mut deliveries: Vec<(u64, bool, (FrameworkId, ExecutorId, TaskId))>) {
    deliveries.sort();
    let mut last = None;
    for (number, group, (framework, executor, task)) in deliveries {
        let waits = |task: &Task| task.stage.is_queued();
        if !agent.state.task(&framework, &executor, &task).is_some_and(waits) {
            continue;
        }
        let key = (number, framework.clone(), executor.clone());
        let Some(executor) = agent.state.executor_mut(&framework, &executor) else { continue };
        match executor.queue.last_mut() {
            Some(Delivery::Group(tasks)) if group && last.as_ref() == Some(&key) => tasks.push(task),
            _ if group => executor.queue.push(Delivery::Group(Vec::from([task]))),
            _ => executor.queue.push(Delivery::Task(task)),
        }
        last = Some(key);
    }
}

/// False for a container without its parent: the agent crashed after it removed the parent, which failed to launch.
/// It could not be found below the known ones. Outer ones come first.
fn add_container(agent: &mut Agent, id: &ContainerId, container: &stored::StoredContainer) -> bool {
    if id.parent().is_some_and(|parent| !operator::is_known(agent, parent)) {
        return false;
    }
    let sandbox = operator::sandbox_of(agent, id);
    let stage = match container.termination.as_option() {
        Some(termination) => ContainerStage::Ended(termination_from(termination)),
        None => ContainerStage::Running { pid: None },
    };
    let container = Container { id: id.clone(), sandbox: sandbox.into(), stage, is_session: false };
    agent.state.containers.insert_mut(id.clone(), Arc::new(container));
    true
}

pub(crate) fn termination_from(termination: &stored::StoredTermination) -> Termination {
    Termination {
        status: termination.status,
        state: termination.state,
        reason: termination.reason,
        message: termination.message.clone(),
        limited: termination.limited.clone(),
    }
}
