//! Giving way: what threads that come last do between two small pieces of work.
//!
//! SCHED_IDLE alone is not enough. The kernel takes the processor from such a thread when another wakes up, but if it is
//! once chosen while others wait for their next slice, it keeps it until the next tick: milliseconds. And while it writes to
//! a socket the kernel does not interrupt it at all. So a thread that renders works for a moment only, then looks whether
//! anybody else wanted the processor meanwhile, and if so leaves it alone for several times as long. While much is said to
//! those who launch and run tasks it always does: they need a processor again before the moment is over.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::aside::be_last;

/// How long such a thread works at a stretch.
const STRETCH: Duration = Duration::from_micros(100);

/// While others want the processor, it is left to them for so many times the time that it was used for.
const REST: u32 = 3;

/// The same for writing while much is said to others. What a socket is given the kernel carries to the peer at once, before
/// whatever else waits, and nobody can interrupt it.
const REST_OF_WRITERS: u32 = 15;

/// How long it is left to them at most.
const REST_MAX: Duration = Duration::from_millis(20);

/// How often is looked whether much is said to others.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What is much, per second: several times what the pings of ten thousand agents come to.
const SAID_PER_SECOND_MIN: u64 = 4000;

/// What this program said to peers that are no readers: answers and events, since it started.
static SAID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WORK: Cell<Option<Stretch>> = const { Cell::new(None) };
    static TALK: Cell<Option<Talk>> = const { Cell::new(None) };
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

/// How much had been said at the last look, and whether that was much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Talk {
    at: Instant,
    said: u64,
    is_busy: bool,
}

impl Talk {
    /// The newest look, after `last`.
    fn look(last: Option<Talk>, at: Instant, said: u64) -> Talk {
        let Some(last) = last else { return Talk { at, said, is_busy: false } };
        let time = at.saturating_duration_since(last.at);
        if time < LOOK_INTERVAL {
            return last;
        }
        let per_second = said.saturating_sub(last.said) as f64 / time.as_secs_f64();
        Talk { at, said, is_busy: per_second >= SAID_PER_SECOND_MIN as f64 }
    }
}

/// Something is said to a peer that is no reader.
pub(crate) fn say() {
    SAID.fetch_add(1, Ordering::Relaxed);
}

/// How often that was.
pub(crate) fn said() -> u64 {
    SAID.load(Ordering::Relaxed)
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
    give_way_for(REST);
}

/// The same for whoever writes to sockets.
pub(crate) fn give_way_as_writer() {
    give_way_for(REST_OF_WRITERS);
}

fn give_way_for(while_busy: u32) {
    let Some(stretch) = WORK.get() else { return };
    let took = stretch.began.elapsed();
    if took < STRETCH {
        return;
    }
    let talk = Talk::look(TALK.get(), Instant::now(), said());
    TALK.set(Some(talk));
    let worked = processor_time().saturating_sub(stretch.cpu);
    match rest(took, worked, talk.is_busy.then_some(while_busy)) {
        // Those who wait in line without having been noticed come first.
        Duration::ZERO => thread::yield_now(),
        time => thread::sleep(time),
    }
    WORK.set(Some(Stretch::begin()));
}

/// How long the processor is left to others.
fn rest(took: Duration, worked: Duration, while_busy: Option<u32>) -> Duration {
    let times = while_busy.or(is_wanted(took, worked).then_some(REST));
    times.map_or(Duration::ZERO, |times| (worked * times).min(REST_MAX))
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
    fn rests_are_for_others() {
        let micros = Duration::from_micros;
        for (took, worked, while_busy, rest_us) in [
            (100, 100, None, 0),
            (200, 100, None, 300),
            (100, 100, Some(REST), 300),
            (200, 100, Some(REST_OF_WRITERS), 1500),
            (5000, 4000, Some(REST_OF_WRITERS), 20_000),
        ] {
            assert_eq!(rest(micros(took), micros(worked), while_busy), micros(rest_us), "{took} {worked}");
        }
    }

    #[test]
    fn while_much_is_said_there_is_no_looking_who_wants_the_processor() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut talk = None;
        for (ms, said, busy) in [
            (0, 1_000_000, false),
            (20, 1_000_079, false),
            (40, 1_000_159, true),
            // Too soon to look again.
            (50, 1_000_159, true),
            (61, 1_000_160, false),
            (1061, 1_004_160, true),
        ] {
            talk = Some(Talk::look(talk, at(ms), said));
            assert_eq!(talk.unwrap().is_busy, busy, "{ms} ms");
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
