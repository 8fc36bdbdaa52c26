//! Standard input and output of containers: files in the sandbox that may be rotated, and a switchboard for attached
//! clients.
//!
//! `plan` is the agent's decision for a container; `switchboard` is the part of the supervisor that moves the bytes, with
//! `log`, `listener` and `backlog` as its parts; `frame` is the protocol on the socket between the two; `attach` is
//! the agent's end of that socket. The supervisor outlives the agent, so attached clients can reconnect after a
//! restart of the agent. Absent: HTTP, messages of the protocol, authorization.

pub(crate) mod attach;
mod backlog;
mod frame;
mod listener;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod switchboard;
mod terminal;

pub use attach::{AttachFault, Input, Output, Piece, Writer};
pub use plan::{ContainerLogger, Rotation, RotationFault};
