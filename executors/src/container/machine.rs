//! The decisions of the container executor, from LAUNCH to the acknowledgement of the last update.
//!
//! TASK_STARTING says that the container is there and not started, TASK_RUNNING that it was started. After an exit a restart by the
//! engine or a client is awaited for a moment: it is the same container with the same resources.
//! Never here: sockets, clocks, processes.

use std::time::Duration;

use tepui_client::executor::Event;
use tepui_client::shorthand::from_duration_info;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{KillPolicy, TaskID, TaskInfo, TaskState, TaskStatus};
use tepui_docker::{ContainerReport, ContainerTask, MissingImage};

use crate::machine::{ACKNOWLEDGEMENT_TIMEOUT, Machine, Moment, SHUTDOWN_MARGIN};
use crate::status::Statuses;

/// How long a container that exited may take to be started again before its task terminates.
const RESTART_GRACE: Duration = Duration::from_millis(500);
/// How long an executor waits for its task. An agent that restarts drops a task that it was about to deliver, and not its executor.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Default grace period, as of `docker stop`.
const KILL_GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Update(TaskStatus),
    /// Answered by `Created`.
    Create(Box<ContainerTask>),
    /// Report by `Observed` what happens to the container.
    Follow(String),
    /// Answered by `Inspected`.
    Inspect(String),
    /// Answered by `Started`.
    Start(String),
    Stop(String, Duration),
    /// Answered by `Observed`.
    Remove(String),
    Exit(u8),
}

#[derive(Clone, Debug)]
pub enum IoEvent {
    Created(Result<ContainerReport, NotCreated>),
    Started(Result<(), String>),
    Observed(Observed),
    Inspected(Observed),
    /// SIGTERM: from an agent to which this executor is not connected.
    Terminate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCreated {
    /// The engine has no such image, and the registry requires credentials for it.
    NoImage {
        image: String,
        message: String,
    },
    Failed(String),
}

/// The container's state in the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    Created,
    Running,
    /// The engine starts it again by itself, soon.
    Restarting,
    OutOfMemory,
    Exited {
        code: i64,
        oom_killed: bool,
        error: String,
    },
    /// The engine has removed it.
    Missing,
}

#[derive(Debug)]
pub struct ContainerMachine {
    shutdown_grace: Duration,
    connected: bool,
    abandoned: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// No clock runs while the agent is away.
    Idle {
        give_up_at: Option<Duration>,
    },
    Creating(Hold),
    Following(Hold),
    /// The last update waits for its acknowledgement; no clock runs while the agent is away.
    Reported {
        uuid: [u8; 16],
        give_up_at: Option<Duration>,
    },
    Over,
}

/// A task and its container.
#[derive(Debug)]
struct Hold {
    task_id: TaskID,
    statuses: Statuses,
    start: bool,
    /// The container was there before the task.
    is_adopted: bool,
    kill_grace: Duration,
    /// Known once it is created.
    container: Option<ContainerReport>,
    missing_image: Option<MissingImage>,
    is_running: bool,
    is_killed: bool,
    was_out_of_memory: bool,
    exit: Option<Exit>,
    /// When to look whether it was started again.
    inspect_at: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Exit {
    code: i64,
    error: String,
}

impl ContainerMachine {
    /// `shutdown_grace` is the time from SHUTDOWN until the agent kills this executor.
    pub fn new(shutdown_grace: Duration) -> Self {
        Self { shutdown_grace, connected: false, abandoned: false, phase: Phase::Idle { give_up_at: None } }
    }

    fn launch(&mut self, moment: &mut Moment<'_>, task: TaskInfo, out: &mut Vec<Effect>) {
        let mut statuses = Statuses::new((*task.task_id).clone(), None);
        let mut fail = |message: String, moment: &mut Moment<'_>| {
            let uuid = moment.uuid();
            let status = statuses.state(uuid, TaskState::TASK_FAILED, None);
            (uuid, TaskStatus { message: Some(message), ..status })
        };
        if !matches!(self.phase, Phase::Idle { .. }) {
            let text = "Attempted to run multiple tasks using a \"container\" executor";
            out.push(Effect::Update(fail(text.to_owned(), moment).1));
            return;
        }
        match serde_json::from_slice::<ContainerTask>(task.data.as_deref().unwrap_or_default()) {
            Ok(container) => {
                let policy = task.kill_policy.as_option();
                self.phase = Phase::Creating(Hold {
                    task_id: (*task.task_id).clone(),
                    statuses,
                    start: container.start,
                    is_adopted: container.adopt.is_some(),
                    kill_grace: grace(policy).unwrap_or(KILL_GRACE),
                    container: None,
                    missing_image: None,
                    is_running: false,
                    is_killed: false,
                    was_out_of_memory: false,
                    exit: None,
                    inspect_at: None,
                });
                out.push(Effect::Create(Box::new(container)));
            }
            Err(err) => {
                let (uuid, status) = fail(format!("the data of the task is no container: {err}"), moment);
                out.push(Effect::Update(status));
                self.phase = self.reported(moment, uuid);
            }
        }
    }

    fn created(
        &mut self,
        moment: &mut Moment<'_>,
        outcome: Result<ContainerReport, NotCreated>,
        out: &mut Vec<Effect>,
    ) {
        let Phase::Creating(hold) = &mut self.phase else { return };
        let container = match outcome {
            Ok(container) => container,
            Err(cause) => {
                let state = if hold.is_killed { TaskState::TASK_KILLED } else { TaskState::TASK_FAILED };
                let message = match cause {
                    NotCreated::Failed(message) => message,
                    NotCreated::NoImage { image, message } => {
                        hold.missing_image = Some(MissingImage { missing_image: image });
                        message
                    }
                };
                return self.end(moment, state, None, message, out);
            }
        };
        if hold.is_killed && hold.is_adopted {
            // It stays; if it runs, it is stopped.
            out.push(Effect::Follow(container.id.clone()));
        } else if hold.is_killed {
            // It was not reported: it is removed without an update.
            out.push(Effect::Remove(container.id.clone()));
        } else {
            hold.container = Some(container.clone());
            out.push(Effect::Update(hold.update(moment, TaskState::TASK_STARTING)));
            out.push(Effect::Follow(container.id.clone()));
            out.extend(hold.start.then(|| Effect::Start(container.id.clone())));
        }
        hold.container = Some(container);
        if let Phase::Creating(hold) = std::mem::replace(&mut self.phase, Phase::Over) {
            self.phase = Phase::Following(hold);
        }
    }

    fn observed(&mut self, moment: &mut Moment<'_>, observed: Observed, out: &mut Vec<Effect>) {
        let Phase::Following(hold) = &mut self.phase else { return };
        match observed {
            Observed::Created if hold.is_killed => {
                let message = "Container was not started".to_owned();
                self.end(moment, TaskState::TASK_KILLED, None, message, out);
            }
            Observed::Created | Observed::Restarting => hold.inspect_at = None,
            Observed::OutOfMemory => hold.was_out_of_memory = true,
            Observed::Running => {
                // The answer to the inspection of a kill may be older than the exit.
                hold.inspect_at = hold.inspect_at.filter(|_| hold.is_killed);
                hold.was_out_of_memory = false;
                if !std::mem::replace(&mut hold.is_running, true) {
                    out.push(Effect::Update(hold.update(moment, TaskState::TASK_RUNNING)));
                    out.extend(hold.is_killed.then(|| Effect::Stop(hold.container_id(), hold.kill_grace)));
                }
            }
            Observed::Exited { code, oom_killed, error } => {
                hold.was_out_of_memory |= oom_killed;
                hold.exit = Some(Exit { code, error });
                let pause = if hold.is_killed { Duration::ZERO } else { RESTART_GRACE };
                hold.inspect_at = Some(moment.now + pause);
            }
            Observed::Missing => self.end_removed(moment, out),
        }
    }

    /// The answer after an exit: whether it was started again.
    fn inspected(&mut self, moment: &mut Moment<'_>, observed: Observed, out: &mut Vec<Effect>) {
        let Phase::Following(hold) = &mut self.phase else { return };
        match observed {
            Observed::Exited { code, oom_killed, error } => {
                hold.was_out_of_memory |= oom_killed;
                hold.exit = Some(Exit { code, error });
                self.end_exited(moment, out);
            }
            Observed::Missing
            | Observed::Created
            | Observed::Running
            | Observed::Restarting
            | Observed::OutOfMemory => self.observed(moment, observed, out),
        }
    }

    fn end_removed(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        let Phase::Following(hold) = &self.phase else { return };
        match hold.exit {
            Some(_) => self.end_exited(moment, out),
            None => {
                let message = "Container was removed".to_owned();
                self.end(moment, TaskState::TASK_KILLED, None, message, out);
            }
        }
    }

    fn end_exited(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        let Phase::Following(hold) = &self.phase else { return };
        let Some(exit) = hold.exit.clone() else { return };
        let mut message = format!("Container exited with status {}", exit.code);
        if !exit.error.is_empty() {
            message += &format!(": {}", exit.error);
        }
        let (state, reason) = match (hold.is_killed, hold.was_out_of_memory, exit.code) {
            (true, _, _) => (TaskState::TASK_KILLED, None),
            (false, true, _) => {
                message += ": Memory limit exceeded";
                (TaskState::TASK_FAILED, Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY))
            }
            (false, false, 0) => (TaskState::TASK_FINISHED, None),
            (false, false, _) => (TaskState::TASK_FAILED, Some(Reason::REASON_COMMAND_EXECUTOR_FAILED)),
        };
        self.end(moment, state, reason, message, out);
    }

    fn end(
        &mut self,
        moment: &mut Moment<'_>,
        state: TaskState,
        reason: Option<Reason>,
        message: String,
        out: &mut Vec<Effect>,
    ) {
        let (Phase::Creating(hold) | Phase::Following(hold)) = &mut self.phase else { return };
        if self.abandoned {
            return self.exit(1, out);
        }
        let mut status = hold.update(moment, state);
        let mut uuid = [0; 16];
        uuid.copy_from_slice(status.uuid.as_deref().unwrap_or(&[0; 16]));
        (status.reason, status.message) = (reason, Some(message));
        out.push(Effect::Update(status));
        self.phase = self.reported(moment, uuid);
    }

    fn kill(&mut self, moment: &mut Moment<'_>, grace: Option<Duration>, out: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Creating(hold) => drop(hold.kill(grace)),
            Phase::Following(hold) => match (hold.kill(grace), hold.is_running) {
                (Some(grace), true) => {
                    out.push(Effect::Stop(hold.container_id(), grace));
                    // It may have exited before the kill came.
                    hold.inspect_at = hold.inspect_at.map(|_| moment.now);
                }
                // It may have been started, and the event is not here yet.
                (Some(_), false) => out.push(Effect::Inspect(hold.container_id())),
                (None, _) => (),
            },
            Phase::Idle { .. } | Phase::Reported { .. } | Phase::Over => (),
        }
    }

    fn shutdown(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        match &self.phase {
            Phase::Idle { .. } => self.exit(0, out),
            Phase::Creating(_) | Phase::Following(_) => {
                let grace = self.shutdown_grace.saturating_sub(SHUTDOWN_MARGIN);
                self.kill(moment, Some(grace), out);
            }
            Phase::Reported { .. } | Phase::Over => (), // The last update is on its way.
        }
    }

    fn reported(&self, moment: &Moment<'_>, uuid: [u8; 16]) -> Phase {
        Phase::Reported { uuid, give_up_at: self.connected.then(|| moment.now + ACKNOWLEDGEMENT_TIMEOUT) }
    }

    fn exit(&mut self, code: u8, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        out.push(Effect::Exit(code));
    }
}

impl Hold {
    /// The first kill decides the grace period, a later one may shorten it: SHUTDOWN follows a KILL if the resources are needed
    /// sooner. None if nothing changes.
    fn kill(&mut self, grace: Option<Duration>) -> Option<Duration> {
        let grace = grace.unwrap_or(self.kill_grace);
        let is_first = !std::mem::replace(&mut self.is_killed, true);
        let is_effective = is_first || grace < self.kill_grace;
        if is_effective {
            self.kill_grace = grace;
        }
        is_effective.then_some(grace)
    }

    fn container_id(&self) -> String {
        self.container.as_ref().map(|container| container.id.clone()).unwrap_or_default()
    }

    fn update(&mut self, moment: &mut Moment<'_>, state: TaskState) -> TaskStatus {
        let container = self.container.as_ref().map(serde_json::to_vec);
        let data = container.or_else(|| self.missing_image.as_ref().map(serde_json::to_vec));
        let data = data.map(|data| data.expect("a report is plain data"));
        TaskStatus { data, ..self.statuses.state(moment.uuid(), state, None) }
    }
}

fn grace(policy: Option<&KillPolicy>) -> Option<Duration> {
    policy.and_then(|policy| policy.grace_period.as_option().map(from_duration_info))
}

impl Machine for ContainerMachine {
    type IoEvent = IoEvent;
    type Effect = Effect;

    fn on_event(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Subscribed(_) => {
                self.connected = true;
                match &mut self.phase {
                    Phase::Idle { give_up_at } => *give_up_at = Some(moment.now + LAUNCH_TIMEOUT),
                    Phase::Reported { give_up_at, .. } => {
                        *give_up_at = Some(moment.now + ACKNOWLEDGEMENT_TIMEOUT);
                    }
                    Phase::Creating(_) | Phase::Following(_) | Phase::Over => (),
                }
            }
            Event::Disconnected => {
                self.connected = false;
                if let Phase::Idle { give_up_at } | Phase::Reported { give_up_at, .. } = &mut self.phase {
                    *give_up_at = None;
                }
            }
            Event::Launch(task) => self.launch(moment, task, out),
            Event::Kill { task_id, policy } => {
                if let Phase::Creating(hold) | Phase::Following(hold) = &self.phase
                    && hold.task_id == task_id
                {
                    self.kill(moment, grace(policy.as_ref()), out);
                }
            }
            Event::Acknowledged { uuid: stored, .. } => {
                if matches!(&self.phase, Phase::Reported { uuid, .. } if uuid[..] == stored) {
                    self.exit(0, out);
                }
            }
            Event::LaunchGroup(_) | Event::Shutdown => self.shutdown(moment, out), // It cannot run groups.
            Event::Message(_) | Event::Error(_) => (), // After an error the session ends, see `abandoned`.
        }
    }

    fn on_io_event(&mut self, moment: &mut Moment<'_>, io_event: IoEvent, out: &mut Vec<Effect>) {
        match io_event {
            IoEvent::Created(outcome) => self.created(moment, outcome, out),
            IoEvent::Observed(observed) => self.observed(moment, observed, out),
            IoEvent::Inspected(observed) => self.inspected(moment, observed, out),
            IoEvent::Terminate => self.shutdown(moment, out),
            IoEvent::Started(Ok(())) => (),
            IoEvent::Started(Err(message)) => {
                self.end(moment, TaskState::TASK_FAILED, None, message, out);
            }
        }
    }

    fn abandoned(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        self.abandoned = true;
        match &self.phase {
            Phase::Idle { .. } | Phase::Reported { .. } => self.exit(1, out),
            Phase::Creating(_) | Phase::Following(_) => self.shutdown(moment, out),
            Phase::Over => (),
        }
    }

    fn due(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Following(hold) if hold.inspect_at.is_some_and(|at| at <= moment.now) => {
                hold.inspect_at = None;
                out.extend(hold.container.as_ref().map(|it| Effect::Inspect(it.id.clone())));
            }
            Phase::Idle { give_up_at: Some(at) } | Phase::Reported { give_up_at: Some(at), .. }
                if *at <= moment.now =>
            {
                self.exit(1, out);
            }
            Phase::Idle { .. }
            | Phase::Creating(_)
            | Phase::Following(_)
            | Phase::Reported { .. }
            | Phase::Over => (),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Following(hold) => hold.inspect_at,
            Phase::Idle { give_up_at } | Phase::Reported { give_up_at, .. } => *give_up_at,
            Phase::Creating(_) | Phase::Over => None,
        }
    }
}

#[cfg(test)]
mod tests;
