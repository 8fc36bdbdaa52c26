//! The clocks. The only place of a program where time is read for a machine.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tepui_fsm::{Mono, Now, Wall};

/// Both clocks of one process. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    pub fn start() -> Self {
        // Never at zero, so that "since the beginning" and "never" cannot be mixed up.
        Self { origin: Instant::now() - Duration::from_nanos(1) }
    }

    pub fn now(&self) -> Now {
        let mono = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Mono(mono), wall: Wall(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)) }
    }

    /// When `at` is on the clock that tokio waits by.
    pub(crate) fn instant(&self, at: Mono) -> tokio::time::Instant {
        // A deadline of centuries is "never"; capped, because an Instant cannot hold it.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let after = Duration::from_nanos(at.0).min(self.origin.elapsed() + FAR);
        (self.origin + after).into()
    }
}
