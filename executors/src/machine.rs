//! What every executor machine is: pure, fed with events of the agent and with what its hands report.

use std::time::Duration;

use tepui_client::executor::Event;
use tepui_client::random;
use tepui_client::shorthand::from_duration_info;
use tepui_client::v1::framework_info::{Capability, capability};
use tepui_client::v1::{KillPolicy, TaskInfo};

/// How long a task has after SIGTERM if no kill policy says otherwise.
pub const KILL_GRACE: Duration = Duration::from_secs(3);
/// The agent ends an executor that stays longer than its shutdown grace period; tasks get this much less.
pub const SHUTDOWN_MARGIN: Duration = Duration::from_secs(2);
/// How long an executor stays for the acknowledgement of its last update.
pub const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The moment of one step: the time since the executor began, and a source of fresh ids.
pub struct Moment<'a> {
    pub now: Duration,
    pub uuid: &'a mut dyn FnMut() -> [u8; 16],
}

impl Moment<'_> {
    pub fn uuid(&mut self) -> [u8; 16] {
        (self.uuid)()
    }

    pub fn uuid_text(&mut self) -> String {
        random::uuid_text(&self.uuid())
    }
}

/// An executor's decisions. Effects are carried out in order.
pub trait Machine {
    /// What the hands report.
    type Happening;
    /// What the hands do.
    type Effect;

    fn hear(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Self::Effect>);

    fn happened(&mut self, moment: &mut Moment<'_>, happening: Self::Happening, out: &mut Vec<Self::Effect>);

    /// The agent is gone for good: nobody hears what this executor says.
    fn abandoned(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Self::Effect>);

    /// Time has passed.
    fn due(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Self::Effect>);

    /// When to call [`Machine::due`].
    fn deadline(&self) -> Option<Duration>;
}

/// The time between SIGTERM and SIGKILL: as the call says, else the task, else the default.
pub fn kill_grace(call: Option<&KillPolicy>, task: &TaskInfo) -> Duration {
    let grace = |policy: &KillPolicy| policy.grace_period.as_option().map(from_duration_info);
    call.and_then(grace).or_else(|| task.kill_policy.as_option().and_then(grace)).unwrap_or(KILL_GRACE)
}

/// When a task that starts now has to be done, if it has such a limit.
pub fn completion_at(now: Duration, task: &TaskInfo) -> Option<Duration> {
    let limit = task.max_completion_time.as_option().map(from_duration_info)?;
    (!limit.is_zero()).then(|| now + limit)
}

pub fn has_capability(capabilities: &[Capability], kind: capability::Type) -> bool {
    capabilities.iter().any(|capability| capability.r#type == Some(kind))
}

/// The kill of one task: when it began, when SIGKILL is due, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killing {
    began_at: Duration,
    /// None once SIGKILL was sent.
    pub escalate_at: Option<Duration>,
    pub cause: Cause,
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

impl Killing {
    pub fn new(now: Duration, grace: Duration, cause: Cause) -> Self {
        Self { began_at: now, escalate_at: Some(now + grace), cause }
    }

    /// A repeated kill can only shorten the time, which counts from the first.
    pub fn shorten(&mut self, grace: Duration) {
        let at = self.began_at + grace;
        self.escalate_at = self.escalate_at.map(|before| before.min(at));
    }

    /// Whether SIGKILL is due now; true once.
    pub fn escalates(&mut self, now: Duration) -> bool {
        self.escalate_at.take_if(|at| *at <= now).is_some()
    }
}
