//! The trait of executor machines: pure, with events of the agent and of the I/O part as input.

use std::time::Duration;

use tepui_client::executor::Event;
use tepui_client::random;
use tepui_client::v1::framework_info::{Capability, capability};

/// The agent kills an executor that exceeds its shutdown grace period; tasks get this much less.
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
    /// Events of the I/O part.
    type IoEvent;
    /// Performed by the I/O part.
    type Effect;

    fn on_event(&mut self, moment: &mut Moment<'_>, event: Event, out: &mut Vec<Self::Effect>);

    fn on_io_event(&mut self, moment: &mut Moment<'_>, io_event: Self::IoEvent, out: &mut Vec<Self::Effect>);

    /// The agent is permanently gone: updates can no longer be sent.
    fn abandoned(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Self::Effect>);

    /// Time has passed.
    fn due(&mut self, moment: &mut Moment<'_>, out: &mut Vec<Self::Effect>);

    /// When to call [`Machine::due`].
    fn deadline(&self) -> Option<Duration>;
}

pub fn has_capability(capabilities: &[Capability], kind: capability::Type) -> bool {
    capabilities.iter().any(|capability| capability.r#type == Some(kind))
}
