//! Why a manager cannot start or go on.

use std::path::PathBuf;

use tepui_runtime::RuntimeFault;
use tepui_store::StoreFault;
use tepui_swarm::RecoverError;

use crate::tls::TlsFault;

#[derive(Debug, thiserror::Error)]
pub enum ManagerFault {
    #[error("cannot make the state directory {path}; choose another --state-dir")]
    StateDirectory {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("cannot open the records")]
    Store(#[from] StoreFault),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error("cannot listen on {host}: {err}{hint}")]
    Listen { host: String, err: std::io::Error, hint: &'static str },
    #[error("MASTER is wrong: {0}")]
    Master(String),
    #[error(transparent)]
    Tls(#[from] TlsFault),
    #[error("--allowed-hosts: {0}")]
    AllowedHosts(String),
    #[error("cannot read random bytes")]
    Entropy(#[source] std::io::Error),
    #[error("{0}")]
    Session(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}

impl ManagerFault {
    /// Whether it only means that this manager is not, or cannot be, the leader.
    pub(crate) fn is_loss(&self) -> bool {
        match self {
            ManagerFault::Store(fault) | ManagerFault::Runtime(RuntimeFault::Store { fault, .. }) => {
                fault.is_loss()
            }
            _ => false,
        }
    }
}
