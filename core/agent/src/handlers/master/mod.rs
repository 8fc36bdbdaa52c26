//! Events of the master, one file per event.

mod acknowledge;
mod acknowledge_operation;
mod admit;
mod apply_operation;
mod drain;
mod kill;
mod launch;
mod launch_group;
mod message;
mod shutdown;
mod shutdown_executor;
mod shutdown_framework;
mod subscribed;
mod update_framework;

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::{Call, Event, call, event};

use crate::agent::{Agent, Out};

pub(crate) use shutdown::unregister;

pub(crate) fn event(agent: &mut Agent, now: Now, event: Event, out: &mut Out) {
    match event.r#type.unwrap_or_default() {
        event::Type::SUBSCRIBED => subscribed::subscribed(agent, now, take(event.subscribed), out),
        event::Type::PING => {
            let pong =
                Call { r#type: Some(call::Type::PONG), in_order: event.in_order, ..Default::default() };
            agent.send_to_master(pong, out);
        }
        event::Type::LAUNCH => launch::launch(agent, now, take(event.launch), out),
        event::Type::LAUNCH_GROUP => launch_group::launch_group(agent, now, take(event.launch_group), out),
        event::Type::KILL => kill::kill(agent, now, take(event.kill), out),
        event::Type::SHUTDOWN_EXECUTOR => {
            shutdown_executor::shutdown_executor(agent, now, take(event.shutdown_executor), out);
        }
        event::Type::SHUTDOWN_FRAMEWORK => {
            shutdown_framework::shutdown_framework(agent, now, take(event.shutdown_framework), out);
        }
        event::Type::ACKNOWLEDGE => acknowledge::acknowledge(agent, now, take(event.acknowledge), out),
        event::Type::APPLY_OPERATION => {
            apply_operation::apply_operation(agent, now, take(event.apply_operation), out);
        }
        event::Type::ACKNOWLEDGE_OPERATION => {
            acknowledge_operation::acknowledge_operation(agent, take(event.acknowledge_operation), out);
        }
        event::Type::DRAIN => drain::drain(agent, now, take(event.drain), out),
        event::Type::MESSAGE => message::message(agent, take(event.message), out),
        event::Type::UPDATE_FRAMEWORK => {
            update_framework::update_framework(agent, now, take(event.update_framework), out);
        }
        event::Type::SHUTDOWN => shutdown::shutdown(agent, now, take(event.shutdown), out),
        event::Type::UNKNOWN => (), // From a newer master; relevant changes are sent as known events too.
    }
}

fn take<T: Default>(field: tepui_proto::MessageField<T>) -> T {
    field.into_option().unwrap_or_default()
}
