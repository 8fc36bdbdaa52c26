//! The words everything shares: ids, task states and their rules, answers, container operations and events.
//!
//! Never here: behaviour that needs more than its arguments.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod container;
mod disk;
mod duration;
mod group_limits;
mod id;
mod task_state;
mod users;

pub use answer::{Answer, Rejection, Status};
pub use container::{
    COMMAND_EXECUTOR_CPUS, COMMAND_EXECUTOR_MEM_MB, ContainerEvent, ContainerOp, KnownContainer, LaunchSpec,
    LaunchStage, RecoveredContainer, Secrets, Termination, Volume,
};
pub use disk::{DiskPressure, DiskRoom};
pub use duration::{duration_from_text, duration_text};
pub use group_limits::group_limits;
pub use id::{AgentId, ConnId, ContainerId, ExecutorId, FrameworkId, IdError, OfferId, TaskId, check_id};
pub use task_state::{TaskStateExt, lost_as};
pub use users::{ProcessUser, ROOT, command_user, docker_privilege, is_root, launch_users};
