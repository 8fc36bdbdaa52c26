//! Why a scheduler does not start, or ends.

use std::net::SocketAddr;
use std::path::PathBuf;

use tepui_runtime::RuntimeFault;
use tepui_service::scheduler::RecoverError;
use tepui_store::StoreFault;

#[derive(Debug, thiserror::Error)]
pub enum ServiceFault {
    #[error("cannot make the directory {path}; choose another --work_dir")]
    WorkDir {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error(
        "another scheduler uses the records in {path}; a service has one scheduler, or several with --store=etcd://…"
    )]
    Locked { path: PathBuf },
    #[error("cannot open the records")]
    Store(#[from] StoreFault),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error("{0}")]
    Rival(String),
    #[error("the spec is rejected: {0}")]
    Rejected(String),
    #[error("cannot listen on {address}; choose another --port")]
    Listen {
        address: SocketAddr,
        #[source]
        err: std::io::Error,
    },
    #[error("the address of the master cannot be used: {0}")]
    Master(String),
    #[error("cannot read random bytes")]
    Entropy(#[source] std::io::Error),
    #[error("{0}")]
    Stopped(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}

/// How a scheduler ended without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By request; tasks of the service keep running.
    Stopped,
    /// The framework of this id was uninstalled.
    Uninstalled(String),
}
