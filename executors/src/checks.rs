//! Health checks and checks of one task: schedule and evaluation.
//!
//! Pure: attempts are made by [`probe`], which returns their outcomes. Used by every executor.

pub(crate) mod probe;

use std::time::Duration;

use tepui_client::v1::network_info::Protocol;
use tepui_client::v1::{CheckInfo, CheckStatusInfo, CommandInfo, HealthCheck, TaskInfo};
use tepui_client::v1::{check_info, check_status_info, health_check};

const DELAY_SECONDS: f64 = 15.0;
const INTERVAL_SECONDS: f64 = 10.0;
const TIMEOUT_SECONDS: f64 = 20.0;
const GRACE_PERIOD_SECONDS: f64 = 10.0;
const CONSECUTIVE_FAILURES: u32 = 3;

/// The two kinds of checks that a task can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckKind {
    Health,
    Check,
}

/// One attempt to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub target: Target,
    /// `None`: no timeout.
    pub timeout: Option<Duration>,
}

/// The target of an attempt. Addresses are those of the loopback interface.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Command(CommandInfo),
    Http { https: bool, ipv6: bool, port: u16, path: String },
    Tcp { ipv6: bool, port: u16 },
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Exited(i32),
    Status(u16),
    Connected(bool),
    /// It ran out of time or could not be carried out: a failure without a value.
    Failed(String),
    /// Inconclusive, for example because the agent was disconnected.
    Skipped,
}

/// A result to report to the framework or to act on.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    Healthy,
    /// `kill` if it has failed too often.
    Unhealthy {
        kill: bool,
    },
    /// The value of the check changed; see [`Checks::status`].
    Changed,
}

/// The checks of one task.
#[derive(Clone, Debug)]
pub struct Checks {
    health: Option<Health>,
    check: Option<Plan>,
    status: Option<CheckStatusInfo>,
    paused: bool,
}

#[derive(Clone, Debug)]
struct Health {
    plan: Plan,
    grace_until: Duration,
    failures_max: u32,
    failures: u32,
    succeeded_once: bool,
}

/// When to make the next attempt of one kind.
#[derive(Clone, Debug)]
struct Plan {
    probe: Probe,
    interval: Duration,
    /// `None` while an attempt is in progress.
    next_at: Option<Duration>,
}

impl Checks {
    /// The checks of a task that starts now.
    pub fn new(now: Duration, task: &TaskInfo) -> Self {
        let check = task.check.as_option();
        Self {
            health: task.health_check.as_option().and_then(|check| Health::new(now, check)),
            check: check.and_then(|check| Plan::of_check(now, check)),
            status: check.map(empty_status),
            paused: false,
        }
    }

    /// The last value of the check, empty before the first; None if the task has no check.
    pub fn status(&self) -> Option<&CheckStatusInfo> {
        self.status.as_ref()
    }

    /// No attempts until [`Checks::resume`]; outcomes are discarded meanwhile.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    pub fn resume(&mut self) {
        self.paused = false;
    }

    /// No attempts any more. The last value stays.
    pub fn stop(&mut self) {
        self.health = None;
        self.check = None;
    }

    pub fn deadline(&self) -> Option<Duration> {
        if self.paused {
            return None;
        }
        let health = self.health.as_ref().and_then(|health| health.plan.next_at);
        let check = self.check.as_ref().and_then(|plan| plan.next_at);
        health.into_iter().chain(check).min()
    }

    /// The attempts to be made now.
    pub fn due(&mut self, now: Duration) -> Vec<(CheckKind, Probe)> {
        if self.paused {
            return Vec::new();
        }
        let health = self.health.as_mut().and_then(|health| health.plan.due(now));
        let check = self.check.as_mut().and_then(|plan| plan.due(now));
        let health = health.map(|probe| (CheckKind::Health, probe));
        health.into_iter().chain(check.map(|probe| (CheckKind::Check, probe))).collect()
    }

    /// Ingests the outcome of an attempt.
    pub fn take(&mut self, now: Duration, kind: CheckKind, outcome: Outcome) -> Option<Report> {
        let paused = self.paused;
        match kind {
            CheckKind::Health => {
                let health = self.health.as_mut()?;
                health.plan.next_at = Some(now + health.plan.interval);
                if paused { None } else { health.take(now, &outcome) }
            }
            CheckKind::Check => {
                let plan = self.check.as_mut()?;
                plan.next_at = Some(now + plan.interval);
                if paused { None } else { self.compare(&outcome) }
            }
        }
    }

    fn compare(&mut self, outcome: &Outcome) -> Option<Report> {
        let value = valued(self.status.as_ref()?, outcome)?;
        if self.status.as_ref() == Some(&value) {
            return None;
        }
        self.status = Some(value);
        Some(Report::Changed)
    }
}

impl Health {
    fn new(now: Duration, check: &HealthCheck) -> Option<Self> {
        let target = health_target(check)?;
        let grace = seconds(check.grace_period_seconds, GRACE_PERIOD_SECONDS);
        Some(Self {
            plan: Plan::new(now, target, check.delay_seconds, check.interval_seconds, check.timeout_seconds),
            grace_until: now + grace,
            failures_max: check.consecutive_failures.unwrap_or(CONSECUTIVE_FAILURES),
            failures: 0,
            succeeded_once: false,
        })
    }

    fn take(&mut self, now: Duration, outcome: &Outcome) -> Option<Report> {
        match outcome {
            Outcome::Skipped => None,
            Outcome::Exited(0) | Outcome::Status(200..400) | Outcome::Connected(true) => {
                let is_news = !self.succeeded_once || self.failures > 0;
                self.succeeded_once = true;
                self.failures = 0;
                is_news.then_some(Report::Healthy)
            }
            // Until it was healthy for the first time, a task has its grace period.
            _ if !self.succeeded_once && now <= self.grace_until => None,
            Outcome::Exited(_) | Outcome::Status(_) | Outcome::Connected(false) | Outcome::Failed(_) => {
                self.failures += 1;
                Some(Report::Unhealthy { kill: self.failures >= self.failures_max })
            }
        }
    }
}

impl Plan {
    fn new(
        now: Duration,
        target: Target,
        delay: Option<f64>,
        interval: Option<f64>,
        timeout: Option<f64>,
    ) -> Self {
        let timeout = seconds(timeout, TIMEOUT_SECONDS);
        Self {
            probe: Probe { target, timeout: (!timeout.is_zero()).then_some(timeout) },
            interval: seconds(interval, INTERVAL_SECONDS),
            next_at: Some(now + seconds(delay, DELAY_SECONDS)),
        }
    }

    fn of_check(now: Duration, check: &CheckInfo) -> Option<Self> {
        let target = check_target(check)?;
        Some(Self::new(now, target, check.delay_seconds, check.interval_seconds, check.timeout_seconds))
    }

    fn due(&mut self, now: Duration) -> Option<Probe> {
        self.next_at.take_if(|at| *at <= now).map(|_| self.probe.clone())
    }
}

fn seconds(value: Option<f64>, default: f64) -> Duration {
    Duration::try_from_secs_f64(value.unwrap_or(default)).unwrap_or(Duration::ZERO)
}

/// `None` for an unknown kind of check, which is never run.
fn health_target(check: &HealthCheck) -> Option<Target> {
    let kind = check.r#type.or_else(|| {
        // Old frameworks leave the type out.
        match (check.command.is_set(), check.http.is_set()) {
            (true, _) => Some(health_check::Type::COMMAND),
            (false, true) => Some(health_check::Type::HTTP),
            (false, false) => None,
        }
    })?;
    match kind {
        health_check::Type::COMMAND => Some(Target::Command(check.command.as_option()?.clone())),
        health_check::Type::HTTP => {
            let http = check.http.as_option()?;
            Some(Target::Http {
                https: http.scheme.as_deref() == Some("https"),
                ipv6: http.protocol == Some(Protocol::IPv6),
                port: u16::try_from(http.port).ok()?,
                path: http.path.clone().unwrap_or_default(),
            })
        }
        health_check::Type::TCP => {
            let tcp = check.tcp.as_option()?;
            let ipv6 = tcp.protocol == Some(Protocol::IPv6);
            Some(Target::Tcp { ipv6, port: u16::try_from(tcp.port).ok()? })
        }
        health_check::Type::UNKNOWN => None,
    }
}

fn check_target(check: &CheckInfo) -> Option<Target> {
    match check.r#type? {
        check_info::Type::COMMAND => Some(Target::Command((*check.command.as_option()?.command).clone())),
        check_info::Type::HTTP => {
            let http = check.http.as_option()?;
            Some(Target::Http {
                https: false,
                ipv6: false,
                port: u16::try_from(http.port).ok()?,
                path: http.path.clone().unwrap_or_default(),
            })
        }
        check_info::Type::TCP => {
            Some(Target::Tcp { ipv6: false, port: u16::try_from(check.tcp.as_option()?.port).ok()? })
        }
        check_info::Type::UNKNOWN => None,
    }
}

/// The value before the first attempt, and after a failed one.
fn empty_status(check: &CheckInfo) -> CheckStatusInfo {
    let mut status = CheckStatusInfo { r#type: check.r#type, ..Default::default() };
    match check.r#type {
        Some(check_info::Type::COMMAND) => status.command = check_status_info::Command::default().into(),
        Some(check_info::Type::HTTP) => status.http = check_status_info::Http::default().into(),
        Some(check_info::Type::TCP) => status.tcp = check_status_info::Tcp::default().into(),
        Some(check_info::Type::UNKNOWN) | None => (),
    }
    status
}

/// The value of an outcome; `None` if it is inconclusive.
fn valued(last: &CheckStatusInfo, outcome: &Outcome) -> Option<CheckStatusInfo> {
    let mut status = empty_status(&CheckInfo { r#type: last.r#type, ..Default::default() });
    match outcome {
        Outcome::Exited(code) => status.command.get_or_insert_default().exit_code = Some(*code),
        Outcome::Status(code) => status.http.get_or_insert_default().status_code = Some(u32::from(*code)),
        Outcome::Connected(connected) => status.tcp.get_or_insert_default().succeeded = Some(*connected),
        Outcome::Failed(_) => (),
        Outcome::Skipped => return None,
    }
    Some(status)
}

#[cfg(test)]
mod tests;
