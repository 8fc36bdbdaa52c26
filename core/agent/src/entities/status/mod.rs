//! Status updates: received from executors or made by the agent, recorded, sent to the master until acknowledged.
//!
//! One stream per task. Updates of a framework that checkpoints are recorded before they are visible.

mod apply;
mod make;

use alloc::vec::Vec;
use core::ops::Range;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as api;
use tepui_types::{FrameworkId, TaskId, TaskStateExt};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::state::bookkeeping::{RETRY_MIN, Stream, Timer};
use crate::state::transition::{TaskUpdate, Transition};

pub(crate) use apply::{apply_update, from_agent, merged_container_status, report_missing, restore};
pub(crate) use make::{Verdict, lost};

/// Appends an update to its stream, records it, and sends it to the master if it is the head.
pub(crate) fn push(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    status: pb::TaskStatus,
    out: &mut Out,
) {
    let task = TaskId::from(&*status.task_id);
    let stream = agent.streams.entry((framework.clone(), task.clone())).or_insert_with(Stream::new);
    let is_head = stream.head().is_none();
    let update = TaskUpdate::new(framework.clone(), task.clone(), &status);
    let seq = stream.push(status.clone());
    if agent.is_checkpointing(framework) {
        out.record(record(framework, seq, status, false));
    }
    Agent::log(Transition::TaskUpdated(update), out);
    if is_head {
        forward(agent, now, framework, &task, out);
    }
}

/// The scheduler acknowledged an update: the next one is sent. After the last one of a task, the numbers under which its
/// updates are recorded.
pub(crate) fn acknowledge(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    task: &TaskId,
    uuid: &[u8],
    out: &mut Out,
) -> Option<Range<u64>> {
    let key = (framework.clone(), task.clone());
    // None if it is repeated, or for something else: an ordinary race.
    let done = agent.streams.get_mut(&key).and_then(|stream| stream.acknowledge(uuid))?;
    agent.timers.clear(&Timer::Retry(framework.clone(), task.clone()));
    if done.status.state.is_terminal() {
        return Some(forget(agent, framework, task));
    }
    if agent.is_checkpointing(framework) {
        out.record(record(framework, done.seq, done.status, true));
        if !done.forgotten.is_empty() {
            let (framework, task) = key;
            out.record(Record::UpdatesRemoved { framework, task, seqs: done.forgotten });
        }
    }
    forward(agent, now, framework, task, out);
    None
}

/// The uuid of a terminal update of this task that is not acknowledged.
pub(crate) fn unacknowledged_end(agent: &Agent, framework: &FrameworkId, task: &TaskId) -> Option<Vec<u8>> {
    let head = agent.streams.get(&(framework.clone(), task.clone()))?.head()?;
    head.state.is_terminal().then(|| head.uuid.clone().unwrap_or_default())
}

/// Removes a task's updates; returns the numbers of their records.
fn forget(agent: &mut Agent, framework: &FrameworkId, task: &TaskId) -> Range<u64> {
    let key = (framework.clone(), task.clone());
    agent.timers.clear(&Timer::Retry(framework.clone(), task.clone()));
    agent.streams.remove(&key).map_or(0..0, |stream| stream.kept())
}

/// Removes all updates of a framework.
pub(crate) fn close_all(agent: &mut Agent, framework: &FrameworkId, out: &mut Out) {
    for task in framework_tasks(agent, framework) {
        let seqs = forget(agent, framework, &task);
        if agent.is_checkpointing(framework) {
            out.record(Record::UpdatesRemoved { framework: framework.clone(), task, seqs });
        }
    }
}

/// Whether a framework has unacknowledged updates.
pub(crate) fn has_any(agent: &Agent, framework: &FrameworkId) -> bool {
    agent
        .streams
        .range((framework.clone(), TaskId::new(""))..)
        .next()
        .is_some_and(|((id, _), _)| id == framework)
}

/// The link is gone: nothing is repeated until it is back.
pub(crate) fn pause(agent: &mut Agent) {
    for (framework, task) in agent.streams.keys() {
        agent.timers.clear(&Timer::Retry(framework.clone(), task.clone()));
    }
}

/// The link is subscribed: every head is sent again, with the first retry interval.
pub(crate) fn resume(agent: &mut Agent, now: Now, out: &mut Out) {
    let all: Vec<(FrameworkId, TaskId)> = agent.streams.keys().cloned().collect();
    for (framework, task) in all {
        resend(agent, now, &framework, &task, out);
    }
}

/// A framework has a new scheduler: its heads are sent again.
pub(crate) fn resume_framework(agent: &mut Agent, now: Now, framework: &FrameworkId, out: &mut Out) {
    for task in framework_tasks(agent, framework) {
        resend(agent, now, framework, &task, out);
    }
}

/// No acknowledgement came in time.
pub(crate) fn retry(agent: &mut Agent, now: Now, framework: FrameworkId, task: TaskId, out: &mut Out) {
    let key = (framework, task);
    if let Some(stream) = agent.streams.get_mut(&key) {
        stream.back_off();
        forward(agent, now, &key.0, &key.1, out);
    }
}

fn resend(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    if let Some(stream) = agent.streams.get_mut(&(framework.clone(), task.clone())) {
        stream.retry = RETRY_MIN;
        forward(agent, now, framework, task, out);
    }
}

fn framework_tasks(agent: &Agent, framework: &FrameworkId) -> Vec<TaskId> {
    let from = (framework.clone(), TaskId::new(""));
    let own = agent.streams.range(from..).take_while(|((id, _), _)| id == framework);
    own.map(|((_, task), _)| task.clone()).collect()
}

/// Sends the head of a stream to the master and sets the time of the next retry.
fn forward(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    if agent.link.subscribed().is_none() {
        return;
    }
    let Some(stream) = agent.streams.get(&(framework.clone(), task.clone())) else { return };
    let Some(head) = stream.head().cloned() else { return };
    let newest = stream.newest().map_or(head.state, |newest| newest.state);
    agent.timers.set(Timer::Retry(framework.clone(), task.clone()), now.mono + stream.retry);
    if let Some(executor) = agent.state.executor_of(framework, task).map(|executor| executor.id.clone())
        && let Some(task) = agent.state.task_mut(framework, &executor, task)
    {
        task.task.status_update_state = Some(head.state);
        task.task.status_update_uuid = head.uuid.clone();
    }
    let update = api::call::Update {
        framework_id: framework.to_proto().into(),
        status: head.into(),
        latest_state: newest,
        ..Default::default()
    };
    let call =
        api::Call { r#type: Some(api::call::Type::UPDATE), update: update.into(), ..Default::default() };
    agent.send_to_master(call, out);
}

fn record(framework: &FrameworkId, seq: u64, status: pb::TaskStatus, acknowledged: bool) -> Record {
    let update = api::StoredUpdate {
        framework_id: framework.to_proto().into(),
        status: status.into(),
        acknowledged,
        ..Default::default()
    };
    Record::Update { seq, update: update.into() }
}
