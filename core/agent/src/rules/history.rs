//! What is over and still shown: completed tasks, executors and frameworks, the newest of each.
//!
//! Of frameworks that checkpoint it survives a restart: each has a record, numbered in the order in which they ended,
//! written together with the removal of what it was before. What is no longer shown loses its record.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::QueueSync;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::Resources;
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::rules::checkpoint::{rebuilt_executor, rebuilt_framework, stored_executor, stored_framework};
use crate::state::bookkeeping::HistoryEntry;
use crate::state::key::Key;
use crate::state::{Executor, Framework, Task, TaskStage};

/// How many completed tasks of an executor readers are shown.
const COMPLETED_TASKS_PER_EXECUTOR_MAX: usize = 200;
/// How many ended frameworks readers are shown.
const COMPLETED_FRAMEWORKS_MAX: usize = 50;

/// A task is terminal and its update acknowledged; returns the record.
pub(crate) fn task_done(
    agent: &mut Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    task: &TaskId,
    out: &mut Out,
) -> Option<HistoryEntry> {
    let number = next_number(agent, framework);
    let executor = agent.state.executor_mut(framework, executor)?;
    let mut done = executor.tasks.get(task).cloned()?;
    executor.tasks.remove_mut(task);
    Arc::make_mut(&mut done).history = number;
    let kept = number.map(|number| kept_task(number, framework, executor, &done));
    executor.completed_tasks.enqueue_mut(done);
    let dropped = trim(&mut executor.completed_tasks, COMPLETED_TASKS_PER_EXECUTOR_MAX);
    drop_records(dropped.iter().filter_map(|task| task.history).collect(), out);
    kept
}

/// A task that terminated with its executor, whose updates are no longer needed.
pub(crate) fn task_left(
    agent: &mut Agent,
    framework: &FrameworkId,
    executor: &mut Executor,
    task: &TaskId,
) -> Option<HistoryEntry> {
    let number = next_number(agent, framework)?;
    let left = Arc::make_mut(executor.tasks.get_mut(task)?);
    left.history = Some(number);
    let left = left.clone();
    Some(kept_task(number, framework, executor, &left))
}

fn kept_task(number: u64, framework: &FrameworkId, executor: &Executor, task: &Task) -> HistoryEntry {
    let entry = stored::StoredHistory {
        framework_id: framework.to_proto().into(),
        container_id: executor.container_id.to_proto().into(),
        task: task.task.clone().into(),
        ..Default::default()
    };
    HistoryEntry { number, entry: Box::new(entry) }
}

/// An executor and all its tasks are over; what is to be recorded of it.
pub(crate) fn executor_done(
    agent: &mut Agent,
    framework: &FrameworkId,
    mut executor: Executor,
    out: &mut Out,
) -> Option<HistoryEntry> {
    let shown = agent.config.max_completed_executors_per_framework;
    executor.history = next_number(agent, framework);
    let kept = executor.history.map(|number| {
        let entry = stored::StoredHistory {
            framework_id: framework.to_proto().into(),
            executor: stored_executor(&executor).into(),
            ..Default::default()
        };
        HistoryEntry { number, entry: Box::new(entry) }
    });
    let owner = agent.state.framework_mut(framework)?;
    owner.executors.remove_mut(&executor.id);
    owner.completed_executors.enqueue_mut(Arc::new(executor));
    let dropped = trim(&mut owner.completed_executors, shown);
    drop_records(dropped.iter().flat_map(|executor| numbers_of(executor)).collect(), out);
    kept
}

/// A framework is over on this agent; what is to be recorded of it.
pub(crate) fn framework_done(agent: &mut Agent, id: &FrameworkId, out: &mut Out) -> Option<HistoryEntry> {
    let number = next_number(agent, id);
    let mut framework = (**agent.state.frameworks.get(id)?).clone();
    framework.history = number;
    let kept = number.map(|number| {
        let entry = stored::StoredHistory {
            framework_id: id.to_proto().into(),
            framework: stored_framework(&framework).into(),
            ..Default::default()
        };
        HistoryEntry { number, entry: Box::new(entry) }
    });
    agent.state.frameworks.remove_mut(id);
    agent.state.completed_frameworks.enqueue_mut(Arc::new(framework));
    let dropped = trim(&mut agent.state.completed_frameworks, COMPLETED_FRAMEWORKS_MAX);
    drop_records(dropped.iter().flat_map(|framework| numbers_in(framework)).collect(), out);
    agent.state.touch();
    kept
}

/// A framework returns: its completed tasks, and the number of its own record.
pub(crate) fn reopen(agent: &mut Agent, id: &FrameworkId) -> (QueueSync<Arc<Executor>>, Option<u64>) {
    let completed = &agent.state.completed_frameworks;
    let Some(former) = completed.iter().find(|framework| framework.id == *id).cloned() else {
        return (QueueSync::new_sync(), None);
    };
    agent.state.completed_frameworks =
        completed.iter().filter(|framework| framework.id != *id).cloned().collect();
    (former.completed_executors.clone(), former.history)
}

pub(crate) fn drop_records(numbers: Vec<u64>, out: &mut Out) {
    if !numbers.is_empty() {
        out.record(Record::HistoryRemoved { numbers });
    }
}

/// The keys of everything that is kept.
pub(crate) fn keys(agent: &Agent) -> impl Iterator<Item = Key> {
    let frameworks = agent.state.completed_frameworks.iter().chain(agent.state.frameworks.values());
    frameworks.flat_map(|framework| numbers_in(framework)).map(Key::History)
}

fn next_number(agent: &mut Agent, framework: &FrameworkId) -> Option<u64> {
    agent.is_checkpointing(framework).then(|| {
        agent.history_newest += 1;
        agent.history_newest
    })
}

/// Leaves the newest; those that had to go.
fn trim<T: Clone>(all: &mut QueueSync<T>, max: usize) -> Vec<T> {
    let mut dropped = Vec::new();
    while all.len() > max {
        dropped.extend(all.peek().cloned());
        all.dequeue_mut();
    }
    dropped
}

fn numbers_of(executor: &Executor) -> Vec<u64> {
    let tasks = executor.completed_tasks.iter().chain(executor.tasks.values());
    tasks.filter_map(|task| task.history).chain(executor.history).collect()
}

fn numbers_in(framework: &Framework) -> Vec<u64> {
    let completed = framework.completed_executors.iter().chain(framework.executors.values());
    completed.flat_map(|executor| numbers_of(executor)).chain(framework.history).collect()
}

/// Puts back what was kept, with the resources of each; the keys of what has no place any more. Executors come after
/// their tasks, frameworks after their executors.
pub(crate) fn restore(
    agent: &mut Agent,
    entries: BTreeMap<u64, (stored::StoredHistory, Resources)>,
) -> Vec<String> {
    agent.history_newest = entries.keys().next_back().copied().unwrap_or(0);
    let numbers: Vec<u64> = entries.keys().copied().collect();
    let mut tasks: BTreeMap<ContainerId, Vec<Arc<Task>>> = BTreeMap::new();
    let mut executors: BTreeMap<FrameworkId, Vec<Arc<Executor>>> = BTreeMap::new();
    let mut frameworks = Vec::new();
    for (number, (entry, resources)) in entries {
        let id = FrameworkId::from(&*entry.framework_id);
        if let Some(task) = entry.task.into_option() {
            let container = ContainerId::from(&*entry.container_id);
            tasks.entry(container).or_default().push(Arc::new(restored_task(number, task, resources)));
        } else if let Some(executor) = entry.executor.into_option() {
            let mut executor = rebuilt_executor(agent, &id, executor, resources);
            executor.history = Some(number);
            give_tasks(&mut executor, &mut tasks);
            executors.entry(id).or_default().push(Arc::new(executor));
        } else if let Some(framework) = entry.framework.into_option() {
            frameworks.push((number, id, framework));
        }
    }
    for (number, id, framework) in frameworks {
        // One that came back is not over.
        if agent.state.framework(&id).is_none() {
            let mut framework = rebuilt_framework(id, framework);
            framework.history = Some(number);
            give_executors(
                &mut framework,
                &mut executors,
                agent.config.max_completed_executors_per_framework,
            );
            agent.state.completed_frameworks.enqueue_mut(Arc::new(framework));
        }
    }
    give_to_live(agent, &mut executors, &mut tasks);
    let shown: BTreeSet<String> = keys(agent).map(|key| key.text()).collect();
    let all = numbers.into_iter().map(|number| Key::History(number).text());
    all.filter(|key| !shown.contains(key)).collect()
}

fn give_to_live(
    agent: &mut Agent,
    executors: &mut BTreeMap<FrameworkId, Vec<Arc<Executor>>>,
    tasks: &mut BTreeMap<ContainerId, Vec<Arc<Task>>>,
) {
    let shown = agent.config.max_completed_executors_per_framework;
    let ids: Vec<FrameworkId> = agent.state.frameworks.keys().cloned().collect();
    for id in ids {
        let Some(framework) = agent.state.framework_mut(&id) else { continue };
        give_executors(framework, executors, shown);
        let live: Vec<ExecutorId> = framework.executors.keys().cloned().collect();
        for executor in live {
            if let Some(executor) = framework.executors.get_mut(&executor) {
                give_tasks(Arc::make_mut(executor), tasks);
            }
        }
    }
}

fn give_executors(
    framework: &mut Framework,
    executors: &mut BTreeMap<FrameworkId, Vec<Arc<Executor>>>,
    shown: usize,
) {
    for executor in executors.remove(&framework.id).unwrap_or_default() {
        framework.completed_executors.enqueue_mut(executor);
    }
    trim(&mut framework.completed_executors, shown);
}

fn give_tasks(executor: &mut Executor, tasks: &mut BTreeMap<ContainerId, Vec<Arc<Task>>>) {
    for task in tasks.remove(&executor.container_id).unwrap_or_default() {
        executor.completed_tasks.enqueue_mut(task);
    }
}

fn restored_task(number: u64, task: pb::Task, resources: Resources) -> Task {
    Task {
        id: TaskId::from(&*task.task_id),
        info: Arc::new(pb::TaskInfo::default()), // Of tasks that wait alone more is shown than of those that ended.
        resources,
        task,
        stage: TaskStage::Terminated,
        delivery: (0, false),
        history: Some(number),
    }
}
