//! The queue between a machine and one subscriber: bounded, ordered, never waited for.
//!
//! The machine's side pushes records, one or several that leave together; the connection takes them as fast as the peer
//! reads. A burst may go over the limit, because an answer can be many events at once; who stays over it, or goes over
//! the ceiling, is cut off.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// How far a subscriber may fall behind.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    pub subscriber_queue_events_max: usize,
    pub subscriber_queue_bytes_max: usize,
    /// How long a subscriber may stay over one of the two.
    pub subscriber_over_limit_max: Duration,
    /// Never more than this, for no time.
    pub subscriber_queue_bytes_ceiling: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            subscriber_queue_events_max: 10_000,
            subscriber_queue_bytes_max: 16 * 1024 * 1024,
            subscriber_over_limit_max: Duration::from_secs(10),
            subscriber_queue_bytes_ceiling: 512 * 1024 * 1024,
        }
    }
}

/// The subscriber reads too slowly; its queue is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooSlow;

#[derive(Debug)]
pub(crate) struct Queue {
    limits: StreamLimits,
    inner: Mutex<Inner>,
}

/// Records that leave together. Written once, however many subscribers hear them.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub bytes: Bytes,
    pub events: usize,
}

#[derive(Debug)]
struct Inner {
    batches: VecDeque<Batch>,
    bytes: usize,
    events: usize,
    /// Nothing is given out before the first record is put in front.
    held: bool,
    end: End,
    over_since: Option<Instant>,
    reader: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// Ends after what is queued.
    Finished,
    /// Ended in the middle.
    Broken,
}

impl Queue {
    pub fn new(limits: StreamLimits, held: bool) -> Self {
        let inner = Inner {
            batches: VecDeque::new(),
            bytes: 0,
            events: 0,
            held,
            end: End::Open,
            over_since: None,
            reader: None,
        };
        Self { limits, inner: Mutex::new(inner) }
    }

    /// Appends a record.
    pub fn push(&self, record: Bytes, now: Instant) -> Result<(), TooSlow> {
        self.push_batch(Batch { bytes: record, events: 1 }, now)
    }

    /// Appends records.
    pub fn push_batch(&self, batch: Batch, now: Instant) -> Result<(), TooSlow> {
        let mut inner = self.lock();
        if inner.end != End::Open {
            return Ok(());
        }
        inner.add(&batch);
        inner.batches.push_back(batch);
        if self.is_too_slow(&mut inner, now) {
            inner.batches.clear();
            inner.end = End::Broken;
            inner.wake();
            return Err(TooSlow);
        }
        inner.wake();
        Ok(())
    }

    /// Puts the first record in front and lets everything go.
    pub fn start_with(&self, first: Bytes) {
        let mut inner = self.lock();
        let first = Batch { bytes: first, events: 1 };
        inner.add(&first);
        inner.batches.push_front(first);
        inner.held = false;
        inner.wake();
    }

    /// Ends the stream after everything that was pushed.
    pub fn finish(&self) {
        self.end(End::Finished);
    }

    /// Ends the stream now.
    pub fn break_off(&self) {
        self.end(End::Broken);
    }

    /// The next records; an error if the stream broke off.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        let mut inner = self.lock();
        if inner.end == End::Broken {
            return Poll::Ready(Some(Err(Error::from(ErrorKind::ConnectionAborted))));
        }
        let next = if inner.held { None } else { inner.batches.pop_front() };
        match next {
            Some(batch) => {
                inner.bytes -= batch.bytes.len();
                inner.events -= batch.events;
                if !self.is_over(&inner) {
                    inner.over_since = None;
                }
                Poll::Ready(Some(Ok(batch.bytes)))
            }
            None if inner.end == End::Finished => Poll::Ready(None),
            None => {
                inner.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn end(&self, end: End) {
        let mut inner = self.lock();
        if inner.end == End::Open {
            inner.end = end;
            inner.held = false;
        }
        inner.wake();
    }

    fn is_over(&self, inner: &Inner) -> bool {
        inner.events > self.limits.subscriber_queue_events_max
            || inner.bytes > self.limits.subscriber_queue_bytes_max
    }

    fn is_too_slow(&self, inner: &mut Inner, now: Instant) -> bool {
        if inner.bytes > self.limits.subscriber_queue_bytes_ceiling {
            return true;
        }
        if !self.is_over(inner) {
            return false;
        }
        let since = *inner.over_since.get_or_insert(now);
        now.duration_since(since) > self.limits.subscriber_over_limit_max
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics while it holds this lock")
    }
}

impl Inner {
    fn add(&mut self, batch: &Batch) {
        self.bytes += batch.bytes.len();
        self.events += batch.events;
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> StreamLimits {
        StreamLimits {
            subscriber_queue_events_max: 2,
            subscriber_queue_bytes_max: 100,
            subscriber_over_limit_max: Duration::from_secs(10),
            subscriber_queue_bytes_ceiling: 1000,
        }
    }

    fn next(queue: &Queue) -> Option<String> {
        match queue.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Some("pending".into()),
            Poll::Ready(None) => None,
            Poll::Ready(Some(Ok(record))) => Some(String::from_utf8(record.to_vec()).unwrap()),
            Poll::Ready(Some(Err(_))) => Some("broken".into()),
        }
    }

    #[test]
    fn a_burst_passes_but_staying_over_the_limit_does_not() {
        let start = Instant::now();
        let queue = Queue::new(limits(), false);
        for _ in 0..5 {
            queue.push("x".into(), start).unwrap();
        }
        queue.push("y".into(), start + Duration::from_secs(9)).unwrap();
        while next(&queue).unwrap() != "y" {}
        // It caught up, so the clock starts anew.
        for _ in 0..3 {
            queue.push("x".into(), start + Duration::from_secs(20)).unwrap();
        }
        assert_eq!(queue.push("z".into(), start + Duration::from_secs(31)), Err(TooSlow));
        assert_eq!(next(&queue).unwrap(), "broken");
    }

    #[test]
    fn what_leaves_together_counts_one_by_one() {
        let start = Instant::now();
        let queue = Queue::new(limits(), false);
        let three = Batch { bytes: "xyz".into(), events: 3 };
        queue.push_batch(three.clone(), start).unwrap();
        assert_eq!(queue.push_batch(three.clone(), start + Duration::from_secs(11)), Err(TooSlow));
        let queue = Queue::new(limits(), false);
        queue.push_batch(three, start).unwrap();
        assert_eq!(next(&queue).unwrap(), "xyz");
        queue.push("a".into(), start + Duration::from_secs(11)).unwrap();
    }

    #[test]
    fn the_ceiling_holds_at_once() {
        let queue = Queue::new(limits(), false);
        queue.push(vec![b'x'; 900].into(), Instant::now()).unwrap();
        assert_eq!(queue.push(vec![b'x'; 200].into(), Instant::now()), Err(TooSlow));
    }

    #[test]
    fn a_held_stream_starts_with_its_first_record_and_ends_after_the_last() {
        let queue = Queue::new(limits(), true);
        queue.push("2".into(), Instant::now()).unwrap();
        assert_eq!(next(&queue).unwrap(), "pending");
        queue.start_with("1".into());
        queue.push("3".into(), Instant::now()).unwrap();
        queue.finish();
        queue.push("4".into(), Instant::now()).unwrap();
        assert_eq!([next(&queue), next(&queue), next(&queue)], ["1", "2", "3"].map(|r| Some(r.to_owned())));
        assert_eq!(next(&queue), None);
    }
}
