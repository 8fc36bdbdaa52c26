//! Eviction for disk space: the container with the largest sandbox is evicted, if sandboxes that are no longer needed
//! are too small.
//!
//! The space is free only when the sandbox is removed, which waits for its framework's acknowledgement. For some time
//! no other container is evicted meanwhile.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerId, ContainerOp, Termination};

use super::{BYTES_PER_MB, stays, termination};
use crate::agent::{Agent, Out};
use crate::rules::gc;
use crate::state::bookkeeping::{Evicting, Releasing, SandboxUse};

/// How long the sandbox of an evicted container may take to be removed before the next one goes.
const REMOVAL_WAIT: Duration = Duration::from_secs(30);

/// So old may a measurement be when it arrives: large sandboxes take their time.
const MEASUREMENT_AGE_MAX: Duration = Duration::from_secs(10);

/// A new measurement of the disk and of sandboxes.
pub(crate) fn sandboxes_measured(
    agent: &mut Agent,
    now: Now,
    available_bytes: u64,
    sandboxes: Vec<SandboxUse>,
    out: &mut Out,
) {
    let is_short = agent.config.eviction.disk_available_bytes.is_some_and(|least| available_bytes < least);
    if !is_short || matches!(agent.evicting, Evicting::Going(..)) {
        return;
    }
    gc::remove_all(agent, now, out);
    match agent.releasing {
        Releasing::Sandbox { until, .. } if now.mono < until => return,
        Releasing::JustReleased { at } => {
            agent.releasing = Releasing::Nothing;
            if now.mono.since(at) < MEASUREMENT_AGE_MAX {
                return;
            }
        }
        Releasing::Sandbox { .. } | Releasing::Nothing => (),
    }
    let staying = sandboxes.iter().filter(|one| one.used_bytes > 0 && stays(agent, &one.id));
    let Some(victim) = staying.max_by(|a, b| a.used_bytes.cmp(&b.used_bytes).then_with(|| a.id.cmp(&b.id)))
    else {
        return;
    };
    let (id, why) = (victim.id.clone(), disk_termination(victim, available_bytes));
    if let Some(path) = sandbox(agent, &id) {
        agent.releasing = Releasing::Sandbox { path, until: now.mono + REMOVAL_WAIT };
    }
    agent.evicting = Evicting::Going(id.clone(), why.clone());
    agent.state.counters.disk_evictions += 1;
    agent.state.touch();
    agent.container(ContainerOp::Evict { id, why }, out);
}

fn sandbox(agent: &Agent, id: &ContainerId) -> Option<String> {
    if let Some(container) = agent.state.containers.get(id) {
        return Some(container.sandbox.to_string());
    }
    let (framework, executor) = agent.executors_by_container.get(id)?;
    Some(agent.state.executor(framework, executor)?.sandbox.to_string())
}

fn disk_termination(victim: &SandboxUse, available_bytes: u64) -> Termination {
    let (used, available) = (victim.used_bytes / BYTES_PER_MB, available_bytes / BYTES_PER_MB);
    let message = format!(
        "Evicted because its sandbox was the largest while the agent was short of disk (available: {available}MB): \
         Used: {used}MB"
    );
    termination(Reason::REASON_CONTAINER_LIMITATION_DISK, message, ("disk", victim.used_bytes))
}
