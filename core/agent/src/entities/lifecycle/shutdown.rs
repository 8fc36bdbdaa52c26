//! Ending an executor: politely, with a time limit, or at once.

use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_types::{ConnId, ContainerOp, ExecutorId, FrameworkId, Termination};

use super::end::executor_ended;
use crate::agent::{Agent, Out};
use crate::rules::checkpoint::record_executor;
use crate::rules::environment::shutdown_grace;
use crate::state::bookkeeping::Timer;
use crate::state::{Cause, ExecutorEvent, ExecutorPhase};

/// As on every platform that agents run on.
const SIGTERM: i32 = 15;

/// Shuts an executor down; after its grace period it is destroyed.
pub(crate) fn shutdown_executor(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if executor.phase == ExecutorPhase::Pending {
        return end_pending(agent, now, framework, id, None, out);
    }
    let conn = executor.conn();
    if !terminate(agent, framework, id, None, out) {
        return;
    }
    request_shutdown(agent, now, framework, id, conn, out);
}

/// Shuts an executor down because its resources are reclaimed. One that is not connected gets SIGTERM in its place if it
/// has a grace period of its own, and is destroyed at once otherwise.
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
    let (conn, container) = (executor.conn(), executor.container_id.clone());
    let is_pending = executor.phase == ExecutorPhase::Pending;
    let is_graceful = executor.has_own_grace();
    agent.state.counters.executors_preempted += 1;
    if is_pending || conn.is_none() && !is_graceful {
        return destroy(agent, now, framework, id, cause, out);
    }
    terminate(agent, framework, id, Some(cause), out);
    if conn.is_none() {
        agent.container(ContainerOp::Signal { id: container, signal: SIGTERM }, out);
    }
    request_shutdown(agent, now, framework, id, conn, out);
}

/// SHUTDOWN, and the end of its grace period.
fn request_shutdown(
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
    agent.send_to_executor(conn, event, out);
    agent.timers.set(Timer::Shutdown(framework.clone(), id.clone()), now.mono + grace);
}

/// Destroys an executor at once; `cause` becomes the reason of its unfinished tasks.
pub(crate) fn destroy(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Cause,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if executor.phase == ExecutorPhase::Pending {
        return end_pending(agent, now, framework, id, Some(cause), out);
    }
    let container = executor.container_id.clone();
    if terminate(agent, framework, id, Some(cause), out) {
        agent.container(ContainerOp::Destroy { id: container }, out);
    }
}

/// Terminates an executor whose container was never requested: there is nothing to wait for.
fn end_pending(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    cause: Option<Cause>,
    out: &mut Out,
) {
    executor_ended(agent, now, framework, id, Termination::default(), cause, out);
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
    if !executor.apply(ExecutorEvent::Stopped(cause.map(Arc::new))) {
        return false;
    }
    agent.timers.clear(&Timer::Registration(framework.clone(), id.clone()));
    agent.timers.clear(&Timer::Heartbeat(framework.clone(), id.clone()));
    record_executor(agent, framework, id, out);
    true
}
