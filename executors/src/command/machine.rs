//! The decisions of executors with one task, from its LAUNCH to the acknowledgement of its terminal update.
//!
//! Driven by `command` and `docker`. Absent: processes, sockets, clocks.

use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tepui_client::executor::Event;
use tepui_client::v1::framework_info::capability;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{NetworkInfo, TaskInfo, TaskResourceLimitation, TaskState, TaskStatus};

use crate::activity::{Activity, Cause};
use crate::checks::{CheckKind, Outcome, Probe};
use crate::exit;
use crate::machine::{ACKNOWLEDGEMENT_TIMEOUT, Machine, Moment, SHUTDOWN_MARGIN, has_capability};
use crate::status::Statuses;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Update(TaskStatus),
    /// Start the task's command; answered by `Spawned`, later by `Ended`.
    Spawn(Box<TaskInfo>),
    /// To the process tree of the command; ignored after its exit.
    Signal(Signal),
    /// Answered by `Probed`.
    Probe(CheckKind, Probe),
    Exit(u8),
}

#[derive(Clone, Debug)]
pub enum IoEvent {
    Spawned(Result<Started, String>),
    /// The exit of the command, or why it is unknown.
    Ended(Result<Ended, String>),
    Probed(CheckKind, Outcome),
}

/// What is known about a command once it runs.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// The `data` field of the status.
    pub data: Option<Vec<u8>>,
    /// Its addresses, if it has its own.
    pub network_infos: Vec<NetworkInfo>,
}

/// The exit of a command.
#[derive(Clone, Debug)]
pub struct Ended {
    pub exit: ExitStatus,
    pub message: String,
    /// Set if the OOM killer killed it, which the exit status does not show.
    pub limited: Option<Limited>,
}

/// The status of a task killed by the OOM killer.
#[derive(Clone, Debug)]
pub struct Limited {
    pub reason: Option<Reason>,
    pub limitation: Option<TaskResourceLimitation>,
}

impl From<ExitStatus> for Ended {
    fn from(exit: ExitStatus) -> Self {
        Self { exit, message: exit::describe(exit), limited: None }
    }
}

#[derive(Debug)]
pub struct CommandMachine {
    kind: &'static str,
    /// Between SIGTERM and SIGKILL; unset: as for every task.
    default_grace: Option<Duration>,
    shutdown_grace: Duration,
    reports_killing: bool,
    connected: bool,
    abandoned: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Active(Box<Activity>),
    /// The last update waits for its acknowledgement; no clock runs while the agent is away.
    Reported {
        uuid: [u8; 16],
        give_up_at: Option<Duration>,
    },
    Over,
}

impl CommandMachine {
    /// `shutdown_grace` is the time from SHUTDOWN until the agent kills this executor.
    pub fn new(kind: &'static str, shutdown_grace: Duration, default_grace: Option<Duration>) -> Self {
        Self {
            kind,
            default_grace,
            shutdown_grace,
            reports_killing: false,
            connected: false,
            abandoned: false,
            phase: Phase::Idle,
        }
    }

    fn launch(&mut self, moment: &mut Moment<'_>, task: TaskInfo, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Idle => (),
            Phase::Active(_) | Phase::Reported { .. } | Phase::Over => {
                let mut statuses = Statuses::new((*task.task_id).clone(), None);
                let mut status = statuses.state(moment.uuid(), TaskState::TASK_FAILED, None);
                let kind = self.kind;
                status.message = Some(format!("Attempted to run multiple tasks using a \"{kind}\" executor"));
                out.push(Effect::Update(status));
                return;
            }
        }
        let mut activity = Activity::new(moment.now, task, None);
        activity.default_grace = self.default_grace.unwrap_or(activity.default_grace);
        out.push(Effect::Update(activity.update(moment, TaskState::TASK_STARTING)));
        out.push(Effect::Spawn(Box::new(activity.task.clone())));
        self.phase = Phase::Active(Box::new(activity));
    }

    fn spawned(&mut self, moment: &mut Moment<'_>, outcome: Result<Started, String>, out: &mut Vec<Effect>) {
        let Phase::Active(activity) = &mut self.phase else { return };
        let started = match outcome {
            Ok(started) => started,
            Err(message) => return self.end(moment, Err(message), out),
        };
        activity.reached_at(started.network_infos);
        out.push(match activity.running(moment) {
            Some(status) => Effect::Update(TaskStatus { data: started.data, ..status }),
            // The kill arrived before the launch completed.
            None if activity.is_escalated() => Effect::Signal(Signal::SIGKILL),
            None => Effect::Signal(Signal::SIGTERM),
        });
    }

    fn kill(&mut self, moment: &mut Moment<'_>, grace: Duration, cause: Cause, out: &mut Vec<Effect>) {
        let Phase::Active(activity) = &mut self.phase else { return };
        if !activity.kill(moment.now, grace, cause) {
            return;
        }
        if self.reports_killing && cause != Cause::CompletionTime {
            out.push(Effect::Update(activity.update(moment, TaskState::TASK_KILLING)));
        }
        out.push(Effect::Signal(Signal::SIGTERM));
    }

    fn shutdown(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        match &self.phase {
            Phase::Idle => self.exit(0, out),
            Phase::Active(_) => {
                let grace = self.shutdown_grace.saturating_sub(SHUTDOWN_MARGIN);
                self.kill(moment, grace, Cause::Requested, out);
            }
            Phase::Reported { .. } | Phase::Over => (), // The terminal update is in flight.
        }
    }

    /// Sends the terminal update and waits for its acknowledgement.
    fn end(&mut self, moment: &mut Moment<'_>, ended: Result<Ended, String>, out: &mut Vec<Effect>) {
        let Phase::Active(activity) = &mut self.phase else { return };
        if self.abandoned {
            return self.exit(1, out);
        }
        let uuid = moment.uuid();
        let (exit, message, limited) = match ended {
            Ok(Ended { exit, message, limited }) => (Some(exit), message, limited),
            Err(message) => (None, message, None),
        };
        let mut status = activity.ended(uuid, exit, message);
        let was_killed = status.state == TaskState::TASK_KILLED || status.reason.is_some();
        if let Some(limited) = limited.filter(|_| !was_killed) {
            status.state = TaskState::TASK_FAILED;
            status.reason = limited.reason;
            status.limitation = limited.limitation.into();
        }
        out.push(Effect::Update(status));
        let give_up_at = self.connected.then(|| moment.now + ACKNOWLEDGEMENT_TIMEOUT);
        self.phase = Phase::Reported { uuid, give_up_at };
    }

    fn probed(&mut self, moment: &mut Moment<'_>, which: CheckKind, outcome: Outcome, out: &mut Vec<Effect>) {
        let Phase::Active(activity) = &mut self.phase else { return };
        let Some((status, kill)) = activity.probed(moment, which, outcome) else { return };
        let grace = activity.kill_grace(None);
        out.push(Effect::Update(status));
        if kill {
            self.kill(moment, grace, Cause::Unhealthy, out);
        }
    }

    fn exit(&mut self, code: u8, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        out.push(Effect::Exit(code));
    }
}

impl Machine for CommandMachine {
    type IoEvent = IoEvent;
    type Effect = Effect;

    fn on_event(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Subscribed(subscribed) => {
                let capabilities = &subscribed.framework_info.capabilities;
                self.reports_killing = has_capability(capabilities, capability::Type::TASK_KILLING_STATE);
                self.connected = true;
                match &mut self.phase {
                    Phase::Active(activity) => activity.resume_checks(),
                    Phase::Reported { give_up_at, .. } => {
                        *give_up_at = Some(moment.now + ACKNOWLEDGEMENT_TIMEOUT);
                    }
                    Phase::Idle | Phase::Over => (),
                }
            }
            Event::Disconnected => {
                self.connected = false;
                match &mut self.phase {
                    Phase::Active(activity) => activity.pause_checks(),
                    Phase::Reported { give_up_at, .. } => *give_up_at = None,
                    Phase::Idle | Phase::Over => (),
                }
            }
            Event::Launch(task) => self.launch(moment, task, out),
            Event::Kill { task_id, policy } => {
                if let Phase::Active(activity) = &self.phase
                    && *activity.task.task_id == task_id
                {
                    let grace = activity.kill_grace(policy.as_ref());
                    self.kill(moment, grace, Cause::Requested, out);
                }
            }
            Event::Acknowledged { uuid: stored, .. } => {
                if matches!(&self.phase, Phase::Reported { uuid, .. } if uuid[..] == stored) {
                    self.exit(0, out);
                }
            }
            Event::LaunchGroup(_) | Event::Shutdown => self.shutdown(moment, out), // It cannot run groups.
            Event::Message(_) | Event::Error(_) => (), // After an error the session closes, see `abandoned`.
        }
    }

    fn on_io_event(&mut self, moment: &mut Moment<'_>, io_event: IoEvent, out: &mut Vec<Effect>) {
        match io_event {
            IoEvent::Spawned(outcome) => self.spawned(moment, outcome, out),
            IoEvent::Ended(ended) => self.end(moment, ended, out),
            IoEvent::Probed(which, outcome) => self.probed(moment, which, outcome, out),
        }
    }

    fn abandoned(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        self.abandoned = true;
        match &self.phase {
            Phase::Idle | Phase::Reported { .. } => self.exit(1, out),
            Phase::Active(_) => self.shutdown(moment, out),
            Phase::Over => (),
        }
    }

    fn due(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Active(activity) => {
                let due = activity.due(moment.now);
                out.extend(due.escalate.then_some(Effect::Signal(Signal::SIGKILL)));
                out.extend(due.probes.into_iter().map(|(which, probe)| Effect::Probe(which, probe)));
                if due.completion_time_reached {
                    self.kill(moment, Duration::ZERO, Cause::CompletionTime, out);
                }
            }
            Phase::Reported { give_up_at: Some(at), .. } if *at <= moment.now => self.exit(1, out),
            Phase::Idle | Phase::Reported { .. } | Phase::Over => (),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Active(activity) => activity.deadline(),
            Phase::Reported { give_up_at, .. } => *give_up_at,
            Phase::Idle | Phase::Over => None,
        }
    }
}

#[cfg(test)]
mod tests;
