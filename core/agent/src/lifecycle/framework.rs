//! Frameworks on this agent: known from their first task until their last executor and update are gone.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::RedBlackTreeMapSync;
use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_types::{ContainerOp, ExecutorId, FrameworkId};

use super::{remove_executor_if_done, shutdown_executor};
use crate::agent::{Agent, Out, Timer};
use crate::key::Key;
use crate::state::{Framework, Phase};
use crate::transition::Transition;
use crate::{Effect, Record, drain, gc, history, operator, paths, status};

/// Makes the framework known, or takes its new description in.
pub(crate) fn update_framework(agent: &mut Agent, info: pb::FrameworkInfo, out: &mut Out) {
    let id = FrameworkId::from(&*info.id);
    match agent.state.framework(&id) {
        Some(known) if *known.info == info => return,
        Some(_) => {
            let framework = agent.state.framework_mut(&id).expect("it was found above");
            framework.info = Arc::new(info);
        }
        None => return add_framework(agent, id, info, out),
    }
    record(agent, &id, out);
}

/// A framework that comes back keeps what it completed.
fn add_framework(agent: &mut Agent, id: FrameworkId, info: pb::FrameworkInfo, out: &mut Out) {
    let (completed_executors, number) = history::take_back(agent, &id);
    let framework = Framework {
        id: id.clone(),
        info: Arc::new(info),
        terminating: false,
        executors: RedBlackTreeMapSync::new_sync(),
        completed_executors,
        history: None,
    };
    agent.state.frameworks.insert_mut(id.clone(), Arc::new(framework));
    agent.state.touch();
    gc::unschedule(agent, &framework_directory(agent, &id), out);
    record(agent, &id, out);
    if let Some(framework) = agent.state.framework(&id) {
        let info = Arc::clone(&framework.info);
        Agent::log(Transition::FrameworkAdded { framework_id: id.clone(), info }, out);
    }
    history::drop_records(number.into_iter().collect(), out);
}

/// Ends all executors of a framework; nobody wants to hear of its tasks any more.
pub(crate) fn shutdown_framework(agent: &mut Agent, now: Now, id: &FrameworkId, out: &mut Out) {
    let Some(framework) = agent.state.framework(id).filter(|framework| !framework.terminating) else {
        // There may be updates about tasks that never came to be.
        status::close_all(agent, id, out);
        return remove_framework_if_done(agent, now, id, out);
    };
    let executors: Vec<ExecutorId> = framework.executors.keys().cloned().collect();
    agent.state.framework_mut(id).expect("it was found above").terminating = true;
    record(agent, id, out);
    Agent::log(Transition::FrameworkTerminating { framework_id: id.clone() }, out);
    status::close_all(agent, id, out);
    for executor in executors {
        shutdown_executor(agent, now, id, &executor, out);
        remove_executor_if_done(agent, now, id, &executor, out);
    }
    remove_framework_if_done(agent, now, id, out);
}

/// Forgets a framework that has no executor and no unacknowledged update left.
pub(crate) fn remove_framework_if_done(agent: &mut Agent, now: Now, id: &FrameworkId, out: &mut Out) {
    let Some(framework) = agent.state.frameworks.get(id).cloned() else { return };
    if !framework.executors.is_empty() || status::has_any(agent, id) {
        return;
    }
    let kept = history::framework_done(agent, id, out);
    if framework.is_checkpointing() {
        out.record(Record::FrameworkRemoved { framework: id.clone(), kept });
    }
    Agent::log(Transition::FrameworkRemoved { framework_id: id.clone() }, out);
    gc::schedule(agent, now, framework_directory(agent, id), out);
    drain::end_if_empty(agent, out);
    end_if_done(agent, now, out);
}

/// Told to end, or started with `--recover=cleanup`: ends everything, forgets everything, ends.
pub(crate) fn end_everything(agent: &mut Agent, now: Now, out: &mut Out) {
    agent.state.phase = Phase::Terminating;
    agent.state.touch();
    agent.timers.clear(&Timer::Connect);
    Agent::log(Transition::Terminating, out);
    for id in operator::live_alone(agent) {
        agent.container(ContainerOp::Destroy { id }, out);
    }
    let frameworks: Vec<FrameworkId> = agent.state.frameworks.keys().cloned().collect();
    for framework in frameworks {
        shutdown_framework(agent, now, &framework, out);
    }
    end_if_done(agent, now, out);
}

/// An agent that was told to end does so with its last framework and the last container that stands alone.
pub(crate) fn end_if_done(agent: &mut Agent, now: Now, out: &mut Out) {
    let done = agent.state.phase == Phase::Terminating
        && agent.state.frameworks.is_empty()
        && operator::live_alone(agent).is_empty();
    if done && !core::mem::replace(&mut agent.ended, true) {
        forget_all(agent, now, out);
        out.effect(Effect::Exit { message: "all frameworks ended".into(), failed: false });
    }
}

/// The next start is that of a new agent: nothing of this one may come back.
fn forget_all(agent: &mut Agent, now: Now, out: &mut Out) {
    let id = agent.id();
    if !id.is_empty() {
        gc::schedule(agent, now, paths::agent_directory(&agent.config.work_dir, &id), out);
    }
    let keys = [Key::Agent, Key::Resources, Key::Drain].into_iter();
    let keys = keys.chain(agent.state.operations.keys().map(|uuid| Key::Operation(*uuid)));
    let keys = keys.chain(agent.state.containers.keys().map(|id| Key::Container(id.to_string())));
    let keys = keys.chain(history::keys(agent));
    out.record(Record::Discarded { keys: keys.map(|key| key.text()).collect() });
}

fn framework_directory(agent: &Agent, id: &FrameworkId) -> String {
    paths::framework_directory(&agent.config.work_dir, &agent.id(), id)
}

fn record(agent: &Agent, id: &FrameworkId, out: &mut Out) {
    if let Some(framework) = agent.state.framework(id)
        && framework.is_checkpointing()
    {
        out.record(Record::Framework(stored_framework(framework).into()));
    }
}

pub(crate) fn stored_framework(framework: &Framework) -> stored::StoredFramework {
    stored::StoredFramework {
        info: (*framework.info).clone().into(),
        terminating: framework.terminating.then_some(true),
        ..Default::default()
    }
}

impl Agent {
    /// Whether what happens to this framework is recorded.
    pub(crate) fn is_checkpointing(&self, framework: &FrameworkId) -> bool {
        self.state.framework(framework).is_some_and(Framework::is_checkpointing)
    }
}
