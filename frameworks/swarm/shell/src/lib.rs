//! The manager process of `tepui swarm`: sockets, clocks and disks around the decisions of `tepui-swarm`.
//!
//! - [`run`] assembles it: the scheduler session with the master, the records, the engines and the listeners.
//! - [`Handle`] is what the API uses of it: the published view, creates, and the engines.
//! - `api` answers the Docker API; `engine` owns the connections to engines and their event subscriptions.
//!
//! Never here: a decision about placement, names or the life of a container; a private endpoint of master or agent.
#![forbid(unsafe_code)]

mod access;
mod api;
mod body;
pub mod convert;
mod driver;
mod election;
pub mod engine;
mod fault;
mod front;
mod guard;
mod handle;
mod listen;
mod run;
mod term;
mod tls;
mod version;

pub use access::Access;
#[cfg(feature = "fuzz")]
pub use api::fuzz;
pub use body::{Body, BoxError};
pub use engine::{EngineClient, EngineFault, EngineMessage, Snapshot};
pub use fault::ManagerFault;
pub use handle::Handle;
pub use run::{RunningManager, run};
pub use tepui_http::ClientTls;
