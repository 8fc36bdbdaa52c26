//! Why a file could not be fetched.

use std::io;

/// Why one file could not be brought.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("it is larger than the cache")]
    TooLarge,
    #[error("{0}")]
    Told(String),
    #[error("{what}: {err}")]
    Io { what: String, err: io::Error },
}

impl Fault {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Fault {
        let what = what.into();
        move |err| Fault::Io { what, err }
    }
}
