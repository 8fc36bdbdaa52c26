//! Limits that no kernel keeps: a container's disk and ports are looked at now and then, and one that takes more than it
//! was given is ended.
//!
//! One per running root container, in its task; those nested in it are counted with it. What it was given is kept in the
//! runtime directory, so that a later agent goes on looking.

use std::sync::Arc;
use std::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, Termination, Volume};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Isolation, IsolatorOptions, disk_du, network_ports};
use crate::cgroups::{Cgroups, destroy};
use crate::host::background::{Interrupted, blocking};
use crate::host::process::Process;
use crate::launcher::tree;
use crate::runtime_dir::{ContainerDir, WatchedResources};

/// What of a container's resources is looked at.
pub(crate) fn watched_resources(
    sandbox: &str,
    resources: &[pb::Resource],
    volumes: &[Volume],
) -> WatchedResources {
    let (disk, whole_disks) = disk_du::quotas(sandbox, resources, volumes);
    WatchedResources { disk, whole_disks, ports: network_ports::ports(resources) }
}

/// Who to look at.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub id: ContainerId,
    pub supervisor: Process,
    pub cgroups: Cgroups,
    pub runtime: ContainerDir,
}

/// What all watchers of an agent share.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    isolation: Isolation,
    options: Arc<IsolatorOptions>,
    /// Walking through disks is done by one at a time.
    turn: Arc<Semaphore>,
}

/// Looks at one container.
pub(crate) struct Watcher {
    options: Arc<IsolatorOptions>,
    watched: Watched,
    given: WatchedResources,
    /// When to look next; unset: never.
    disk: Option<Instant>,
    ports: Option<Instant>,
    turn: Arc<Semaphore>,
}

impl Watching {
    pub fn new(isolation: &Isolation, options: &IsolatorOptions) -> Watching {
        let (options, turn) = (Arc::new(options.clone()), Arc::new(Semaphore::new(1)));
        Watching { isolation: isolation.clone(), options, turn }
    }

    pub fn follow(&self, watched: Watched, given: WatchedResources) -> Watcher {
        let root = watched.id.parent().is_none();
        let from = |name, interval| (root && self.isolation.has(name)).then(|| Instant::now() + interval);
        Watcher {
            disk: from("disk/du", self.options.container_disk_watch_interval),
            ports: from("network/ports", self.options.container_ports_watch_interval),
            options: self.options.clone(),
            watched,
            given,
            turn: self.turn.clone(),
        }
    }
}

impl Watcher {
    pub fn apply(&mut self, given: WatchedResources) {
        self.given = given;
    }

    /// Waits until the container took more than it was given, and says what. Cancel safe.
    pub async fn next(&mut self) -> Termination {
        loop {
            tokio::select! {
                () = until(self.disk) => {
                    let found = self.check_disk().await;
                    self.disk = after(self.options.container_disk_watch_interval);
                    if let Some(found) = found {
                        return found;
                    }
                }
                () = until(self.ports) => {
                    let found = self.check_ports().await;
                    self.ports = after(self.options.container_ports_watch_interval);
                    if let Some(found) = found {
                        return found;
                    }
                }
            }
        }
    }

    async fn check_disk(&self) -> Option<Termination> {
        let (given, id, dir) = (self.given.clone(), self.watched.id.clone(), self.watched.runtime.clone());
        let _turn = self.turn.acquire().await;
        let look = move || {
            let mut uses = disk_du::measure(&given.disk);
            let found = disk_du::exceeded(&uses);
            uses.extend(disk_du::measure(&given.whole_disks));
            if let Err(err) = dir.write_disk(&uses) {
                tracing::debug!(%err, "cannot persist the resources of a container");
            }
            found
        };
        let found = examined(&id, blocking(look).await)?;
        tracing::info!(container = %id, why = found.message, "container exceeded its disk resources");
        self.options.enforce_container_disk_quota.then_some(found)
    }

    async fn check_ports(&self) -> Option<Termination> {
        let (given, watched, options) =
            (self.given.ports.clone(), self.watched.clone(), self.options.clone());
        let look = move || {
            let processes = watched.processes();
            network_ports::unallocated(&processes, &given, &options)
        };
        let id = self.watched.id.clone();
        let found = network_ports::limitation(&id, &examined(&id, blocking(look).await)?);
        tracing::info!(container = %id, why = found.message, "container listens on a port outside of its resources");
        self.options.enforce_container_ports.then_some(found)
    }
}

/// What an examination found; one that failed found nothing and is repeated.
fn examined<T>(id: &ContainerId, found: Result<Option<T>, Interrupted>) -> Option<T> {
    found.unwrap_or_else(|fault| {
        if let Interrupted::Panicked(_) = fault {
            tracing::error!(container = %id, %fault, "cannot measure a container");
        }
        None
    })
}

impl Watched {
    fn processes(&self) -> Vec<i32> {
        match self.cgroups.core() {
            Some(place) => destroy::processes_below(&place.cgroup).unwrap_or_default(),
            None => {
                tree::below(self.supervisor).unwrap_or_default().iter().map(|process| process.pid).collect()
            }
        }
    }
}

fn after(interval: Duration) -> Option<Instant> {
    Some(Instant::now() + interval)
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
