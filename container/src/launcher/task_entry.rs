//! Starts a command in the root file system of a container whose own command stays outside: for an executor that runs
//! a task of an image without being part of the image.
//!
//! Our own program, started again by such an executor; it becomes the command. An ordinary process with one thread.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::init::{EXIT_NOT_FOUND, EXIT_NOT_RUNNABLE};
use super::mounts;
use super::rights::Rights;
use crate::host::user::Identity;
use crate::plan::Plan;

/// Where the executor finds what to give to us: what is inside, and the words to start us with, one a line.
pub(crate) const INSIDE: &str = "TEPUI_TASK_INSIDE";
pub(crate) const LAUNCHER: &str = "TEPUI_TASK_LAUNCHER";

/// The place of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskEntry {
    /// Root file system, directory and rights; it mounts nothing.
    pub plan: Plan,
    pub identity: Option<Identity>,
    /// On top of what the executor has.
    pub environment: BTreeMap<String, String>,
    pub program: String,
    /// The first is the command's name for itself.
    pub arguments: Vec<String>,
}

/// Becomes the task, or the command that is given instead of it. Returns only if that cannot be.
pub(crate) fn work(instead: &[OsString]) -> io::Result<()> {
    let text = std::env::var(INSIDE).map_err(|_| io::Error::other(format!("{INSIDE} is not set")))?;
    let inside: TaskEntry = serde_json::from_str(&text)?;
    match io::stdin().is_terminal() && instead.is_empty() {
        true => take_terminal(),
        // Fails for the leader of a process group only, which is alone already.
        false => drop(nix::unistd::setsid()),
    }
    enter(&inside)?;
    let mut command = match (instead.split_first(), inside.arguments.split_first()) {
        (Some((program, arguments)), _) => with_arguments(Command::new(program), arguments),
        (None, Some((name, arguments))) => {
            let mut command = with_arguments(Command::new(&inside.program), arguments);
            command.arg0(name);
            command
        }
        (None, None) => Command::new(&inside.program),
    };
    command.env_remove(INSIDE).env_remove(LAUNCHER);
    let err = command.envs(&inside.environment).exec();
    eprintln!("Failed to execute '{}': {err}", command.get_program().display());
    std::process::exit(match err.kind() {
        io::ErrorKind::NotFound => EXIT_NOT_FOUND,
        _ => EXIT_NOT_RUNNABLE,
    })
}

fn with_arguments(mut command: Command, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Command {
    command.args(arguments);
    command
}

/// The terminal of the executor's session is the task's: keys that make signals are for a group of its own.
fn take_terminal() {
    let own = Pid::from_raw(0);
    // A background process would be stopped for taking the terminal.
    let mut stops = SigSet::empty();
    stops.add(Signal::SIGTTOU);
    let taken = stops.thread_block().and_then(|()| nix::unistd::setpgid(own, own));
    let taken = taken.and_then(|()| nix::unistd::tcsetpgrp(io::stdin(), nix::unistd::getpgrp()));
    if let Err(err) = taken.and_then(|()| stops.thread_unblock()) {
        eprintln!("cannot take the terminal: {err}"); // It still reads and writes.
    }
}

/// The executor stays where it is: the root is changed in a mount namespace of our own.
fn enter(inside: &TaskEntry) -> io::Result<()> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
    if let Some(rootfs) = &inside.plan.rootfs {
        mounts::pivot_to(rootfs)?;
    }
    if let Some(directory) = &inside.plan.working_directory {
        std::env::set_current_dir(directory).map_err(|err| {
            io::Error::other(format!("cannot use its working directory '{}': {err}", directory.display()))
        })?;
    }
    Rights::new(&inside.plan, inside.identity.as_ref()).take().map_err(|failure| failure.in_words())
}
