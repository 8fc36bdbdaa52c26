//! Flags that limit what the master keeps of frameworks and agents.

use clap::Args;
use tepui_shell_master::Limits;

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LimitFlags {
    /// Largest FrameworkInfo, and largest offer constraints of a framework; larger ones are rejected.
    #[arg(long, value_parser = value::bytes, default_value = "1MB")]
    pub max_framework_info_size: u64,
    /// Largest TaskInfo with its executor; larger tasks are TASK_ERROR.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub max_task_info_size: u64,
    /// Largest operation on resources of a framework or an operator, with all labels.
    #[arg(long, value_parser = value::bytes, default_value = "1MB")]
    pub max_operation_size: u64,
    /// Largest description of an agent: its attributes and resources with all reservations.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub max_agent_info_size: u64,
    /// Memory for the descriptions of a framework's live tasks, and as much for its completed and unreachable ones. Launches
    /// beyond are TASK_ERROR; of the others the oldest are forgotten.
    #[arg(long, value_parser = value::bytes, default_value = "1GB")]
    pub max_task_bytes_per_framework: u64,
    /// Frameworks that are not completed; more are rejected.
    #[arg(long, default_value_t = 10_000)]
    pub max_frameworks: usize,
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
        }
    }
}
