//! Terminal states are true: built-in executors report what happened. FINISHED means that the process exited with 0 without
//! a kill, FAILED that it exited otherwise without a kill, KILLED that a kill was requested; and no process of a terminated
//! task is running. Updates of executors of a wiped agent are lost. On the way to the framework a FINISHED is preserved, and
//! no other state becomes FINISHED.

use std::collections::{BTreeMap, BTreeSet};

use tepui_client::executor::Event;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::mesos::v1::{TaskInfo, TaskState, TaskStatus};
use tepui_types::{ContainerId, TaskStateExt, Termination};

use super::{Check, Fact, TaskEnd, short};

#[derive(Debug, Default)]
pub(super) struct TerminalStatesAreTrue {
    /// By the executor's container.
    tasks: BTreeMap<ContainerId, BTreeMap<String, Task>>,
    groups: u64,
    ran: BTreeSet<ContainerId>,
    ended: BTreeMap<ContainerId, Termination>,
    /// The agents of executors' containers; none once that was wiped.
    agents: BTreeMap<ContainerId, usize>,
    /// The states sent by executors, by update.
    sent: BTreeMap<Vec<u8>, TaskState>,
}

#[derive(Debug)]
struct Task {
    group: u64,
    has_time_limit: bool,
    kill_requested: bool,
    /// Its checks may have led to a kill.
    unhealthy: bool,
    /// Set if its process is in its executor's container.
    end: Option<TaskEnd>,
}

impl Check for TerminalStatesAreTrue {
    fn name(&self) -> &'static str {
        "terminal_states_are_true"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ExecutorEvent { container, event } => self.on_event(container, event),
            Fact::TaskEnds { container, task, end } => {
                if let Some(task) = self.task_mut(container, task) {
                    task.end = Some(*end);
                }
            }
            Fact::ProbeFails { container, task } => {
                if let Some(task) = self.task_mut(container, task) {
                    task.unhealthy = true;
                }
            }
            Fact::ContainerRuns { spec, agent } => {
                self.ran.insert(spec.id.clone());
                self.agents.insert(spec.id.clone(), *agent);
            }
            Fact::AgentWiped { agent } => self.agents.retain(|_, at| at != agent),
            Fact::ContainerEnds { id, termination } => {
                self.ended.insert((*id).clone(), (*termination).clone());
            }
            Fact::ExecutorUpdates { executor, container, status, uuid } if status.state.is_terminal() => {
                self.sent.insert(uuid.to_vec(), status.state);
                // The process of a container of Docker is not in its executor's container.
                let is_judged = executor.is_built_in() && !executor.is_holder();
                if is_judged && self.agents.contains_key(*container) {
                    return self.judge(container, status);
                }
            }
            Fact::FrameworkSees { status, .. } if status.state.is_terminal() => return self.compare(status),
            _ => (),
        }
        Ok(())
    }
}

impl TerminalStatesAreTrue {
    fn task_mut(&mut self, container: &ContainerId, task: &str) -> Option<&mut Task> {
        self.tasks.get_mut(container)?.get_mut(task)
    }

    fn on_event(&mut self, container: &ContainerId, event: &Event) {
        match event {
            Event::Launch(task) => self.launch(container, std::slice::from_ref(task)),
            Event::LaunchGroup(tasks) => self.launch(container, tasks),
            Event::Kill { task_id, .. } => {
                if let Some(task) = self.task_mut(container, &task_id.value) {
                    task.kill_requested = true;
                }
            }
            // After an error the executor is disconnected for good and kills its tasks.
            Event::Shutdown | Event::Error(_) => {
                let tasks = self.tasks.get_mut(container).into_iter().flat_map(BTreeMap::values_mut);
                tasks.for_each(|task| task.kill_requested = true);
            }
            Event::Subscribed(_) | Event::Disconnected | Event::Acknowledged { .. } | Event::Message(_) => (),
        }
    }

    fn launch(&mut self, container: &ContainerId, infos: &[TaskInfo]) {
        self.groups += 1;
        for info in infos {
            let task = Task {
                group: self.groups,
                has_time_limit: info.max_completion_time.is_set(),
                kill_requested: false,
                unhealthy: false,
                end: None,
            };
            let tasks = self.tasks.entry(container.clone()).or_default();
            tasks.insert(info.task_id.value.clone(), task);
        }
    }

    /// How a task actually terminated; `None` while it runs.
    fn truth(&self, task: &Task, status: &TaskStatus) -> Option<TaskEnd> {
        let Some(own) = status.container_status.container_id.as_option() else { return task.end };
        let id = ContainerId::from(own);
        match self.ended.get(&id) {
            Some(Termination { reason: Some(_), .. }) => Some(TaskEnd::OutOfMemory),
            Some(Termination { status: Some(status), .. }) => Some(TaskEnd::Exited(*status)),
            Some(_) => Some(TaskEnd::Unknown),
            None if self.ran.contains(&id) => None,
            None => Some(TaskEnd::NotStarted),
        }
    }

    fn judge(&mut self, container: &ContainerId, status: &TaskStatus) -> Result<(), String> {
        let name = &status.task_id.value;
        let Some(task) = self.tasks.get(container).and_then(|tasks| tasks.get(name)) else {
            return Err(format!("{name} ended {:?} in {container}, which never had it", status.state));
        };
        let end = self.truth(task, status);
        if !is_true(task, end, status) {
            let kill = if task.kill_requested { "kill requested" } else { "no kill requested" };
            let end = end.map_or_else(|| "it runs".into(), |end| format!("{end:?}"));
            return Err(format!("{name} is reported as {:?}; actually: {end}, {kill}", status.state));
        }
        // A failure kills the rest of the group.
        let group = task.group;
        if status.state != TaskState::TASK_FINISHED {
            let tasks = self.tasks.get_mut(container).into_iter().flat_map(BTreeMap::values_mut);
            tasks.filter(|other| other.group == group).for_each(|other| other.kill_requested = true);
        }
        Ok(())
    }

    /// An update to the framework was sent by an executor, or is the agent's own report of a task that never ran.
    fn compare(&self, status: &TaskStatus) -> Result<(), String> {
        let Some(uuid) = &status.uuid else { return Ok(()) };
        let finished = |state: TaskState| state == TaskState::TASK_FINISHED;
        let sent = self.sent.get(uuid).copied();
        match sent.map_or(finished(status.state), |sent| finished(sent) != finished(status.state)) {
            true => Err(format!(
                "{} is {:?} ({}) to its framework, its executor sent {sent:?}",
                status.task_id.value,
                status.state,
                short(uuid)
            )),
            false => Ok(()),
        }
    }
}

fn is_true(task: &Task, end: Option<TaskEnd>, status: &TaskStatus) -> bool {
    // It arrived while the executor was exiting.
    if matches!(status.state, TaskState::TASK_LOST | TaskState::TASK_DROPPED) {
        return !status.container_status.is_set();
    }
    let Some(end) = end else { return false };
    let by_itself = !task.kill_requested;
    match status.state {
        TaskState::TASK_FINISHED => by_itself && end == TaskEnd::Exited(0),
        TaskState::TASK_KILLED => task.kill_requested || task.unhealthy,
        TaskState::TASK_FAILED if status.reason == Some(Reason::REASON_MAX_COMPLETION_TIME_REACHED) => {
            task.has_time_limit
        }
        TaskState::TASK_FAILED => match end {
            TaskEnd::OutOfMemory => true,
            TaskEnd::Exited(0) => false,
            TaskEnd::Exited(_) | TaskEnd::NotStarted | TaskEnd::Unknown => by_itself,
        },
        _ => false,
    }
}
