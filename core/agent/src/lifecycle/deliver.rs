//! Handing tasks over to their executor, and fitting its container to the tasks it has.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_resources::Format;
use tepui_types::{ConnId, ContainerOp, ExecutorId, FrameworkId, TaskId};

use super::limits::limits;
use super::overdue::await_completion;
use super::volumes::volumes;
use super::{record_executor, record_task};
use crate::agent::{Agent, Out};
use crate::slack;
use crate::state::{Delivery, Executor, ExecutorPhase, TaskStage};

/// Hands over everything that waits, if the executor can be reached; else it goes on waiting.
pub(crate) fn deliver(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let ExecutorPhase::Running { conn: Some(conn) } = executor.phase else { return };
    if executor.queue.is_empty() || slack::is_waiting(agent, framework, id) {
        return;
    }
    resize(agent, framework, id, out);
    let executor = agent.state.executor_mut(framework, id).expect("it was found above");
    let queue = core::mem::take(&mut executor.queue);
    let first = !core::mem::replace(&mut executor.delivered, true);
    if first {
        record_executor(agent, framework, id, out);
    }
    for delivery in queue {
        hand_over(agent, now, framework, id, conn, &delivery, out);
    }
}

fn hand_over(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: &ExecutorId,
    conn: ConnId,
    delivery: &Delivery,
    out: &mut Out,
) {
    let mut infos: Vec<pb::TaskInfo> = Vec::new();
    for task in delivery.tasks() {
        let Some(known) = agent.state.task_mut(framework, executor, task) else { continue };
        known.stage = TaskStage::Launched;
        infos.push((*known.info).clone());
        if core::mem::take(&mut known.held_back) {
            record_task(agent, framework, executor, task, out);
        }
        await_completion(agent, now, framework, executor, task);
    }
    let event = match delivery {
        Delivery::Task(_) => Event {
            r#type: Some(event::Type::LAUNCH),
            launch: infos.pop().map(|task| event::Launch { task: task.into(), ..Default::default() }).into(),
            ..Default::default()
        },
        Delivery::Group(_) => {
            let task_group = pb::TaskGroupInfo { tasks: infos, ..Default::default() };
            Event {
                r#type: Some(event::Type::LAUNCH_GROUP),
                launch_group: event::LaunchGroup { task_group: task_group.into(), ..Default::default() }
                    .into(),
                ..Default::default()
            }
        }
    };
    agent.tell_executor(Some(conn), event, out);
}

/// Takes a task out of what waits to be handed over.
pub(crate) fn unqueue(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, task: &TaskId) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if !executor.queue.iter().any(|delivery| delivery.tasks().contains(task)) {
        return;
    }
    let executor = agent.state.executor_mut(framework, id).expect("it was found above");
    executor.queue.retain_mut(|delivery| match delivery {
        Delivery::Task(waiting) => waiting != task,
        Delivery::Group(waiting) => {
            waiting.retain(|waiting| waiting != task);
            !waiting.is_empty()
        }
    });
}

/// Gives the container of a running executor what its live tasks need, if that changed. Tasks that wait for room need
/// nothing yet: when they have it, the container is fitted to all of them.
pub(crate) fn resize(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let work_dir = agent.config.work_dir.clone();
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let ExecutorPhase::Running { .. } = executor.phase else { return };
    if slack::is_waiting(agent, framework, id) {
        return;
    }
    let resources = executor.resources();
    let limits = limits(executor, &agent.config);
    if executor.applied.as_ref().is_some_and(|applied| *applied == (resources.clone(), limits.clone())) {
        return;
    }
    let op = ContainerOp::Update {
        id: executor.container_id.clone(),
        resources: resources.to_proto(Format::Post),
        limits: limits.clone(),
        volumes: volumes(&work_dir, &resources),
    };
    if let Some(executor) = agent.state.executor_mut(framework, id) {
        executor.applied = Some((resources, limits));
    }
    agent.container(op, out);
}

impl Executor {
    /// Whether it never had a task and none waits for it: nothing is left to start it for.
    pub(crate) fn is_pointless(&self) -> bool {
        !self.delivered && self.queue.is_empty()
    }
}
