//! How slow a peer may be: with a head that it began, with an answer that it does not take, with the end.
//!
//! Wraps the stream of one connection. What it cannot see is when an exchange begins and ends; the server marks that.
//! Never here: bodies of requests, which have a time of their own where they are read whole.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::body::Body;

/// What a peer still sends after our last answer is taken in for so long: closing in the midst of it would take the
/// answer away from a peer that sends everything before it reads.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of it is read at once.
const LINGER_CHUNK_BYTES: usize = 16 * 1024;

/// Where a connection stands. A cheap clone.
#[derive(Clone, Debug)]
pub(crate) struct Pace(Arc<Marks>);

#[derive(Debug)]
struct Marks {
    /// How often an exchange began or ended: odd while there is one.
    turns: AtomicU64,
    /// When the last one ended.
    rested: Mutex<Instant>,
    /// Whether a head was begun that is not whole yet.
    head_begun: AtomicBool,
    /// Whether its end must not be waited for.
    hurried: AtomicBool,
}

/// The stream of a connection.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    pace: Pace,
    head_timeout: Duration,
    write_timeout: Duration,
    /// Until when the head must be whole, and in which turn it began.
    head: Option<(u64, Pin<Box<Sleep>>)>,
    /// Until when the peer must have taken something.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Since our end of the stream: the limit of the peer's remaining data.
    linger: Option<Pin<Box<Sleep>>>,
}

/// The body of an answer; its end is the end of the exchange.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Body,
    _exchange: InExchange,
}

/// Lives as long as an exchange does.
#[derive(Debug)]
pub(crate) struct InExchange(Pace);

impl Pace {
    pub fn new() -> Self {
        let (turns, rested) = (AtomicU64::new(0), Mutex::new(Instant::now()));
        Self(Arc::new(Marks { turns, rested, head_begun: false.into(), hurried: false.into() }))
    }

    pub fn begin(&self) -> InExchange {
        self.0.turns.fetch_add(1, Ordering::AcqRel);
        self.0.head_begun.store(false, Ordering::Release);
        InExchange(self.clone())
    }

    /// Whether the connection can be closed: no exchange for so long, and no beginning of one.
    pub fn is_idle_for(&self, time: Duration) -> bool {
        !is_exchange(self.turn())
            && !self.0.head_begun.load(Ordering::Acquire)
            && self.0.rested().elapsed() >= time
    }

    /// From now on it ends without waiting for the peer.
    pub fn hurry(&self) {
        self.0.hurried.store(true, Ordering::Release);
    }

    fn turn(&self) -> u64 {
        self.0.turns.load(Ordering::Acquire)
    }
}

impl Marks {
    fn rested(&self) -> MutexGuard<'_, Instant> {
        self.rested.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for InExchange {
    fn drop(&mut self) {
        *self.0.0.rested() = Instant::now();
        self.0.0.turns.fetch_add(1, Ordering::AcqRel);
    }
}

fn is_exchange(turn: u64) -> bool {
    turn % 2 == 1
}

impl InExchange {
    pub fn with(self, body: Body) -> Answer {
        Answer { body, _exchange: self }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<S> Paced<S> {
    pub fn new(stream: S, pace: Pace, head_timeout: Duration, write_timeout: Duration) -> Self {
        Self { stream, pace, head_timeout, write_timeout, head: None, stalled: None, linger: None }
    }

    /// The head has begun: from here on it has its time.
    fn begin_head(&mut self) {
        let turn = self.pace.turn();
        if !is_exchange(turn) && self.head.is_none() {
            self.pace.0.head_begun.store(true, Ordering::Release);
            self.head = Some((turn, Box::pin(tokio::time::sleep(self.head_timeout))));
        }
    }

    /// Forgets the time of a head that became whole meanwhile.
    fn forget_head(&mut self) {
        let turn = self.pace.turn();
        if self.head.as_ref().is_some_and(|(began, _)| *began != turn) {
            self.head = None;
        }
    }

    /// What a write that has to wait comes to.
    fn blocked<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let timeout = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(late("the peer does not read its answer")))
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Ready(done) => {
                self.stalled = None;
                Poll::Ready(done)
            }
            Poll::Pending => self.blocked(cx),
        }
    }
}

impl<S: AsyncRead + Unpin> Paced<S> {
    /// Takes in and forgets what still comes; ready when nothing more does.
    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut chunk = [0; LINGER_CHUNK_BYTES];
        loop {
            let mut buf = ReadBuf::new(&mut chunk);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if buf.filled().is_empty() => return Poll::Ready(()),
                Ok(()) => (),
                // It is gone; there is nothing to wait for.
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.forget_head();
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(outcome) => {
                if buf.filled().len() > before {
                    self.begin_head();
                }
                Poll::Ready(outcome)
            }
            Poll::Pending => {
                let Some((_, time)) = &mut self.head else { return Poll::Pending };
                ready!(time.as_mut().poll(cx));
                Poll::Ready(Err(late("the head of a request does not come")))
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, outcome)
    }

    /// Closes our direction, and waits until the peer has closed its own.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.written(cx, outcome))?;
        }
        if self.pace.0.hurried.load(Ordering::Acquire) || self.poll_drained(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_TIMEOUT)));
        linger.as_mut().poll(cx).map(Ok)
    }
}

fn late(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}
