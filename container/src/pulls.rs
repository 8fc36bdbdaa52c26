//! Durations of recent pulls of images. Statistics are made by the reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pulls that are kept; with more the oldest go.
const KEPT_MAX: usize = 1000;

/// When it ended, and how long it took.
pub type Pull = (Instant, Duration);

/// Shared between pulls and readers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pulls(Arc<Mutex<VecDeque<Pull>>>);

impl Pulls {
    /// Also one that failed: it took its time.
    pub async fn time<T>(&self, pull: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let pulled = pull.await;
        let mut kept = self.0.lock().expect("no code panics while it holds this lock");
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), started.elapsed()));
        pulled
    }

    pub fn kept(&self) -> Vec<Pull> {
        self.0.lock().expect("no code panics while it holds this lock").iter().copied().collect()
    }
}
