//! Recovery: which containers of a former agent are alive, how the others terminated, and which are orphans.
//!
//! A process belongs to a container only if pid, start time and boot agree with what its supervisor wrote. A
//! container without that claim is claimed here, so that a supervisor that was just being started cannot begin.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tepui_types::{ContainerId, KnownContainer, Termination};

use super::{Context, provision, restore};
use crate::cgroups::destroy;
use crate::docker;
use crate::host::background::{Interrupted, blocking};
use crate::host::process::Process;
use crate::launcher::tree;
use crate::runtime_dir::{self, Claim, ContainerDir, RuntimeDir};

pub(super) struct Found {
    /// Parents before children.
    pub known: Vec<FoundContainer>,
    pub orphans: Vec<ContainerId>,
}

pub(super) struct FoundContainer {
    pub id: ContainerId,
    pub sandbox: PathBuf,
    pub state: State,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    /// To be watched: alive, or ended with something left to clean up.
    Alive(Process),
    Ended(Termination),
}

/// Compares what should exist with what is there; `busy` is in use by this agent already.
pub(super) async fn find_containers(
    context: &Arc<Context>,
    known: Vec<KnownContainer>,
    busy: BTreeSet<ContainerId>,
) -> Result<Found, Interrupted> {
    let context = context.clone();
    let look = move || {
        restore::restore(&context, &known);
        find_now(&context.runtime, known, &busy)
    };
    blocking(look).await
}

fn find_now(runtime: &RuntimeDir, mut known: Vec<KnownContainer>, busy: &BTreeSet<ContainerId>) -> Found {
    known.sort_by_key(|known| (depth(&known.id), known.id.clone()));
    let ids: BTreeSet<ContainerId> = known.iter().map(|known| known.id.clone()).collect();
    let wanted = |id: &ContainerId| ids.contains(id) || busy.contains(id);
    let rooted = |id: &ContainerId| runtime_dir::is_valid(id) && ancestors(id).all(wanted);
    let found = |known: KnownContainer| FoundContainer {
        state: if rooted(&known.id) {
            inspect(runtime, &known.id)
        } else {
            State::Ended(unknown("its parent is unknown"))
        },
        id: known.id,
        sandbox: PathBuf::from(known.sandbox),
    };
    let mut known: Vec<FoundContainer> = known.into_iter().map(found).collect();
    keep_parents_of_living(runtime, &mut known);
    let orphans = runtime.list().unwrap_or_else(|err| {
        tracing::warn!(%err, "cannot list containers, orphans may be left");
        Vec::new()
    });
    let orphans = orphans.into_iter().filter(|id| !(wanted(id) && rooted(id))).collect();
    Found { known, orphans }
}

fn inspect(runtime: &RuntimeDir, id: &ContainerId) -> State {
    try_inspect(runtime, id).unwrap_or_else(|err| State::Ended(unknown(&err.to_string())))
}

fn try_inspect(runtime: &RuntimeDir, id: &ContainerId) -> io::Result<State> {
    let dir = runtime.container(id);
    if !dir.exists() {
        return Ok(State::Ended(unknown("its processes are unknown")));
    }
    let claim = match dir.claimed()? {
        Claim::None if dir.claim(None)? => Claim::Void,
        Claim::None => dir.claimed()?, // Its supervisor was faster.
        claim @ (Claim::Supervisor(_) | Claim::Void) => claim,
    };
    Ok(match (claim, dir.status()) {
        (Claim::Supervisor(process), _) if process.is_alive() => State::Alive(process),
        // The supervisor was killed: what it left behind is still to be ended.
        (Claim::Supervisor(process), None) => State::Alive(process),
        // It terminated by itself; its cgroups were not checked yet.
        (Claim::Supervisor(process), Some(_)) if has_cgroups(&dir) => State::Alive(process),
        // Nor at what a Docker engine may have of it.
        (Claim::Supervisor(process), Some(_)) if dir.docker().is_some() => State::Alive(process),
        (_, Some(status)) => State::Ended(Termination { status: Some(status), ..Default::default() }),
        (Claim::None | Claim::Void, None) => {
            State::Ended(unknown("it never started, or the machine was restarted"))
        }
    })
}

fn has_cgroups(dir: &ContainerDir) -> bool {
    dir.cgroups().places.iter().any(|place| place.own && place.cgroup.is_dir())
}

/// A container that ended while others are nested in it is not done: the ordinary end destroys them first.
fn keep_parents_of_living(runtime: &RuntimeDir, known: &mut [FoundContainer]) {
    let living: BTreeSet<ContainerId> = known
        .iter()
        .filter(|found| matches!(found.state, State::Alive(_)))
        .flat_map(|found| ancestors(&found.id).cloned())
        .collect();
    for found in known.iter_mut().filter(|found| living.contains(&found.id)) {
        if let (State::Ended(_), Ok(Claim::Supervisor(process))) =
            (&found.state, runtime.container(&found.id).claimed())
        {
            found.state = State::Alive(process);
        }
    }
}

/// Kills the processes of orphaned containers, children first, and removes their records.
pub(super) fn destroy_orphans(context: &Arc<Context>, orphans: Vec<ContainerId>) {
    let all: BTreeSet<ContainerId> = orphans.iter().cloned().collect();
    let tops = orphans.into_iter().filter(|id| !ancestors(id).any(|above| all.contains(above)));
    for top in tops.collect::<Vec<_>>() {
        let family = all.iter().filter(|id| **id == top || ancestors(id).any(|above| *above == top));
        let mut family: Vec<ContainerId> = family.cloned().collect();
        family.sort_by_key(|id| std::cmp::Reverse(depth(id)));
        match context.runtime.container(&top).status() {
            Some(status) => tracing::info!(container = %top, status, "removing a terminated container"),
            None => tracing::info!(container = %top, "destroying an orphaned container"),
        }
        // A failure leaves the directory, and the next start tries again.
        tokio::spawn(destroy_family(context.clone(), top, family));
    }
}

async fn destroy_family(context: Arc<Context>, top: ContainerId, family: Vec<ContainerId>) {
    for id in family {
        let dir = context.runtime.container(&id);
        let claim = match dir.claim(None) {
            Ok(true) => Ok(Claim::Void), // It cannot begin any more.
            Ok(false) | Err(_) => dir.claimed(),
        };
        let cgroups = dir.cgroups();
        destroy::kill(&cgroups).await;
        if let Ok(Claim::Supervisor(process)) = claim {
            tree::destroy(process, context.options.work_dir.clone()).await;
        }
        destroy::remove(&cgroups).await;
        provision::remove(&context, &id).await;
        if let (Some(_), Some(docker)) = (dir.docker(), &context.docker) {
            docker.remove_for_good(&docker::name(&id)).await;
        }
    }
    let removed = blocking(move || context.runtime.remove(&top)).await;
    if let Err(err) = removed.unwrap_or_else(|fault| Err(fault.into())) {
        tracing::warn!(%err, "cannot remove the runtime directory of an orphaned container");
    }
}

/// Kills the processes in the cgroups of a terminated container, and removes the cgroups.
pub(super) async fn remove_cgroups(context: Arc<Context>, id: ContainerId) {
    let cgroups = context.runtime.container(&id).cgroups();
    destroy::kill(&cgroups).await;
    destroy::remove(&cgroups).await;
}

fn unknown(why: &str) -> Termination {
    Termination {
        message: Some(format!("Container terminated while the agent was down: {why}")),
        ..Default::default()
    }
}

fn ancestors(id: &ContainerId) -> impl Iterator<Item = &ContainerId> {
    std::iter::successors(id.parent(), |id| id.parent())
}

fn depth(id: &ContainerId) -> usize {
    ancestors(id).count()
}
