//! Handing tasks over to their executor, and fitting its container to the tasks it has.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_resources::Format;
use tepui_types::{ConnId, ContainerOp, ExecutorId, FrameworkId};

use super::deadlines::await_completion;
use crate::agent::{Agent, Out};
use crate::rules::checkpoint::{record_executor, record_task};
use crate::rules::limits::limits;
use crate::state::volumes::volumes;
use crate::state::{Delivery, ExecutorPhase, TaskEvent};

/// Delivers everything pending if the executor is connected.
pub(crate) fn deliver(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let ExecutorPhase::Running { conn: Some(conn) } = executor.phase else { return };
    if executor.queue.is_empty() || agent.slack.is_waiting(framework, id) {
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
        let was_held_back = known.stage.is_held_back();
        known.apply(TaskEvent::Delivered);
        infos.push((*known.info).clone());
        if was_held_back {
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
    agent.send_to_executor(Some(conn), event, out);
}

/// Gives the container of a running executor what its live tasks need, if that changed. Tasks that wait for room need
/// nothing yet: when they have it, the container is fitted to all of them.
pub(crate) fn resize(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let work_dir = agent.config.work_dir.clone();
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let ExecutorPhase::Running { .. } = executor.phase else { return };
    if agent.slack.is_waiting(framework, id) {
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
