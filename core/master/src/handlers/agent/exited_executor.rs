//! EXITED_EXECUTOR: an executor that a framework brought is over.

use tepui_proto::tepui::agent::v1::call::ExitedExecutor;
use tepui_types::{AgentId, ExecutorId, FrameworkId};

use crate::entities::executor;
use crate::master::{Master, Out};
use crate::state::transition::Transition;
use crate::values::event::to_scheduler;

pub(super) fn exited_executor(master: &mut Master, from: &AgentId, call: &ExitedExecutor, out: &mut Out) {
    let (framework_id, executor_id) =
        (FrameworkId::from(&*call.framework_id), ExecutorId::from(&*call.executor_id));
    // Executors of command tasks are the agent's own and invisible to frameworks.
    if executor::remove(master, from, &framework_id, &executor_id) {
        let transition = Transition::ExecutorTerminated {
            framework_id: framework_id.clone(),
            executor_id: executor_id.clone(),
            agent_id: from.clone(),
            status: call.status,
        };
        Master::log(transition, out);
        let event = to_scheduler::executor_failure(from, &executor_id, call.status);
        master.send_to_framework(&framework_id, event, out);
    }
}
