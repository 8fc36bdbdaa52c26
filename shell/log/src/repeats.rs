//! Repeated lines: of equal lines within some seconds only the first few are written, then one with their number.
//!
//! A table of fixed size, by the hash of a line without its time: two frequent lines that share a slot evict each other
//! and are written more often than necessary. A line is suppressed only after it was written.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Equal lines that are written within [`WINDOW`]; more are counted.
pub(crate) const REPEATS_MAX: u64 = 3;
/// How long equal lines are counted together.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

const PLACES: usize = 4096;

#[derive(Default)]
pub(crate) struct Repeats {
    hasher: RandomState,
    /// Empty before the first line.
    places: Vec<Place>,
    /// Places that hold lines back.
    suppressing: usize,
}

#[derive(Clone, Default)]
struct Place {
    hash: u64,
    since: Option<Instant>,
    written: u64,
    suppressed: u64,
    /// The line, once one is held back.
    line: Vec<u8>,
}

/// A line that was held back, without its time, and how often.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suppressed {
    pub line: Vec<u8>,
    pub times: u64,
}

impl Repeats {
    /// Whether to write a line (passed without its time), and the suppressed line to write before it.
    pub fn admit(&mut self, now: Instant, line: &[u8]) -> (bool, Option<Suppressed>) {
        let hash = self.hasher.hash_one(line);
        if self.places.is_empty() {
            self.places.resize(PLACES, Place::default());
        }
        let place = &mut self.places[hash as usize % PLACES];
        let current =
            place.hash == hash && place.since.is_some_and(|since| now.duration_since(since) < WINDOW);
        if !current {
            let suppressed = take(place, &mut self.suppressing);
            (place.hash, place.since, place.written) = (hash, Some(now), 1);
            return (true, suppressed);
        }
        if place.written < REPEATS_MAX {
            place.written += 1;
            return (true, None);
        }
        if place.suppressed == 0 {
            place.line = line.to_vec();
            self.suppressing += 1;
        }
        place.suppressed += 1;
        (false, None)
    }

    pub fn has_suppressed(&self) -> bool {
        self.suppressing > 0
    }

    /// Lines suppressed in expired windows, or, on exit, in all.
    pub fn expired(&mut self, now: Instant, all: bool) -> Vec<Suppressed> {
        if self.suppressing == 0 {
            return Vec::new();
        }
        let over = |since: Instant| all || now.duration_since(since) >= WINDOW;
        let Self { places, suppressing, .. } = self;
        let expired = places.iter_mut().filter(|place| place.since.is_some_and(over));
        expired.filter_map(|place| take(place, suppressing)).collect()
    }
}

fn take(place: &mut Place, suppressing: &mut usize) -> Option<Suppressed> {
    if place.suppressed == 0 {
        return None;
    }
    *suppressing -= 1;
    place.since = None;
    Some(Suppressed { line: std::mem::take(&mut place.line), times: std::mem::take(&mut place.suppressed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_are_written_a_few_times_then_counted() {
        let (mut repeats, start) = (Repeats::default(), Instant::now());
        let written: Vec<bool> = (0..5).map(|_| repeats.admit(start, b"same").0).collect();
        assert_eq!(written, [true, true, true, false, false]);
        assert_eq!(repeats.admit(start, b"other"), (true, None));
        assert!(repeats.has_suppressed());
        assert_eq!(repeats.expired(start, false), []);
        let suppressed = Suppressed { line: b"same".to_vec(), times: 2 };
        assert_eq!(repeats.expired(start + WINDOW, false), [suppressed]);
        assert!(!repeats.has_suppressed());
    }

    #[test]
    fn a_new_window_writes_the_count_before_the_line() {
        let (mut repeats, start) = (Repeats::default(), Instant::now());
        for _ in 0..=REPEATS_MAX {
            repeats.admit(start, b"same");
        }
        let suppressed = Suppressed { line: b"same".to_vec(), times: 1 };
        assert_eq!(repeats.admit(start + WINDOW, b"same"), (true, Some(suppressed)));
        assert_eq!(repeats.admit(start + WINDOW, b"same"), (true, None));
    }
}
