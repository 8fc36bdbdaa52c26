//! Answers to a client that is not served: a status of HTTP and the text that the docker CLI prints.
//!
//! 404 only for an image that the engine could not pull: the CLI pulls it then, with its credentials, and creates the
//! container again. Never for a placement.

use alloc::string::String;
use core::fmt;

use tepui_types::AgentId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The request itself is wrong.
    BadParameter(String),
    /// The name is taken.
    Conflict(String),
    /// The request is right, but cannot be carried out.
    Failed(String),
    /// The engine of this agent could not pull the image without credentials.
    NoImage { agent: AgentId, message: String },
    /// Too much is under way; the client may come again.
    Busy(String),
}

impl Rejection {
    pub fn status(&self) -> u16 {
        match self {
            Rejection::BadParameter(_) => 400,
            Rejection::Conflict(_) => 409,
            Rejection::NoImage { .. } => 404,
            Rejection::Failed(_) => 500,
            Rejection::Busy(_) => 503,
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Rejection::BadParameter(text)
            | Rejection::Conflict(text)
            | Rejection::Failed(text)
            | Rejection::NoImage { message: text, .. }
            | Rejection::Busy(text) => text,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}
