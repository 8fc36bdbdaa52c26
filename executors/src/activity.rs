//! One task of an executor, from its launch to its last update: what every executor does alike.
//!
//! Owned by the executors' machines, which add how a task is started, signalled and waited for.

use std::process::ExitStatus;
use std::time::Duration;

use tepui_client::shorthand::from_duration_info;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{ContainerID, KillPolicy, NetworkInfo, TaskInfo, TaskState, TaskStatus};

use crate::checks::{Checks, Outcome, Probe, Report, Which};
use crate::ending;
use crate::machine::Moment;
use crate::status::Statuses;

/// How long a task has after SIGTERM if no kill policy says otherwise.
const KILL_GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Activity {
    pub task: TaskInfo,
    /// How long it has after SIGTERM if no kill policy says otherwise.
    pub default_grace: Duration,
    checks: Checks,
    is_running: bool,
    statuses: Statuses,
    completion_at: Option<Duration>,
    killing: Option<Killing>,
}

/// Why a task is killed; decides in which state it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The framework asked, the executor shuts down, or another task of the group ended badly.
    Asked,
    Unhealthy,
    /// It took longer than its max_completion_time.
    OutOfTime,
}

#[derive(Debug)]
struct Killing {
    began_at: Duration,
    /// None once SIGKILL is due or was sent.
    escalate_at: Option<Duration>,
    cause: Cause,
}

/// What the passing of time asks for.
#[derive(Debug, Default)]
pub struct Due {
    pub escalate: bool,
    pub out_of_time: bool,
    pub probes: Vec<(Which, Probe)>,
}

impl Activity {
    /// A task that is launched now; `container` if it gets one of its own.
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

    /// It has addresses of its own.
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

    /// The agent is away: nobody could be told what checks say.
    pub fn pause_checks(&mut self) {
        self.checks.pause();
    }

    pub fn resume_checks(&mut self) {
        if self.is_running {
            self.checks.resume();
        }
    }

    /// The time between SIGTERM and SIGKILL: as the call says, else the task, else the default.
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

    /// Whether the time after SIGTERM is over.
    pub fn is_escalated(&self) -> bool {
        self.killing.as_ref().is_some_and(|killing| killing.escalate_at.is_none())
    }

    /// Takes in what came of a check: the update to send, and whether the task is to be killed for it.
    pub fn probed(
        &mut self,
        moment: &mut Moment<'_>,
        which: Which,
        outcome: Outcome,
    ) -> Option<(TaskStatus, bool)> {
        let report = self.checks.take(moment.now, which, outcome)?;
        let uuid = moment.uuid();
        Some(match report {
            Report::Healthy => (self.statuses.health(uuid, true), false),
            Report::Unhealthy { kill } => (self.statuses.health(uuid, false), kill),
            Report::Changed => (self.statuses.check(uuid, self.checks.status()), false),
        })
    }

    /// The last update. `exit` is how its command ended, if that is known.
    pub fn ended(&mut self, uuid: [u8; 16], exit: Option<ExitStatus>, message: String) -> TaskStatus {
        let cause = self.killing.as_ref().map(|killing| killing.cause);
        let state = match (cause, exit) {
            (Some(Cause::OutOfTime), _) => TaskState::TASK_FAILED,
            (Some(Cause::Asked | Cause::Unhealthy), _) => TaskState::TASK_KILLED,
            (None, Some(exit)) => ending::state(exit),
            (None, None) => TaskState::TASK_FAILED,
        };
        let mut status = self.statuses.state(uuid, state, self.checks.status());
        status.message = Some(message);
        match cause {
            Some(Cause::OutOfTime) => status.reason = Some(Reason::REASON_MAX_COMPLETION_TIME_REACHED),
            Some(Cause::Unhealthy) => status.healthy = Some(false),
            Some(Cause::Asked) | None => (),
        }
        status
    }

    pub fn due(&mut self, now: Duration) -> Due {
        let killing = self.killing.as_mut();
        Due {
            escalate: killing.is_some_and(|k| k.escalate_at.take_if(|at| *at <= now).is_some()),
            out_of_time: self.completion_at.take_if(|at| *at <= now).is_some(),
            probes: self.checks.due(now),
        }
    }

    pub fn deadline(&self) -> Option<Duration> {
        let escalate_at = self.killing.as_ref().and_then(|killing| killing.escalate_at);
        [escalate_at, self.completion_at, self.checks.deadline()].into_iter().flatten().min()
    }
}
