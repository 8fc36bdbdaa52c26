//! The agent's log: one line per state transition of an entity, made of what the machine hands over.
//!
//! The only place that logs transitions. `info` for transitions, `warn` for what an operator should look at. Lines show
//! ids, names and messages; never commands, environments, `data` or credentials.

use tepui_core_agent::{Container, Disconnection, TaskUpdate, Transition};
use tepui_log::TransitionLog;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchStage, Termination};
use tracing::field::debug;
use tracing::{debug, info, warn};

/// Starts the thread that logs transitions.
pub(crate) fn start() -> std::io::Result<TransitionLog<Transition>> {
    TransitionLog::start("agent-log", log)
}

fn log(transition: Transition) {
    match transition {
        Transition::Recovered { alive, terminated } => {
            info!(containers_alive = alive, containers_terminated = terminated, "agent recovered");
        }
        Transition::Registered { agent_id, master } => {
            info!(agent_id, master_id = master.id, master = address(&master), "registered with master");
        }
        Transition::Disconnected { master, cause } => {
            let reason = match &cause {
                Disconnection::Broken(reason) => reason.as_str(),
                Disconnection::Silence => "no message within the silence timeout",
            };
            warn!(master_id = master.id, master = address(&master), reason, "disconnected from master");
        }
        Transition::DiskPressure { is_on: true, available_bytes } => {
            warn!(available_bytes, "disk pressure began: launches are rejected, unused sandboxes removed");
        }
        Transition::DiskPressure { is_on: false, available_bytes } => {
            info!(available_bytes, "disk pressure ended");
        }
        Transition::FrameworkAdded { framework_id, info } => {
            let checkpoint = info.checkpoint.unwrap_or(false);
            info!(%framework_id, name = info.name, user = info.user, checkpoint, "framework added");
        }
        Transition::FrameworkTerminating { framework_id } => info!(%framework_id, "framework shutting down"),
        Transition::FrameworkRemoved { framework_id } => info!(%framework_id, "framework removed"),
        Transition::TaskReceived { framework_id, executor_id, task_id, pending: false } => {
            info!(%task_id, %framework_id, %executor_id, "task received");
        }
        Transition::TaskReceived { framework_id, executor_id, task_id, pending: true } => {
            info!(%task_id, %framework_id, %executor_id, "task received: pending until borrowers release resources");
        }
        Transition::TaskUpdated(update) => task_updated(&update),
        Transition::TaskKill { framework_id, task_id } => {
            info!(%task_id, %framework_id, "task kill requested")
        }
        Transition::ExecutorLaunched { framework_id, executor_id, container_id, user, sandbox } => {
            let (user, sandbox) = (user.as_deref(), &*sandbox);
            info!(%executor_id, %framework_id, %container_id, user, sandbox, "executor launched");
        }
        Transition::ExecutorSubscribed { framework_id, executor_id } => {
            info!(%executor_id, %framework_id, "executor subscribed");
        }
        Transition::ExecutorDisconnected { framework_id, executor_id } => {
            debug!(%executor_id, %framework_id, "executor disconnected");
        }
        Transition::ExecutorTerminated { framework_id, executor_id, status, reason, message } => {
            let status_message = message.as_deref();
            info!(%executor_id, %framework_id, status, reason = reason.map(debug), status_message, "executor terminated");
        }
        Transition::ContainerRequested { container } => container_requested(&container),
        Transition::ContainerLaunched { container_id, pid } => {
            info!(%container_id, pid, "container launched")
        }
        Transition::ContainerLaunchFailed { container_id, stage, message } => {
            container_launch_failed(&container_id, stage, &message);
        }
        Transition::ContainerUpdateFailed { container_id, message } => {
            warn!(%container_id, reason = message, "container resources cannot be updated");
        }
        Transition::ContainerTerminated { container_id, termination } => {
            container_terminated(&container_id, &termination);
        }
        Transition::OperationUpdated { operation } => operation_updated(&operation),
        Transition::DrainStarted => info!("drain started"),
        Transition::DrainCompleted => info!("drain completed"),
        Transition::Terminating => info!("agent terminating: all tasks are killed"),
    }
}

/// Where a master serves, as it introduced itself.
fn address(master: &pb::MasterInfo) -> Option<String> {
    let address = master.address.as_option()?;
    let host = address.hostname.as_ref().or(address.ip.as_ref())?;
    Some(format!("{host}:{}", address.port))
}

fn task_updated(update: &TaskUpdate) {
    use pb::TaskState as S;
    let TaskUpdate { framework_id, task_id, state, reason, source, message, healthy } = update;
    let (reason, source, message) = (reason.map(debug), source.map(debug), message.as_deref());
    match state {
        S::TASK_STAGING
        | S::TASK_STARTING
        | S::TASK_RUNNING
        | S::TASK_KILLING
        | S::TASK_UNREACHABLE
        | S::TASK_UNKNOWN => {
            info!(%task_id, %framework_id, ?state, reason, healthy, status_message = message, "task updated");
        }
        S::TASK_FINISHED | S::TASK_FAILED | S::TASK_KILLED | S::TASK_ERROR => {
            info!(%task_id, %framework_id, ?state, reason, source, status_message = message, "task terminated");
        }
        S::TASK_LOST | S::TASK_DROPPED | S::TASK_GONE | S::TASK_GONE_BY_OPERATOR => {
            warn!(%task_id, %framework_id, ?state, reason, source, status_message = message, "task terminated");
        }
    }
}

fn container_requested(container: &Container) {
    let (container_id, session) = (&container.id, container.is_session);
    info!(%container_id, session, sandbox = &*container.sandbox, "container requested");
}

fn container_launch_failed(container_id: &ContainerId, stage: LaunchStage, message: &str) {
    warn!(%container_id, ?stage, reason = message, "container launch failed");
}

fn container_terminated(container_id: &ContainerId, termination: &Termination) {
    let Termination { status, reason, message, .. } = termination;
    let (reason, status_message) = (reason.map(debug), message.as_deref());
    info!(%container_id, status, reason, status_message, "container terminated");
}

fn operation_updated(operation: &pb::Operation) {
    let operation_id = operation.info.id.as_option().map(|id| id.value.as_str());
    let framework_id = operation.framework_id.as_option().map(|id| id.value.as_str());
    let (kind, status) = (operation.info.r#type.map(debug), &operation.latest_status);
    let (state, status_message) = (debug(status.state), status.message.as_deref());
    match status.state == pb::OperationState::OPERATION_FINISHED {
        true => info!(operation_id, operation = kind, framework_id, state, "operation applied"),
        false => {
            warn!(operation_id, operation = kind, framework_id, state, status_message, "operation failed")
        }
    }
}

#[cfg(test)]
mod tests;
