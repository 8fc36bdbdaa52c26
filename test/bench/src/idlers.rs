//! Work of the lowest priority that concerns nobody: as many threads as there are processors, which only count.
//!
//! What launches take beside it is what they take on processors that are never free, whoever keeps them busy. And the
//! threads notice when the machine itself stands still: a thread that does nothing but look at the time that it is
//! charged for cannot be charged for a millisecond between two looks, unless the processor was taken from the whole system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};

use crate::crowd::come_last;

/// How long such a thread goes on before it lets others run.
const STRETCH: Duration = Duration::from_micros(100);

/// Between two looks at what a thread is charged for.
const PAUSE: Duration = Duration::from_millis(1);

/// Threads at work.
#[derive(Debug, Default)]
pub struct Idlers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    pauses: AtomicU64,
    worked_us: AtomicU64,
}

/// What they saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// How often the processor stood still for more than a millisecond.
    pub pauses: u64,
    /// How long they worked, all together.
    pub worked: Duration,
}

impl Idlers {
    pub fn start() -> Result<Self> {
        let mut idlers = Self::default();
        for _ in 0..thread::available_parallelism()?.get() {
            let shared = idlers.shared.clone();
            let thread = thread::Builder::new().name("idler".to_owned()).spawn(move || shared.work());
            idlers.threads.push(thread.context("cannot start a thread")?);
        }
        Ok(idlers)
    }

    pub fn stop(mut self) -> Seen {
        self.end();
        let (pauses, worked) = (&self.shared.pauses, &self.shared.worked_us);
        let worked = Duration::from_micros(worked.load(Ordering::Relaxed));
        Seen { pauses: pauses.load(Ordering::Relaxed), worked }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing to panic by.
            let _ = thread.join();
        }
    }
}

impl Drop for Idlers {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn work(&self) {
        come_last();
        let began = charged();
        while !self.stop.load(Ordering::Relaxed) {
            let (stretch, mut last) = (Instant::now(), charged());
            while stretch.elapsed() < STRETCH {
                let now = charged();
                if now.saturating_sub(last) > PAUSE {
                    self.pauses.fetch_add(1, Ordering::Relaxed);
                }
                last = now;
            }
            thread::yield_now();
        }
        let worked = charged().saturating_sub(began);
        self.worked_us.fetch_add(u64::try_from(worked.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// What this thread has used of a processor, as the system counts it.
fn charged() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idlers_work_until_they_are_stopped() {
        let idlers = Idlers::start().unwrap();
        assert!(!idlers.threads.is_empty());
        assert!(idlers.stop().worked > Duration::ZERO);
    }
}
