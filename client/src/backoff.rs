//! How long to wait before trying again: a random share of a bound that doubles up to a limit.
//!
//! Pure: the draw is an argument.

use std::time::Duration;

/// The state of one sequence of attempts.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    bound: Duration,
}

impl Backoff {
    /// Waits at most `first` the first time, at most twice that the next, never more than `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        let first = first.min(max);
        Self { first, max, bound: first }
    }

    /// The next wait: between half of the current bound and all of it, by the draw `random`.
    pub fn next(&mut self, random: u64) -> Duration {
        let half = self.bound / 2;
        let share = half.mul_f64(random as f64 / u64::MAX as f64);
        self.bound = self.bound.saturating_mul(2).min(self.max);
        half + share
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.bound = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_its_limit_and_resets() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, second * 3);
        let longest: Vec<_> = (0..4).map(|_| backoff.next(u64::MAX)).collect();
        assert_eq!(longest, [second, second * 2, second * 3, second * 3]);
        backoff.reset();
        assert_eq!(backoff.next(0), second / 2);
    }
}
