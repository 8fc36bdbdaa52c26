//! Points in time, as numbers passed in by the driver of a machine.
//!
//! Absent: reading a clock.

use core::ops::Add;
use core::time::Duration;

/// A point on a monotonic clock: nanoseconds since the start of the process or of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

/// A point in civil time: nanoseconds since 1970-01-01T00:00:00Z. Shown to people and peers, never used for timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub u64);

/// The moment of one step, on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub mono: Mono,
    pub wall: Wall,
}

impl Mono {
    /// The time that passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;

    /// Saturates: a timeout of centuries means "never".
    fn add(self, duration: Duration) -> Mono {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Mono(self.0.saturating_add(nanos))
    }
}

impl Wall {
    /// Seconds since the epoch as v1 writes timestamps.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub fn as_nanos_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}
