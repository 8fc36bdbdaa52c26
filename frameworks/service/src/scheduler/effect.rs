//! What the scheduler decides to make visible.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{AgentId, OfferId, TaskId};

use super::{RequestId, View};

#[derive(Clone, Debug)]
pub enum Effect {
    Accept(Box<Accept>),
    Decline {
        offers: Vec<OfferId>,
        refuse: Duration,
    },
    Kill {
        task: TaskId,
        agent: Option<AgentId>,
    },
    Acknowledge {
        agent: AgentId,
        task: TaskId,
        uuid: Vec<u8>,
    },
    AcknowledgeOperation {
        agent: Option<AgentId>,
        operation: String,
        uuid: Vec<u8>,
    },
    /// Explicit for these tasks; implicit without any.
    Reconcile(Vec<(TaskId, Option<AgentId>)>),
    ReconcileOperations(Vec<(String, AgentId)>),
    /// Roles or capabilities of the framework have changed; no role is suppressed after it.
    UpdateFramework(Box<pb::FrameworkInfo>),
    Suppress,
    Revive,
    Reply {
        request: RequestId,
        answer: Answer,
    },
    Publish(Arc<View>),
    /// TEARDOWN of the framework, at the end of an uninstallation. `Input::Deregistered` follows if the master carried it out.
    Teardown,
    /// The framework of this id is uninstalled, which is recorded. The shell may keep serving the last view.
    Finished(String),
    /// The scheduler cannot continue; the process reports why and exits.
    Stop(String),
}

/// Offers of one agent, and what to do with them.
#[derive(Clone, Debug)]
pub struct Accept {
    pub agent: AgentId,
    pub offers: Vec<OfferId>,
    pub operations: Vec<pb::offer::Operation>,
    pub refuse: Duration,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// It is so already: 208.
    AlreadyDone,
    /// `Plan x`, `Phase x`, `Step x`, `Pod x` or `Task x`: 404.
    NotFound(String),
    /// 400.
    Invalid(String),
    /// A pod instance and the task instances that are affected.
    Pod {
        pod: String,
        tasks: Vec<String>,
    },
    /// The spec is the target, as this configuration; `changed` is false if it was before.
    Target {
        configuration: String,
        changed: bool,
    },
    /// The spec is rejected: the old target stays, and its plan shows the errors.
    Rejected(Vec<String>),
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => write!(out, "done"),
            Answer::AlreadyDone => write!(out, "already done"),
            Answer::NotFound(name) => write!(out, "{name} not found"),
            Answer::Invalid(text) => write!(out, "invalid: {text}"),
            Answer::Pod { pod, tasks } => write!(out, "pod {pod} [{}]", tasks.join(", ")),
            Answer::Target { configuration, changed } => {
                write!(out, "target {configuration}{}", if *changed { "" } else { " unchanged" })
            }
            Answer::Rejected(errors) => write!(out, "rejected: {}", errors.join("; ")),
        }
    }
}
