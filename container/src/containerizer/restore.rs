//! Containers whose directory was deleted while they ran: found by their supervisors, whose command line names the
//! container, and by their cgroups, which are marked.
//!
//! Only a process of our own user outside of every container counts: a process inside cannot pose as a supervisor.
//! Restored from the kernel: the claim, the cgroups, the process that holds the namespaces; from the agent: volumes,
//! disk and ports.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tepui_types::{ContainerId, KnownContainer};

use super::Context;
use crate::host::process::{self, Process, Stat};
use crate::isolators::watcher::watched_resources;
use crate::launcher::linux::Linux;
use crate::runtime_dir::{Init, Mounted, is_valid};

/// Placeholder for a missing supervisor: no process has this pid.
const NOBODY: Process = Process { pid: i32::MAX, start_ticks: 0 };

/// Writes down again what is missing. Blocking.
pub(super) fn restore(context: &Context, known: &[KnownContainer]) {
    let missing =
        |known: &&KnownContainer| is_valid(&known.id) && !context.runtime.container(&known.id).exists();
    let missing: Vec<&KnownContainer> = known.iter().filter(missing).collect();
    restore_supervised(context);
    // Only their cgroups are left, and no call refers to them.
    for id in context.linux.as_ref().map(Linux::marked).unwrap_or_default() {
        if !context.runtime.container(&id).exists() {
            restore_abandoned(context, &id);
        }
    }
    for known in missing {
        if !context.runtime.container(&known.id).exists() {
            restore_abandoned(context, &known.id);
        }
        if let Err(err) = restore_given(context, known) {
            tracing::warn!(container = %known.id, %err, "cannot persist the resources of a container");
        }
    }
}

/// What the container has of volumes, disk and ports, if it was found again.
fn restore_given(context: &Context, known: &KnownContainer) -> io::Result<()> {
    let dir = context.runtime.container(&known.id);
    if !dir.exists() {
        return Ok(());
    }
    dir.write_given(&watched_resources(&known.sandbox, &known.resources, &known.volumes))?;
    match context.options.isolation.mounts() {
        true => dir.write_volumes(&known.volumes.iter().map(Mounted::from).collect::<Vec<_>>()),
        false => Ok(()),
    }
}

/// A container without a supervisor has terminated, but processes in its cgroups may be alive.
fn restore_abandoned(context: &Context, id: &ContainerId) {
    let parent = id.parent().map(|parent| context.runtime.container(parent).cgroups());
    let cgroups = context.linux.as_ref().map(|linux| linux.find(id, parent.as_ref())).unwrap_or_default();
    if cgroups.places.is_empty() {
        return;
    }
    let dir = context.runtime.container(id);
    let written =
        dir.make().and_then(|()| dir.write_cgroups(&cgroups)).and_then(|()| dir.claim(Some(NOBODY)));
    if let Err(err) = written {
        tracing::warn!(container = %id, %err, "its directory was deleted and cannot be created");
    }
}

fn restore_supervised(context: &Context) {
    let all = process::all().unwrap_or_default();
    let inside = context.linux.as_ref().map(Linux::all_processes).unwrap_or_default();
    let mut found: Vec<(ContainerId, &Stat)> = all
        .iter()
        .filter(|stat| !stat.ended && !inside.contains(&stat.process.pid) && is_ours(stat.process.pid))
        .filter_map(|stat| Some((supervised(context, stat.process.pid)?, stat)))
        .collect();
    // Parents first: nested ones may share their cgroups.
    found.sort_by_key(|(id, _)| (std::iter::successors(id.parent(), |id| id.parent()).count(), id.clone()));
    for (id, stat) in found {
        if context.runtime.container(&id).exists() {
            continue;
        }
        match rewrite(context, &id, stat, &all) {
            Ok(()) => tracing::warn!(container = %id, "its deleted directory was restored"),
            Err(err) => {
                tracing::warn!(container = %id, %err, "its directory was deleted and cannot be created")
            }
        }
    }
}

fn is_ours(pid: i32) -> bool {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    owner.is_ok_and(|uid| uid == rustix::process::geteuid().as_raw())
}

/// The container that a process supervises, if it is one of ours.
fn supervised(context: &Context, pid: i32) -> Option<ContainerId> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&str> =
        line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok()).collect();
    let [_, crate::HELPER_COMMAND, crate::SUPERVISE, _, runtime, ..] = words.as_slice() else { return None };
    context.runtime.id_of(Path::new(runtime))
}

fn rewrite(context: &Context, id: &ContainerId, supervisor: &Stat, all: &[Stat]) -> io::Result<()> {
    let dir = context.runtime.container(id);
    let parent = id.parent().map(|parent| context.runtime.container(parent).cgroups());
    let cgroups = context.linux.as_ref().map(|linux| linux.find(id, parent.as_ref())).unwrap_or_default();
    dir.make()?;
    dir.write_cgroups(&cgroups)?;
    if let Some(process) = init(supervisor.process, all) {
        let inside = has_own_root(process).then(|| context.options.isolators.sandbox_directory.clone());
        dir.write_init(&Init { process, directory: inside.clone(), sandbox: inside, root: None })?;
    }
    dir.claim(Some(supervisor.process)).map(drop)
}

/// The process that holds the namespaces of a container; none if the container has none of its own.
fn init(supervisor: Process, all: &[Stat]) -> Option<Process> {
    let first_child = |of: Process| {
        let children = all.iter().filter(|stat| stat.parent == of.pid && !stat.ended);
        children.map(|stat| stat.process).min_by_key(|process| process.start_ticks)
    };
    let namespace =
        |process: Process, name: &str| std::fs::read_link(format!("/proc/{}/ns/{name}", process.pid)).ok();
    let mut init = first_child(supervisor)?;
    if ["mnt", "pid", "ipc", "uts"].iter().all(|name| namespace(init, name) == namespace(supervisor, name)) {
        return None;
    }
    // Between the pid namespace of a container around it and its own there is one more.
    while let Some(below) =
        first_child(init).filter(|below| namespace(*below, "pid") != namespace(init, "pid"))
    {
        init = below;
    }
    Some(init)
}

fn has_own_root(process: Process) -> bool {
    let root = |path: &str| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    match (root(&format!("/proc/{}/root/", process.pid)), root("/")) {
        (Ok(theirs), Ok(ours)) => theirs != ours,
        (Err(_), _) | (_, Err(_)) => false,
    }
}
