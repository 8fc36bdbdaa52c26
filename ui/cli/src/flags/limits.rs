//! Flags that limit the master's state per framework and agent.

use clap::Args;
use tepui_shell_master::Limits;

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LimitFlags {
    /// Maximum size of a FrameworkInfo, and of offer constraints.
    #[arg(long, value_parser = value::bytes, default_value = "1MB")]
    pub max_framework_info_size: u64,
    /// Maximum size of a TaskInfo including its executor.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub max_task_info_size: u64,
    /// Maximum size of an operation on resources, including labels.
    #[arg(long, value_parser = value::bytes, default_value = "1MB")]
    pub max_operation_size: u64,
    /// Maximum size of an agent description: attributes and resources with all reservations.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub max_agent_info_size: u64,
    /// Maximum total size of the active tasks of a framework, and of its completed and unreachable ones.
    /// Launches beyond the limit fail with TASK_ERROR; the oldest completed tasks are dropped.
    #[arg(long, value_parser = value::bytes, default_value = "1GB")]
    pub max_task_bytes_per_framework: u64,
    /// Maximum number of frameworks that are not completed.
    #[arg(long, default_value_t = 10_000)]
    pub max_frameworks: usize,
    /// Weights and quotas of all roles together; changes beyond are rejected.
    #[arg(long, value_parser = value::bytes, default_value = "16MB")]
    pub max_role_config_size: u64,
    /// Maximum size of the maintenance schedule; a larger one is rejected.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub max_maintenance_schedule_size: u64,
}

impl LimitFlags {
    pub fn limits(&self) -> Limits {
        let bytes = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Limits {
            framework_info: bytes(self.max_framework_info_size),
            task_info: bytes(self.max_task_info_size),
            operation: bytes(self.max_operation_size),
            agent_info: bytes(self.max_agent_info_size),
            tasks_of_framework: bytes(self.max_task_bytes_per_framework),
            frameworks: self.max_frameworks,
            role_config: bytes(self.max_role_config_size),
            maintenance_schedule: bytes(self.max_maintenance_schedule_size),
        }
    }
}
