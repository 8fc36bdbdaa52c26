//! Ending an executor: politely, with a time limit, or at once.

use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerOp, ExecutorId, FrameworkId, duration_text};

use super::record_executor;
use crate::Config;
use crate::agent::{Agent, Out, Timer};
use crate::state::{Cause, ExecutorPhase};

/// Asks an executor to end; if it has not after its grace period, it is destroyed.
pub(crate) fn shutdown_executor(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let (conn, grace) = (executor.conn(), shutdown_grace(&agent.config, &executor.info));
    if !terminate(agent, framework, id, None, out) {
        return;
    }
    let event = Event { r#type: Some(event::Type::SHUTDOWN), ..Default::default() };
    agent.tell_executor(conn, event, out);
    agent.timers.set(Timer::Shutdown(framework.clone(), id.clone()), now.mono + grace);
}

/// Ends an executor at once; `cause` says what its unfinished tasks become.
pub(crate) fn destroy(
    agent: &mut Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Cause,
    out: &mut Out,
) {
    let Some(container) = agent.state.executor(framework, id).map(|executor| executor.container_id.clone())
    else {
        return;
    };
    if terminate(agent, framework, id, Some(cause), out) {
        agent.container(ContainerOp::Destroy { id: container }, out);
    }
}

/// Marks a live executor as ending; false if it already is.
fn terminate(
    agent: &mut Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Option<Cause>,
    out: &mut Out,
) -> bool {
    let Some(executor) = agent.state.executor_mut(framework, id) else { return false };
    let conn = match executor.phase {
        ExecutorPhase::Registering => None,
        ExecutorPhase::Running { conn } => conn,
        ExecutorPhase::Terminating { .. } | ExecutorPhase::Terminated => return false,
    };
    executor.phase = ExecutorPhase::Terminating { conn };
    executor.cause = cause.map(Arc::new);
    agent.timers.clear(&Timer::Registration(framework.clone(), id.clone()));
    agent.timers.clear(&Timer::Heartbeat(framework.clone(), id.clone()));
    record_executor(agent, framework, id, out);
    true
}

/// The executor did not subscribe in time.
pub(crate) fn registration_over(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let waited = duration_text(agent.config.executor_registration_timeout);
    let cause = Cause {
        state: TaskState::TASK_FAILED,
        reason: Reason::REASON_EXECUTOR_REGISTRATION_TIMEOUT,
        message: format!("Executor did not register within {waited}"),
    };
    destroy(agent, framework, id, cause, out);
}

/// The executor did not end in time.
pub(crate) fn grace_over(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    match executor.phase {
        ExecutorPhase::Terminating { .. } => {
            agent.container(ContainerOp::Destroy { id: executor.container_id.clone() }, out);
        }
        ExecutorPhase::Registering | ExecutorPhase::Running { .. } | ExecutorPhase::Terminated => (),
    }
}

/// The executor's own grace period, else the operator's.
pub(crate) fn shutdown_grace(config: &Config, info: &pb::ExecutorInfo) -> Duration {
    match info.shutdown_grace_period.as_option() {
        Some(own) => Duration::from_nanos(u64::try_from(own.nanoseconds).unwrap_or(0)),
        None => config.executor_shutdown_grace_period,
    }
}
