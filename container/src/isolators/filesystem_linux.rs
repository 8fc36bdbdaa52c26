//! filesystem/linux: a mount namespace for every container; with an image its own root file system, in which the sandbox
//! is at `--sandbox_directory`. Persistent volumes are mounted in the sandbox.

use std::path::{Path, PathBuf};

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::{Make, Mount, Namespace, NodeKind, Plan, Root, Source, Target};

/// Character devices that every container has: name, major, minor.
const NODES: [(&str, u32, u32); 6] =
    [("full", 1, 7), ("null", 1, 3), ("random", 1, 8), ("tty", 5, 0), ("urandom", 1, 9), ("zero", 1, 5)];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Parts of /proc that show or change state of the whole machine.
const READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// Parts of /proc hidden from containers.
const MASKED: [&str; 11] = [
    "proc/acpi",
    "proc/asound",
    "proc/kcore",
    "proc/keys",
    "proc/key-users",
    "proc/latency_stats",
    "proc/sched_debug",
    "proc/scsi",
    "proc/timer_list",
    "proc/timer_stats",
    "sys/firmware",
];

/// Comes first: what other isolators mount is on top of it.
pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    plan.namespaces.insert(Namespace::Mount);
    if let Some(rootfs) = site.rootfs {
        plan.rootfs = Some(rootfs.to_owned());
        plan.mounts.extend(root_mounts());
        if !site.has("namespaces/ipc") {
            let target = in_rootfs("dev/shm", Make::Directory);
            plan.mounts.push(Mount::Tmpfs {
                target,
                mode: 0o1777,
                bytes_max: site.options.default_shm_bytes,
            });
        }
        let inside = site.options.sandbox_directory.clone();
        plan.mounts.push(Mount::Sandbox { target: in_rootfs(below_root(&inside), Make::Directory) });
        plan.working_directory = Some(inside);
    }
    for volume in &site.spec.volumes {
        let source = Source::host(&volume.source);
        let target = in_sandbox(site, Path::new(&volume.target), Make::Directory);
        plan.mounts.push(Mount::Bind { source, target, read_only: volume.read_only });
    }
    Ok(())
}

/// Comes after the namespaces are chosen: what of the machine is hidden depends on them.
pub(super) fn hide(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    if site.rootfs.is_some() && plan.namespaces.contains(&Namespace::Pid) {
        let masks = MASKED.map(|path| Mount::Mask { target: in_rootfs(path, Make::Optional) });
        plan.mounts.extend(masks);
    }
    Ok(())
}

fn root_mounts() -> Vec<Mount> {
    let dir = |path: &str| in_rootfs(path, Make::Directory);
    let mut mounts = vec![Mount::Proc { target: dir("proc") }];
    mounts.extend(
        READ_ONLY
            .map(|name| Mount::ReadOnly { target: in_rootfs(Path::new("proc").join(name), Make::Optional) }),
    );
    mounts.push(Mount::Sysfs { target: dir("sys") });
    mounts.push(Mount::Tmpfs {
        target: in_rootfs("sys/fs/cgroup", Make::Optional),
        mode: 0o755,
        bytes_max: None,
    });
    mounts.push(Mount::Tmpfs { target: dir("dev"), mode: 0o755, bytes_max: None });
    mounts.extend(NODES.map(|(name, major, minor)| Mount::Node {
        target: in_rootfs(Path::new("dev").join(name), Make::Nothing),
        kind: NodeKind::Character,
        major,
        minor,
        mode: 0o666,
    }));
    mounts.push(Mount::Devpts { target: dir("dev/pts") });
    mounts.extend(LINKS.map(|(name, to)| Mount::Link {
        target: in_rootfs(Path::new("dev").join(name), Make::Nothing),
        to: PathBuf::from(to),
    }));
    mounts
}

fn in_rootfs(path: impl Into<PathBuf>, make: Make) -> Target {
    Target::new(Root::Rootfs, path, make)
}

/// A relative path of a container is in its sandbox, wherever that is.
pub(super) fn in_sandbox(site: &Site, path: &Path, make: Make) -> Target {
    match site.rootfs {
        Some(_) => in_rootfs(below_root(&site.options.sandbox_directory).join(path), make),
        None => Target::new(Root::Sandbox, path, make),
    }
}

pub(super) fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
