//! Eviction: when memory runs short, the container farthest above its request is evicted before the kernel has to
//! choose one; when the disk does, the one with the largest sandbox.
//!
//! Fed with samples of the machine and of its containers; nothing is measured here. One is evicted at a time, and the
//! next is chosen only from a sample that began after the container was gone, so that none is evicted for memory that
//! is already free again. A container within its request is never evicted for memory.

mod choose;
mod disk;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerId, ContainerOp, Termination};

use crate::agent::{Agent, Out};
use crate::state::ContainerStage;
use crate::state::bookkeeping::{Evicting, MachineMemory, MemoryUse};

pub(crate) use disk::sandboxes_measured;

const BYTES_PER_MB: u64 = 1024 * 1024;

/// A new sample of the machine and its containers.
pub(crate) fn measured(agent: &mut Agent, machine: MachineMemory, containers: Vec<MemoryUse>, out: &mut Out) {
    if is_busy(agent) || !agent.config.eviction.is_short(&machine) {
        return;
    }
    let mut staying = containers;
    staying.retain(|one| stays(agent, &one.id));
    let Some(victim) = choose::farthest(&staying) else { return };
    let (id, why) = (victim.id.clone(), memory_termination(victim, &machine));
    agent.evicting = Evicting::Going(id.clone(), why.clone());
    agent.state.counters.memory_evictions += 1;
    agent.state.touch();
    agent.container(ContainerOp::Evict { id, why }, out);
}

/// Whether an eviction is in progress, or was when the sample began.
fn is_busy(agent: &mut Agent) -> bool {
    match agent.evicting {
        Evicting::Idle => false,
        Evicting::Going(..) => true,
        Evicting::JustGone => {
            agent.evicting = Evicting::Idle;
            true
        }
    }
}

/// A container is gone.
pub(crate) fn ended(agent: &mut Agent, id: &ContainerId) {
    if agent.evicting.cause(id).is_some() {
        agent.evicting = Evicting::JustGone;
    }
}

/// Whether a container is ours and neither it nor its executor is terminating.
fn stays(agent: &Agent, id: &ContainerId) -> bool {
    let executor = agent.executors_by_container.get(id.top());
    let executor = executor.and_then(|(framework, executor)| agent.state.executor(framework, executor));
    let launched = agent.state.containers.get(id).map(|container| &container.stage);
    match (executor, launched) {
        (Some(executor), _) if executor.is_ending() => false,
        (_, Some(ContainerStage::Running { .. })) => true,
        (_, Some(ContainerStage::Launching | ContainerStage::Ended(_))) => false,
        (Some(_), None) => id.parent().is_none(),
        (None, None) => false,
    }
}

fn memory_termination(victim: &MemoryUse, machine: &MachineMemory) -> Termination {
    let mb = |bytes: u64| format!("{}MB", bytes / BYTES_PER_MB);
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    let limit = victim.limit_bytes.map_or_else(|| "Infinity".into(), mb);
    let message = format!(
        "Memory request exceeded while the machine was short of memory (available: {}, pressure: {}): \
         Requested: {} Limit: {limit} Used: {}",
        or_unknown(machine.available_bytes.map(mb)),
        or_unknown(machine.pressure.map(|percent| format!("{percent}%"))),
        mb(victim.request_bytes),
        mb(victim.used_bytes),
    );
    termination(Reason::REASON_MEMORY_REQUEST_EXCEEDED, message, ("mem", victim.used_bytes))
}

/// How an evicted container ends: with what it used of what was short.
fn termination(reason: Reason, message: String, (name, used_bytes): (&str, u64)) -> Termination {
    let used = pb::value::Scalar { value: (used_bytes / BYTES_PER_MB) as f64, ..Default::default() };
    let used = pb::Resource {
        name: name.into(),
        r#type: pb::value::Type::SCALAR,
        scalar: used.into(),
        ..Default::default()
    };
    Termination {
        state: Some(TaskState::TASK_FAILED),
        reason: Some(reason),
        message: Some(message),
        limited: Vec::from([used]),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::bookkeeping::Eviction;

    #[test]
    fn memory_is_short_below_threshold_or_under_pressure() {
        let both = Eviction { available_bytes: Some(100), pressure: Some(10.0), disk_available_bytes: None };
        let machine = |available_bytes, pressure| MachineMemory { available_bytes, pressure };
        for (eviction, machine, short) in [
            (both, machine(Some(99), Some(0.0)), true),
            (both, machine(Some(100), Some(9.9)), false),
            (both, machine(Some(100), Some(10.0)), true),
            (both, machine(None, None), false),
            (Eviction { available_bytes: None, ..both }, machine(Some(0), Some(0.0)), false),
            (Eviction { pressure: None, ..both }, machine(Some(100), Some(100.0)), false),
            (Eviction::default(), machine(Some(0), Some(100.0)), false),
        ] {
            assert_eq!(eviction.is_short(&machine), short, "{eviction:?} {machine:?}");
        }
        assert!(both.watches_memory() && !Eviction::default().watches_memory());
    }
}
