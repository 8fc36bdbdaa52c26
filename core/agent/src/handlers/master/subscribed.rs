//! SUBSCRIBED: the master admitted the agent, under this id.

use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_proto::tepui::agent::v1::event::{MissingTask, Subscribed};
use tepui_types::{ExecutorId, FrameworkId, TaskId, lost_as};

use super::shutdown;
use crate::agent::{Agent, Out};
use crate::entities::status::{self, Verdict};
use crate::entities::{lifecycle, link, operations};
use crate::state::Phase;
use crate::{Effect, Record};

/// The shortest and longest silence a master may ask the agent to bear.
const SILENCE_SECONDS_MIN: f64 = 0.001;
const SILENCE_SECONDS_MAX: f64 = 3600.0;

pub(super) fn subscribed(agent: &mut Agent, now: Now, event: Subscribed, out: &mut Out) {
    let id = event.agent_id.value.clone();
    match agent.state.info.id.as_option() {
        Some(own) if own.value != id => {
            let message = format!(
                "registered as {id} but this agent is {}: two agents share one work directory, or the master mixed them up",
                own.value
            );
            return out.effect(Effect::Exit { message, failed: true });
        }
        Some(_) => (),
        None => admit(agent, pb::AgentID { value: id, ..Default::default() }, out),
    }
    let silence = event.silence_timeout_seconds.clamp(SILENCE_SECONDS_MIN, SILENCE_SECONDS_MAX);
    let master = event.master_info.into_option().unwrap_or_default();
    link::subscribed(agent, now, Duration::from_secs_f64(silence), master, out);
    if agent.state.phase == Phase::Terminating {
        // The agent began to terminate while it subscribed: new work would not be waited for.
        return shutdown::unregister_only(agent, out);
    }
    status::resume(agent, now, out);
    operations::resume(agent, now, out);
    for task in event.missing_tasks {
        missing(agent, now, &task, out);
    }
    // After the tasks, which may hold what the operations would have made.
    let uuids = event.missing_operations.iter().filter_map(|uuid| uuid.value.as_slice().try_into().ok());
    operations::missing(agent, now, uuids.collect(), out);
}

/// The first time: the id is recorded before anything is done under it.
fn admit(agent: &mut Agent, id: pb::AgentID, out: &mut Out) {
    let mut info = (*agent.state.info).clone();
    info.id = id.into();
    out.record(Record::Agent(stored::StoredAgent { info: info.clone().into(), ..Default::default() }.into()));
    agent.state.info = Arc::new(info);
    agent.state.touch();
}

/// The master believes in a task the agent never had, or no longer speaks of because its framework ends here.
fn missing(agent: &mut Agent, now: Now, task: &MissingTask, out: &mut Out) {
    let (framework, id) = (FrameworkId::from(&*task.framework_id), TaskId::from(&*task.task_id));
    if let Some(uuid) = &task.acknowledged {
        lifecycle::acknowledge(agent, now, &framework, &id, uuid, out);
    }
    let ending = agent.state.framework(&framework).is_some_and(|framework| framework.terminating);
    let has_it = agent.state.executor_of(&framework, &id).is_some() && !ending;
    if has_it || agent.streams.contains_key(&(framework.clone(), id.clone())) {
        return;
    }
    let state = lost_as(task.partition_aware, TaskState::TASK_DROPPED);
    let verdict = Verdict::new(state, Reason::REASON_RECONCILIATION, "Task unknown to the agent");
    let executor = task.executor_id.as_option().map(ExecutorId::from);
    status::report_missing(agent, now, &framework, executor.as_ref(), &id, &verdict, out);
}
