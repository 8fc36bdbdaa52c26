//! The quality-of-service controller: which revocable executors go when the machine suffers.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::entities::{lifecycle, status};
use crate::state::bookkeeping::{Load, QosController};
use crate::state::{Cause, Executor, ExecutorPhase, Phase};

/// A new sample of the machine. Executors that are preempted are destroyed at once, as in v1, unless they have a grace
/// period of their own.
pub(crate) fn loaded(agent: &mut Agent, now: Now, load: Load, out: &mut Out) {
    // Executors from before a restart could not be shut down yet.
    let is_running = agent.state.phase == Phase::Running;
    if !is_running || now.mono < agent.oversubscription.corrected_until {
        return;
    }
    let going = corrections(agent, load);
    if going.is_empty() {
        return;
    }
    agent.oversubscription.corrected_until = now.mono + agent.config.qos_correction_interval_min;
    for (framework, id) in going {
        let cause = Cause {
            state: status::lost(agent, &framework, TaskState::TASK_GONE),
            reason: Reason::REASON_CONTAINER_PREEMPTED,
            message: "Container preempted by QoS correction".into(),
        };
        if agent.state.executor(&framework, &id).is_some_and(Executor::has_own_grace) {
            lifecycle::preempt(agent, now, &framework, &id, cause, out);
        } else {
            agent.state.counters.executors_preempted += 1;
            lifecycle::destroy(agent, now, &framework, &id, cause, out);
        }
    }
}

fn corrections(agent: &Agent, load: Load) -> Vec<(FrameworkId, ExecutorId)> {
    let revocable =
        |executor: &&Executor| !executor.is_ending() && !executor.resources().revocable().is_empty();
    let revocable = executors(agent).filter(revocable);
    let key = |executor: &Executor| (executor.framework_id.clone(), executor.id.clone());
    match agent.config.qos_controller {
        QosController::Noop => Vec::new(),
        QosController::Load { five_minutes, fifteen_minutes } => {
            let above = |threshold: Option<f64>, load: f64| threshold.is_some_and(|most| load > most);
            match above(five_minutes, load.five_minutes) || above(fifteen_minutes, load.fifteen_minutes) {
                true => revocable.map(key).collect(),
                false => Vec::new(),
            }
        }
        QosController::Pressure { cpu, memory } => {
            let above = |most: f64, pressure: Option<f64>| pressure.is_some_and(|pressure| pressure > most);
            let is_above = above(cpu, load.cpu_pressure) || above(memory, load.memory_pressure);
            // The effect of the previous correction shows only after its executor has terminated.
            match is_above && !executors(agent).any(is_being_preempted) {
                true => revocable.max_by_key(|executor| executor.added).map(key).into_iter().collect(),
                false => Vec::new(),
            }
        }
    }
}

fn executors(agent: &Agent) -> impl Iterator<Item = &Executor> {
    agent
        .state
        .frameworks
        .values()
        .flat_map(|framework| framework.executors.values())
        .map(|executor| &**executor)
}

fn is_being_preempted(executor: &Executor) -> bool {
    matches!(executor.phase, ExecutorPhase::Terminating { .. }) && executor.preempted().is_some()
}
