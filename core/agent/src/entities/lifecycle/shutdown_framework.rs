//! The shutdown of a framework, and of everything on this agent.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_types::{ContainerOp, ExecutorId, FrameworkId};

use super::framework::{end_if_done, record};
use super::shutdown::shutdown_executor;
use crate::agent::{Agent, Out};
use crate::entities::status;
use crate::rules::nested;
use crate::state::Phase;
use crate::state::bookkeeping::Timer;
use crate::state::transition::Transition;

/// Terminates all executors of a framework; updates of its tasks are no longer needed.
pub(crate) fn shutdown_framework(agent: &mut Agent, now: Now, id: &FrameworkId, out: &mut Out) {
    let Some(framework) = agent.state.framework(id).filter(|framework| !framework.terminating) else {
        // There may be updates about tasks that never came to be.
        status::close_all(agent, id, out);
        return agent.touched.framework(id);
    };
    let executors: Vec<ExecutorId> = framework.executors.keys().cloned().collect();
    agent.state.framework_mut(id).expect("it was found above").terminating = true;
    record(agent, id, out);
    Agent::log(Transition::FrameworkTerminating { framework_id: id.clone() }, out);
    status::close_all(agent, id, out);
    for executor in executors {
        shutdown_executor(agent, now, id, &executor, out);
        agent.touched.executor(id, &executor);
    }
    agent.touched.framework(id);
}

/// Told to terminate, or started with `--recover=cleanup`: kills all tasks, removes all records, exits.
pub(crate) fn end_everything(agent: &mut Agent, now: Now, out: &mut Out) {
    agent.state.phase = Phase::Terminating;
    agent.state.touch();
    agent.timers.clear(&Timer::Connect);
    Agent::log(Transition::Terminating, out);
    for id in nested::live_alone(agent) {
        agent.container(ContainerOp::Destroy { id }, out);
    }
    let frameworks: Vec<FrameworkId> = agent.state.frameworks.keys().cloned().collect();
    for framework in frameworks {
        shutdown_framework(agent, now, &framework, out);
    }
    end_if_done(agent, now, out);
}
