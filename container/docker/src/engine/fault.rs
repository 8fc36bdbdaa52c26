//! Failures of calls to the engine.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The engine's own message is passed on unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EngineFault {
    #[error("cannot {doing}: the Docker engine does not answer at {}: {err}", socket.display())]
    Connect { doing: &'static str, socket: PathBuf, err: io::Error },
    #[error("cannot {doing}: {message}")]
    Refused { doing: &'static str, status: u16, message: String },
    #[error("cannot {doing}: the Docker engine did not answer within {limit:?}")]
    TimedOut { doing: &'static str, limit: Duration },
    #[error("cannot {doing}: the connection to the Docker engine broke: {why}")]
    Broken { doing: &'static str, why: String },
    #[error("cannot {doing}: invalid answer of the Docker engine: {why}")]
    Garbled { doing: &'static str, why: String },
    #[error("cannot {doing}: the Docker engine's answer is larger than {bytes_max} bytes")]
    TooLarge { doing: &'static str, bytes_max: usize },
    #[error("the Docker engine has API version '{theirs}'; {}.{} or newer is required", min.0, min.1)]
    Version { theirs: String, min: (u32, u32) },
}

impl EngineFault {
    fn status(&self) -> Option<u16> {
        match self {
            EngineFault::Refused { status, .. } => Some(*status),
            EngineFault::Connect { .. }
            | EngineFault::TimedOut { .. }
            | EngineFault::Broken { .. }
            | EngineFault::Garbled { .. }
            | EngineFault::TooLarge { .. }
            | EngineFault::Version { .. } => None,
        }
    }

    /// Whether something that the call names is not there.
    pub fn is_missing(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the outcome at the engine is unknown.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, EngineFault::TimedOut { .. } | EngineFault::Broken { .. })
    }

    /// Whether something of that name is there already.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }
}

pub(super) fn unless_missing<T>(done: Result<T, EngineFault>) -> Result<Option<T>, EngineFault> {
    match done {
        Err(fault) if fault.status() == Some(404) => Ok(None),
        done => done.map(Some),
    }
}

pub(super) fn unless_conflict(done: Result<(), EngineFault>) -> Result<(), EngineFault> {
    match done {
        Err(fault) if fault.is_conflict() => Ok(()),
        done => done,
    }
}
