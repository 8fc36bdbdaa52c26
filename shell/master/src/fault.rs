//! Faults that stop a master.

use std::net::SocketAddr;
use std::path::PathBuf;

use tepui_runtime::RuntimeFault;
use tepui_store::StoreFault;

/// A fault that prevents a master from starting or continuing.
#[derive(Debug, thiserror::Error)]
pub enum MasterFault {
    #[error("cannot create the work directory {path}")]
    WorkDir {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("cannot open the registry")]
    Store(#[from] StoreFault),
    #[error("the registry is invalid: {0}")]
    Registry(String),
    #[error("a flag is wrong: {0}")]
    Config(String),
    #[error("--whitelist: cannot read {path}")]
    Whitelist {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
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
    #[error("{0}")]
    Halted(String),
    #[error("the leader election task failed: {0}")]
    Candidacy(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}
