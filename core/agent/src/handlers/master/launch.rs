//! LAUNCH: one task, with its executor or with a command for which the agent makes one.

use alloc::vec;

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Launch;
use tepui_types::FrameworkId;

use super::admit;
use crate::agent::{Agent, Out};
use crate::rules::generated_executor;
use crate::state::launching::Launching;

pub(super) fn launch(agent: &mut Agent, now: Now, event: Launch, out: &mut Out) {
    let framework = event.framework_info.into_option().unwrap_or_default();
    let task = event.task.into_option().unwrap_or_default();
    let id = FrameworkId::from(&*framework.id);
    let (executor, generated) = match task.executor.as_option() {
        Some(executor) => {
            let mut executor = executor.clone();
            executor.framework_id = id.to_proto().into();
            (executor, false)
        }
        None => (generated_executor::for_command_task(&agent.config, &id, &task), true),
    };
    let launch_executor = event.launch_executor.filter(|_| !generated);
    let no_root = event.no_root == Some(true);
    let launching = Launching {
        framework,
        executor,
        generated,
        tasks: vec![task],
        group: false,
        launch_executor,
        no_root,
    };
    admit::run(agent, now, launching, out);
}
