//! SHUTDOWN_FRAMEWORK: a framework is over.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::ShutdownFramework;
use tepui_types::FrameworkId;

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;

pub(super) fn shutdown_framework(agent: &mut Agent, now: Now, event: ShutdownFramework, out: &mut Out) {
    lifecycle::shutdown_framework(agent, now, &FrameworkId::from(&*event.framework_id), out);
}
