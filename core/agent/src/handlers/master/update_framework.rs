//! UPDATE_FRAMEWORK: a framework described itself anew, or has a new scheduler.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::UpdateFramework;
use tepui_types::FrameworkId;

use crate::agent::{Agent, Out};
use crate::entities::{lifecycle, status};

pub(super) fn update_framework(agent: &mut Agent, now: Now, event: UpdateFramework, out: &mut Out) {
    let info = event.framework_info.into_option().unwrap_or_default();
    let id = FrameworkId::from(&*info.id);
    if agent.state.framework(&id).is_some_and(|framework| !framework.terminating) {
        lifecycle::update_framework(agent, info, out);
        status::resume_framework(agent, now, &id, out);
    }
}
