//! Faults that stop a master.

use std::path::PathBuf;

use tepui_program::ProcessFault;
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
    #[error(transparent)]
    Process(#[from] ProcessFault),
    #[error("{0}")]
    Halted(String),
    #[error("the leader election task failed: {0}")]
    Candidacy(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}
