//! A launch before it is admitted.

use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

/// A launch as the master requested it.
#[derive(Debug)]
pub(crate) struct Launching {
    pub(crate) framework: pb::FrameworkInfo,
    pub(crate) executor: pb::ExecutorInfo,
    /// The executor is made by the agent for a command task.
    pub(crate) generated: bool,
    pub(crate) tasks: Vec<pb::TaskInfo>,
    /// The tasks are handed over together.
    pub(crate) group: bool,
    /// Whether the executor is new to the master; unset if unknown.
    pub(crate) launch_executor: Option<bool>,
    /// The framework may not use the user root, by the master's decision.
    pub(crate) no_root: bool,
}

impl Launching {
    /// Whether something that is reserved for others is lent for it.
    pub(crate) fn borrows(&self) -> bool {
        let slack = Some(pb::resource::revocable_info::Type::ALLOCATION_SLACK);
        let tasks = self.tasks.iter().flat_map(|task| &task.resources);
        tasks.chain(&self.executor.resources).any(|resource| resource.revocable.r#type == slack)
    }
}
