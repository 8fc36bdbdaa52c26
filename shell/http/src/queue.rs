//! The queue between a machine and one subscriber: bounded, ordered, never waited for.
//!
//! The machine's side pushes records, one or several that leave together; the connection takes them as fast as the peer
//! reads. A burst may go over the limit, because an answer can be many events at once; a subscriber that stays over it, or
//! goes over the ceiling, is dropped. Its last record may say why.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::rendition::{ReadAlong, Rendition};

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

/// How far a dropped subscriber was behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    pub events: usize,
    pub bytes: usize,
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} events ({} bytes) behind", self.events, self.bytes)
    }
}

#[derive(Debug)]
pub(crate) struct Queue {
    limits: StreamLimits,
    inner: Mutex<Inner>,
}

/// Records that are sent together. Written once for all subscribers.
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
    first: First,
    end: End,
    over_since: Option<Instant>,
    reader: Option<Waker>,
}

/// The record in front of all others.
#[derive(Debug)]
enum First {
    /// There is none, or it was sent.
    Sent,
    /// Nothing is sent before it is there.
    Awaited,
    Sending {
        header: Option<Bytes>,
        body: ReadAlong,
    },
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
            first: if held { First::Awaited } else { First::Sent },
            end: End::Open,
            over_since: None,
            reader: None,
        };
        Self { limits, inner: Mutex::new(inner) }
    }

    /// Appends a record.
    pub fn push(&self, record: Bytes, now: Instant) -> Result<(), Lag> {
        self.push_batch(Batch { bytes: record, events: 1 }, now, |_| None)
    }

    /// Appends records. A subscriber that is too far behind gets nothing but the record that `farewell` makes, if any.
    pub fn push_batch(
        &self,
        batch: Batch,
        now: Instant,
        farewell: impl FnOnce(Lag) -> Option<Bytes>,
    ) -> Result<(), Lag> {
        self.push_batches([batch], now, farewell)
    }

    /// As `push_batch`, for batches that leave one after the other.
    pub fn push_batches(
        &self,
        batches: impl IntoIterator<Item = Batch>,
        now: Instant,
        farewell: impl FnOnce(Lag) -> Option<Bytes>,
    ) -> Result<(), Lag> {
        let mut inner = self.lock();
        if inner.end != End::Open {
            return Ok(());
        }
        batches.into_iter().for_each(|batch| inner.add(batch));
        if self.is_too_slow(&mut inner, now) {
            let lag = inner.lag();
            inner.end_with(farewell(lag));
            return Err(lag);
        }
        inner.wake();
        Ok(())
    }

    /// Drops what was not sent and ends the stream with a last record, or breaks it off without; how far it was behind.
    pub fn end_with(&self, farewell: impl FnOnce(Lag) -> Option<Bytes>) -> Lag {
        let mut inner = self.lock();
        let lag = inner.lag();
        if inner.end == End::Open {
            inner.end_with(farewell(lag));
        }
        lag
    }

    /// Breaks off a stream that still waits for its first record.
    pub fn give_up(&self) {
        let mut inner = self.lock();
        if matches!(inner.first, First::Awaited) {
            inner.end_with(None);
        }
    }

    /// Lets a held stream go with its first record, which is whole and does not count for the limits.
    pub fn start_with(&self, first: &Arc<Rendition>) {
        let mut inner = self.lock();
        if matches!(inner.first, First::Awaited) {
            let header = Some(format!("{}\n", first.bytes()).into());
            inner.first = First::Sending { header, body: ReadAlong::new(first.clone()) };
            inner.wake();
        }
    }

    /// Forgets what was pushed to a held stream: its first record will be newer.
    pub fn restart(&self) {
        let mut inner = self.lock();
        if matches!(inner.first, First::Awaited) {
            inner.clear();
        }
    }

    /// Ends the stream after everything that was pushed.
    pub fn finish(&self) {
        self.end(End::Finished);
    }

    /// Whether it ends in order, after what is queued.
    pub fn is_finished(&self) -> bool {
        self.lock().end == End::Finished
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
        if let Some(part) = ready!(inner.poll_first(cx)) {
            return Poll::Ready(Some(part));
        }
        match inner.batches.pop_front() {
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
        // The first record may be large: a subscriber is not slow before it had the time to take that.
        if !self.is_over(inner) || !matches!(inner.first, First::Sent) {
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
    fn add(&mut self, batch: Batch) {
        self.bytes += batch.bytes.len();
        self.events += batch.events;
        self.batches.push_back(batch);
    }

    fn clear(&mut self) {
        self.batches.clear();
        (self.bytes, self.events, self.over_since) = (0, 0, None);
    }

    fn lag(&self) -> Lag {
        Lag { events: self.events, bytes: self.bytes }
    }

    /// The next part of the first record; none when it was sent.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        let part = match &mut self.first {
            First::Sent => return Poll::Ready(None),
            First::Awaited => {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            First::Sending { header, body } => match header.take() {
                Some(header) => return Poll::Ready(Some(Ok(header))),
                None => ready!(body.poll_chunk(cx)),
            },
        };
        if part.is_none() {
            self.first = First::Sent;
        }
        Poll::Ready(part)
    }

    /// Ends the stream without what is queued, and without a first record that is not there yet.
    fn end_with(&mut self, last: Option<Bytes>) {
        self.clear();
        if matches!(self.first, First::Awaited) {
            self.first = First::Sent;
        }
        self.end = if last.is_some() { End::Finished } else { End::Broken };
        if let Some(bytes) = last {
            self.add(Batch { bytes, events: 1 });
        }
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The body of an event stream: one chunk for what was pushed together.
#[derive(Debug)]
pub struct StreamBody {
    queue: Arc<Queue>,
    /// Dropped with the body, which is when the connection is done with it.
    _guard: Box<dyn Debug + Send + Sync>,
}

impl StreamBody {
    pub(crate) fn new(queue: Arc<Queue>, guard: Box<dyn Debug + Send + Sync>) -> Self {
        Self { queue, _guard: guard }
    }

    /// The next records; an error if the stream broke off. Safe to abandon.
    pub async fn next(&self) -> Option<std::io::Result<Bytes>> {
        std::future::poll_fn(|cx| self.poll_record(cx)).await
    }

    pub(crate) fn poll_record(&self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        self.queue.poll_next(cx)
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
    fn short_burst_is_queued_and_a_lasting_excess_disconnects() {
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
        let lag = Lag { events: 4, bytes: 4 };
        assert_eq!(queue.push("z".into(), start + Duration::from_secs(31)), Err(lag));
        assert_eq!(next(&queue).unwrap(), "broken");
    }

    #[test]
    fn every_event_of_a_batch_counts_towards_the_lag() {
        let start = Instant::now();
        let queue = Queue::new(limits(), false);
        let three = Batch { bytes: "xyz".into(), events: 3 };
        let late = start + Duration::from_secs(11);
        let farewell = |lag: Lag| Some(lag.to_string().into());
        queue.push_batch(three.clone(), start, farewell).unwrap();
        assert_eq!(queue.push_batch(three.clone(), late, farewell), Err(Lag { events: 6, bytes: 6 }));
        assert_eq!(next(&queue).unwrap(), "6 events (6 bytes) behind");
        assert_eq!(next(&queue), None);
        let queue = Queue::new(limits(), false);
        queue.push_batch(three, start, farewell).unwrap();
        assert_eq!(next(&queue).unwrap(), "xyz");
        queue.push("a".into(), start + Duration::from_secs(11)).unwrap();
    }

    #[test]
    fn queue_byte_limit_applies_immediately() {
        let queue = Queue::new(limits(), false);
        queue.push(vec![b'x'; 900].into(), Instant::now()).unwrap();
        assert!(queue.push(vec![b'x'; 200].into(), Instant::now()).is_err());
    }

    fn whole(text: &str) -> Arc<Rendition> {
        let (rendition, mut writer) = Rendition::begin(false);
        writer.write(text.as_bytes().to_vec());
        writer.finish();
        rendition
    }

    fn all(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| next(queue)).collect()
    }

    #[test]
    fn held_stream_starts_with_the_snapshot_then_queued_events() {
        let queue = Queue::new(limits(), true);
        queue.push("old".into(), Instant::now()).unwrap();
        queue.restart();
        queue.push("2".into(), Instant::now()).unwrap();
        assert_eq!(next(&queue).unwrap(), "pending");
        queue.push("3".into(), Instant::now()).unwrap();
        queue.finish();
        queue.push("4".into(), Instant::now()).unwrap();
        assert_eq!(next(&queue).unwrap(), "pending");
        queue.start_with(&whole("state"));
        queue.give_up();
        assert_eq!(all(&queue), ["5\n", "state", "2", "3"]);
    }

    #[test]
    fn lag_is_measured_after_the_first_record() {
        let (start, queue) = (Instant::now(), Queue::new(limits(), true));
        for seconds in [0, 20, 40] {
            queue.push("xx".into(), start + Duration::from_secs(seconds)).unwrap();
        }
        queue.start_with(&whole("state"));
        for expected in ["5\n", "state", "xx"] {
            assert_eq!(next(&queue).unwrap(), expected);
        }
        for seconds in [60, 69] {
            queue.push("yy".into(), start + Duration::from_secs(seconds)).unwrap();
        }
        assert!(queue.push("zz".into(), start + Duration::from_secs(71)).is_err());
        let queue = Queue::new(limits(), true);
        assert!(queue.push(vec![b'x'; 1001].into(), start).is_err(), "the ceiling holds at once");
    }

    #[test]
    fn dropped_subscriber_gets_its_complete_first_record_and_the_reason() {
        for (begun, expected) in [(false, &["why"][..]), (true, &["state", "why"])] {
            let queue = Queue::new(limits(), true);
            queue.push("2".into(), Instant::now()).unwrap();
            if begun {
                queue.start_with(&whole("state"));
                assert_eq!(next(&queue).unwrap(), "5\n");
            }
            assert_eq!(queue.end_with(|_| Some("why".into())), Lag { events: 1, bytes: 1 });
            assert_eq!(all(&queue), expected);
        }
        let queue = Queue::new(limits(), true);
        queue.give_up();
        assert_eq!(next(&queue).unwrap(), "broken");
    }
}
