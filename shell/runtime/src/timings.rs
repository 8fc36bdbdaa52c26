//! How long something took, lately: the last so many durations, and what they say together.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Durations that are kept; with more the oldest go.
const SAMPLES_MAX: usize = 1000;

/// Durations of one kind of operation, of the last `window`. Shared between writers and readers.
#[derive(Debug)]
pub struct Timings {
    window: Duration,
    samples: Mutex<Samples>,
}

#[derive(Debug, Default)]
struct Samples {
    newest: VecDeque<(Instant, Duration)>,
    peaks: Peaks,
}

/// Those of the window that none after them reaches: the first is the longest, however many there were.
#[derive(Debug, Default)]
struct Peaks(VecDeque<(Instant, Duration)>);

/// The values of a v1 timer, in milliseconds: the newest first, then the rest by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    pub last_ms: f64,
    pub count: usize,
    pub min_ms: f64,
    pub max_ms: f64,
    /// The part of all samples, its name, and the duration that so many do not exceed.
    pub percentiles_ms: [(f64, &'static str, f64); 6],
}

const PERCENTILES: [(f64, &str); 6] =
    [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999"), (0.9999, "p9999")];

impl Timings {
    pub fn new(window: Duration) -> Self {
        Self { window, samples: Mutex::default() }
    }

    /// Never waits: while a reader holds the samples, one is lost. The reader may have a low priority.
    pub fn add(&self, at: Instant, took: Duration) {
        let Ok(mut samples) = self.samples.try_lock() else { return };
        let Samples { newest, peaks } = &mut *samples;
        if newest.len() == SAMPLES_MAX {
            newest.pop_front();
        }
        newest.push_back((at, took));
        peaks.add(at, took, self.window);
    }

    /// None if nothing was measured in the window. The newest counts however old it is. The longest is that of the window,
    /// also if there were more than are kept.
    pub fn statistics(&self, now: Instant) -> Option<Statistics> {
        let (newest, longest) = {
            let samples = self.samples.lock().expect("no code panics while it holds this lock");
            (samples.newest.clone(), samples.peaks.longest(self.window, now))
        };
        let statistics = Statistics::of(newest.iter().copied(), self.window, now)?;
        let max_ms = longest.map_or(0.0, millis).max(statistics.max_ms);
        Some(Statistics { max_ms, ..statistics })
    }
}

impl Peaks {
    fn add(&mut self, at: Instant, took: Duration, window: Duration) {
        while self.0.front().is_some_and(|(peak, _)| at.saturating_duration_since(*peak) > window) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|(_, peak)| *peak <= took) {
            self.0.pop_back();
        }
        // Only a long series, each shorter than the last, comes to the limit; then the shortest is not needed.
        if self.0.len() < SAMPLES_MAX {
            self.0.push_back((at, took));
        }
    }

    fn longest(&self, window: Duration, now: Instant) -> Option<Duration> {
        let recent = |(at, _): &&(Instant, Duration)| now.saturating_duration_since(*at) <= window;
        self.0.iter().find(recent).map(|(_, took)| *took)
    }
}

impl Statistics {
    /// Of durations and when each was measured, the newest last; none if there are none.
    pub fn of(
        samples: impl DoubleEndedIterator<Item = (Instant, Duration)> + Clone,
        window: Duration,
        now: Instant,
    ) -> Option<Statistics> {
        let newest = samples.clone().next_back()?.1;
        let recent = samples.filter(|(at, _)| now.duration_since(*at) <= window);
        let mut sorted: Vec<f64> = recent.map(|(_, took)| millis(took)).collect();
        if sorted.is_empty() {
            sorted.push(millis(newest));
        }
        sorted.sort_by(f64::total_cmp);
        Some(Statistics {
            last_ms: millis(newest),
            count: sorted.len(),
            min_ms: sorted[0],
            max_ms: sorted[sorted.len() - 1],
            percentiles_ms: PERCENTILES.map(|(part, name)| (part, name, percentile(&sorted, part))),
        })
    }

    /// A timer as v1 shows it: names of metrics and their values.
    pub fn metrics(&self, name: &str) -> impl Iterator<Item = (String, f64)> {
        let whole = [
            (name.to_owned(), self.last_ms),
            (format!("{name}/count"), self.count as f64),
            (format!("{name}/max"), self.max_ms),
            (format!("{name}/min"), self.min_ms),
        ];
        let part = |(_, part, value)| (format!("{name}/{part}"), value);
        whole.into_iter().chain(self.percentiles_ms.map(part))
    }
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// Between two samples, in proportion.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let position = part * (sorted.len() - 1) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_exclude_samples_outside_of_the_window() {
        let timings = Timings::new(Duration::from_secs(3600));
        let start = Instant::now();
        assert_eq!(timings.statistics(start), None);
        timings.add(start, Duration::from_millis(9000));
        let later = start + Duration::from_secs(4000);
        for millis in [120, 180, 140, 160] {
            timings.add(later, Duration::from_millis(millis));
        }
        let statistics = timings.statistics(later).unwrap();
        assert_eq!((statistics.count, statistics.last_ms, statistics.min_ms), (4, 160.0, 120.0));
        assert_eq!(statistics.percentiles_ms[0], (0.5, "p50", 150.0));
        assert_eq!(statistics.max_ms, 180.0);
        // Long after, the newest is still there to be seen.
        let statistics = timings.statistics(later + Duration::from_secs(9999)).unwrap();
        assert_eq!((statistics.count, statistics.max_ms), (1, 160.0));
    }

    #[test]
    fn timing_samples_are_limited() {
        let timings = Timings::new(Duration::MAX);
        let start = Instant::now();
        for _ in 0..2 * SAMPLES_MAX {
            timings.add(start, Duration::from_millis(1));
        }
        assert_eq!(timings.statistics(start).unwrap().count, SAMPLES_MAX);
    }

    #[test]
    fn maximum_of_the_window_survives_sample_eviction() {
        let timings = Timings::new(Duration::from_secs(60));
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let longest_at = |second| timings.statistics(at(second)).unwrap().max_ms;
        for (second, long) in [(0, 9), (10, 7), (20, 8)] {
            timings.add(at(second), Duration::from_millis(long));
            (0..2 * SAMPLES_MAX).for_each(|_| timings.add(at(second), Duration::from_millis(1)));
        }
        assert_eq!([20, 60, 61, 80, 81].map(longest_at), [9.0, 9.0, 8.0, 8.0, 1.0]);
        timings.add(at(100), Duration::from_millis(2));
        assert_eq!(longest_at(100), 2.0);
        (0..4 * SAMPLES_MAX as u64)
            .for_each(|count| timings.add(at(100), Duration::from_micros(1999 - count.min(1998))));
        assert_eq!(longest_at(100), 2.0);
        assert!(timings.samples.lock().unwrap().peaks.0.len() <= SAMPLES_MAX);
    }
}
