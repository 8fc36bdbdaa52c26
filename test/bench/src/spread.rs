//! Samples of one quantity, and the few numbers that stand for them.

use std::time::Duration;

use crate::report::Row;

/// Measured times.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    seconds: Vec<f64>,
}

impl Spread {
    pub fn push(&mut self, time: Duration) {
        self.seconds.push(time.as_secs_f64());
    }

    pub fn append(&mut self, other: Spread) {
        self.seconds.extend(other.seconds);
    }

    pub fn len(&self) -> usize {
        self.seconds.len()
    }

    /// The time that `percent` of the samples do not exceed, in milliseconds; 0 without samples.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
        sorted.get(rank.max(1) - 1).map_or(0.0, |seconds| seconds * 1000.0)
    }

    pub fn min_ms(&self) -> f64 {
        self.percentile_ms(0.0)
    }

    pub fn median_ms(&self) -> f64 {
        self.percentile_ms(50.0)
    }

    pub fn percentiles(&self, row: Row) -> Row {
        row.measured("p50_ms", self.percentile_ms(50.0))
            .measured("p90_ms", self.percentile_ms(90.0))
            .measured("p99_ms", self.percentile_ms(99.0))
            .measured("max_ms", self.percentile_ms(100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut spread = Spread::default();
        assert_eq!(spread.median_ms(), 0.0);
        (1..=100).rev().for_each(|ms| spread.push(Duration::from_millis(ms)));
        let found = [0.0, 50.0, 99.0, 100.0].map(|percent| spread.percentile_ms(percent).round());
        assert_eq!(found, [1.0, 50.0, 99.0, 100.0]);
    }
}
