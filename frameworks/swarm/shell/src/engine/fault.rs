//! Failures between the manager and an engine. What the engine itself answers is no failure.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum EngineFault {
    #[error("cannot connect to the engine at {address}: {why}")]
    Connect { address: String, why: String },
    #[error("the connection to the engine at {address} broke: {why}")]
    Broken { address: String, why: String },
    #[error("the engine at {address} did not answer within {limit:?}")]
    TimedOut { address: String, limit: Duration },
    #[error("the answer of the engine at {address} is larger than {bytes_max} bytes")]
    TooLarge { address: String, bytes_max: usize },
    #[error("the engine at {address} answered {status}: {message}")]
    Rejected { address: String, status: u16, message: String },
    #[error("the engine at {address} accepts API {newest} at most; {required} is required")]
    TooOld { address: String, newest: String, required: &'static str },
    #[error("the answer of the engine at {address} cannot be read: {why}")]
    Garbled { address: String, why: String },
}
