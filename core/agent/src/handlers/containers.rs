//! Events of containers: launched, failed to launch, terminated.

use alloc::format;
use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerEvent, ContainerId, ExecutorId, FrameworkId, LaunchStage, Termination};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle::{self, executor_ended};
use crate::entities::status;
use crate::handlers::{executor, operator, recover};
use crate::rules::{eviction, gc};
use crate::state::Cause;
use crate::state::transition::Transition;

pub(crate) fn event(agent: &mut Agent, now: Now, event: ContainerEvent, out: &mut Out) {
    log(&event, out);
    match event {
        ContainerEvent::Recovered { containers } => recover::recovered(agent, now, containers, out),
        ContainerEvent::Launched { id, pid } => {
            if let Some((framework, executor)) = agent.executors_by_container.get(&id).cloned()
                && let Some(executor) = agent.state.executor_mut(&framework, &executor)
            {
                executor.pid = Some(pid);
                executor::launch_reported(agent, now, &id, out);
            } else {
                operator::launched(agent, &id, pid, out);
            }
        }
        ContainerEvent::LaunchFailed { id, stage, message } => {
            agent.state.counters.container_launch_errors += 1;
            eviction::ended(agent, &id);
            if let Some((framework, executor)) = agent.executors_by_container.get(&id).cloned() {
                launch_failed(agent, now, &framework, &executor, stage, message.into(), out);
                executor::launch_reported(agent, now, &id, out);
            } else {
                operator::launch_failed(agent, now, &id, message, out);
                touch_executor_of(agent, &id);
            }
        }
        ContainerEvent::UpdateFailed { id, message } => {
            if let Some((framework, executor)) = agent.executors_by_container.get(&id).cloned() {
                let cause = Cause {
                    state: status::lost(agent, &framework, TaskState::TASK_GONE),
                    reason: Reason::REASON_CONTAINER_UPDATE_FAILED,
                    message: format!("Failed to update resources for container: {message}"),
                };
                lifecycle::destroy(agent, now, &framework, &executor, cause, out);
            }
        }
        ContainerEvent::Examined { id, killed } => executor::examined(agent, now, &id, killed, out),
        ContainerEvent::Exited { id, termination } => {
            eviction::ended(agent, &id);
            executor::ended(agent, now, &id, out);
            if let Some((framework, executor)) = agent.executors_by_container.get(&id).cloned() {
                executor_ended(agent, now, &framework, &executor, termination, None, out);
                executor::launch_reported(agent, now, &id, out);
            } else {
                operator::ended(agent, now, &id, termination, out);
                touch_executor_of(agent, &id);
            }
        }
        ContainerEvent::NoSuchContainer { .. } => (), // It ended while the signal was on its way.
        ContainerEvent::PathDone { path, error } => {
            if !operator::path_done(agent, &path, error.as_deref(), out) {
                gc::removed(agent, now, path, error.is_some(), out);
            }
        }
    }
}

fn log(event: &ContainerEvent, out: &mut Out) {
    let transition = match event {
        ContainerEvent::Launched { id, pid } => {
            Transition::ContainerLaunched { container_id: id.clone(), pid: *pid }
        }
        ContainerEvent::LaunchFailed { id, stage, message } => Transition::ContainerLaunchFailed {
            container_id: id.clone(),
            stage: *stage,
            message: message.clone(),
        },
        ContainerEvent::UpdateFailed { id, message } => {
            Transition::ContainerUpdateFailed { container_id: id.clone(), message: message.clone() }
        }
        ContainerEvent::Exited { id, termination } => Transition::ContainerTerminated {
            container_id: id.clone(),
            termination: Arc::new(termination.clone()),
        },
        ContainerEvent::Recovered { containers } => {
            let alive = containers.iter().filter(|container| container.ended.is_none()).count();
            Transition::Recovered { alive, terminated: containers.len() - alive }
        }
        ContainerEvent::Examined { .. }
        | ContainerEvent::NoSuchContainer { .. }
        | ContainerEvent::PathDone { .. } => return,
    };
    Agent::log(transition, out);
}

/// The container never ran. If the agent itself stopped the launch, its own reason stands.
fn launch_failed(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    stage: LaunchStage,
    message: Arc<str>,
    out: &mut Out,
) {
    let cause = match stage {
        LaunchStage::Sandbox => Cause {
            state: status::lost(agent, framework, TaskState::TASK_DROPPED),
            reason: Reason::REASON_EXECUTOR_TERMINATED,
            message: (&*message).into(),
        },
        LaunchStage::Fetch | LaunchStage::Start => Cause {
            state: TaskState::TASK_FAILED,
            reason: Reason::REASON_CONTAINER_LAUNCH_FAILED,
            message: format!("Failed to launch container: {message}"),
        },
    };
    let mut termination = Termination::default();
    if agent.state.executor(framework, id).is_some_and(|executor| executor.phase.cause().is_some()) {
        termination.message = Some((&*message).into());
    }
    executor_ended(agent, now, framework, id, termination, Some(cause), out);
}

/// A container terminated that may have been that of an overdue task.
fn touch_executor_of(agent: &mut Agent, container: &ContainerId) {
    if let Some((framework, id)) = agent.executors_by_container.get(container.top()) {
        agent.touched.executor(framework, id);
    }
}
