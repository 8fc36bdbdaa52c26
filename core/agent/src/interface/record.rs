//! What the agent makes durable before anything that follows from it becomes visible.
//!
//! One record changes one entity. Tasks, executors and updates of frameworks that do not checkpoint are not recorded.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use tepui_fsm::{Durable, Wall, Write};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_proto::{Wire, wire};
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId};

use crate::state::bookkeeping::HistoryEntry;
use crate::state::key::Key;

/// One change of durable state.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Agent(Box<stored::StoredAgent>),
    BootId(String),
    Drain(Box<stored::StoredDrain>),
    Drained,
    Framework(Box<stored::StoredFramework>),
    FrameworkRemoved {
        framework: FrameworkId,
        kept: Option<HistoryEntry>,
    },
    Executor(Box<stored::StoredExecutor>),
    ExecutorRemoved {
        framework: FrameworkId,
        executor: ExecutorId,
        kept: Option<HistoryEntry>,
    },
    Task(Box<stored::StoredTask>),
    /// The task, if it came to have an executor, with its updates. Together: without them it would be as if new.
    TaskRemoved {
        framework: FrameworkId,
        executor: Option<ExecutorId>,
        task: TaskId,
        seqs: Range<u64>,
        kept: Option<HistoryEntry>,
    },
    /// Things that are over and no longer shown.
    HistoryRemoved {
        numbers: Vec<u64>,
    },
    /// A status update, or its acknowledgement: the same key, now marked.
    Update {
        seq: u64,
        update: Box<stored::StoredUpdate>,
    },
    UpdatesRemoved {
        framework: FrameworkId,
        task: TaskId,
        seqs: Range<u64>,
    },
    /// An operation and, if it changed them, the dynamic reservations and volumes there are now.
    Operation {
        uuid: [u8; 16],
        operation: Box<stored::StoredOperation>,
        kept: Option<Vec<pb::Resource>>,
    },
    OperationRemoved {
        uuid: [u8; 16],
    },
    Container(Box<stored::StoredContainer>),
    ContainerRemoved {
        id: ContainerId,
    },
    /// A directory is no longer needed.
    PathUnused {
        path: String,
        since: Wall,
    },
    /// A directory is needed again, or gone.
    PathForgotten {
        path: String,
    },
    /// Values that cannot be read or that nothing refers to.
    Discarded {
        keys: Vec<String>,
    },
}

impl Durable for Record {
    fn writes(&self, into: &mut Vec<Write>) {
        match self {
            Record::Agent(agent) => put(into, Key::Agent, &**agent),
            Record::BootId(boot_id) => into.push(Write::put(Key::BootId.text(), boot_id.as_bytes())),
            Record::Drain(drain) => put(into, Key::Drain, &**drain),
            Record::Drained => delete(into, Key::Drain),
            Record::Framework(framework) => {
                put(into, Key::Framework(FrameworkId::from(&*framework.info.id)), &**framework);
            }
            Record::FrameworkRemoved { framework, kept } => {
                delete(into, Key::Framework(framework.clone()));
                keep(into, kept);
            }
            Record::Executor(executor) => {
                let framework = FrameworkId::from(&*executor.framework_id);
                let id = ExecutorId::from(&*executor.info.executor_id);
                put(into, Key::Executor(framework, id), &**executor);
            }
            Record::ExecutorRemoved { framework, executor, kept } => {
                delete(into, Key::Executor(framework.clone(), executor.clone()));
                keep(into, kept);
            }
            Record::Task(task) => {
                let framework = FrameworkId::from(&*task.framework_id);
                let executor = ExecutorId::from(&*task.executor_id);
                put(into, Key::Task(framework, executor, TaskId::from(&*task.info.task_id)), &**task);
            }
            Record::HistoryRemoved { numbers } => {
                numbers.iter().for_each(|number| delete(into, Key::History(*number)));
            }
            Record::TaskRemoved { framework, executor, task, seqs, kept } => {
                keep(into, kept);
                if let Some(executor) = executor {
                    delete(into, Key::Task(framework.clone(), executor.clone(), task.clone()));
                }
                delete_updates(into, framework, task, seqs);
            }
            Record::Update { seq, update } => {
                let framework = FrameworkId::from(&*update.framework_id);
                put(into, Key::Update(framework, TaskId::from(&*update.status.task_id), *seq), &**update);
            }
            Record::UpdatesRemoved { framework, task, seqs } => delete_updates(into, framework, task, seqs),
            Record::Operation { uuid, operation, kept } => {
                put(into, Key::Operation(*uuid), &**operation);
                if let Some(kept) = kept {
                    let value = stored::StoredResources { kept: kept.clone(), ..Default::default() };
                    put(into, Key::Resources, &value);
                }
            }
            Record::OperationRemoved { uuid } => delete(into, Key::Operation(*uuid)),
            Record::Container(container) => {
                put(into, container_key(&ContainerId::from(&*container.container_id)), &**container);
            }
            Record::ContainerRemoved { id } => delete(into, container_key(id)),
            Record::PathUnused { path, since } => {
                let since = pb::TimeInfo { nanoseconds: since.as_nanos_i64(), ..Default::default() };
                let value = stored::StoredPath { unused_since: since.into(), ..Default::default() };
                put(into, Key::Path(path.clone()), &value);
            }
            Record::PathForgotten { path } => delete(into, Key::Path(path.clone())),
            Record::Discarded { keys } => into.extend(keys.iter().cloned().map(Write::delete)),
        }
    }
}

fn container_key(id: &ContainerId) -> Key {
    use alloc::string::ToString;
    Key::Container(id.to_string())
}

fn put(into: &mut Vec<Write>, key: Key, value: &impl Wire) {
    into.push(Write::put(key.text(), wire::encode(value)));
}

fn keep(into: &mut Vec<Write>, kept: &Option<HistoryEntry>) {
    if let Some(HistoryEntry { number, entry }) = kept {
        put(into, Key::History(*number), &**entry);
    }
}

fn delete_updates(into: &mut Vec<Write>, framework: &FrameworkId, task: &TaskId, seqs: &Range<u64>) {
    for seq in seqs.clone() {
        delete(into, Key::Update(framework.clone(), task.clone(), seq));
    }
}

fn delete(into: &mut Vec<Write>, key: Key) {
    into.push(Write::delete(key.text()));
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Agent(agent) => write!(f, "agent {}", agent.info.id.value),
            Record::BootId(boot_id) => write!(f, "boot id {boot_id}"),
            Record::Drain(_) => write!(f, "drain"),
            Record::Drained => write!(f, "drained"),
            Record::Framework(framework) => {
                write!(f, "framework {}", framework.info.id.value)?;
                f.write_str(if framework.terminating == Some(true) { " terminating" } else { "" })
            }
            Record::FrameworkRemoved { framework, .. } => write!(f, "framework {framework} removed"),
            Record::Executor(executor) => write!(
                f,
                "executor {} {}{}{}",
                executor.info.executor_id.value,
                phase_text(executor.phase),
                if executor.delivered { " delivered" } else { "" },
                if executor.waiting == Some(true) { " waiting" } else { "" }
            ),
            Record::ExecutorRemoved { executor, .. } => write!(f, "executor {executor} removed"),
            Record::Task(task) => {
                write!(f, "task {} of executor {}", task.info.task_id.value, task.executor_id.value)
            }
            Record::HistoryRemoved { numbers } => write!(f, "history {numbers:?} removed"),
            Record::TaskRemoved { task, seqs, .. } => {
                write!(f, "task {task} and updates #{}..{} removed", seqs.start, seqs.end)
            }
            Record::Update { seq, update } => {
                let marked = if update.acknowledged { " acknowledged" } else { "" };
                write!(f, "update {}#{seq} {:?}{marked}", update.status.task_id.value, update.status.state)
            }
            Record::UpdatesRemoved { task, seqs, .. } => {
                write!(f, "updates {task}#{}..{} removed", seqs.start, seqs.end)
            }
            Record::Operation { operation, .. } => {
                write!(f, "operation {:?}", operation.operation.latest_status.state)
            }
            Record::OperationRemoved { .. } => write!(f, "operation removed"),
            Record::Container(container) => {
                let ended = if container.termination.is_set() { " ended" } else { "" };
                write!(f, "container {}{ended}", ContainerId::from(&*container.container_id))
            }
            Record::ContainerRemoved { id } => write!(f, "container {id} removed"),
            Record::PathUnused { path, .. } => write!(f, "path {path} unused"),
            Record::PathForgotten { path } => write!(f, "path {path} forgotten"),
            Record::Discarded { keys } => write!(f, "discarded {}", keys.join(" ")),
        }
    }
}

fn phase_text(phase: stored::stored_executor::Phase) -> &'static str {
    match phase {
        stored::stored_executor::Phase::LIVE => "live",
        stored::stored_executor::Phase::TERMINATING => "terminating",
        stored::stored_executor::Phase::TERMINATED => "terminated",
    }
}
