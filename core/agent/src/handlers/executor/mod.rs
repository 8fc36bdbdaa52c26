//! Calls of executors: the checks all of them must pass, then one file per call.

mod heartbeat;
mod ingest;
mod message;
mod subscribe;
mod update;
mod validate;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::executor::{Call, call};
use tepui_types::{Answer, ConnId, ExecutorId, FrameworkId, Rejection, Status};

use crate::agent::{Agent, Out};
use crate::interface::input::Sender;
use crate::rules::authorization;
use crate::state::bookkeeping::Timer;
use crate::state::transition::Transition;
use crate::state::{ExecutorEvent, ExecutorPhase, Phase};

pub(crate) use heartbeat::heartbeat;
pub(crate) use subscribe::launch_reported;
pub(crate) use update::{ended, examined};

const RECOVERING: &str = "Agent has not finished recovery";

pub(crate) fn call(agent: &mut Agent, now: Now, (conn, sender): (ConnId, Sender), call: Call, out: &mut Out) {
    let checked = authorization::executor(&agent.state, &sender, &call).and_then(|()| check(agent, &call));
    if let Err(refusal) = checked {
        return agent.answer(conn, refusal.into(), out);
    }
    let framework = FrameworkId::from(&*call.framework_id);
    let executor = ExecutorId::from(&*call.executor_id);
    match call.r#type.unwrap_or_default() {
        call::Type::SUBSCRIBE => {
            let subscribe = call.subscribe.into_option().unwrap_or_default();
            subscribe::subscribe(agent, now, conn, framework, executor, subscribe, out);
        }
        call::Type::UPDATE => {
            let status = call.update.into_option().unwrap_or_default().status;
            update::update(agent, now, framework, executor, status.into_option().unwrap_or_default(), out);
            agent.answer(conn, Answer::Accepted, out);
        }
        call::Type::MESSAGE => {
            message::message(agent, framework, executor, call.message.into_option().unwrap_or_default(), out);
            agent.answer(conn, Answer::Accepted, out);
        }
        call::Type::HEARTBEAT => agent.answer(conn, Answer::Accepted, out),
        call::Type::UNKNOWN => agent.reject(conn, Status::NotImplemented, "Unknown call type", out),
    }
}

/// The checks, in their order.
fn check(agent: &Agent, call: &Call) -> Result<(), Rejection> {
    let recovering = Rejection::new(Status::Unavailable, RECOVERING);
    if agent.state.phase == Phase::Recovering {
        return Err(recovering);
    }
    validate::validate(call)?;
    match call.r#type.unwrap_or_default() {
        call::Type::HEARTBEAT | call::Type::UNKNOWN => return Ok(()),
        call::Type::SUBSCRIBE => (),
        call::Type::UPDATE | call::Type::MESSAGE => {
            if agent.state.phase == Phase::Reconnecting {
                return Err(recovering);
            }
        }
    }
    let framework = agent.state.framework(&FrameworkId::from(&*call.framework_id));
    let framework = framework.ok_or_else(|| Rejection::bad_request("Framework cannot be found"))?;
    let executor = framework.executors.get(&ExecutorId::from(&*call.executor_id));
    let executor = executor.ok_or_else(|| Rejection::bad_request("Executor cannot be found"))?;
    let is_subscribed = match executor.phase {
        ExecutorPhase::Pending | ExecutorPhase::Registering => false,
        ExecutorPhase::Running { .. }
        | ExecutorPhase::Terminating { .. }
        | ExecutorPhase::Terminated { .. } => true,
    };
    if !is_subscribed && call.r#type != Some(call::Type::SUBSCRIBE) {
        return Err(Rejection::new(Status::Forbidden, "Executor is not subscribed"));
    }
    Ok(())
}

/// An executor's stream closed. That alone changes nothing: it may resubscribe, or its container terminates.
pub(crate) fn closed(agent: &mut Agent, conn: ConnId, out: &mut Out) {
    let early =
        agent.launching.values_mut().find(|early| early.as_ref().is_some_and(|early| early.conn == conn));
    if let Some(early) = early {
        *early = None;
    }
    let Some((framework, id)) = agent.conns.remove(&conn) else { return };
    let (framework_id, executor_id) = (framework.clone(), id.clone());
    Agent::log(Transition::ExecutorDisconnected { framework_id, executor_id }, out);
    agent.timers.clear(&Timer::Heartbeat(framework.clone(), id.clone()));
    if let Some(executor) = agent.state.executor_mut(&framework, &id) {
        executor.apply(ExecutorEvent::Disconnected(conn));
    }
}
