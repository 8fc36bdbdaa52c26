//! Standard input and output of containers: files in the sandbox that may be rotated, and for those who want to listen
//! or to type, a switchboard.
//!
//! `plan` is what the agent decides for a container; `board` is the part of the supervisor that moves the bytes, with
//! `log`, `listener` and `backlog` as its parts; `frame` is what crosses the socket between the two; `attach` is the agent's end
//! of that socket. The supervisor outlives the agent, so what it serves is there again after a restart of the agent.
//! Never here: HTTP, messages of the protocol, who may attach.

pub(crate) mod attach;
mod backlog;
pub(crate) mod board;
mod frame;
mod listener;
pub(crate) mod log;
pub(crate) mod plan;
mod terminal;

pub use attach::{AttachFault, Input, Output, Piece, Writer};
pub use plan::{ContainerLogger, Rotation, RotationFault};
