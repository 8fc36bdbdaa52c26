//! The default executor's decisions: groups of tasks, each task in a nested container of the agent.
//!
//! Fed by `default`. Absent: processes, sockets, clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tepui_client::executor::Event;
use tepui_client::v1::agent::response::WaitNestedContainer;
use tepui_client::v1::executor::event::Subscribed;
use tepui_client::v1::framework_info::capability;
use tepui_client::v1::{ContainerID, KillPolicy, TaskInfo, TaskState, TaskStatus};

use crate::activity::{Activity, Cause};
use crate::checks::{CheckKind, Outcome, Probe, Target};
use crate::exit;
use crate::machine::{ACKNOWLEDGEMENT_TIMEOUT, Machine, Moment, SHUTDOWN_MARGIN, has_capability};
use crate::status::Statuses;

const NO_INFORMATION: &str = "Unable to retrieve command's termination information";

/// Tasks are known by their id's text.
pub type Id = String;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Update(TaskStatus),
    /// Answered by `Launched`.
    Launch(Box<TaskInfo>, ContainerID),
    /// Show the container's sandbox under the task's name.
    Link(Id, ContainerID),
    /// Answered by `Waited` when the container has terminated.
    Wait(Id, ContainerID),
    Kill(ContainerID, Signal),
    /// Answered by `Probed`.
    Probe(Id, ContainerID, CheckKind, Probe),
    Exit(u8),
}

#[derive(Clone, Debug)]
pub enum IoEvent {
    Launched(Id, Result<(), String>),
    Waited(Id, Waited),
    Probed(Id, CheckKind, Outcome),
}

/// What became of a container.
#[derive(Clone, Debug)]
pub enum Waited {
    Ended(Box<WaitNestedContainer>),
    /// The container is unknown to the agent.
    Unknown,
    /// The agent rejected the call.
    Failed(String),
}

#[derive(Debug)]
pub struct DefaultMachine {
    shutdown_grace: Duration,
    reports_killing: bool,
    reports_dropped: bool,
    /// The executor's own container, the parent of all others.
    container: Option<ContainerID>,
    groups: u64,
    tasks: BTreeMap<Id, Task>,
    /// Terminal updates that are not acknowledged.
    unacknowledged: BTreeSet<[u8; 16]>,
    shutting_down: bool,
    connected: bool,
    /// Deadline for acknowledgements after the last task has terminated; suspended while the agent is disconnected.
    leave_at: Option<Duration>,
}

#[derive(Debug)]
struct Task {
    activity: Activity,
    container: ContainerID,
    group: u64,
    launched: bool,
}

impl DefaultMachine {
    /// `shutdown_grace` is the time from SHUTDOWN until the agent kills this executor.
    pub fn new(shutdown_grace: Duration) -> Self {
        Self {
            shutdown_grace,
            reports_killing: false,
            reports_dropped: false,
            container: None,
            groups: 0,
            tasks: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            shutting_down: false,
            connected: false,
            leave_at: None,
        }
    }

    fn subscribed(&mut self, now: Duration, subscribed: &Subscribed) {
        let capabilities = &subscribed.framework_info.capabilities;
        self.reports_killing = has_capability(capabilities, capability::Type::TASK_KILLING_STATE);
        self.reports_dropped = has_capability(capabilities, capability::Type::PARTITION_AWARE);
        self.container = subscribed.container_id.as_option().cloned();
        for task in self.tasks.values_mut() {
            task.activity.resume_checks();
        }
        self.connected = true;
        if self.tasks.is_empty() && !self.unacknowledged.is_empty() {
            self.leave_at = Some(now + ACKNOWLEDGEMENT_TIMEOUT);
        }
    }

    fn launch_group(&mut self, moment: &mut Moment<'_>, tasks: Vec<TaskInfo>, out: &mut Vec<Effect>) {
        let parent = match &self.container {
            Some(parent) if !self.shutting_down => parent.clone(),
            Some(_) | None => return self.drop_group(moment, tasks, out),
        };
        self.groups += 1;
        self.leave_at = None;
        for info in tasks {
            let container = ContainerID {
                value: moment.uuid_text(),
                parent: parent.clone().into(),
                ..Default::default()
            };
            let mut activity = Activity::new(moment.now, info, Some(container.clone()));
            let id = activity.task.task_id.value.clone();
            out.push(Effect::Update(activity.update(moment, TaskState::TASK_STARTING)));
            out.push(Effect::Launch(Box::new(activity.task.clone()), container.clone()));
            self.tasks.insert(id, Task { activity, container, group: self.groups, launched: false });
        }
    }

    /// A group that cannot be run: all of its tasks are reported as never started.
    fn drop_group(&mut self, moment: &mut Moment<'_>, tasks: Vec<TaskInfo>, out: &mut Vec<Effect>) {
        let state = match self.reports_dropped {
            true => TaskState::TASK_DROPPED,
            false => TaskState::TASK_LOST,
        };
        for info in tasks {
            let mut statuses = Statuses::new((*info.task_id).clone(), None);
            let uuid = moment.uuid();
            let mut status = statuses.state(uuid, state, None);
            status.message = Some("Executor is shutting down or has no container".into());
            out.push(Effect::Update(status));
            self.unacknowledged.insert(uuid);
        }
    }

    fn launched(
        &mut self,
        moment: &mut Moment<'_>,
        id: Id,
        outcome: Result<(), String>,
        out: &mut Vec<Effect>,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if let Err(message) = outcome {
            return self.ended(moment, id, TaskEnd::not_launched(message), out);
        }
        task.launched = true;
        out.push(Effect::Link(id.clone(), task.container.clone()));
        out.push(match task.activity.running(moment) {
            Some(status) => Effect::Update(status),
            // The kill arrived before the launch completed.
            None if task.activity.is_escalated() => Effect::Kill(task.container.clone(), Signal::SIGKILL),
            None => Effect::Kill(task.container.clone(), Signal::SIGTERM),
        });
        out.push(Effect::Wait(id, task.container.clone()));
    }

    fn kill(
        &mut self,
        moment: &mut Moment<'_>,
        id: &Id,
        policy: Option<&KillPolicy>,
        cause: Cause,
        out: &mut Vec<Effect>,
    ) {
        let longest = match self.shutting_down {
            true => self.shutdown_grace.saturating_sub(SHUTDOWN_MARGIN),
            false => Duration::MAX,
        };
        let Some(task) = self.tasks.get_mut(id) else { return };
        let grace = match cause {
            Cause::CompletionTime => Duration::ZERO,
            Cause::Requested | Cause::Unhealthy => task.activity.kill_grace(policy).min(longest),
        };
        if !task.activity.kill(moment.now, grace, cause) {
            return;
        }
        if self.reports_killing && cause != Cause::CompletionTime {
            out.push(Effect::Update(task.activity.update(moment, TaskState::TASK_KILLING)));
        }
        if task.launched {
            out.push(Effect::Kill(task.container.clone(), Signal::SIGTERM));
        }
    }

    fn shutdown(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        self.shutting_down = true;
        let ids: Vec<Id> = self.tasks.keys().cloned().collect();
        for id in ids {
            self.kill(moment, &id, None, Cause::Requested, out);
        }
        self.leave_if_done(moment.now, out);
    }

    /// Sends the terminal update of a task; a failure kills the rest of its group.
    fn ended(&mut self, moment: &mut Moment<'_>, id: Id, end: TaskEnd, out: &mut Vec<Effect>) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        let uuid = moment.uuid();
        let status = end.status(&mut task.activity, uuid);
        let is_bad = status.state != TaskState::TASK_FINISHED;
        out.push(Effect::Update(status));
        self.unacknowledged.insert(uuid);
        if is_bad {
            let group = self.tasks.iter().filter(|(_, other)| other.group == task.group);
            let ids: Vec<Id> = group.map(|(id, _)| id.clone()).collect();
            for id in ids {
                self.kill(moment, &id, None, Cause::Requested, out);
            }
        }
        self.leave_if_done(moment.now, out);
    }

    /// Exits once all tasks have terminated and their updates are acknowledged or the deadline has passed.
    fn leave_if_done(&mut self, now: Duration, out: &mut Vec<Effect>) {
        if !self.tasks.is_empty() {
            return;
        }
        if self.unacknowledged.is_empty() {
            out.push(Effect::Exit(0));
        } else if self.leave_at.is_some_and(|at| at <= now) {
            out.push(Effect::Exit(1));
        } else if self.connected {
            self.leave_at.get_or_insert(now + ACKNOWLEDGEMENT_TIMEOUT);
        }
    }

    fn probed(
        &mut self,
        moment: &mut Moment<'_>,
        id: Id,
        which: CheckKind,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some((status, kill)) = task.activity.probed(moment, which, outcome) else { return };
        out.push(Effect::Update(status));
        if kill {
            self.kill(moment, &id, None, Cause::Unhealthy, out);
        }
    }
}

/// The command of a check runs in the environment of its task, overlaid by its own.
fn in_environment(task: &TaskInfo, mut probe: Probe) -> Probe {
    if let Target::Command(command) = &mut probe.target {
        let mut variables = task.command.environment.variables.clone();
        let own = &mut command.environment.get_or_insert_default().variables;
        variables.retain(|variable| own.iter().all(|own| own.name != variable.name));
        variables.append(own);
        *own = variables;
    }
    probe
}

/// The termination of a task, as far as it is known.
struct TaskEnd {
    exit: Option<ExitStatus>,
    message: String,
    answer: WaitNestedContainer,
}

impl TaskEnd {
    fn not_launched(message: String) -> Self {
        Self { exit: None, message, answer: WaitNestedContainer::default() }
    }

    fn of(waited: Waited) -> Self {
        match waited {
            Waited::Ended(answer) => {
                let exit = answer.exit_status.map(ExitStatus::from_raw);
                let message = exit.map_or_else(|| NO_INFORMATION.to_owned(), exit::describe);
                Self { exit, message, answer: *answer }
            }
            Waited::Unknown => Self::not_launched(NO_INFORMATION.to_owned()),
            Waited::Failed(message) => Self::not_launched(message),
        }
    }

    /// The terminal update. State and reason of the agent take precedence, such as an OOM kill.
    fn status(self, activity: &mut Activity, uuid: [u8; 16]) -> TaskStatus {
        let message = match &self.answer.message {
            Some(answer) => format!("{}: {answer}", self.message),
            None => self.message,
        };
        let mut status = activity.ended(uuid, self.exit, message);
        status.state = self.answer.state.unwrap_or(status.state);
        status.reason = self.answer.reason.or(status.reason);
        status.limitation = self.answer.limitation;
        status
    }
}

impl Machine for DefaultMachine {
    type IoEvent = IoEvent;
    type Effect = Effect;

    fn on_event(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Subscribed(subscribed) => self.subscribed(moment.now, &subscribed),
            Event::Disconnected => {
                self.connected = false;
                self.leave_at = None;
                for task in self.tasks.values_mut() {
                    task.activity.pause_checks();
                }
            }
            Event::LaunchGroup(tasks) => self.launch_group(moment, tasks, out),
            Event::Kill { task_id, policy } => {
                self.kill(moment, &task_id.value, policy.as_ref(), Cause::Requested, out);
            }
            Event::Acknowledged { uuid, .. } => {
                let known = <[u8; 16]>::try_from(uuid).is_ok_and(|uuid| self.unacknowledged.remove(&uuid));
                if known {
                    self.leave_if_done(moment.now, out);
                }
            }
            Event::Launch(_) | Event::Shutdown => self.shutdown(moment, out), // It runs groups only.
            Event::Message(_) | Event::Error(_) => (), // After an error the session closes, see `abandoned`.
        }
    }

    fn on_io_event(&mut self, moment: &mut Moment<'_>, io_event: IoEvent, out: &mut Vec<Effect>) {
        match io_event {
            IoEvent::Launched(id, outcome) => self.launched(moment, id, outcome, out),
            IoEvent::Waited(id, waited) => self.ended(moment, id, TaskEnd::of(waited), out),
            IoEvent::Probed(id, which, outcome) => self.probed(moment, id, which, outcome, out),
        }
    }

    /// Without the agent containers cannot be killed; they die with this executor.
    fn abandoned(&mut self, _: &mut Moment<'_>, out: &mut Vec<Effect>) {
        out.push(Effect::Exit(1));
    }

    fn due(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        let mut completion_time_reached = Vec::new();
        for (id, task) in &mut self.tasks {
            let due = task.activity.due(moment.now);
            if due.escalate && task.launched {
                out.push(Effect::Kill(task.container.clone(), Signal::SIGKILL));
            }
            for (which, probe) in due.probes {
                let probe = in_environment(&task.activity.task, probe);
                out.push(Effect::Probe(id.clone(), task.container.clone(), which, probe));
            }
            completion_time_reached.extend(due.completion_time_reached.then(|| id.clone()));
        }
        for id in completion_time_reached {
            self.kill(moment, &id, None, Cause::CompletionTime, out);
        }
        if self.leave_at.is_some_and(|at| at <= moment.now) {
            self.leave_if_done(moment.now, out);
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.tasks.values().filter_map(|task| task.activity.deadline()).chain(self.leave_at).min()
    }
}

#[cfg(test)]
mod tests;
