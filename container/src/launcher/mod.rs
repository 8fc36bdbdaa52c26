//! Launchers: from a prepared sandbox to a running command that outlives the agent.
//!
//! `posix` runs in the agent and starts our own program again as a supervisor; `init` is that supervisor; `tree` finds
//! and ends everything a container ever started. A Linux launcher (namespaces, cgroups) goes beside `posix`.

#![allow(unsafe_code)]

pub(crate) mod init;
pub(crate) mod posix;
pub(crate) mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::process::Process;
use crate::host::user::Identity;

/// What the supervisor is told, on its standard input: it is never on a disk, because environments hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InitSpec {
    /// The container's directory below the runtime directory.
    pub runtime: PathBuf,
    /// The sandbox is `work_dir/sandbox`, reached without following links.
    pub work_dir: PathBuf,
    pub sandbox: PathBuf,
    pub program: String,
    /// The first is the command's name for itself.
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub identity: Option<Identity>,
}

/// What the supervisor answers, on its standard output, before it starts the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InitReport {
    Ready { pid: i32, start_ticks: u64 },
    Failed { message: String },
}

impl From<Process> for InitReport {
    fn from(process: Process) -> InitReport {
        InitReport::Ready { pid: process.pid, start_ticks: process.start_ticks }
    }
}
