//! Disk pressure: the disk of the records is nearly full. While it lasts, requests that need space are rejected;
//! terminating tasks use the reserve of the store, and sandboxes that are no longer needed are removed at once.
//!
//! Fed by the shell, which measures. Absent: the thresholds.

use alloc::format;
use alloc::string::String;

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1 as api;
use tepui_types::{DiskPressure, DiskRoom};

use crate::Effect;
use crate::agent::{Agent, Out};
use crate::rules::gc;
use crate::state::transition::Transition;

/// The disk has become short of room, or is so no longer.
pub(crate) fn room(agent: &mut Agent, now: Now, room: DiskRoom, out: &mut Out) {
    let found = DiskPressure::found(room, now.wall);
    if found.is_some() == agent.state.disk_pressure.is_some() {
        return;
    }
    agent.state.disk_pressure = found;
    agent.state.touch();
    Agent::log(Transition::DiskPressure { is_on: room.is_short, available_bytes: room.available_bytes }, out);
    let call = api::Call {
        r#type: Some(api::call::Type::DISK_PRESSURE),
        disk_pressure: message(room).into(),
        ..Default::default()
    };
    // Also before SUBSCRIBED comes: the SUBSCRIBE that is on its way named what was true then.
    if let Some(link) = agent.link.subscribing() {
        out.effect(Effect::Master { link, call: call.into() });
    }
    match room.is_short {
        true => gc::remove_all(agent, now, out),
        false => gc::arm(agent, now),
    }
}

/// The pressure, for a SUBSCRIBE.
pub(crate) fn reported(agent: &Agent) -> Option<api::call::DiskPressure> {
    let pressure = agent.state.disk_pressure?;
    Some(message(DiskRoom { is_short: true, available_bytes: pressure.available_bytes }))
}

/// Why something that needs room cannot be begun now.
pub(crate) fn rejection(agent: &Agent, what: &str) -> Option<String> {
    let pressure = agent.state.disk_pressure?;
    Some(format!(
        "The agent is under {pressure}: {what} needs disk space and is rejected until more is available"
    ))
}

fn message(room: DiskRoom) -> api::call::DiskPressure {
    api::call::DiskPressure {
        is_on: room.is_short,
        available_bytes: Some(room.available_bytes),
        ..Default::default()
    }
}
