//! Faults that keep a process from starting, whatever its program.

use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ProcessFault {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        err: std::io::Error,
    },
    #[error("--audit_log: cannot write {path}")]
    AuditLog {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("cannot read random bytes")]
    Entropy(#[source] std::io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}
