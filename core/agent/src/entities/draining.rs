//! Draining: all tasks are killed, and launches rejected, until the agent is empty.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_types::{FrameworkId, TaskId};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::entities::lifecycle::kill_task;
use crate::rules::drain::{end_if_empty, is_empty};
use crate::state::Drain;
use crate::state::transition::Transition;

pub(crate) fn begin(agent: &mut Agent, now: Now, config: pb::DrainConfig, out: &mut Out) {
    if is_empty(agent) {
        return;
    }
    let started = pb::TimeInfo { nanoseconds: now.wall.as_nanos_i64(), ..Default::default() };
    let record =
        stored::StoredDrain { config: config.clone().into(), started: started.into(), ..Default::default() };
    out.record(Record::Drain(record.into()));
    Agent::log(Transition::DrainStarted, out);
    agent.state.drain = Some(Arc::new(Drain { config, started: now.wall }));
    agent.state.touch();
    kill_all(agent, now, out);
}

/// After a restart: kills that were lost are repeated.
pub(crate) fn resume(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.state.drain.is_some() {
        kill_all(agent, now, out);
        end_if_empty(agent, out);
    }
}

fn kill_all(agent: &mut Agent, now: Now, out: &mut Out) {
    let Some(drain) = agent.state.drain.clone() else { return };
    let mut all: Vec<(FrameworkId, TaskId, Option<pb::KillPolicy>)> = Vec::new();
    for framework in agent.state.frameworks.values().filter(|framework| !framework.terminating) {
        for task in framework.executors.values().flat_map(|executor| executor.live_tasks()) {
            all.push((framework.id.clone(), task.id.clone(), policy(&drain.config, &task.info)));
        }
    }
    for (framework, task, policy) in all {
        kill_task(agent, now, &framework, &task, policy, out);
    }
}

/// The operator's grace period, if the task's own is longer or unset.
fn policy(config: &pb::DrainConfig, task: &pb::TaskInfo) -> Option<pb::KillPolicy> {
    let most = config.max_grace_period.as_option()?;
    let own = task.kill_policy.grace_period.as_option();
    let shortened = own.is_none_or(|own| own.nanoseconds > most.nanoseconds);
    shortened.then(|| pb::KillPolicy { grace_period: most.clone().into(), ..Default::default() })
}
