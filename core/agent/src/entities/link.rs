//! The link with the leading master: opened with a random backoff, kept as long as messages arrive on it.
//!
//! A broken link is replaced by a new one whose SUBSCRIBE contains the agent's complete state. Nothing is queued for
//! a link that is not subscribed.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as api;
use tepui_resources::Format;
use tepui_types::TaskStateExt;

use crate::agent::{Agent, Out};
use crate::entities::{operations, status};
use crate::rules::disk_pressure;
use crate::state::bookkeeping::{LinkStage, Timer};
use crate::state::transition::{Disconnection, Transition};
use crate::state::{Framework, Phase, Task};
use crate::{Effect, LinkId};

/// The longest wait before another try.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How long a link may take to come up and be answered by SUBSCRIBED.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(60);
/// The doublings after which the backoff is at its longest whatever the factor.
const DOUBLINGS_MAX: u32 = 16;

/// Opens a link after a random time that grows with every try.
pub(crate) fn connect_later(agent: &mut Agent, now: Now) {
    let doubled = 1u32 << agent.link.tries.min(DOUBLINGS_MAX);
    let longest = agent.config.registration_backoff_factor.saturating_mul(doubled).min(BACKOFF_MAX);
    let wait = longest.mul_f64(agent.rng.unit());
    agent.link.tries = agent.link.tries.saturating_add(1);
    agent.timers.set(Timer::Connect, now.mono + wait);
}

pub(crate) fn connect(agent: &mut Agent, now: Now, out: &mut Out) {
    agent.link.newest += 1;
    agent.link.stage = LinkStage::Opening;
    agent.timers.set(Timer::LinkSilent, now.mono + SUBSCRIBE_TIMEOUT);
    out.effect(Effect::Connect { link: LinkId(agent.link.newest) });
}

pub(crate) fn up(agent: &mut Agent, now: Now, link: LinkId, out: &mut Out) {
    if !agent.link.is_current(link) || agent.link.stage != LinkStage::Opening {
        return;
    }
    if agent.state.phase == Phase::Terminating {
        return; // It leaves: no master should count on it.
    }
    agent.link.stage = LinkStage::Subscribing;
    agent.timers.set(Timer::LinkSilent, now.mono + SUBSCRIBE_TIMEOUT);
    let call = api::Call {
        r#type: Some(api::call::Type::SUBSCRIBE),
        subscribe: subscribe(agent).into(),
        ..Default::default()
    };
    out.effect(Effect::Master { link, call: call.into() });
}

/// Whether an event on this link counts; if so the link is alive.
pub(crate) fn record_contact(agent: &mut Agent, now: Now, link: LinkId) -> bool {
    if !agent.link.is_current(link) {
        return false;
    }
    if let LinkStage::Subscribed { silence } = agent.link.stage {
        agent.timers.set(Timer::LinkSilent, now.mono + silence);
    }
    true
}

/// The master admitted the agent on the current link.
pub(crate) fn subscribed(
    agent: &mut Agent,
    now: Now,
    silence: Duration,
    master: pb::MasterInfo,
    out: &mut Out,
) {
    let master = Arc::new(master);
    Agent::log(Transition::Registered { agent_id: agent.id(), master: Arc::clone(&master) }, out);
    agent.link.stage = LinkStage::Subscribed { silence };
    agent.link.tries = 0;
    agent.timers.set(Timer::LinkSilent, now.mono + silence);
    agent.state.master = Some(master);
    agent.state.touch();
}

pub(crate) fn down(agent: &mut Agent, now: Now, link: LinkId, reason: String, out: &mut Out) {
    if agent.link.is_current(link) {
        lose(agent, now, Disconnection::Broken(reason), out);
    }
}

/// Nothing was heard for too long: the next link closes this one.
pub(crate) fn silent(agent: &mut Agent, now: Now, out: &mut Out) {
    lose(agent, now, Disconnection::Silence, out);
}

fn lose(agent: &mut Agent, now: Now, cause: Disconnection, out: &mut Out) {
    if let Some(master) = agent.state.master.clone() {
        Agent::log(Transition::Disconnected { master, cause }, out);
    }
    agent.link.stage = LinkStage::Down;
    agent.timers.clear(&Timer::LinkSilent);
    agent.state.master = None;
    agent.state.touch();
    status::pause(agent);
    operations::pause(agent);
    match agent.state.phase {
        Phase::Running => connect_later(agent, now),
        Phase::Recovering | Phase::Reconnecting | Phase::Terminating => (),
    }
}

/// How the tasks of a framework that is over had their cgroups, as far as that is still known.
fn isolations(framework: &Framework) -> impl Iterator<Item = api::call::Isolation> + '_ {
    framework.completed_executors.iter().filter(|executor| !executor.generated).filter_map(|executor| {
        let task = executor.completed_tasks.peek().or_else(|| executor.tasks.values().next())?;
        Some(api::call::Isolation {
            framework_id: (*framework.info.id).clone().into(),
            executor_id: executor.id.to_proto().into(),
            shares_cgroups: task.task.container.linux_info.share_cgroups.unwrap_or(true),
            ..Default::default()
        })
    })
}

/// Tasks that were dropped before they started, until their frameworks acknowledge: a master without these updates
/// would declare the tasks unknown, and their ids could be reused too early.
fn dropped(agent: &Agent) -> impl Iterator<Item = pb::Task> + '_ {
    agent.streams.iter().filter_map(|((framework, task), stream)| {
        let status = stream.newest().filter(|status| status.state.is_terminal())?;
        let ends_here = agent.state.framework(framework).is_some_and(|framework| framework.terminating);
        let is_shown = agent.state.executor_of(framework, task).is_some();
        (!ends_here && !is_shown).then(|| pb::Task {
            name: task.to_string(),
            task_id: task.to_proto().into(),
            framework_id: framework.to_proto().into(),
            executor_id: status.executor_id.clone(),
            agent_id: agent.id_proto().into(),
            state: status.state,
            statuses: vec![status.clone()],
            status_update_state: Some(status.state),
            status_update_uuid: status.uuid.clone(),
            ..Default::default()
        })
    })
}

/// The agent's complete state.
fn subscribe(agent: &Agent) -> api::call::Subscribe {
    let state = &agent.state;
    // Frameworks that are shutting down here are left out; a master would wait for them.
    let frameworks = || state.frameworks.values().filter(|framework| !framework.terminating);
    let executors = || frameworks().flat_map(|framework| framework.executors.values());
    let all_tasks = || executors().flat_map(|executor| executor.tasks.values());
    let completed = frameworks()
        .flat_map(|framework| framework.completed_executors.iter().chain(framework.executors.values()))
        .flat_map(|executor| executor.completed_tasks.iter());
    let capability = |kind: &pb::agent_info::capability::Type| pb::agent_info::Capability {
        r#type: Some(*kind),
        ..Default::default()
    };
    let shown = |task: &Arc<Task>| task.task.clone();
    api::call::Subscribe {
        agent_info: (*state.info).clone().into(),
        version: agent.config.version.clone(),
        pid: agent.config.pid.clone(),
        speaks_tls: agent.config.speaks_tls.then_some(true),
        capabilities: agent.config.capabilities.iter().map(capability).collect(),
        total_resources: state.total.to_proto(Format::Post),
        tasks: all_tasks().map(shown).chain(dropped(agent)).collect(),
        executors: executors()
            .filter(|executor| !executor.generated && !executor.is_terminated())
            .map(|executor| (*executor.info).clone())
            .collect(),
        frameworks: frameworks().map(|framework| (*framework.info).clone()).collect(),
        completed_tasks: completed.map(shown).collect(),
        isolations: state.completed_frameworks.iter().flat_map(|framework| isolations(framework)).collect(),
        operations: state.operations.values().map(|operation| (**operation).clone()).collect(),
        oversubscribed_resources: state.oversubscribed.to_proto(Format::Post),
        disk_pressure: disk_pressure::reported(agent).into(),
        ..Default::default()
    }
}
