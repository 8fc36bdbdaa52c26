//! LAUNCH_GROUP: tasks that start and end together, in one executor.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::LaunchGroup;

use super::admit;
use crate::agent::{Agent, Out};
use crate::state::launching::Launching;

pub(super) fn launch_group(agent: &mut Agent, now: Now, event: LaunchGroup, out: &mut Out) {
    let framework = event.framework_info.into_option().unwrap_or_default();
    let mut executor = event.executor.into_option().unwrap_or_default();
    executor.framework_id = framework.id.clone();
    let mut tasks = event.task_group.into_option().unwrap_or_default().tasks;
    for task in &mut tasks {
        task.executor = executor.clone().into();
    }
    let launch_executor = Some(event.launch_executor);
    let no_root = event.no_root == Some(true);
    let launching =
        Launching { framework, executor, generated: false, tasks, group: true, launch_executor, no_root };
    admit::run(agent, now, launching, out);
}
