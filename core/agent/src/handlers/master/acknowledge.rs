//! ACKNOWLEDGE: the scheduler has seen an update.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Acknowledge;
use tepui_types::{FrameworkId, TaskId};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;

pub(super) fn acknowledge(agent: &mut Agent, now: Now, event: Acknowledge, out: &mut Out) {
    let (framework, task) = (FrameworkId::from(&*event.framework_id), TaskId::from(&*event.task_id));
    lifecycle::acknowledge(agent, now, &framework, &task, &event.uuid, out);
}
