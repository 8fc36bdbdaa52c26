//! DRAIN_AGENT: kills all tasks of an agent, and marks it as gone afterwards if requested.

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as Capability;
use tepui_proto::mesos::v1::master::call::DrainAgent;
use tepui_registry::Deactivation;
use tepui_types::{AgentId, Rejection};

use super::deactivate_agent::check_known;
use crate::entities::drain;
use crate::master::{Master, Out};

pub(super) fn drain_agent(
    master: &mut Master,
    now: Now,
    call: &DrainAgent,
    out: &mut Out,
) -> Result<(), Rejection> {
    let id = AgentId::from(&*call.agent_id);
    check_known(master, &id)?;
    if let Some(agent) = master.agent(&id) {
        if agent.unavailability.is_some() {
            return Err(Rejection::bad_request(
                "Agent is part of a maintenance window, and cannot be drained",
            ));
        }
        if !agent.has(Capability::AGENT_DRAINING) {
            return Err(Rejection::bad_request("Agent has no AGENT_DRAINING capability"));
        }
    }
    let config = pb::DrainConfig {
        max_grace_period: max_grace_period(call)?.into(),
        mark_gone: Some(call.mark_gone.unwrap_or(false)),
        ..Default::default()
    };
    let info = pb::DrainInfo { state: pb::DrainState::DRAINING, config: config.into(), ..Default::default() };
    let deactivation = Deactivation { drain: Some(info), since: Some(now.wall) };
    drain::deactivate(master, &id, deactivation, out);
    Ok(())
}

/// The grace period of tasks may be shortened here, not extended.
fn max_grace_period(call: &DrainAgent) -> Result<Option<pb::DurationInfo>, Rejection> {
    let Some(period) = call.max_grace_period.as_option() else { return Ok(None) };
    let nanoseconds = period.seconds.unwrap_or(0).checked_mul(1_000_000_000);
    let nanoseconds = nanoseconds.and_then(|nanos| nanos.checked_add(period.nanos.unwrap_or(0).into()));
    match nanoseconds.filter(|nanoseconds| *nanoseconds >= 0) {
        Some(nanoseconds) => Ok(Some(pb::DurationInfo { nanoseconds, ..Default::default() })),
        None => Err(Rejection::bad_request("'max_grace_period' is negative or too long")),
    }
}
