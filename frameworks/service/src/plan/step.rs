//! A step: one piece of work of a plan, and how far it is.
//!
//! A launch follows the states of the tasks that it launched; all other work is reported done by its executor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::backoff::{Backoff, Millis};
use super::status::Status;
use crate::spec::Goal;

/// Instance of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodInstance {
    pub pod: String,
    pub index: u32,
}

impl PodInstance {
    pub fn name(&self) -> String {
        format!("{}-{}", self.pod, self.index)
    }

    pub fn task_name(&self, task: &str) -> String {
        format!("{}-{}-{task}", self.pod, self.index)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub id: String,
    pub name: String,
    pub work: Work,
    pub errors: Vec<String>,
    /// Environment that `start` of a plan gave.
    pub parameters: BTreeMap<String, String>,
    interrupted: bool,
    /// An operator set its progress.
    is_forced: bool,
    /// Tasks of runs before the last restart: what became of them does not count.
    discarded: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    Launch { pod: PodInstance, tasks: Vec<StepTask> },
    KillTask { task: String, progress: Progress },
    Unreserve { resource: String, progress: Progress },
    EraseTask { task: String, progress: Progress },
    Deregister { progress: Progress },
}

/// A task of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTask {
    /// As in the spec.
    pub name: String,
    pub goal: Goal,
    pub task_id: Option<String>,
    pub progress: Progress,
}

/// In the order in which the least counts for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    Delayed,
    Pending,
    Prepared,
    Starting,
    Started,
    Complete,
}

/// The states of a task that steps tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// TASK_STAGING, TASK_STARTING.
    Starting,
    /// TASK_RUNNING; whether the readiness check passed, or there is none.
    Running {
        ready: bool,
    },
    Finished,
    /// TASK_FAILED, TASK_ERROR.
    Failed,
    /// TASK_KILLED, TASK_KILLING, TASK_LOST, TASK_GONE, TASK_DROPPED, TASK_UNREACHABLE, TASK_UNKNOWN.
    Lost,
    /// TASK_GONE_BY_OPERATOR.
    GoneByOperator,
}

impl Step {
    pub fn launch(id: String, pod: PodInstance, tasks: Vec<StepTask>) -> Step {
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let name = format!("{}:[{}]", pod.name(), names.join(", "));
        Step::new(id, name, Work::Launch { pod, tasks })
    }

    pub fn new(id: String, name: String, work: Work) -> Step {
        Step {
            id,
            name,
            work,
            errors: Vec::new(),
            parameters: BTreeMap::new(),
            interrupted: false,
            is_forced: false,
            discarded: Vec::new(),
        }
    }

    /// A step that is complete stays so until it is restarted.
    pub fn is_complete(&self) -> bool {
        let all = match &self.work {
            Work::Launch { tasks, .. } => tasks.iter().all(|task| task.progress == Progress::Complete),
            Work::KillTask { progress, .. }
            | Work::Unreserve { progress, .. }
            | Work::EraseTask { progress, .. }
            | Work::Deregister { progress } => *progress == Progress::Complete,
        };
        all && self.errors.is_empty()
    }

    /// Delays that are over count as pending.
    pub fn status(&self, now: Millis, backoff: &Backoff) -> Status {
        if !self.errors.is_empty() {
            return Status::Error;
        }
        let status = match self.progress(now, backoff) {
            Progress::Delayed => Status::Delayed,
            Progress::Pending => Status::Pending,
            Progress::Prepared => Status::Prepared,
            Progress::Starting => Status::Starting,
            Progress::Started => Status::Started,
            Progress::Complete => Status::Complete,
        };
        match status {
            Status::Pending | Status::Prepared if self.interrupted => Status::Waiting,
            status => status,
        }
    }

    fn progress(&self, now: Millis, backoff: &Backoff) -> Progress {
        match &self.work {
            Work::Launch { pod, tasks } => {
                let effective = |task: &StepTask| match task.progress {
                    Progress::Delayed if backoff.delayed_until(now, &pod.task_name(&task.name)).is_none() => {
                        Progress::Pending
                    }
                    progress => progress,
                };
                tasks.iter().map(effective).min().unwrap_or(Progress::Complete)
            }
            Work::KillTask { progress, .. }
            | Work::Unreserve { progress, .. }
            | Work::EraseTask { progress, .. }
            | Work::Deregister { progress } => *progress,
        }
    }

    /// Sets the progress of all of the step.
    pub fn set(&mut self, to: Progress) {
        match &mut self.work {
            Work::Launch { tasks, .. } => tasks.iter_mut().for_each(|task| task.progress = to),
            Work::KillTask { progress, .. }
            | Work::Unreserve { progress, .. }
            | Work::EraseTask { progress, .. }
            | Work::Deregister { progress } => *progress = to,
        }
    }

    /// As `set`, by an operator.
    pub fn force(&mut self, to: Progress) {
        self.is_forced = !self.is_complete();
        self.set(to);
    }

    pub fn is_forced(&self) -> bool {
        self.is_forced
    }

    /// Starts again: earlier tasks and failures do not count any more.
    pub fn restart(&mut self, backoff: &mut Backoff) {
        if let Work::Launch { pod, tasks } = &mut self.work {
            self.discarded = tasks.iter_mut().filter_map(|task| task.task_id.take()).collect();
            tasks.iter().for_each(|task| backoff.clear(&pod.task_name(&task.name)));
        }
        self.is_forced = false;
        self.set(Progress::Pending);
    }

    pub fn discarded(&self) -> &[String] {
        &self.discarded
    }

    /// Discards the stored tasks of a step that has launched none; another plan, or an earlier run, may have launched them.
    pub fn discard_stored(&mut self, stored: &dyn Fn(&PodInstance, &str) -> Option<String>) {
        let Work::Launch { pod, tasks } = &self.work else { return };
        let is_pending =
            tasks.iter().all(|task| task.task_id.is_none() && task.progress == Progress::Pending);
        if is_pending {
            let ids = tasks.iter().filter_map(|task| stored(pod, &task.name));
            let new: Vec<String> = ids.filter(|id| !self.discarded.contains(id)).collect();
            self.discarded.extend(new);
        }
    }

    /// Discards tasks that a step was built with.
    pub fn discard(&mut self, ids: &[String]) {
        self.discarded = ids.to_vec();
        let Work::Launch { tasks, .. } = &mut self.work else { return };
        for task in tasks.iter_mut().filter(|task| task.task_id.as_ref().is_some_and(|id| ids.contains(id))) {
            task.task_id = None;
            task.progress = Progress::Pending;
        }
    }

    pub fn hold(&mut self, interrupted: bool) {
        self.interrupted = interrupted;
    }

    /// Offers were evaluated and none fits.
    pub fn on_no_match(&mut self) {
        if let Work::Launch { tasks, .. } = &mut self.work {
            for task in tasks.iter_mut().filter(|task| task.progress <= Progress::Pending) {
                task.progress = Progress::Prepared;
            }
        }
    }

    /// Tasks were launched: name in the spec, and id.
    pub fn on_launch(&mut self, launched: &[(String, String)]) {
        let Work::Launch { tasks, .. } = &mut self.work else { return };
        for (name, id) in launched {
            for task in tasks.iter_mut().filter(|task| task.name == *name) {
                task.task_id = Some(id.clone());
                task.progress = Progress::Starting;
            }
        }
    }

    /// Whether the step launched a task.
    pub fn has_task(&self, task_id: &str) -> bool {
        match &self.work {
            Work::Launch { tasks, .. } => tasks.iter().any(|task| task.task_id.as_deref() == Some(task_id)),
            Work::KillTask { .. }
            | Work::Unreserve { .. }
            | Work::EraseTask { .. }
            | Work::Deregister { .. } => false,
        }
    }

    /// A task changed its state. Tasks that the step did not launch, and complete steps, are not affected.
    pub fn on_task(&mut self, now: Millis, task_id: &str, state: TaskState, backoff: &mut Backoff) {
        if self.is_complete() {
            return;
        }
        let Work::Launch { pod, tasks } = &mut self.work else { return };
        for task in tasks.iter_mut().filter(|task| task.task_id.as_deref() == Some(task_id)) {
            let name = pod.task_name(&task.name);
            task.progress = match (state, task.goal) {
                (TaskState::Starting, _) => Progress::Starting,
                (TaskState::Running { ready: true }, Goal::Running) => {
                    backoff.on_goal(now, &name);
                    Progress::Complete
                }
                (TaskState::Running { .. }, _) => Progress::Started,
                (TaskState::Finished, Goal::Finish | Goal::Once) => Progress::Complete,
                (TaskState::Finished, Goal::Running) | (TaskState::Lost, _) => Progress::Pending,
                (TaskState::Failed, _) => {
                    backoff.on_failure(now, &name);
                    Progress::Delayed
                }
                (TaskState::GoneByOperator, _) => {
                    backoff.clear(&name);
                    Progress::Pending
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::backoff::BackoffPolicy;

    fn step(goals: &[Goal]) -> Step {
        let pod = PodInstance { pod: "node".into(), index: 0 };
        let task = |(index, goal): (usize, &Goal)| StepTask {
            name: format!("t{index}"),
            goal: *goal,
            task_id: None,
            progress: Progress::Pending,
        };
        Step::launch("s".into(), pod, goals.iter().enumerate().map(task).collect())
    }

    #[test]
    fn steps_follow_the_states_of_their_tasks() {
        use TaskState::{Failed, Finished, GoneByOperator, Lost, Running, Starting};
        let cases = [
            (Goal::Running, Starting, Status::Starting),
            (Goal::Running, Running { ready: false }, Status::Started),
            (Goal::Running, Running { ready: true }, Status::Complete),
            (Goal::Running, Finished, Status::Pending),
            (Goal::Running, Failed, Status::Delayed),
            (Goal::Running, Lost, Status::Pending),
            (Goal::Running, GoneByOperator, Status::Pending),
            (Goal::Finish, Running { ready: true }, Status::Started),
            (Goal::Finish, Finished, Status::Complete),
            (Goal::Once, Finished, Status::Complete),
            (Goal::Once, Failed, Status::Delayed),
        ];
        for (goal, state, expected) in cases {
            let (mut step, mut backoff) = (step(&[goal]), Backoff::default());
            step.on_launch(&[("t0".into(), "id".into())]);
            step.on_task(0, "other", Finished, &mut backoff);
            step.on_task(0, "id", state, &mut backoff);
            assert_eq!(step.status(0, &backoff), expected, "{goal:?} {state:?}");
        }
    }

    #[test]
    fn step_status_is_that_of_its_least_advanced_task() {
        let (mut step, mut backoff) = (step(&[Goal::Running, Goal::Once]), Backoff::default());
        assert_eq!((step.name.as_str(), step.status(0, &backoff)), ("node-0:[t0, t1]", Status::Pending));
        step.on_no_match();
        assert_eq!(step.status(0, &backoff), Status::Prepared);
        step.on_launch(&[("t0".into(), "a".into()), ("t1".into(), "b".into())]);
        step.on_task(0, "a", TaskState::Running { ready: true }, &mut backoff);
        assert_eq!(step.status(0, &backoff), Status::Starting);
        step.on_task(0, "b", TaskState::Finished, &mut backoff);
        step.on_task(0, "a", TaskState::Failed, &mut backoff);
        assert_eq!(step.status(0, &backoff), Status::Complete);
        step.errors.push("bad".into());
        assert_eq!(step.status(0, &backoff), Status::Error);
    }

    #[test]
    fn expired_delay_leaves_the_step_pending() {
        let policy = BackoffPolicy { initial_ms: 100, ..BackoffPolicy::default() };
        let (mut step, mut backoff) = (step(&[Goal::Running]), Backoff::new(policy));
        step.on_launch(&[("t0".into(), "a".into())]);
        step.on_task(0, "a", TaskState::Failed, &mut backoff);
        assert_eq!(
            (step.status(99, &backoff), step.status(100, &backoff)),
            (Status::Delayed, Status::Pending)
        );
        step.hold(true);
        assert_eq!(step.status(100, &backoff), Status::Waiting);
        step.hold(false);
        step.on_task(100, "a", TaskState::Failed, &mut backoff);
        step.restart(&mut backoff);
        assert_eq!(step.status(100, &backoff), Status::Pending, "a restart forgets failures");
        step.on_task(100, "a", TaskState::Running { ready: true }, &mut backoff);
        assert_eq!(step.status(100, &backoff), Status::Pending, "and earlier tasks");
    }
}
