//! Frameworks on this agent: known from their first task until their last executor and update are gone; the agent's own end.

use alloc::string::{String, ToString};
use alloc::sync::Arc;

use rpds::RedBlackTreeMapSync;
use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_types::FrameworkId;

use crate::agent::{Agent, Out};
use crate::entities::status;
use crate::rules::checkpoint::stored_framework;
use crate::rules::{drain, gc, history, nested};
use crate::state::key::Key;
use crate::state::paths;
use crate::state::transition::Transition;
use crate::state::{Framework, Phase};
use crate::{Effect, Record};

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

/// A framework that returns keeps its completed tasks.
fn add_framework(agent: &mut Agent, id: FrameworkId, info: pb::FrameworkInfo, out: &mut Out) {
    let (completed_executors, number) = history::reopen(agent, &id);
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

/// Removes a framework without executors and unacknowledged updates.
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

/// A terminating agent exits with its last framework and the last standalone container.
pub(crate) fn end_if_done(agent: &mut Agent, now: Now, out: &mut Out) {
    let done = agent.state.phase == Phase::Terminating
        && agent.state.frameworks.is_empty()
        && nested::live_alone(agent).is_empty();
    if done && !core::mem::replace(&mut agent.ended, true) {
        forget_all(agent, now, out);
        out.effect(Effect::Exit { message: "all frameworks removed".into(), failed: false });
    }
}

/// The next start is that of a new agent: no record of this one may be recovered.
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

pub(super) fn record(agent: &Agent, id: &FrameworkId, out: &mut Out) {
    if let Some(framework) = agent.state.framework(id)
        && framework.is_checkpointing()
    {
        out.record(Record::Framework(stored_framework(framework).into()));
    }
}
