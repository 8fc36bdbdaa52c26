//! Calls of agents: one file per call. The first on a link is SUBSCRIBE; the link then is the agent's until it ends.

mod adopt;
pub(crate) mod closed;
mod disk_pressure;
mod exited_executor;
mod message;
mod pong;
mod report;
mod subscribe;
mod subscribed;
mod unregister;
mod update;
mod update_operation;
mod update_resources;

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::Call;
use tepui_proto::tepui::agent::v1::call::Type;
use tepui_types::ConnId;

use crate::master::{Master, Out};

/// Dispatches a call to its handler. Calls on a link that is not (or no longer) an agent's are dropped: the agent's
/// next SUBSCRIBE contains their information.
pub(crate) fn take(
    master: &mut Master,
    now: Now,
    (conn, principal): (ConnId, Option<&str>),
    call: Call,
    out: &mut Out,
) {
    let r#type = call.r#type.unwrap_or(Type::UNKNOWN);
    if r#type == Type::SUBSCRIBE {
        return subscribe::subscribe(
            master,
            now,
            (conn, principal),
            call.subscribe.into_option().unwrap_or_default(),
            out,
        );
    }
    let Some(from) = master.links.get(&conn).cloned() else { return };
    match r#type {
        Type::UPDATE => update::update(master, &from, call.update.into_option().unwrap_or_default(), out),
        Type::UPDATE_OPERATION => {
            let call = call.update_operation.into_option().unwrap_or_default();
            update_operation::update_operation(master, &from, call, out);
        }
        Type::EXITED_EXECUTOR => exited_executor::exited_executor(master, &from, &call.exited_executor, out),
        Type::MESSAGE => message::message(master, &from, call.message.into_option().unwrap_or_default(), out),
        Type::PONG => pong::pong(master, &from),
        Type::UPDATE_RESOURCES => {
            update_resources::update_resources(master, now, &from, &call.update_resources, out);
        }
        Type::DISK_PRESSURE => {
            disk_pressure::disk_pressure(master, now, &from, &call.disk_pressure, out);
        }
        Type::UNREGISTER => unregister::unregister(master, now, &from, out),
        // Unknown calls of a newer agent are ignored.
        Type::UNKNOWN | Type::SUBSCRIBE => (),
    }
}
