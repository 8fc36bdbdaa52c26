//! SUBSCRIBED: the first event on the link of an agent.

use alloc::boxed::Box;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::event::Subscribed;
use tepui_types::{AgentId, ConnId};

use crate::Effect;
use crate::master::{Master, Out};
use crate::values::event::to_agent;

/// Opens the link; `missing` lists what the agent should have but did not report.
pub(super) fn send_subscribed(
    master: &Master,
    conn: ConnId,
    id: &AgentId,
    missing: Subscribed,
    out: &mut Out,
) {
    let silence = master.config.agent_ping_timeout * master.config.max_agent_ping_timeouts;
    let subscribed = Subscribed {
        agent_id: id.to_proto().into(),
        master_info: pb::MasterInfo::clone(&master.state.master_info).into(),
        silence_timeout_seconds: silence.as_secs_f64(),
        ..missing
    };
    out.effect(Effect::OpenAgent { conn });
    out.effect(Effect::Agent { conn, event: Box::new(to_agent::subscribed(subscribed)) });
}
