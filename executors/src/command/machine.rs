//! The command executor's decisions: one task, from LAUNCH to the acknowledgement of its end.
//!
//! Fed by `command`'s hands. Never here: processes, sockets, clocks.

use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tepui_client::executor::Event;
use tepui_client::v1::framework_info::capability;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{KillPolicy, TaskInfo, TaskState, TaskStatus};

use crate::checks::{Checks, Outcome, Probe, Report, Which};
use crate::ending;
use crate::machine::{
    ACKNOWLEDGEMENT_TIMEOUT, Cause, Killing, Machine, Moment, SHUTDOWN_MARGIN, completion_at, has_capability,
    kill_grace,
};
use crate::status::Statuses;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Update(TaskStatus),
    /// Start the task's command; answered by `Spawned`, later by `Ended`.
    Spawn(Box<TaskInfo>),
    /// To the whole tree of the command; nothing if it has ended.
    Signal(Signal),
    /// Answered by `Probed`.
    Probe(Which, Probe),
    Exit(u8),
}

#[derive(Clone, Debug)]
pub enum Happening {
    Spawned(Result<(), String>),
    /// How the command ended, or why that cannot be known.
    Ended(Result<ExitStatus, String>),
    Probed(Which, Outcome),
}

#[derive(Debug)]
pub struct CommandMachine {
    shutdown_grace: Duration,
    reports_killing: bool,
    abandoned: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Active(Box<Active>),
    /// The last update waits for its acknowledgement.
    Reported {
        uuid: [u8; 16],
        give_up_at: Duration,
    },
    Over,
}

#[derive(Debug)]
struct Active {
    task: TaskInfo,
    statuses: Statuses,
    checks: Checks,
    completion_at: Option<Duration>,
    killing: Option<Killing>,
}

impl CommandMachine {
    /// `shutdown_grace` is the time from SHUTDOWN until the agent ends this executor by force.
    pub fn new(shutdown_grace: Duration) -> Self {
        Self { shutdown_grace, reports_killing: false, abandoned: false, phase: Phase::Idle }
    }

    fn launch(&mut self, moment: &mut Moment<'_>, task: TaskInfo, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Idle => (),
            Phase::Active(_) | Phase::Reported { .. } | Phase::Over => {
                let mut statuses = Statuses::new((*task.task_id).clone(), None);
                let mut status = statuses.state(moment.uuid(), TaskState::TASK_FAILED, None);
                status.message = Some("Attempted to run multiple tasks using a \"command\" executor".into());
                out.push(Effect::Update(status));
                return;
            }
        }
        let mut active = Active {
            statuses: Statuses::new((*task.task_id).clone(), None),
            checks: Checks::new(moment.now, &task),
            completion_at: completion_at(moment.now, &task),
            killing: None,
            task,
        };
        out.push(active.update(moment, TaskState::TASK_STARTING));
        out.push(Effect::Spawn(Box::new(active.task.clone())));
        self.phase = Phase::Active(Box::new(active));
    }

    fn spawned(&mut self, moment: &mut Moment<'_>, outcome: Result<(), String>, out: &mut Vec<Effect>) {
        let Phase::Active(active) = &mut self.phase else { return };
        match (outcome, &active.killing) {
            (Ok(()), None) => {
                active.checks = Checks::new(moment.now, &active.task);
                out.push(active.update(moment, TaskState::TASK_RUNNING));
            }
            (Ok(()), Some(_)) => out.push(Effect::Signal(Signal::SIGTERM)), // The kill came first.
            (Err(message), _) => self.end(moment, TaskState::TASK_FAILED, message, out),
        }
    }

    fn kill(
        &mut self,
        moment: &mut Moment<'_>,
        policy: Option<&KillPolicy>,
        cause: Cause,
        out: &mut Vec<Effect>,
    ) {
        let Phase::Active(active) = &self.phase else { return };
        let grace = match cause {
            Cause::OutOfTime => Duration::ZERO,
            Cause::Asked | Cause::Unhealthy => kill_grace(policy, &active.task),
        };
        self.kill_within(moment, grace, cause, out);
    }

    fn kill_within(&mut self, moment: &mut Moment<'_>, grace: Duration, cause: Cause, out: &mut Vec<Effect>) {
        let Phase::Active(active) = &mut self.phase else { return };
        if let Some(killing) = &mut active.killing {
            killing.shorten(grace);
            return;
        }
        active.killing = Some(Killing::new(moment.now, grace, cause));
        active.checks.stop();
        if self.reports_killing && cause != Cause::OutOfTime {
            out.push(active.update(moment, TaskState::TASK_KILLING));
        }
        out.push(Effect::Signal(Signal::SIGTERM));
    }

    fn shutdown(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Effect>) {
        match &self.phase {
            Phase::Idle => self.exit(0, out),
            Phase::Active(_) => {
                let grace = self.shutdown_grace.saturating_sub(SHUTDOWN_MARGIN);
                self.kill_within(moment, grace, Cause::Asked, out);
            }
            Phase::Reported { .. } | Phase::Over => (), // The last update is on its way.
        }
    }

    fn ended(&mut self, moment: &mut Moment<'_>, ending: Result<ExitStatus, String>, out: &mut Vec<Effect>) {
        let Phase::Active(active) = &self.phase else { return };
        let (own_state, message) = match ending {
            Ok(status) => (ending::state(status), ending::describe(status)),
            Err(message) => (TaskState::TASK_FAILED, message),
        };
        let state = match active.killing.as_ref().map(|killing| killing.cause) {
            Some(Cause::OutOfTime) => TaskState::TASK_FAILED,
            Some(Cause::Asked | Cause::Unhealthy) => TaskState::TASK_KILLED,
            None => own_state,
        };
        self.end(moment, state, message, out);
    }

    /// Reports the end of the task and waits for the agent to take note of it.
    fn end(&mut self, moment: &mut Moment<'_>, state: TaskState, message: String, out: &mut Vec<Effect>) {
        let Phase::Active(active) = &mut self.phase else { return };
        let uuid = moment.uuid();
        let mut status = active.statuses.state(uuid, state, active.checks.status());
        status.message = Some(message);
        match active.killing.as_ref().map(|killing| killing.cause) {
            Some(Cause::OutOfTime) => status.reason = Some(Reason::REASON_MAX_COMPLETION_TIME_REACHED),
            Some(Cause::Unhealthy) => status.healthy = Some(false),
            Some(Cause::Asked) | None => (),
        }
        if self.abandoned {
            self.exit(1, out);
            return;
        }
        out.push(Effect::Update(status));
        self.phase = Phase::Reported { uuid, give_up_at: moment.now + ACKNOWLEDGEMENT_TIMEOUT };
    }

    fn probed(&mut self, moment: &mut Moment<'_>, which: Which, outcome: Outcome, out: &mut Vec<Effect>) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(report) = active.checks.take(moment.now, which, outcome) else { return };
        let uuid = moment.uuid();
        out.push(Effect::Update(match report {
            Report::Healthy => active.statuses.health(uuid, true),
            Report::Unhealthy { .. } => active.statuses.health(uuid, false),
            Report::Changed => active.statuses.check(uuid, active.checks.status()),
        }));
        if report == (Report::Unhealthy { kill: true }) {
            self.kill(moment, None, Cause::Unhealthy, out);
        }
    }

    fn exit(&mut self, code: u8, out: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        out.push(Effect::Exit(code));
    }
}

impl Active {
    fn update(&mut self, moment: &mut Moment<'_>, state: TaskState) -> Effect {
        Effect::Update(self.statuses.state(moment.uuid(), state, self.checks.status()))
    }
}

impl Machine for CommandMachine {
    type Happening = Happening;
    type Effect = Effect;

    fn hear(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Subscribed(subscribed) => {
                let capabilities = &subscribed.framework_info.capabilities;
                self.reports_killing = has_capability(capabilities, capability::Type::TASK_KILLING_STATE);
                if let Phase::Active(active) = &mut self.phase {
                    active.checks.resume();
                }
            }
            Event::Disconnected => {
                if let Phase::Active(active) = &mut self.phase {
                    active.checks.pause();
                }
            }
            Event::Launch(task) => self.launch(moment, task, out),
            Event::Kill { task_id, policy } => {
                if matches!(&self.phase, Phase::Active(active) if *active.task.task_id == task_id) {
                    self.kill(moment, policy.as_ref(), Cause::Asked, out);
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

    fn happened(&mut self, moment: &mut Moment<'_>, happening: Happening, out: &mut Vec<Effect>) {
        match happening {
            Happening::Spawned(outcome) => self.spawned(moment, outcome, out),
            Happening::Ended(ending) => self.ended(moment, ending, out),
            Happening::Probed(which, outcome) => self.probed(moment, which, outcome, out),
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
            Phase::Active(active) => {
                if active.killing.as_mut().is_some_and(|killing| killing.escalates(moment.now)) {
                    out.push(Effect::Signal(Signal::SIGKILL));
                }
                let probes = active.checks.due(moment.now).into_iter();
                out.extend(probes.map(|(which, probe)| Effect::Probe(which, probe)));
                if active.completion_at.take_if(|at| *at <= moment.now).is_some() {
                    self.kill(moment, None, Cause::OutOfTime, out);
                }
            }
            Phase::Reported { give_up_at, .. } if *give_up_at <= moment.now => self.exit(1, out),
            Phase::Idle | Phase::Reported { .. } | Phase::Over => (),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Active(active) => {
                let escalate_at = active.killing.as_ref().and_then(|killing| killing.escalate_at);
                let deadlines = [escalate_at, active.completion_at, active.checks.deadline()];
                deadlines.into_iter().flatten().min()
            }
            Phase::Reported { give_up_at, .. } => Some(*give_up_at),
            Phase::Idle | Phase::Over => None,
        }
    }
}

#[cfg(test)]
mod tests;
