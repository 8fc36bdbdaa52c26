//! Operations on agents without operation feedback: sent without an id, and assumed to succeed until something shows otherwise.
//!
//! A RESERVE is confirmed by a task that starts on it; if the agent makes offers without the reservation before, the pod is placed
//! anew. An UNRESERVE is confirmed by time: offers that still have the reservation release it again. So nothing waits for ever.

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState as State;
use tepui_types::AgentId;

use super::obstacle::Obstacle;
use super::record::{Garbage, Record};
use super::{Operation, Out, Scheduler, Timer};
use crate::plan::PodInstance;

/// Prefix of ids of operations without confirmation. They are recorded and never sent.
const ASSUMED: &str = "assumed__";

pub(super) fn is_assumed(operation: &str) -> bool {
    operation.starts_with(ASSUMED)
}

/// Whether the release is under way and will be confirmed.
pub(super) fn is_releasing(garbage: &Garbage) -> bool {
    garbage.operation.as_deref().is_some_and(|operation| !is_assumed(operation))
}

impl Scheduler {
    /// The id of a new operation on an agent. Feedback is expected of agents of which nothing is known.
    pub(super) fn operation_id(&mut self, agent: &AgentId) -> String {
        let id = self.rng.uuid_text();
        match self.agents.get(agent).is_some_and(|facts| facts.lacks_operation_feedback) {
            true => format!("{ASSUMED}{id}"),
            false => id,
        }
    }

    /// A task that started proves the reservations of its launch.
    pub(super) fn confirm_assumed(&mut self, instance: &PodInstance, state: State, out: &mut Out) {
        let has_started = matches!(
            state,
            State::TASK_STARTING | State::TASK_RUNNING | State::TASK_FINISHED | State::TASK_FAILED
        );
        for operation in self.assumed_of(instance).into_iter().filter(|_| has_started) {
            self.on_reserved(instance, &operation, true, out);
        }
    }

    /// The agent makes offers without reservations that were only assumed: the pod is placed anew.
    pub(super) fn reject_assumed(&mut self, instance: &PodInstance, obstacles: &[Obstacle], out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance) else { return };
        let is_missing = |id: &str| {
            obstacles
                .iter()
                .any(|own| matches!(own, Obstacle::NotOffered { id: missing, .. } if missing == id))
        };
        let is_refuted = pod
            .reservations
            .iter()
            .any(|own| own.operation.as_deref().is_some_and(is_assumed) && is_missing(&own.id));
        if is_refuted {
            self.release_pod(instance, out);
            self.recheck.insert(instance.clone());
            self.unfinished = true;
        }
    }

    fn assumed_of(&self, instance: &PodInstance) -> Vec<String> {
        let Some(pod) = self.state.pods.get(instance) else { return Vec::new() };
        let operations = pod.reservations.iter().filter_map(|own| own.operation.as_ref());
        let mut assumed: Vec<String> = operations.filter(|own| is_assumed(own)).cloned().collect();
        assumed.dedup();
        assumed
    }

    /// Each assumed operation is looked at again after a while.
    pub(super) fn watch_assumed(&mut self, now: Now) {
        let assumed = self.operations.range(ASSUMED.to_owned()..).map(|(id, _)| id);
        let timers: Vec<Timer> =
            assumed.take_while(|id| is_assumed(id)).map(|id| Timer::Assumed(id.clone())).collect();
        for timer in timers {
            if self.timers.get(&timer).is_none() {
                self.timers.set(timer, now.mono + self.config.timing.reconcile_max);
            }
        }
    }

    /// What was not offered again is gone, or was never there.
    pub(super) fn on_assumed_timeout(&mut self, operation: &str, out: &mut Out) {
        let is_settled = self.state.connected && self.unreconciled.is_empty();
        match self.operations.get(operation).filter(|_| is_settled).cloned() {
            Some(Operation::Release(garbage)) => self.apply(Record::GarbageForgotten(garbage), out),
            Some(Operation::Reserve(pod, _)) if !self.assumed_of(&pod).iter().any(|own| own == operation) => {
                self.on_reserved(&pod, operation, false, out);
            }
            Some(Operation::Reserve(..)) | None => (),
        }
    }
}
