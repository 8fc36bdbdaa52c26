//! The memory of a running container: its OOM score, which follows what it uses, and OOM kills, each of which ends it.
//!
//! For containers in cgroups of our own as for those of a Docker engine, once the first process of these is found.

use tepui_types::{ContainerId, Termination};

use super::Context;
use super::in_docker::{self, Search};
use crate::cgroups::Controller;
use crate::cgroups::burst::{self, Burst};
use crate::cgroups::oom_watch::{self, OomWatch, Subject};
use crate::docker;
use crate::host::process::Process;

/// A container to destroy, and the reason.
pub(super) type Limited = (ContainerId, Termination);

pub(super) struct MemoryWatch {
    burst: Option<Burst>,
    oom: Option<OomWatch>,
    /// For the first process of an engine's container; unset if it is known, or there is none.
    search: Option<Search>,
}

impl MemoryWatch {
    pub fn start(context: &Context, id: &ContainerId) -> MemoryWatch {
        let search = in_docker::find_process(context, id);
        let mut watch = MemoryWatch { burst: None, oom: None, search };
        watch.follow(context, id);
        watch
    }

    fn follow(&mut self, context: &Context, id: &ContainerId) {
        self.follow_request(context, id);
        self.oom = subject(context, id).and_then(|subject| OomWatch::follow(subject, &context.oom_sources));
    }

    /// The request may be another one.
    pub fn follow_request(&mut self, context: &Context, id: &ContainerId) {
        self.burst = Burst::follow(&context.runtime.container(id).live_cgroups());
    }

    /// Waits until the container is out of memory. Cancel safe.
    pub async fn next(&mut self, context: &Context, id: &ContainerId) -> Limited {
        loop {
            tokio::select! {
                () = burst::next(&mut self.burst) => (),
                limited = oom_watch::next(&mut self.oom) => return limited,
                process = found(&mut self.search) => {
                    self.search = None;
                    in_docker::keep_process(context, id, process);
                    self.follow(context, id);
                }
            }
        }
    }

    /// Whether the container is out of memory; `status` is how it ended, if it has.
    pub fn judge(&mut self, context: &Context, id: &ContainerId, status: Option<i32>) -> Option<Limited> {
        if let Some(why) = context.runtime.container(id).docker_end() {
            return Some((id.clone(), docker::termination(why)));
        }
        if let Some(oom) = self.oom.as_mut().filter(|oom| oom.owner() == id) {
            return oom.poll().map(|why| (id.clone(), why));
        }
        // Its memory is counted with that of others: if it ended in order, the kill was not about it.
        if status == Some(0) {
            return None;
        }
        let subject = context.linux.as_ref()?.oom_subject(id)?;
        subject.judge().map(|why| (subject.owner, why))
    }
}

async fn found(search: &mut Option<Search>) -> Process {
    match search {
        Some(search) => search.await,
        None => std::future::pending().await,
    }
}

/// The cgroups whose OOM kills are watched; `None` if the container's memory is unlimited, or unknown so far.
fn subject(context: &Context, id: &ContainerId) -> Option<Subject> {
    let dir = context.runtime.container(id);
    if dir.docker().is_none() {
        return context.linux.as_ref()?.oom_subject(id);
    }
    let place = dir.live_cgroups().own(Controller::Memory)?.clone();
    Some(Subject { owner: id.clone(), processes: place.cgroup.clone(), place, depth: 0, is_owner: true })
}
