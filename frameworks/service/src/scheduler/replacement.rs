//! Automatic replacement of pods that fail for too long, with a least time between two replacements.

use std::sync::Arc;
use std::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState as State;

use super::record::{Pod, Record};
use super::task::{Life, life};
use super::{Out, Scheduler, Timer, plans};
use crate::plan::{PodInstance, TaskState};
use crate::spec::{Goal, ReplacementPolicy};

impl Scheduler {
    fn replacement_policy(&self) -> Option<ReplacementPolicy> {
        self.target()?.1.replacement
    }

    /// Notes since when a pod fails, and since when it is ready.
    pub(super) fn follow_failure(&mut self, now: Now, instance: &PodInstance, state: State, out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        let Some(policy) = self.replacement_policy() else { return };
        let is_ready = self.is_pod_ready(instance);
        let mut next: Pod = (*pod).clone();
        if is_ready {
            next.ready_since_ns = next.ready_since_ns.or(Some(now.wall.0));
        } else if life(state) != Life::Live && state != State::TASK_FINISHED {
            // A pod that was ready for a short time fails on: a crash loop does not restart the timer.
            let stable_ns = self.stable_after_ns(instance, policy);
            let was_stable =
                next.ready_since_ns.is_some_and(|since| now.wall.0.saturating_sub(since) >= stable_ns);
            if was_stable || next.failing_since_ns.is_none() {
                next.failing_since_ns = Some(now.wall.0);
            }
            next.ready_since_ns = None;
        }
        self.put_failure(now, &pod, next, out);
    }

    /// A task was killed by request, of an operator or of a plan: this is no failure, and the pod has the whole timeout to be
    /// ready again. In a pod that has failed, the other tasks are killed because of that.
    pub(super) fn excuse_failure(&mut self, now: Now, instance: &PodInstance, out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        if self.replacement_policy().is_none() || self.has_failed(instance) {
            return;
        }
        let next = Pod { failing_since_ns: Some(now.wall.0), ready_since_ns: None, ..(*pod).clone() };
        self.put_failure(now, &pod, next, out);
    }

    /// A new target: timers are those of its policy. Pods that fail already when it gets a policy fail from now on.
    pub(super) fn follow_policy(&mut self, now: Now, is_new: bool, out: &mut Out) {
        if self.replacement_policy().is_none() {
            return;
        }
        let pods: Vec<Arc<Pod>> = self.state.pods.values().cloned().collect();
        for pod in pods {
            let mut next: Pod = (*pod).clone();
            if is_new {
                next.ready_since_ns = self.is_pod_ready(&pod.instance).then_some(now.wall.0);
                next.failing_since_ns = self.has_failed(&pod.instance).then_some(now.wall.0);
            }
            self.put_failure(now, &pod, next, out);
        }
    }

    fn put_failure(&mut self, now: Now, old: &Pod, next: Pod, out: &mut Out) {
        if next != *old {
            self.apply(Record::Pod(Arc::new(next.clone())), out);
        }
        match self.is_pod_ready(&next.instance) {
            true => drop(self.timers.clear(&Timer::Replace(next.instance))),
            false => self.watch_failure(now, &next),
        }
    }

    /// How long a pod has to be ready before a failure counts as a new one: as for the delays of its tasks.
    fn stable_after_ns(&self, instance: &PodInstance, policy: ReplacementPolicy) -> u64 {
        let tasks = self.pod_tasks(instance);
        let stable = tasks.iter().map(|task| self.state.backoff.stable_after(&task.launch.key.name()));
        let stable_ns = stable.max().unwrap_or(0).saturating_mul(1_000_000);
        stable_ns.min(policy.permanent_failure_timeout_secs.saturating_mul(1_000_000_000))
    }

    /// Whether a task with goal RUNNING is down or out of contact, and not because of a kill.
    fn has_failed(&self, instance: &PodInstance) -> bool {
        let tasks = self.pod_tasks(instance);
        tasks
            .iter()
            .filter(|task| self.goal(task) == Some(Goal::Running) && task.life() != Life::Live)
            .any(|task| !matches!(task.state(), State::TASK_KILLED | State::TASK_FINISHED))
    }

    /// Whether all tasks with goal RUNNING are.
    fn is_pod_ready(&self, instance: &PodInstance) -> bool {
        let tasks = self.pod_tasks(instance);
        tasks
            .iter()
            .filter(|task| self.goal(task) == Some(Goal::Running))
            .all(|task| task.plan_state() == TaskState::Running { ready: true })
    }

    /// Sets the timer after which a failing pod is replaced.
    pub(super) fn watch_failure(&mut self, now: Now, pod: &Pod) {
        let (Some(policy), Some(since)) = (self.replacement_policy(), pod.failing_since_ns) else { return };
        let timeout = policy.permanent_failure_timeout_secs.saturating_mul(1_000_000_000);
        let due = since.saturating_add(timeout).max(self.next_replacement_ns(policy));
        let left = Duration::from_nanos(due.saturating_sub(now.wall.0));
        self.timers.set(Timer::Replace(pod.instance.clone()), now.mono + left);
    }

    /// The earliest time of the next automatic replacement.
    fn next_replacement_ns(&self, policy: ReplacementPolicy) -> u64 {
        let last = self.state.properties.get(plans::LAST_REPLACEMENT);
        let last = last.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
        let delay = policy.min_replace_delay_secs.saturating_mul(1_000_000_000);
        last.map_or(0, |last| last.saturating_add(delay))
    }

    pub(super) fn on_replace_timeout(&mut self, now: Now, instance: &PodInstance, out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        let Some(policy) = self.replacement_policy() else { return };
        if pod.is_replaced || self.is_pod_ready(instance) || self.state.uninstalling {
            return;
        }
        if self.next_replacement_ns(policy) > now.wall.0 {
            return self.watch_failure(now, &pod);
        }
        let value = now.wall.0.to_string().into_bytes();
        self.apply(Record::Property(plans::LAST_REPLACEMENT.to_owned(), Some(value.into())), out);
        self.replace_pod(now, instance, out);
    }

    /// Kills what runs of a pod and places it anew.
    pub(super) fn replace_pod(&mut self, now: Now, instance: &PodInstance, out: &mut Out) {
        self.timers.clear(&Timer::Replace(instance.clone()));
        if let Some(pod) = self.state.pods.get(instance).cloned() {
            self.mark_replaced(&pod, out);
        }
        for task in self.pod_tasks(instance) {
            self.clear_delay(&task, out);
            if task.life() == Life::Live {
                self.kill(now, &task.launch.key, out);
            }
        }
        self.release_replaced(instance, out);
        self.recheck.insert(instance.clone());
    }
}
