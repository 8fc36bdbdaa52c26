//! The steps of plans, one after the other, as far as they can go in this turn.

use std::sync::Arc;

use tepui_fsm::{Budget, Now};
use tepui_proto::mesos::v1::TaskState as State;
use tepui_types::{AgentId, TaskId};

use super::record::{OverrideProgress, OverrideTarget, Record};
use super::task::{Life, Task};
use super::view::Absence;
use super::{Effect, Out, Override, ROUNDS_MAX, Scheduler, TaskKey, Timer, millis, plans};
use crate::plan::{self, Candidate, PodInstance, Progress, Work};

impl Scheduler {
    pub(super) fn work(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
        for _ in 0..ROUNDS_MAX {
            self.candidates = plan::candidates(&self.state.plans, millis(now), &self.state.backoff);
            let mut is_done = true;
            for at in 0..self.candidates.len() {
                is_done &= !self.work_on(now, self.candidates[at], out);
                if self.is_finished {
                    return;
                }
                if !budget() {
                    self.unfinished = true;
                    return;
                }
            }
            if is_done {
                return self.note_deployed(out);
            }
        }
        self.unfinished = true;
    }

    /// True if the step is complete now, so that others may go on.
    fn work_on(&mut self, now: Now, candidate: Candidate, out: &mut Out) -> bool {
        let Candidate { plan, phase, step } = candidate;
        let Some(own) = self.state.plans[plan].step(phase, step) else { return false };
        if matches!(&own.work, Work::Launch { pod, .. } if self.is_hopeless(pod)) {
            return false;
        }
        let is_complete = match own.work.clone() {
            Work::Launch { pod, tasks } => {
                self.work_on_launch(now, candidate, &pod, &tasks, out);
                false
            }
            Work::KillTask { task, .. } => self.work_on_kill(now, &task, out),
            Work::Unreserve { resource, .. } => {
                // The pod may have been down before the plan was built.
                let pod = self.owned.get(&resource).filter(|pod| self.is_pod_down(pod)).cloned();
                if let Some(pod) = pod {
                    self.release_pod(&pod, out);
                }
                !self.owned.contains_key(&resource) && self.is_released(&resource)
            }
            Work::EraseTask { task, .. } => self.erase(&task, out),
            Work::Deregister { .. } => {
                self.deregister(out);
                false
            }
        };
        if is_complete {
            self.state.plans[plan].update(phase, step, |step| step.set(Progress::Complete));
            self.changed = true;
        }
        is_complete
    }

    /// Whether a pod is new and all offers were evaluated for its type: the quick answer for thousands of pods that wait.
    fn is_hopeless(&self, pod: &PodInstance) -> bool {
        let last = self.evaluated_new.get(&pod.pod).copied().unwrap_or(0);
        self.offers.next_after(last).is_none()
            && !self.state.pods.contains_key(pod)
            && self.pod_tasks(pod).is_empty()
    }

    /// Whether nothing is left to wait for. What is on an agent that the master has removed is released if the agent comes back.
    fn is_released(&self, resource: &str) -> bool {
        let agent = self.state.garbage.get(resource).map(|own| own.agent.as_str());
        agent.is_none_or(|agent| self.state.absences.get(agent) == Some(&Absence::Unknown))
    }

    /// By the name of the task instance, or by the id of the task.
    fn find_task(&self, name: &str) -> Option<TaskKey> {
        let by_id = self.task_ids.get(name).cloned();
        by_id.or_else(|| self.state.tasks.keys().find(|key| key.name() == name).cloned())
    }

    /// Kills a task that is not needed any more. Its pod loses its reservations once all its tasks are down.
    fn work_on_kill(&mut self, now: Now, name: &str, out: &mut Out) -> bool {
        let Some(key) = self.find_task(name) else { return true };
        // The master has removed the agent of an unknown task: nothing can be waited for. Should the task come back, it is killed.
        let is_over = |task: &Arc<Task>| task.life() == Life::Dead || task.state() == State::TASK_UNKNOWN;
        if self.state.tasks.get(&key).is_none_or(is_over) {
            if self.is_pod_down(&key.pod) {
                self.release_pod(&key.pod, out);
            }
            return true;
        }
        let progress = OverrideProgress::InProgress;
        let own = Override { target: OverrideTarget::Decommissioned, progress };
        self.put_override(&key, Some(own), out);
        self.kill(now, &key, out);
        false
    }

    fn erase(&mut self, name: &str, out: &mut Out) -> bool {
        if let Some(key) = self.find_task(name) {
            let batch = self.stray_of(&key).into_iter().chain([Record::TaskForgotten(key)]).collect();
            self.apply(Record::Batch(batch), out);
        }
        true
    }

    /// Kills a task until it is terminal.
    pub(super) fn kill(&mut self, now: Now, key: &TaskKey, out: &mut Out) {
        let Some(task) = self.state.tasks.get(key) else { return };
        let id = task.launch.task_id.clone();
        if task.life() == Life::Dead || self.timers.get(&Timer::Kill(id.clone())).is_some() {
            return;
        }
        let agent = Some(AgentId::new(task.launch.agent.as_str()));
        self.timers.set(Timer::Kill(id.clone()), now.mono + self.config.timing.kill_retry);
        if self.state.connected {
            out.effect(Effect::Kill { task: TaskId::new(id), agent });
        }
    }

    pub(super) fn on_kill_timeout(&mut self, now: Now, id: &str, out: &mut Out) {
        match self.task_ids.get(id).cloned() {
            Some(key) if !self.state.strays.contains_key(id) => self.kill(now, &key, out),
            Some(_) | None => self.kill_stray(now, id, out),
        }
    }

    /// Remembers that a deployment was complete once: from then on `update` stands in for `deploy`.
    fn note_deployed(&mut self, out: &mut Out) {
        let is_complete =
            self.state.plans.first().is_some_and(|plan| plan.name == "deploy" && plan.is_complete());
        let has_target = self.state.target.is_some() && !self.state.uninstalling;
        if !is_complete || !has_target {
            return;
        }
        if self.state.configurations.size() > 1 {
            self.forget_configurations(out);
        }
        if !self.state.properties.contains_key(plans::LAST_UPDATE) {
            let value = Some(b"DEPLOY".as_slice().into());
            self.apply(Record::Property(plans::LAST_UPDATE.to_owned(), value), out);
        }
    }

    /// Sends TEARDOWN, once for each subscription. Records stay until the master has answered.
    fn deregister(&mut self, out: &mut Out) {
        if !self.state.connected || core::mem::replace(&mut self.is_deregistering, true) {
            return;
        }
        if !self.state.properties.contains_key(plans::DEREGISTERING) {
            let value = Some(b"true".as_slice().into());
            self.apply(Record::Property(plans::DEREGISTERING.to_owned(), value), out);
        }
        out.effect(Effect::Teardown);
    }

    /// The end of an uninstallation: nothing is left on the cluster, and the records only say so. They stay: no scheduler
    /// can know whether the exit of the one before it was seen.
    pub(super) fn finish(&mut self, out: &mut Out) {
        let mut batch: Vec<Record> = self.state.tasks.keys().cloned().map(Record::TaskForgotten).collect();
        batch.extend(self.state.pods.keys().cloned().map(Record::PodForgotten));
        batch.extend(self.state.strays.keys().cloned().map(Record::StrayForgotten));
        batch.extend(self.state.garbage.keys().cloned().map(Record::GarbageForgotten));
        batch.extend(self.state.configurations.keys().cloned().map(Record::ConfigurationForgotten));
        batch.extend(self.state.properties.keys().map(|key| Record::Property(key.clone(), None)));
        batch.extend(self.plan_states.keys().map(|name| Record::Plan(name.clone(), None)));
        let framework_id = self.state.framework_id.clone().unwrap_or_default();
        batch.push(Record::Uninstalled(Some(framework_id.clone())));
        self.apply(Record::Batch(batch), out);
        for plan in &mut self.state.plans {
            plan.phases.iter_mut().for_each(crate::plan::Phase::force_complete);
        }
        self.state.connected = false;
        self.is_finished = true;
        self.timers = tepui_fsm::Deadlines::new();
        out.effect(Effect::Finished(framework_id));
    }
}
