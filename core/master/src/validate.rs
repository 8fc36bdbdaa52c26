//! Every rule of v1 about what a call may contain, as pure functions: the first broken rule as a sentence, or nothing.
//!
//! Fed by the handlers, which turn the sentence into what the wire wants: an ERROR event for a SUBSCRIBE, 400 for
//! UPDATE_FRAMEWORK, TASK_ERROR with REASON_TASK_INVALID (REASON_TASK_GROUP_INVALID for groups), OPERATION_ERROR.
//! Rules come in the order in which v1 checks them; messages go in as they are after normalisation (allocation roles,
//! `framework_id` of executors and types of health checks filled in).
//!
//! - [`framework::info`]: a FrameworkInfo by itself.
//! - [`task::launch`]: one task of a LAUNCH; [`group::launch_group`]: a LAUNCH_GROUP. Both look at a [`Launch`].
//! - [`operation::operation`]: what schedulers want done to resources, seen from a [`Scene`].
//!
//! Never here: the master's state (it comes in as arguments), authorization, offers.

mod check;
mod command;
mod container;
mod executor;
pub(crate) mod framework;
pub(crate) mod group;
pub(crate) mod operation;
mod resources;
pub(crate) mod task;
pub(crate) mod weight;

use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_resources::Resources;
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId};

use crate::values::limits::Limits;

/// Whether a task id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskUse {
    Unused,
    Live,
    Unreachable,
}

/// The framework's state on the agent of a launch.
pub(crate) trait Known {
    fn task(&self, id: &TaskId) -> TaskUse;
    /// The executor as the agent already runs it.
    fn executor(&self, id: &ExecutorId) -> Option<RunningExecutor<'_>>;
    /// Whether tasks under an executor of this id share its cgroups, whatever became of them; `None` if there were none.
    fn shares_cgroups(&self, id: &ExecutorId) -> Option<bool>;
}

/// An executor of an agent, with its resources as they are booked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningExecutor<'a> {
    pub(crate) info: &'a pb::ExecutorInfo,
    pub(crate) resources: &'a Resources,
}

/// What a launch is checked against.
pub(crate) struct Launch<'a> {
    pub(crate) framework_id: &'a FrameworkId,
    pub(crate) agent_id: &'a AgentId,
    pub(crate) agent_capabilities: &'a [AgentCapability],
    /// Whether tasks may ask for nothing.
    pub(crate) best_effort_tasks: bool,
    /// Whether labels of an executor are limits of its group.
    pub(crate) task_group_limits: bool,
    pub(crate) limits: &'a Limits,
    /// What the descriptions of the framework's live tasks take already, in bytes.
    pub(crate) task_bytes: usize,
    /// What is left of the offers.
    pub(crate) remaining: &'a Resources,
    pub(crate) known: &'a dyn Known,
}

/// What an operation is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// The framework's.
    pub(crate) roles: Option<&'a [String]>,
    pub(crate) shared_resources: bool,
    pub(crate) principal: Option<&'a str>,
    pub(crate) agent_capabilities: &'a [AgentCapability],
    /// Everything the agent has, not allocated.
    pub(crate) total: &'a Resources,
    /// What tasks and executors of any framework use on the agent.
    pub(crate) used: &'a Resources,
}

#[cfg(test)]
mod tests;
