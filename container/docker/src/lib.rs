//! Docker: a client of the Engine API over its unix socket, and the life of a container by it.
//!
//! Used by the containerizer and by the docker executor alike, which is why it knows neither. Never here: the `docker`
//! command line, tasks, agents.
#![forbid(unsafe_code)]

mod around;
mod engine;
mod memory;
mod run;
mod why;

pub use around::remove_around;
pub use engine::{
    Address, Created, Engine, EngineFault, Exec, Execution, Image, Inspected, Listed, Logs, Network, State,
    Stream, Waiting,
};
pub use memory::{Memory, MemoryWatch};
pub use run::{Output, Running, Setup, command, start};
pub use why::{EndWatch, OutOfMemory, Whose};
