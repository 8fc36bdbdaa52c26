//! Launchers: from a prepared sandbox to a running command that outlives the agent.
//!
//! `supervisor` runs in the agent and starts our own program again as a supervisor, through `starter`; `init` is that
//! supervisor; `tree` finds and kills all processes of a container. `enter` is what the Linux launcher adds to it:
//! the last steps of the command's process before it becomes the command, with `mounts` and `rights`; `reaper` is
//! the tiny init that stays in a container's namespaces; `failure` reports the step that failed.

#![allow(unsafe_code)]

mod enter;
mod failure;
mod fault;
pub(crate) mod init;
pub(crate) mod linux;
mod mounts;
pub(crate) mod overlay;
mod reaper;
pub(crate) mod remount;
mod rights;
mod starter;
pub(crate) mod supervisor;
mod system_calls;
pub(crate) mod task_entry;
pub(crate) mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::fault::CgroupFault;
use crate::host::process::Process;
use crate::host::user::Identity;
use crate::plan::Plan;
use crate::stdio::plan::StdioPlan;

/// Parameters of the supervisor, on its standard input: never on a disk, because environments contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InitSpec {
    /// The container's directory below the runtime directory.
    pub runtime: PathBuf,
    /// The sandbox is `work_dir/sandbox`, reached without following links.
    pub work_dir: PathBuf,
    pub sandbox: PathBuf,
    /// Where the command begins, below `work_dir` as well; the sandbox if it is not set.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    #[serde(default)]
    pub stdio: StdioPlan,
    pub program: String,
    /// The first is the command's name for itself.
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub identity: Option<Identity>,
    /// The command enters each of these before anything else. The supervisor stays outside: it must outlive them.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    /// A cgroup of v1 whose shortages of memory are to be counted.
    #[serde(default)]
    pub shortages_of: Option<PathBuf>,
    /// How readily the kernel ends the command when memory runs out.
    #[serde(default)]
    pub oom_score_adj: Option<i32>,
    /// The soft limit of open files; the agent's own may be higher.
    #[serde(default)]
    pub open_files: Option<u64>,
    /// How the command is kept apart from others.
    #[serde(default)]
    pub plan: Plan,
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
