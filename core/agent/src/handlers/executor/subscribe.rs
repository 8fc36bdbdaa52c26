//! SUBSCRIBE: an executor opens its event stream, for the first time or again.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::{Event, call, event};
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ConnId, ContainerId, ExecutorId, FrameworkId, TaskId};

use super::{heartbeat, update};
use crate::Effect;
use crate::agent::{Agent, Out};
use crate::entities::lifecycle;
use crate::entities::reconcile::reconcile;
use crate::entities::status::{self, Verdict};
use crate::handlers::recover;
use crate::state::bookkeeping::{EarlySubscription, Timer};
use crate::state::transition::Transition;
use crate::state::{ExecutorEvent, ExecutorPhase};

/// The launch of a container succeeded or failed, or the container ended.
pub(crate) fn launch_reported(agent: &mut Agent, now: Now, container: &ContainerId, out: &mut Out) {
    if let Some(Some(EarlySubscription { conn, framework, id, call })) = agent.launching.remove(container) {
        subscribe(agent, now, conn, framework, id, call, out);
    }
}

pub(super) fn subscribe(
    agent: &mut Agent,
    now: Now,
    conn: ConnId,
    framework: FrameworkId,
    id: ExecutorId,
    call: call::Subscribe,
    out: &mut Out,
) {
    let container = agent.state.executor(&framework, &id).map(|executor| &executor.container_id);
    if let Some(early) = container.and_then(|container| agent.launching.get_mut(container)) {
        if let Some(older) = early.replace(EarlySubscription { conn, framework, id, call }) {
            out.effect(Effect::OpenExecutor { conn: older.conn });
            out.effect(Effect::CloseExecutor { conn: older.conn });
        }
        return;
    }
    out.effect(Effect::OpenExecutor { conn });
    if is_unwanted(agent, &framework, &id) {
        return send_away(agent, conn, out);
    }
    attach(agent, now, conn, &framework, &id, out);
    if agent.state.executor(&framework, &id).is_some_and(|executor| executor.is_pointless()) {
        // All its tasks were killed before it subscribed: it is shut down.
        lifecycle::shutdown_executor(agent, now, &framework, &id, out);
    } else {
        welcome(agent, conn, &framework, &id, out);
        let has_news = !call.unacknowledged_updates.is_empty();
        for unacknowledged in call.unacknowledged_updates {
            let status = unacknowledged.status.into_option().unwrap_or_default();
            update::update(agent, now, framework.clone(), id.clone(), status, out);
        }
        forget_unnamed(agent, &framework, &id);
        let known = call.unacknowledged_tasks.iter().map(|task| TaskId::from(&*task.task_id)).collect();
        drop_unknown(agent, now, &framework, &id, known, out);
        agent.touched.executor(&framework, &id);
        reconcile(agent, now, out);
        lifecycle::resend_kills(agent, &framework, &id, out);
        if !has_news {
            end_if_useless(agent, now, &framework, &id, out);
        }
    }
    recover::executor_is_back(agent, now, out);
}

fn is_unwanted(agent: &Agent, framework: &FrameworkId, id: &ExecutorId) -> bool {
    let terminating = agent.state.framework(framework).is_none_or(|framework| framework.terminating);
    let Some(executor) = agent.state.executor(framework, id) else { return true };
    let is_expected = match executor.phase {
        ExecutorPhase::Registering | ExecutorPhase::Running { .. } => true,
        // Nothing of it was started yet, or it is to terminate.
        ExecutorPhase::Pending | ExecutorPhase::Terminating { .. } | ExecutorPhase::Terminated { .. } => {
            false
        }
    };
    terminating || !is_expected
}

fn send_away(agent: &Agent, conn: ConnId, out: &mut Out) {
    let event = Event { r#type: Some(event::Type::SHUTDOWN), ..Default::default() };
    agent.send_to_executor(Some(conn), event, out);
    out.effect(Effect::CloseExecutor { conn });
}

/// The new stream is the executor's; an older one is closed.
fn attach(
    agent: &mut Agent,
    now: Now,
    conn: ConnId,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor_mut(framework, id) else { return };
    if let Some(old) = executor.conn() {
        agent.conns.remove(&old);
        out.effect(Effect::CloseExecutor { conn: old });
    }
    executor.apply(ExecutorEvent::Subscribed(conn));
    agent.conns.insert(conn, (framework.clone(), id.clone()));
    agent.timers.clear(&Timer::Registration(framework.clone(), id.clone()));
    heartbeat::arm(agent, now, framework, id);
    let (framework_id, executor_id) = (framework.clone(), id.clone());
    Agent::log(Transition::ExecutorSubscribed { framework_id, executor_id }, out);
}

fn welcome(agent: &Agent, conn: ConnId, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(owner) = agent.state.framework(framework) else { return };
    let Some(executor) = owner.executors.get(id) else { return };
    let subscribed = event::Subscribed {
        executor_info: (*executor.info).clone().into(),
        framework_info: (*owner.info).clone().into(),
        agent_info: (*agent.state.info).clone().into(),
        container_id: executor.container_id.to_proto().into(),
        ..Default::default()
    };
    let event =
        Event { r#type: Some(event::Type::SUBSCRIBED), subscribed: subscribed.into(), ..Default::default() };
    agent.send_to_executor(Some(conn), event, out);
}

/// Of every task that it received on earlier streams, an executor has named the container by now; others do not arrive.
fn forget_unnamed(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId) {
    if let Some(executor) = agent.state.executor(framework, id) {
        agent.unnamed_tasks.remove(&executor.container_id);
    }
}

/// Tasks delivered on a stream that broke before they arrived: the executor does not have them.
fn drop_unknown(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    known: Vec<TaskId>,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let lost: Vec<TaskId> = executor
        .tasks
        .values()
        .filter(|task| task.stage.is_launched() && task.task.state == TaskState::TASK_STAGING)
        .filter(|task| !known.contains(&task.id))
        .map(|task| task.id.clone())
        .collect();
    let state = status::lost(agent, framework, TaskState::TASK_DROPPED);
    let verdict = Verdict::new(state, Reason::REASON_AGENT_RESTARTED, "Task launched during agent restart");
    for task in lost {
        status::from_agent(agent, now, framework, Some(id), &task, &verdict, out);
    }
}

/// Built-in executors exit when their tasks have terminated. One whose tasks never arrived would wait for ever.
fn end_if_useless(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if executor.is_built_in() && executor.live_tasks().next().is_none() {
        lifecycle::shutdown_executor(agent, now, framework, id, out);
    }
}
