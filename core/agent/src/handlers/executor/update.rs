//! UPDATE: an executor reports what became of a task.
//!
//! A task that finished or failed may have lost a process to the OOM killer, which the executor cannot see and which ends
//! its container. So where the kernel limits memory, such an update waits until the container was examined. The executor
//! had reaped the task before it sent the update, hence the examination is not too early. Later updates wait behind it, so
//! that their order is kept; none of them is acknowledged, so they are repeated to an agent that crashes meanwhile.

use alloc::format;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, Termination};

use super::ingest::ingest;
use crate::agent::{Agent, Out};
use crate::state::Executor;
use crate::state::bookkeeping::WaitingUpdates;

pub(crate) fn update(
    agent: &mut Agent,
    now: Now,
    framework: FrameworkId,
    executor: ExecutorId,
    status: pb::TaskStatus,
    out: &mut Out,
) {
    let Some(known) = agent.state.executor(&framework, &executor) else {
        return ingest(agent, now, &framework, &executor, status, out);
    };
    let (container, is_examined) = (known.container_id.clone(), needs_examination(agent, known, &status));
    if let Some(waiting) = agent.waiting_updates.get_mut(&container) {
        waiting.push_back(status);
    } else if is_examined {
        agent.waiting_updates.insert(container.clone(), WaitingUpdates::from([status]));
        agent.container(ContainerOp::Examine { id: container }, out);
    } else {
        ingest(agent, now, &framework, &executor, status, out);
    }
}

/// A terminal update without a reason for a task in the executor's own container, under an agent that limits memory.
/// An executor with several tasks reports which of them finished better than its container does.
fn needs_examination(agent: &Agent, executor: &Executor, status: &pb::TaskStatus) -> bool {
    let limits_memory =
        agent.config.isolation.iter().any(|name| name == "cgroups/mem" || name == "cgroups/all");
    let own = status.container_status.container_id.as_option().map(ContainerId::from);
    let is_end = match status.state {
        TaskState::TASK_FAILED => true,
        TaskState::TASK_FINISHED => executor.generated,
        _ => false,
    };
    limits_memory && is_end && status.reason.is_none() && own.is_none_or(|own| own == executor.container_id)
}

/// The container was inspected.
pub(crate) fn examined(
    agent: &mut Agent,
    now: Now,
    id: &ContainerId,
    killed: Option<Termination>,
    out: &mut Out,
) {
    let Some((framework, executor)) = agent.executors_by_container.get(id).cloned() else { return };
    let Some(mut waiting) = agent.waiting_updates.remove(id) else { return };
    if let Some(mut first) = waiting.pop_front() {
        if let Some(killed) = killed {
            explain(&mut first, killed);
        }
        ingest(agent, now, &framework, &executor, first, out);
    }
    for status in waiting {
        update(agent, now, framework.clone(), executor.clone(), status, out);
    }
}

/// The container terminated: earlier updates are applied unchanged.
pub(crate) fn ended(agent: &mut Agent, now: Now, id: &ContainerId, out: &mut Out) {
    agent.never_launched.retain(|other| other.top() != id);
    agent.unnamed_tasks.remove(id);
    let Some((framework, executor)) = agent.executors_by_container.get(id).cloned() else { return };
    for status in agent.waiting_updates.remove(id).unwrap_or_default() {
        ingest(agent, now, &framework, &executor, status, out);
    }
}

/// Adds the kernel's data to an executor's update.
fn explain(status: &mut pb::TaskStatus, killed: Termination) {
    status.state = killed.state.unwrap_or(status.state);
    status.reason = killed.reason;
    status.message = match (status.message.take(), killed.message) {
        (Some(said), Some(why)) => Some(format!("{said}: {why}")),
        (said, why) => said.or(why),
    };
    if !killed.limited.is_empty() {
        let limitation = pb::TaskResourceLimitation { resources: killed.limited, ..Default::default() };
        status.limitation = limitation.into();
    }
}
