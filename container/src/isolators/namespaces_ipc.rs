//! namespaces/ipc: message queues, semaphores and shared memory of a container's own, or its parent's.
//!
//! `/dev/shm` is private to a container that requests a namespace of its own, or has a root file system.

use std::path::PathBuf;

use tepui_proto::mesos::v1::linux_info::IpcMode;

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::{Join, Make, Mount, Namespace, Plan, Root, Source, Target};

const BYTES_PER_MB: u64 = 1024 * 1024;

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let mode = site.linux_info().and_then(|info| info.ipc_mode).unwrap_or(IpcMode::UNKNOWN);
    let shm_size = site.linux_info().and_then(|info| info.shm_size);
    let bytes_max = shm_size.map(|size| u64::from(size) * BYTES_PER_MB).or(site.options.default_shm_bytes);
    match mode {
        IpcMode::PRIVATE => {
            plan.namespaces.insert(Namespace::Ipc);
            own_shm(site, plan, bytes_max);
        }
        IpcMode::SHARE_PARENT => {
            if shm_size.is_some() {
                return Err(PlanFault::SharedMemoryOfParent);
            }
            if !site.is_nested() && site.options.disallow_sharing_agent_ipc_namespace {
                return Err(PlanFault::AgentNamespace("IPC"));
            }
            join_parent(site, plan);
            parents_shm(site, plan);
        }
        IpcMode::UNKNOWN if shm_size.is_some() => {
            return Err(PlanFault::SharedMemoryNotPrivate);
        }
        IpcMode::UNKNOWN if site.is_nested() => {
            join_parent(site, plan);
            match site.rootfs {
                Some(_) => own_shm(site, plan, bytes_max),
                None => parents_shm(site, plan),
            }
        }
        IpcMode::UNKNOWN => {
            plan.namespaces.insert(Namespace::Ipc);
            if site.rootfs.is_some() {
                own_shm(site, plan, bytes_max);
            }
        }
    }
    Ok(())
}

fn join_parent(site: &Site, plan: &mut Plan) {
    if let Some(process) = site.parent.and_then(|parent| parent.process) {
        let join = plan.join.get_or_insert_with(|| Join { process, namespaces: Default::default() });
        join.namespaces.insert(Namespace::Ipc);
    }
}

fn own_shm(site: &Site, plan: &mut Plan, bytes_max: Option<u64>) {
    if plan.namespaces.contains(&Namespace::Mount) {
        let target = shm(site);
        plan.mounts.push(Mount::Tmpfs { target, mode: 0o1777, bytes_max });
    }
}

fn parents_shm(site: &Site, plan: &mut Plan) {
    if !plan.namespaces.contains(&Namespace::Mount) {
        return;
    }
    match site.parent.and_then(|parent| parent.process) {
        Some(process) => {
            plan.mounts.push(Mount::Parents { process, path: PathBuf::from("/dev/shm"), target: shm(site) });
        }
        None if site.rootfs.is_some() => {
            let source = Source::host("/dev/shm");
            plan.mounts.push(Mount::Bind { source, target: shm(site), read_only: false });
        }
        None => (), // The host's is there.
    }
}

fn shm(site: &Site) -> Target {
    match site.rootfs {
        Some(_) => Target::new(Root::Rootfs, "dev/shm", Make::Directory),
        None => Target::new(Root::Host, "dev/shm", Make::Nothing),
    }
}
