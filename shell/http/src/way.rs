//! Giving way: what threads that come last do between two small pieces of work.
//!
//! SCHED_IDLE alone is not enough. The kernel takes the processor from such a thread when another wakes up, but if it is
//! once chosen while others wait for their next slice, it keeps it until the next tick: milliseconds. So a thread that
//! renders works for a moment only, then looks whether anybody else wanted the processor meanwhile, and if so
//! leaves it alone for several times as long.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::aside::be_last;

/// How long such a thread works at a stretch.
const STRETCH: Duration = Duration::from_micros(100);

/// While others want the processor, it is left to them for so many times the time that it was used for.
const REST: u32 = 3;

thread_local! {
    static WORK: Cell<Option<Stretch>> = const { Cell::new(None) };
}

/// Since when this thread works, by the clock and by the processor.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    began: Instant,
    cpu: Duration,
}

impl Stretch {
    fn begin() -> Self {
        Self { began: Instant::now(), cpu: processor_time() }
    }
}

/// From now on this thread gives way.
pub(crate) fn come_last() {
    be_last();
    WORK.set(Some(Stretch::begin()));
}

pub(crate) fn comes_last() -> bool {
    WORK.get().is_some()
}

/// To be called between two small pieces of work, by whoever renders. Does nothing on threads that do not come last.
pub fn give_way() {
    let Some(stretch) = WORK.get() else { return };
    let took = stretch.began.elapsed();
    if took < STRETCH {
        return;
    }
    rest(took, processor_time().saturating_sub(stretch.cpu));
    WORK.set(Some(Stretch::begin()));
}

fn rest(took: Duration, worked: Duration) {
    match is_wanted(took, worked) {
        true => thread::sleep(worked * REST),
        // Those who wait in line without having been noticed come first.
        false => thread::yield_now(),
    }
}

/// Whether somebody else had the processor for a part of the time. Waiting for peers looks the same: then there is time.
fn is_wanted(took: Duration, worked: Duration) -> bool {
    took > worked + worked / 4
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_the_processor_alone_need_not_rest() {
        let micros = Duration::from_micros;
        for (took, worked, wanted) in
            [(100, 100, false), (125, 100, false), (130, 100, true), (4000, 0, true)]
        {
            assert_eq!(is_wanted(micros(took), micros(worked)), wanted, "{took} {worked}");
        }
    }

    #[test]
    fn only_those_who_come_last_give_way() {
        give_way();
        assert!(!comes_last());
        let last = thread::spawn(|| {
            come_last();
            let began = WORK.get().unwrap().began;
            while WORK.get().unwrap().began == began {
                give_way();
            }
            comes_last()
        });
        assert!(last.join().unwrap(), "a new stretch has begun");
    }
}
