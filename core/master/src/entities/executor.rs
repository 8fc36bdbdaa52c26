//! Executors that frameworks bring, as the master books them: they hold resources from their first task until they
//! exit.

use alloc::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;
use tepui_types::{AgentId, ExecutorId, FrameworkId};

use crate::entities::task;
use crate::master::Master;
use crate::state::Executor;

/// Books an executor on its agent. Its resources are the caller's business.
pub(crate) fn add(
    master: &mut Master,
    agent_id: &AgentId,
    framework_id: &FrameworkId,
    info: pb::ExecutorInfo,
    resources: Resources,
) {
    let id = ExecutorId::from(&*info.executor_id);
    let executor =
        Executor { framework_id: framework_id.clone(), agent_id: agent_id.clone(), info, resources };
    if let Some(agent) = master.agent_mut(agent_id) {
        let executor = Arc::new(executor);
        agent.executors.insert_mut((framework_id.clone(), id), executor.clone());
        master.state.tallies.executor_added(&executor);
        task::stand(master, framework_id, agent_id);
    }
}

/// Takes an executor out of the books and gives its resources back; false if it was not there.
pub(crate) fn remove(
    master: &mut Master,
    agent_id: &AgentId,
    framework_id: &FrameworkId,
    executor_id: &ExecutorId,
) -> bool {
    let key = (framework_id.clone(), executor_id.clone());
    let Some(executor) = master.agent(agent_id).and_then(|agent| agent.executors.get(&key)).cloned() else {
        return false;
    };
    if let Some(agent) = master.agent_mut(agent_id) {
        agent.executors.remove_mut(&key);
    }
    master.state.tallies.executor_removed(&executor);
    master.allocator.release(agent_id, framework_id, &executor.resources);
    task::leave(master, framework_id, agent_id);
    true
}
