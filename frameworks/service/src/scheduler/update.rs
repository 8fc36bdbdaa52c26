//! Statuses of tasks: recorded, given to the plans, acknowledged.

use std::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::Enumeration as _;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState as State;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, TaskId};

use super::record::{Pod, Record, Status, Stray, TaskKey};
use super::session::is_probe;
use super::task::{Life, Task, life, plan_state};
use super::view::Absence;
use super::{Effect, Out, Scheduler, Timer, millis};
use crate::plan::{Plan, PodInstance, TaskState};
use crate::spec::Goal;

/// Tasks that are killed without a record; more are killed when the master reports them again.
const STRAYS_MAX: usize = 10_000;
/// Longest message that is recorded of a status.
const MESSAGE_BYTES_MAX: usize = 4096;

impl Scheduler {
    pub(super) fn on_update(&mut self, now: Now, status: &pb::TaskStatus, out: &mut Out) {
        let id = status.task_id.value.clone();
        *self.state.counters.task_statuses.entry(status.state.proto_name().to_owned()).or_default() += 1;
        self.unreconciled.remove(&id);
        match self.task_ids.get(&id).cloned() {
            Some(key) => self.on_own_update(now, &key, status, out),
            None => self.on_unknown_update(now, status, out),
        }
        if let (Some(uuid), Some(agent)) = (&status.uuid, status.agent_id.as_option()) {
            let (agent, task) = (AgentId::from(agent), TaskId::new(id));
            out.effect(Effect::Acknowledge { agent, task, uuid: uuid.clone() });
        }
    }

    /// A task that was replaced, or of an earlier life of the service: it must not run.
    fn on_unknown_update(&mut self, now: Now, status: &pb::TaskStatus, out: &mut Out) {
        let id = status.task_id.value.as_str();
        match status.agent_id.as_option() {
            Some(agent) if is_agent_gone(status) => return self.forget_agent(&agent.value, out),
            Some(agent) if is_probe(id) => return self.note_absence(&agent.value, status.state),
            Some(_) | None => (),
        }
        self.follow_stray(now, status, out);
    }

    fn follow_stray(&mut self, now: Now, status: &pb::TaskStatus, out: &mut Out) {
        let id = status.task_id.value.as_str();
        match status.state {
            // Its agent was removed: if the task comes back nevertheless, the master reports it.
            State::TASK_UNKNOWN => self.forget_stray(id, out),
            state => match life(state) {
                Life::Live => self.on_stray(now, status, out),
                Life::Unreachable => {
                    self.timers.clear(&Timer::Kill(id.to_owned()));
                    if let Some(stray) = self.state.strays.get(id).cloned() {
                        self.put_stray(Stray { is_back: false, ..(*stray).clone() }, out);
                    }
                }
                Life::Dead => self.forget_stray(id, out),
            },
        }
    }

    fn on_stray(&mut self, now: Now, status: &pb::TaskStatus, out: &mut Out) {
        let id = status.task_id.value.as_str();
        if self.state.strays.size() < STRAYS_MAX || self.state.strays.contains_key(id) {
            let agent = status.agent_id.as_option().map(|agent| agent.value.clone());
            self.put_stray(Stray { task_id: id.to_owned(), agent, is_back: true }, out);
            self.kill_stray(now, id, out);
        }
    }

    fn put_stray(&mut self, stray: Stray, out: &mut Out) {
        if self.state.strays.get(&stray.task_id).is_none_or(|own| **own != stray) {
            self.apply(Record::Stray(Arc::new(stray)), out);
        }
    }

    fn forget_stray(&mut self, id: &str, out: &mut Out) {
        self.timers.clear(&Timer::Kill(id.to_owned()));
        if self.state.strays.contains_key(id) {
            self.apply(Record::StrayForgotten(id.to_owned()), out);
        }
    }

    /// The record of a task that is out of contact and about to have no other.
    pub(super) fn stray_of(&self, key: &TaskKey) -> Option<Record> {
        let task = self.state.tasks.get(key).filter(|task| task.state() == State::TASK_UNREACHABLE)?;
        let agent = Some(task.launch.agent.clone());
        let stray = Stray { task_id: task.launch.task_id.clone(), agent, is_back: false };
        Some(Record::Stray(Arc::new(stray)))
    }

    /// What the master says of an agent that was asked for.
    fn note_absence(&mut self, agent: &str, state: State) {
        let absence = match state {
            State::TASK_UNKNOWN => Some(Absence::Unknown),
            State::TASK_UNREACHABLE => Some(Absence::Unreachable),
            _ => None,
        };
        match absence {
            Some(absence) => self.state.absences.insert_mut(agent.to_owned(), absence),
            None => drop(self.state.absences.remove_mut(agent)),
        }
        self.changed = true;
    }

    /// Kills a task that is not ours any more until it is terminal.
    pub(super) fn kill_stray(&mut self, now: Now, id: &str, out: &mut Out) {
        let Some(stray) = self.state.strays.get(id).filter(|stray| stray.is_back) else { return };
        let agent = stray.agent.as_deref().map(AgentId::new);
        self.timers.set(Timer::Kill(id.to_owned()), now.mono + self.config.timing.kill_retry);
        if self.state.connected {
            out.effect(Effect::Kill { task: TaskId::new(id), agent });
        }
    }

    /// Whether a task of the instance that was replaced out of contact is back and not down yet.
    pub(super) fn has_stray(&self, key: &TaskKey) -> bool {
        self.state.stray_back(key).is_some()
    }

    fn on_own_update(&mut self, now: Now, key: &TaskKey, status: &pb::TaskStatus, out: &mut Out) {
        let Some(task) = self.state.tasks.get(key).cloned() else { return };
        // The master declares the tasks of a machine that is taken down lost, and its agent may return with them.
        if task.state() == State::TASK_LOST {
            return self.follow_stray(now, status, out);
        }
        // Nothing follows other terminal states; and the agent sends one itself, with its reason, until it is acknowledged.
        if task.life() == Life::Dead || is_repeated(status) {
            return;
        }
        let is_requested =
            life(status.state) == Life::Dead && self.timers.clear(&Timer::Kill(status.task_id.value.clone()));
        let is_ready = self.is_ready(&task, status);
        let state = plan_state(status.state, status.reason, is_ready);
        self.advance_plans(now, key, &status.task_id.value, state);
        let record = self.new_status(now, &task, status, is_ready);
        if !is_same(&task.status, &record) {
            self.apply(Record::Status(Arc::new(record)), out);
        }
        self.changed = true;
        if let TaskState::Running { .. } = state {
            self.complete_override(key, out);
        }
        self.confirm_assumed(&key.pod, status.state, out);
        self.on_pod_change(&key.pod, status, out);
        match is_requested {
            true => self.excuse_failure(now, &key.pod, out),
            false => self.follow_failure(now, &key.pod, status.state, out),
        }
        if life(status.state) == Life::Live && !self.state.pods.contains_key(&key.pod) {
            self.kill(now, key, out);
        }
        self.recheck.insert(key.pod.clone());
    }

    /// A readiness check without a result has not passed.
    fn is_ready(&self, task: &Task, status: &pb::TaskStatus) -> bool {
        let key = &task.launch.key;
        let spec = self.state.configurations.get(&task.launch.configuration);
        let own = spec.and_then(|spec| spec.pod(&key.pod.pod)?.task(&key.task));
        let has_check = own.is_some_and(|task| task.readiness_check.is_some()) && !task.is_paused();
        match status.check_status.as_option() {
            Some(check) if has_check => check.command.exit_code == Some(0),
            Some(_) => true,
            None => !has_check,
        }
    }

    fn advance_plans(&mut self, now: Now, key: &TaskKey, id: &str, state: TaskState) {
        let now = millis(now);
        let is_followed = |plan: &Plan| {
            let steps = plan.steps_of(&key.pod).iter();
            steps
                .filter_map(|(phase, step)| plan.step(*phase, *step))
                .any(|step| !step.is_complete() && step.has_task(id))
        };
        let followed = self.state.plans.iter().any(is_followed);
        let name = key.name();
        match state {
            TaskState::Failed if !followed => self.state.backoff.on_crash(now, &name),
            TaskState::GoneByOperator if !followed => self.state.backoff.clear(&name),
            TaskState::Starting
            | TaskState::Running { .. }
            | TaskState::Finished
            | TaskState::Failed
            | TaskState::Lost
            | TaskState::GoneByOperator => (),
        }
        for plan in &mut self.state.plans {
            plan.on_task(now, &key.pod, id, state, &mut self.state.backoff);
        }
    }

    fn new_status(&self, now: Now, task: &Task, status: &pb::TaskStatus, is_ready: bool) -> Status {
        let networks = status.container_status.network_infos.iter();
        let addresses = networks.flat_map(|own| &own.ip_addresses).filter_map(|own| own.ip_address.clone());
        let addresses: Vec<String> = addresses.collect();
        let mut message = status.message.clone().unwrap_or_default();
        if let Some((cut, _)) = message.char_indices().find(|(at, _)| *at >= MESSAGE_BYTES_MAX) {
            message.truncate(cut);
        }
        let delay = self.state.backoff.delay(&task.launch.key.name()).map(|(length, until)| {
            let left = until.saturating_sub(millis(now));
            (length, now.wall.0.saturating_add(left.saturating_mul(1_000_000)))
        });
        Status {
            key: task.launch.key.clone(),
            task_id: task.launch.task_id.clone(),
            state: status.state.proto_name().to_owned(),
            is_ready,
            healthy: status.healthy,
            reason: status.reason.map(|reason| reason.proto_name().to_owned()),
            message,
            // Addresses of the last status that had some stay.
            addresses: if addresses.is_empty() { task.status.addresses.clone() } else { addresses },
            at_ns: now.wall.0,
            delay,
        }
    }

    /// What a status means for the pod and its reservations.
    fn on_pod_change(&mut self, instance: &PodInstance, status: &pb::TaskStatus, out: &mut Out) {
        match status.state {
            State::TASK_GONE_BY_OPERATOR if is_agent_gone(status) => {
                self.forget_agent(&status.agent_id.value, out)
            }
            // The agent is drained to be marked gone, and has its reservations until then: the operator may reactivate it.
            State::TASK_GONE_BY_OPERATOR => {
                if let Some(pod) = self.state.pods.get(instance).cloned() {
                    self.mark_replaced(&pod, out);
                }
            }
            State::TASK_KILLED
            | State::TASK_LOST
            | State::TASK_FAILED
            | State::TASK_GONE
            // A launch that arrived after the drain.
            | State::TASK_DROPPED
                if status.reason == Some(Reason::REASON_AGENT_DRAINING) =>
            {
                self.on_drained(instance, out)
            }
            _ => (),
        }
        self.release_replaced(instance, out);
    }

    /// The agent and all its resources are gone for good: there is nothing to release.
    fn forget_agent(&mut self, agent: &str, out: &mut Out) {
        let pods = self.state.pods.values().filter(|own| own.agent == agent);
        let pods: Vec<PodInstance> = pods.map(|own| own.instance.clone()).collect();
        let garbage = self.state.garbage.values().filter(|own| own.agent == agent);
        let mut batch: Vec<Record> = garbage.map(|own| Record::GarbageForgotten(own.id.clone())).collect();
        let strays = self.state.strays.values().filter(|own| own.agent.as_deref() == Some(agent));
        for stray in strays {
            self.timers.clear(&Timer::Kill(stray.task_id.clone()));
            batch.push(Record::StrayForgotten(stray.task_id.clone()));
        }
        batch.extend(pods.iter().cloned().map(Record::PodForgotten));
        self.state.absences.remove_mut(agent);
        self.recheck.extend(pods);
        if !batch.is_empty() {
            self.apply(Record::Batch(batch), out);
        }
    }

    /// A drained agent does not take tasks back: pods leave it, unless their data is there.
    pub(super) fn on_drained(&mut self, instance: &PodInstance, out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        if pod.reservations.iter().all(|own| own.volume.is_none()) {
            self.mark_replaced(&pod, out);
        }
    }

    pub(super) fn mark_replaced(&mut self, pod: &Pod, out: &mut Out) {
        if !pod.is_replaced {
            self.apply(Record::Pod(Arc::new(Pod { is_replaced: true, ..pod.clone() })), out);
        }
    }

    /// A pod that is to be replaced loses its reservations as soon as nothing of it runs.
    pub(super) fn release_replaced(&mut self, instance: &PodInstance, out: &mut Out) {
        let is_replaced = self.state.pods.get(instance).is_some_and(|pod| pod.is_replaced);
        if is_replaced && self.is_pod_down(instance) {
            self.release_pod(instance, out);
        }
    }

    /// The goal of a task in the configuration that it was launched with.
    pub(super) fn goal(&self, task: &Task) -> Option<Goal> {
        let key = &task.launch.key;
        let spec = self.state.configurations.get(&task.launch.configuration)?;
        Some(spec.pod(&key.pod.pod)?.task(&key.task)?.goal)
    }
}

/// Whether the master says so of the agent. The agent itself reports tasks so while it is drained to be marked gone, also
/// when it registers again.
fn is_agent_gone(status: &pb::TaskStatus) -> bool {
    let is_drained =
        matches!(status.reason, Some(Reason::REASON_AGENT_DRAINING | Reason::REASON_AGENT_REREGISTERED));
    // The master names the executor if it repeats what the agent reported.
    let is_repeated = status.reason == Some(Reason::REASON_RECONCILIATION) && status.executor_id.is_set();
    status.state == State::TASK_GONE_BY_OPERATOR && !is_drained && !is_repeated
}

/// Whether an answer to a reconciliation repeats a terminal state that the agent reports, without the reason that it gives.
fn is_repeated(status: &pb::TaskStatus) -> bool {
    let is_answer = status.reason == Some(Reason::REASON_RECONCILIATION);
    // Of unknown tasks the master names no executor; those of an agent that is gone are reported by the master only.
    // Only the agent's own statuses have a uuid: it reports a launch that it never received with the same reason, and
    // not again after a restart.
    is_answer
        && status.uuid.is_none()
        && life(status.state) == Life::Dead
        && status.executor_id.is_set()
        && !matches!(status.state, State::TASK_GONE_BY_OPERATOR | State::TASK_DROPPED)
}

/// Updates that say nothing new are not recorded again.
fn is_same(old: &Status, new: &Status) -> bool {
    let new = Status { at_ns: old.at_ns, ..new.clone() };
    *old == new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_reconciliations_are_final_unless_the_agent_reports_the_task_itself() {
        for (state, expected) in [
            (State::TASK_FAILED, true),
            (State::TASK_KILLED, true),
            (State::TASK_RUNNING, false),
            (State::TASK_UNREACHABLE, false),
            (State::TASK_GONE_BY_OPERATOR, false),
            (State::TASK_DROPPED, false),
        ] {
            let executor_id = pb::ExecutorID { value: "executor".into(), ..Default::default() }.into();
            let reason = Some(Reason::REASON_RECONCILIATION);
            let answer = pb::TaskStatus { state, reason, executor_id, ..Default::default() };
            assert_eq!(is_repeated(&answer), expected, "{state:?}");
            let reported = pb::TaskStatus { uuid: Some(Vec::from([1])), ..answer };
            assert!(!is_repeated(&reported), "{state:?}");
        }
    }
}
