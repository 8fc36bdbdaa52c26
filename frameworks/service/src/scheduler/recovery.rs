//! The recovery plan: a phase for each pod that failed, until its tasks are back.

use std::collections::BTreeSet;
use std::sync::Arc;

use tepui_fsm::Now;

use super::record::{OverrideProgress, OverrideTarget, Record};
use super::task::{Life, Task};
use super::{Out, Scheduler, plans};
use crate::plan::{Phase, PodInstance, Progress, Step, StepTask, Strategy, TaskState, Work};
use crate::spec::Goal;

/// Complete phases that stay listed; the oldest go first.
const COMPLETE_PHASES_MAX: usize = 100;

impl Scheduler {
    /// Looks at the pods whose tasks have changed.
    pub(super) fn recover_pods(&mut self, _now: Now, out: &mut Out) {
        for pod in core::mem::take(&mut self.recheck) {
            if !self.state.uninstalling {
                self.forget_obsolete(&pod, out);
                self.recover_pod(&pod);
            }
        }
    }

    /// Tasks that the target has no more are forgotten once they are down; pods that it has no more are decommissioned.
    fn forget_obsolete(&mut self, pod: &PodInstance, out: &mut Out) {
        let Some((_, spec)) = self.target() else { return };
        let Some(own) = spec.pod(&pod.pod).filter(|own| pod.index < own.count).cloned() else { return };
        for task in self.pod_tasks(pod) {
            if own.task(&task.launch.key.task).is_none() && task.life() == Life::Dead {
                self.apply(Record::TaskForgotten(task.launch.key.clone()), out);
            }
        }
    }

    fn recover_pod(&mut self, pod: &PodInstance) {
        let tasks: Vec<Arc<Task>> =
            self.pod_tasks(pod).into_iter().filter(|task| self.is_recoverable(task)).collect();
        // A task that came back after its pod was released runs on reservations that are no longer its own.
        let is_released = !self.state.pods.contains_key(pod);
        let is_failed = |task: &&Arc<Task>| is_released || task.life() != Life::Live;
        let failed: Vec<&Arc<Task>> = tasks.iter().filter(is_failed).collect();
        if failed.is_empty() {
            return self.end_recovery(pod, &tasks);
        }
        // An operator who pauses or resumes a task means this task only.
        let is_asked =
            |task: &Task| task.override_.is_some_and(|own| own.progress == OverrideProgress::Pending);
        let has_essential = failed.iter().any(|task| self.is_essential(task) && !is_asked(task));
        let scope: Vec<&Arc<Task>> = if has_essential { tasks.iter().collect() } else { failed };
        let names: BTreeSet<&str> = scope.iter().map(|task| task.launch.key.task.as_str()).collect();
        if self.open_recovery(pod).is_some_and(|own| names.iter().all(|name| own.contains(*name))) {
            return;
        }
        let step_task = |name: &&str| StepTask {
            name: (*name).to_owned(),
            goal: Goal::Running,
            task_id: None,
            // Delayed as long as its delay, which may be none.
            progress: Progress::Delayed,
        };
        let tasks = names.iter().map(step_task).collect();
        let step = Step::launch(self.rng.uuid_text(), pod.clone(), tasks);
        let phase = Phase::new(self.rng.uuid_text(), step.name.clone(), Strategy::Serial, vec![step]);
        self.put_recovery(pod, phase);
    }

    /// Goal RUNNING, part of the target, and not launched by another plan.
    fn is_recoverable(&self, task: &Task) -> bool {
        let key = &task.launch.key;
        let Some((_, spec)) = self.target() else { return false };
        let is_wanted = spec
            .pod(&key.pod.pod)
            .is_some_and(|pod| key.pod.index < pod.count && pod.task(&key.task).is_some());
        let is_leaving = task.override_.is_some_and(|own| own.target == OverrideTarget::Decommissioned);
        is_wanted && !is_leaving && self.goal(task) == Some(Goal::Running) && !self.is_covered(task)
    }

    /// Whether a step of another plan that is not interrupted is to bring the task up.
    fn is_covered(&self, task: &Task) -> bool {
        let key = &task.launch.key;
        let others = self.state.plans.iter().filter(|plan| plan.name != plans::RECOVERY);
        others.filter(|plan| !plan.is_interrupted() && plan.errors.is_empty()).any(|plan| {
            let steps = plan.steps_of(&key.pod).iter();
            steps.filter_map(|(phase, step)| plan.step(*phase, *step)).any(|step| match &step.work {
                Work::Launch { tasks, .. } => {
                    !step.is_complete() && tasks.iter().any(|own| own.name == key.task)
                }
                Work::KillTask { .. }
                | Work::Unreserve { .. }
                | Work::EraseTask { .. }
                | Work::Deregister { .. } => false,
            })
        })
    }

    fn is_essential(&self, task: &Task) -> bool {
        let key = &task.launch.key;
        let spec = self.state.configurations.get(&task.launch.configuration);
        let own = spec.and_then(|spec| spec.pod(&key.pod.pod)?.task(&key.task));
        own.is_none_or(|task| task.essential)
    }

    /// Tasks of the open recovery of a pod.
    fn open_recovery(&self, pod: &PodInstance) -> Option<BTreeSet<String>> {
        let plan = self.state.plans.iter().find(|plan| plan.name == plans::RECOVERY)?;
        let (phase, step) = plan.steps_of(pod).first()?;
        let step = plan.step(*phase, *step).filter(|step| !step.is_complete())?;
        let Work::Launch { tasks, .. } = &step.work else { return None };
        Some(tasks.iter().map(|task| task.name.clone()).collect())
    }

    /// Replaces the recovery of a pod, if there is one.
    fn put_recovery(&mut self, pod: &PodInstance, phase: Phase) {
        let Some(plan) = self.state.plans.iter_mut().find(|plan| plan.name == plans::RECOVERY) else {
            return;
        };
        let old = plan.steps_of(pod).first().map(|(phase, _)| *phase);
        let mut phases = plan.phases.clone();
        if let Some(old) = old {
            phases.remove(old);
        }
        phases.push(phase);
        let complete = phases.iter().filter(|phase| phase.is_complete()).count();
        let mut surplus = complete.saturating_sub(COMPLETE_PHASES_MAX);
        phases.retain(|phase| {
            let drop = surplus > 0 && phase.is_complete();
            surplus -= usize::from(drop);
            !drop
        });
        plan.set_phases(phases);
        // The places of steps have changed.
        self.known_work.clear();
        self.changed = true;
    }

    /// Tasks that came back without a launch, as those of an agent that was out of contact, need no recovery.
    fn end_recovery(&mut self, pod: &PodInstance, tasks: &[Arc<Task>]) {
        let is_back = |name: &str| {
            let task = tasks.iter().find(|task| task.launch.key.task == name);
            task.is_none_or(|task| task.plan_state() == TaskState::Running { ready: true })
        };
        let Some(names) = self.open_recovery(pod) else { return };
        if !names.iter().all(|name| is_back(name)) {
            return;
        }
        let Some(plan) = self.state.plans.iter_mut().find(|plan| plan.name == plans::RECOVERY) else {
            return;
        };
        for (phase, step) in plan.steps_of(pod).to_vec() {
            plan.update(phase, step, |step| step.set(Progress::Complete));
        }
        self.changed = true;
    }
}
