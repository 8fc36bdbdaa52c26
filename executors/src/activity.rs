//! One task of an executor, from its launch to its last update: the part that all executors share.
//!
//! Owned by the executors' machines, which start, signal and wait for the task.

use std::process::ExitStatus;
use std::time::Duration;

use tepui_client::shorthand::from_duration_info;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{ContainerID, KillPolicy, NetworkInfo, TaskInfo, TaskState, TaskStatus};

use crate::checks::{CheckKind, Checks, Outcome, Probe, Report};
use crate::exit;
use crate::machine::Moment;
use crate::status::Statuses;

/// The grace period of a task without a kill policy.
const KILL_GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Activity {
    pub task: TaskInfo,
    /// The grace period if there is no kill policy.
    pub default_grace: Duration,
    checks: Checks,
    is_running: bool,
    statuses: Statuses,
    completion_at: Option<Duration>,
    killing: Option<Killing>,
}

/// The cause of a kill; determines the terminal state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By the framework, by shutdown of the executor, or because another task of the group failed.
    Requested,
    Unhealthy,
    /// It took longer than its max_completion_time.
    CompletionTime,
}

#[derive(Debug)]
struct Killing {
    began_at: Duration,
    /// None once SIGKILL is due or was sent.
    escalate_at: Option<Duration>,
    cause: Cause,
}

/// Actions that are due.
#[derive(Debug, Default)]
pub struct Due {
    pub escalate: bool,
    pub completion_time_reached: bool,
    pub probes: Vec<(CheckKind, Probe)>,
}

impl Activity {
    /// A task that is launched now; `container` if it has its own.
    pub fn new(now: Duration, task: TaskInfo, container: Option<ContainerID>) -> Self {
        let limit = task.max_completion_time.as_option().map(from_duration_info);
        let mut checks = Checks::new(now, &task);
        checks.pause(); // Until it runs.
        Self {
            statuses: Statuses::new((*task.task_id).clone(), container),
            default_grace: KILL_GRACE,
            checks,
            is_running: false,
            completion_at: limit.filter(|limit| !limit.is_zero()).map(|limit| now + limit),
            killing: None,
            task,
        }
    }

    pub fn update(&mut self, moment: &mut Moment<'_>, state: TaskState) -> TaskStatus {
        self.statuses.state(moment.uuid(), state, self.checks.status())
    }

    /// Sets the task's own addresses.
    pub fn reached_at(&mut self, networks: Vec<NetworkInfo>) {
        self.statuses.network_infos = networks;
    }

    /// It runs: its checks begin. None if it is being killed already.
    pub fn running(&mut self, moment: &mut Moment<'_>) -> Option<TaskStatus> {
        if self.killing.is_some() {
            return None;
        }
        self.is_running = true;
        self.checks = Checks::new(moment.now, &self.task);
        Some(self.update(moment, TaskState::TASK_RUNNING))
    }

    /// Checks are paused while the agent is disconnected: their results could not be sent.
    pub fn pause_checks(&mut self) {
        self.checks.pause();
    }

    pub fn resume_checks(&mut self) {
        if self.is_running {
            self.checks.resume();
        }
    }

    /// The grace period between SIGTERM and SIGKILL: that of the call, else of the task, else the default.
    pub fn kill_grace(&self, policy: Option<&KillPolicy>) -> Duration {
        let grace = |policy: &KillPolicy| policy.grace_period.as_option().map(from_duration_info);
        let own = || self.task.kill_policy.as_option().and_then(grace);
        policy.and_then(grace).or_else(own).unwrap_or(self.default_grace)
    }

    /// Begins to kill the task: true if that is new, and a SIGTERM is due. A repeated kill can only shorten the time,
    /// which counts from the first.
    pub fn kill(&mut self, now: Duration, grace: Duration, cause: Cause) -> bool {
        if let Some(killing) = &mut self.killing {
            let at = killing.began_at.saturating_add(grace);
            killing.escalate_at = killing.escalate_at.map(|before| before.min(at));
            return false;
        }
        self.killing = Some(Killing { began_at: now, escalate_at: Some(now.saturating_add(grace)), cause });
        self.checks.stop();
        true
    }

    /// Whether the grace period has expired.
    pub fn is_escalated(&self) -> bool {
        self.killing.as_ref().is_some_and(|killing| killing.escalate_at.is_none())
    }

    /// Ingests the outcome of a check: the update to send, and whether to kill the task.
    pub fn probed(
        &mut self,
        moment: &mut Moment<'_>,
        kind: CheckKind,
        outcome: Outcome,
    ) -> Option<(TaskStatus, bool)> {
        let report = self.checks.take(moment.now, kind, outcome)?;
        let uuid = moment.uuid();
        Some(match report {
            Report::Healthy => (self.statuses.health(uuid, true), false),
            Report::Unhealthy { kill } => (self.statuses.health(uuid, false), kill),
            Report::Changed => (self.statuses.check(uuid, self.checks.status()), false),
        })
    }

    /// The terminal update. `exit` is the exit status of its command, if known.
    pub fn ended(&mut self, uuid: [u8; 16], exit: Option<ExitStatus>, message: String) -> TaskStatus {
        let cause = self.killing.as_ref().map(|killing| killing.cause);
        let state = match (cause, exit) {
            (Some(Cause::CompletionTime), _) => TaskState::TASK_FAILED,
            (Some(Cause::Requested | Cause::Unhealthy), _) => TaskState::TASK_KILLED,
            (None, Some(exit)) => exit::state(exit),
            (None, None) => TaskState::TASK_FAILED,
        };
        let mut status = self.statuses.state(uuid, state, self.checks.status());
        status.message = Some(message);
        match cause {
            Some(Cause::CompletionTime) => status.reason = Some(Reason::REASON_MAX_COMPLETION_TIME_REACHED),
            Some(Cause::Unhealthy) => status.healthy = Some(false),
            Some(Cause::Requested) | None => (),
        }
        status
    }

    pub fn due(&mut self, now: Duration) -> Due {
        let killing = self.killing.as_mut();
        Due {
            escalate: killing.is_some_and(|k| k.escalate_at.take_if(|at| *at <= now).is_some()),
            completion_time_reached: self.completion_at.take_if(|at| *at <= now).is_some(),
            probes: self.checks.due(now),
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        let escalate_at = self.killing.as_ref().and_then(|killing| killing.escalate_at);
        [escalate_at, self.completion_at, self.checks.deadline()].into_iter().flatten().min()
    }
}
