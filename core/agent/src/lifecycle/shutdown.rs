//! Ending an executor: politely, with a time limit, or at once.

use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ConnId, ContainerOp, ExecutorId, FrameworkId, Termination, duration_text};

use super::{executor_ended, record_executor};
use crate::Config;
use crate::agent::{Agent, Out, Timer};
use crate::state::{Cause, Executor, ExecutorPhase};

/// Asks an executor to end; if it has not after its grace period, it is destroyed.
pub(crate) fn shutdown_executor(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if !executor.started {
        return end_unstarted(agent, now, framework, id, None, out);
    }
    let conn = executor.conn();
    if !terminate(agent, framework, id, None, out) {
        return;
    }
    ask(agent, now, framework, id, conn, out);
}

/// Asks an executor to end because somebody needs what it holds; one that cannot be asked is ended at once.
pub(crate) fn preempt(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Cause,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id).filter(|executor| !executor.is_ending()) else {
        return;
    };
    let conn = executor.conn();
    agent.state.counters.executors_preempted += 1;
    if conn.is_none() {
        return destroy(agent, now, framework, id, cause, out);
    }
    terminate(agent, framework, id, Some(cause), out);
    ask(agent, now, framework, id, conn, out);
}

/// SHUTDOWN, and the end of its patience.
fn ask(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    conn: Option<ConnId>,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let grace = shutdown_grace(&agent.config, executor);
    let event = Event { r#type: Some(event::Type::SHUTDOWN), ..Default::default() };
    agent.tell_executor(conn, event, out);
    agent.timers.set(Timer::Shutdown(framework.clone(), id.clone()), now.mono + grace);
}

/// Ends an executor at once; `cause` says what its unfinished tasks become.
pub(crate) fn destroy(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Cause,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if !executor.started {
        return end_unstarted(agent, now, framework, id, Some(cause), out);
    }
    let container = executor.container_id.clone();
    if terminate(agent, framework, id, Some(cause), out) {
        agent.container(ContainerOp::Destroy { id: container }, out);
    }
}

/// Ends an executor whose container was never asked for: there is nothing to wait for.
fn end_unstarted(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Option<Cause>,
    out: &mut Out,
) {
    if let Some(executor) = agent.state.executor_mut(framework, id) {
        executor.cause = cause.map(Arc::new);
    }
    executor_ended(agent, now, framework, id, Termination::default(), out);
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
pub(crate) fn registration_over(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let waited = duration_text(agent.config.executor_registration_timeout);
    let cause = Cause {
        state: TaskState::TASK_FAILED,
        reason: Reason::REASON_EXECUTOR_REGISTRATION_TIMEOUT,
        message: format!("Executor did not register within {waited}"),
    };
    destroy(agent, now, framework, id, cause, out);
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

/// The executor's own grace period, else the operator's; that for taking back what was lent is the operator's alone.
pub(crate) fn shutdown_grace(config: &Config, executor: &Executor) -> Duration {
    if executor.preempted().is_some() {
        return config.slack_eviction_grace;
    }
    match executor.info.shutdown_grace_period.as_option() {
        Some(own) => Duration::from_nanos(u64::try_from(own.nanoseconds).unwrap_or(0)),
        None => config.executor_shutdown_grace_period,
    }
}
