//! The master's log: one line per state transition of an entity, made of what the machine hands over.
//!
//! The only place that logs transitions. `info` for transitions, `warn` for what an operator should look at. Lines show
//! ids, names, resources and messages; never `data`, commands, environments or credentials.

pub(crate) mod operator;

use tepui_core_master::{
    Agent, AgentRemoval, Framework, FrameworkRemoval, Offer, Operation, Registration, TaskUpdate, Transition,
};
use tepui_log::TransitionLog;
use tepui_proto::mesos::v1 as pb;
use tepui_types::DiskPressure;
use tracing::field::{debug, display};
use tracing::{info, warn};

/// Starts the thread that logs transitions.
pub(crate) fn start() -> std::io::Result<TransitionLog<Transition>> {
    TransitionLog::start("master-log", log)
}

fn log(transition: Transition) {
    match transition {
        Transition::AgentRegistered { agent, registration } => agent_registered(&agent, registration),
        Transition::AgentDisconnected { agent } => {
            let tasks = agent.tasks.size();
            warn!(agent_id = %agent.id, hostname = agent.info.hostname, tasks, "agent disconnected");
        }
        Transition::AgentRemoved { agent_id, agent, removal } => {
            agent_removed(agent_id.as_str(), agent.as_deref(), removal);
        }
        Transition::AgentRejected { hostname, pid, reason, .. } => {
            warn!(hostname, pid = &*pid, reason, "agent rejected");
        }
        Transition::AgentDiskPressure { agent_id, hostname, pressure } => {
            agent_disk_pressure(agent_id.as_str(), &hostname, pressure);
        }
        Transition::RegistryDiskPressure { is_on, available_bytes } => {
            registry_disk_pressure(is_on, available_bytes);
        }
        Transition::AgentDrained { agent_id } => info!(%agent_id, "agent drained"),
        Transition::FrameworkSubscribed { framework, known } => framework_subscribed(&framework, known),
        Transition::FrameworkUpdated { framework } => {
            let roles = framework.roles().join(",");
            info!(framework_id = %framework.id, name = framework.info.name, roles, "framework updated");
        }
        Transition::FrameworkRecovered { framework } => {
            info!(framework_id = %framework.id, name = framework.info.name, "framework recovered from an agent");
        }
        Transition::FrameworkDisconnected { framework, failover_timeout } => {
            framework_disconnected(&framework, failover_timeout.as_secs_f64());
        }
        Transition::FrameworkRemoved { framework, cause } => framework_removed(&framework, cause),
        Transition::FrameworkRejected { info, reason, .. } => {
            let framework_id = info.id.as_option().map(|id| id.value.as_str());
            let (name, user) = (info.name.as_str(), info.user.as_str());
            let principal = info.principal.as_deref();
            warn!(framework_id, name, user, principal, reason, "framework rejected");
        }
        Transition::OfferRescinded { offer } => offer_rescinded(&offer),
        Transition::TaskLaunched { task } => info!(
            task_id = %task.id,
            framework_id = %task.framework_id,
            agent_id = %task.agent_id,
            executor_id = task.executor_id.as_ref().map(display),
            name = task.task.name,
            resources = %task.resources,
            "task launched"
        ),
        Transition::TaskUpdated(update) => task_updated(&update),
        Transition::TaskKill { framework_id, task_id, agent_id } => {
            info!(%task_id, %framework_id, %agent_id, "task kill requested");
        }
        Transition::ExecutorLaunched { framework_id, executor_id, agent_id } => {
            info!(%executor_id, %framework_id, %agent_id, "executor launched");
        }
        Transition::ExecutorTerminated { framework_id, executor_id, agent_id, status } => {
            info!(%executor_id, %framework_id, %agent_id, status, "executor terminated");
        }
        Transition::OperationUpdated { operation, state, message } => {
            operation_updated(&operation, state, message.as_deref());
        }
        Transition::OperationRejected { framework_id, operation_id, kind, reason } => {
            warn!(operation_id, operation = ?kind, %framework_id, reason, "operation rejected");
        }
        Transition::OperatorCall { principal, call, rejection } => {
            operator::log(principal.as_deref(), &call, rejection.as_deref());
        }
    }
}

fn agent_disk_pressure(agent_id: &str, hostname: &str, pressure: Option<DiskPressure>) {
    match pressure.map(|pressure| pressure.available_bytes) {
        Some(available_bytes) => {
            warn!(agent_id, hostname, available_bytes, "agent under disk pressure: nothing of it is offered");
        }
        None => info!(agent_id, hostname, "agent no longer under disk pressure"),
    }
}

fn registry_disk_pressure(is_on: bool, available_bytes: u64) {
    match is_on {
        true => {
            warn!(available_bytes, "disk pressure began: registry changes that need disk space are rejected")
        }
        false => info!(available_bytes, "disk pressure ended"),
    }
}

fn offer_rescinded(offer: &Offer) {
    info!(
        offer_id = %offer.id,
        framework_id = %offer.framework_id,
        agent_id = %offer.agent_id,
        role = offer.role,
        resources = %offer.resources,
        "offer rescinded"
    );
}

fn agent_registered(agent: &Agent, registration: Registration) {
    let event = match registration {
        Registration::New => "agent registered",
        Registration::Reconnected => "agent reconnected",
        Registration::Returned => "agent returned",
    };
    let (hostname, pid, version) = (agent.info.hostname.as_str(), &*agent.pid, &*agent.version);
    let (resources, tasks) = (display(&agent.total), agent.tasks.size());
    info!(agent_id = %agent.id, hostname, pid, version, resources, tasks, "{event}");
}

fn agent_removed(agent_id: &str, agent: Option<&Agent>, removal: AgentRemoval) {
    let (hostname, tasks) =
        (agent.map(|agent| agent.info.hostname.as_str()), agent.map(|agent| agent.tasks.size()));
    match removal {
        AgentRemoval::Unreachable => warn!(agent_id, hostname, tasks, "agent unreachable"),
        AgentRemoval::Gone => info!(agent_id, hostname, tasks, "agent gone"),
        AgentRemoval::Removed => info!(agent_id, hostname, tasks, "agent removed"),
        AgentRemoval::MachineDown => info!(agent_id, hostname, tasks, "agent removed: its machine is down"),
    }
}

fn framework_subscribed(framework: &Framework, known: bool) {
    let event = if known { "framework resubscribed" } else { "framework subscribed" };
    let info = &framework.info;
    info!(
        framework_id = %framework.id,
        name = info.name,
        user = info.user,
        roles = framework.roles().join(","),
        principal = info.principal.as_deref(),
        checkpoint = info.checkpoint.unwrap_or(false),
        failover_timeout_seconds = info.failover_timeout.unwrap_or(0.0),
        tasks = framework.tasks.size(),
        "{event}"
    );
}

fn framework_disconnected(framework: &Framework, failover_timeout_seconds: f64) {
    let (framework_id, name) = (framework.id.as_str(), framework.info.name.as_str());
    let tasks = framework.tasks.size();
    // Without a timeout it is removed at once: an ordinary end.
    match failover_timeout_seconds > 0.0 {
        true => warn!(framework_id, name, tasks, failover_timeout_seconds, "framework disconnected"),
        false => info!(framework_id, name, tasks, "framework disconnected"),
    }
}

fn framework_removed(framework: &Framework, cause: FrameworkRemoval) {
    let (framework_id, name) = (framework.id.as_str(), framework.info.name.as_str());
    let tasks = framework.tasks.size() + framework.unreachable_tasks.iter().count();
    let cause_text = match cause {
        FrameworkRemoval::Teardown => "teardown",
        FrameworkRemoval::TeardownByOperator => "teardown by operator",
        FrameworkRemoval::FailoverTimeout => "failover timeout",
    };
    match cause == FrameworkRemoval::FailoverTimeout && tasks > 0 {
        true => warn!(framework_id, name, tasks, cause = cause_text, "framework removed"),
        false => info!(framework_id, name, tasks, cause = cause_text, "framework removed"),
    }
}

fn task_updated(update: &TaskUpdate) {
    use pb::TaskState as S;
    let TaskUpdate { framework_id, task_id, agent_id, state, reason, source, message, healthy } = update;
    let (reason, source, message) = (reason.map(debug), source.map(debug), message.as_deref());
    match state {
        S::TASK_STAGING | S::TASK_STARTING | S::TASK_RUNNING | S::TASK_KILLING => info!(
            %task_id, %framework_id, %agent_id, ?state, reason, healthy, status_message = message, "task updated"
        ),
        S::TASK_FINISHED | S::TASK_FAILED | S::TASK_KILLED | S::TASK_ERROR => info!(
            %task_id, %framework_id, %agent_id, ?state, reason, source, status_message = message, "task terminated"
        ),
        S::TASK_LOST | S::TASK_DROPPED | S::TASK_GONE | S::TASK_GONE_BY_OPERATOR => warn!(
            %task_id, %framework_id, %agent_id, ?state, reason, source, status_message = message, "task terminated"
        ),
        S::TASK_UNREACHABLE | S::TASK_UNKNOWN => warn!(
            %task_id, %framework_id, %agent_id, ?state, reason, source, status_message = message, "task unreachable"
        ),
    }
}

fn operation_updated(operation: &Operation, state: pb::OperationState, message: Option<&str>) {
    use pb::OperationState as S;
    let info = &operation.operation.info;
    let operation_id = info.id.as_option().map(|id| id.value.as_str());
    let framework_id = operation.framework_id.as_ref().map(display);
    let (agent_id, kind) = (&operation.agent_id, info.r#type.map(debug));
    match state {
        S::OPERATION_PENDING | S::OPERATION_FINISHED | S::OPERATION_RECOVERING => {
            info!(operation_id, operation = kind, framework_id, %agent_id, ?state, "operation updated");
        }
        S::OPERATION_FAILED
        | S::OPERATION_ERROR
        | S::OPERATION_DROPPED
        | S::OPERATION_UNREACHABLE
        | S::OPERATION_GONE_BY_OPERATOR
        | S::OPERATION_UNKNOWN
        | S::OPERATION_UNSUPPORTED => {
            warn!(
                operation_id, operation = kind, framework_id, %agent_id, ?state, status_message = message,
                "operation updated"
            );
        }
    }
}

#[cfg(test)]
mod tests;
