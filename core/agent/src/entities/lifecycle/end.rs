//! The end of executors and tasks, and what readers keep of them.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1 as api;
use tepui_types::{ExecutorId, FrameworkId, TaskId, Termination};

use crate::agent::{Agent, Out};
use crate::entities::status::{self, Verdict};
use crate::rules::checkpoint::record_executor;
use crate::rules::{gc, history, nested};
use crate::state::bookkeeping::Timer;
use crate::state::paths;
use crate::state::transition::Transition;
use crate::state::{Cause, Executor, ExecutorEvent};
use crate::{Effect, Record};

/// The executor's container is gone: its unfinished tasks end with it.
pub(crate) fn executor_ended(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    termination: Termination,
    cause: Option<Cause>,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id).filter(|executor| !executor.is_terminated())
    else {
        return;
    };
    let (status, generated, conn) = (termination.status, executor.generated, executor.conn());
    let container = executor.container_id.clone();
    let unfinished: Vec<TaskId> = executor.live_tasks().map(|task| task.id.clone()).collect();
    mark_terminated(agent, framework, id, cause);
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let verdict = verdict(executor, &termination);
    let transition = Transition::ExecutorTerminated {
        framework_id: framework.clone(),
        executor_id: id.clone(),
        status: termination.status,
        reason: termination.reason,
        message: termination.message.clone(),
    };
    Agent::log(transition, out);
    if let Some(conn) = conn {
        agent.conns.remove(&conn);
        out.effect(Effect::CloseExecutor { conn });
    }
    nested::top_ended(agent, &container, &termination, out);
    for task in unfinished {
        status::from_agent(agent, now, framework, Some(id), &task, &verdict, out);
    }
    record_executor(agent, framework, id, out);
    if !generated {
        exited_executor(agent, framework, id, status.unwrap_or(-1), out);
    }
}

fn mark_terminated(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, cause: Option<Cause>) {
    if let Some(executor) = agent.state.executor_mut(framework, id) {
        executor.apply(ExecutorEvent::Exited(cause.map(Arc::new)));
    }
    agent.slack.release(&(framework.clone(), id.clone()));
    agent.touched.executor(framework, id);
    agent.touched.slack = true;
    agent.state.counters.executors_terminated += 1;
    let tasks = agent.state.executor(framework, id).map(|executor| executor.tasks.clone());
    for task in tasks.iter().flat_map(|tasks| tasks.keys()) {
        for timer in [Timer::Kill, Timer::Completion] {
            agent.timers.clear(&timer(framework.clone(), task.clone()));
        }
    }
    for timer in [Timer::Registration, Timer::Shutdown, Timer::Heartbeat] {
        agent.timers.clear(&timer(framework.clone(), id.clone()));
    }
}

/// State of unfinished tasks: from the container's termination, else from the agent's reason, else a plain failure.
fn verdict(executor: &Executor, termination: &Termination) -> Verdict {
    let cause = executor.phase.cause().map(|cause| &**cause);
    let messages: Vec<&str> = cause
        .map(|cause| cause.message.as_str())
        .into_iter()
        .chain(termination.message.as_deref())
        .filter(|message| !message.is_empty())
        .collect();
    let message = if messages.is_empty() { "Executor terminated".into() } else { messages.join("; ") };
    let is_asked_for = |cause: &&Cause| {
        cause.state == TaskState::TASK_KILLED || cause.reason == Reason::REASON_MAX_COMPLETION_TIME_REACHED
    };
    if let Some(asked) = cause.filter(is_asked_for) {
        return Verdict::new(asked.state, asked.reason, message); // Whatever else happened to it.
    }
    Verdict {
        state: termination.state.or(cause.map(|cause| cause.state)).unwrap_or(TaskState::TASK_FAILED),
        reason: termination
            .reason
            .or(cause.map(|cause| cause.reason))
            .or(Some(Reason::REASON_EXECUTOR_TERMINATED)),
        message: Some(message),
        limited: termination.limited.clone(),
    }
}

/// Reports to the master that an executor terminated, or that a requested one never started.
pub(crate) fn exited_executor(
    agent: &Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    status: i32,
    out: &mut Out,
) {
    let exited = api::call::ExitedExecutor {
        framework_id: framework.to_proto().into(),
        executor_id: executor.to_proto().into(),
        status,
        ..Default::default()
    };
    let call = api::Call {
        r#type: Some(api::call::Type::EXITED_EXECUTOR),
        exited_executor: exited.into(),
        ..Default::default()
    };
    // Also before SUBSCRIBED comes: a SUBSCRIBE that is on its way may still name the executor.
    if let Some(link) = agent.link.subscribing() {
        out.effect(Effect::Master { link, call: Box::new(call) });
    }
}

/// The scheduler acknowledged an update; if it was the last one of the task, the task is history.
pub(crate) fn acknowledge(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    task: &TaskId,
    uuid: &[u8],
    out: &mut Out,
) {
    if let Some(seqs) = status::acknowledge(agent, now, framework, task, uuid, out) {
        complete_task(agent, framework, task, seqs, out);
    }
}

/// The last update of a task was acknowledged: it is history. `seqs` are the numbers of its recorded updates.
fn complete_task(agent: &mut Agent, framework: &FrameworkId, task: &TaskId, seqs: Range<u64>, out: &mut Out) {
    let executor = agent.state.executor_of(framework, task).map(|executor| executor.id.clone());
    let done = executor.as_ref();
    let kept = done.and_then(|executor| history::task_done(agent, framework, executor, task, out));
    if agent.is_checkpointing(framework) {
        let (framework, executor, task) = (framework.clone(), executor.clone(), task.clone());
        out.record(Record::TaskRemoved { framework, executor, task, seqs, kept });
    }
    if let Some(executor) = executor {
        agent.touched.executor(framework, &executor);
    }
    agent.touched.framework(framework);
}

/// Removes a terminated executor whose tasks are all completed, or whose framework is shutting down.
pub(crate) fn remove_executor_if_done(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(owner) = agent.state.framework(framework) else { return };
    let Some(mut executor) = owner.executors.get(id).map(|executor| (**executor).clone()) else { return };
    if !executor.is_terminated() || !(executor.tasks.is_empty() || owner.terminating) {
        return;
    }
    let (container, sandbox) = (executor.container_id.clone(), executor.sandbox.to_string());
    let is_checkpointing = owner.is_checkpointing();
    let left: Vec<TaskId> = executor.tasks.keys().cloned().collect();
    for task in left.into_iter().filter(|_| is_checkpointing) {
        let kept = history::task_left(agent, framework, &mut executor, &task);
        let (framework, executor) = (framework.clone(), Some(id.clone()));
        out.record(Record::TaskRemoved { framework, executor, task, seqs: 0..0, kept });
    }
    let kept = history::executor_done(agent, framework, executor, out);
    if is_checkpointing {
        let (framework, executor) = (framework.clone(), id.clone());
        out.record(Record::ExecutorRemoved { framework, executor, kept });
    }
    agent.executors_by_container.remove(&container);
    let directory = paths::executor_directory(&agent.config.work_dir, &agent.id(), framework, id);
    gc::schedule(agent, now, sandbox, out);
    gc::schedule(agent, now, directory, out);
    agent.touched.framework(framework);
}
