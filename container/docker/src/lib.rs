//! Docker: a client of the Engine API over its Unix socket, and the life of a container by it.
//!
//! Used by the containerizer and by the Docker executor, and independent of both. Absent: the `docker` command line,
//! tasks, agents.
#![forbid(unsafe_code)]

mod engine;
mod parent_cgroup;

mod memory;
mod oom;
mod run;
mod task;

pub use engine::{
    Address, ContainerEvent, ContainerEvents, Created, Engine, EngineFault, Exec, Execution, Image,
    Inspected, Listed, Logs, Network, State, Stream, Waiting,
};
pub use parent_cgroup::remove_parent_cgroup;

pub use memory::{Memory, MemoryWatch};
pub use oom::{EndWatch, OomCause, OutOfMemory};
pub use run::{Output, Running, Setup, command, start};
pub use task::{ContainerReport, ContainerTask, MissingImage};
