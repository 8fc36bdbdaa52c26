//! Limits on the size of what the master keeps.

/// Maximum sizes, in bytes unless it is a count. The defaults are far beyond ordinary use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A FrameworkInfo, and the offer constraints of a framework.
    pub framework_info: usize,
    /// A TaskInfo with its executor.
    pub task_info: usize,
    /// An operation on resources, of a framework or an operator.
    pub operation: usize,
    /// An AgentInfo with the resources of the agent, also with those that operations reserve.
    pub agent_info: usize,
    /// The descriptions of the live tasks of a framework, and as much of its completed and of its unreachable ones.
    pub tasks_of_framework: usize,
    /// How many frameworks there may be that are not completed.
    pub frameworks: usize,
    /// The weights and quotas of all roles together.
    pub role_config: usize,
    /// The maintenance schedule.
    pub maintenance_schedule: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MB: usize = 1 << 20;
        Self {
            framework_info: MB,
            task_info: 4 * MB,
            operation: MB,
            agent_info: 4 * MB,
            tasks_of_framework: 1024 * MB,
            frameworks: 10_000,
            role_config: 16 * MB,
            maintenance_schedule: 4 * MB,
        }
    }
}
