//! SHUTDOWN_EXECUTOR: a scheduler shuts an executor down.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::ShutdownExecutor;
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;

pub(super) fn shutdown_executor(agent: &mut Agent, now: Now, event: ShutdownExecutor, out: &mut Out) {
    let (framework, id) = (FrameworkId::from(&*event.framework_id), ExecutorId::from(&*event.executor_id));
    lifecycle::shutdown_executor(agent, now, &framework, &id, out);
}
