//! Calls on one HTTP/1.1 connection with several in flight; answers come in the order of the calls.
//!
//! A call whose connection breaks before its answer came counts as perhaps seen and is not repeated
//! ([`Fault::Lost`]). Absent: sessions, and requests whose answers are streams or large
//! ([`Connection`](crate::connection::Connection)).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::connection::{Head, RESPONSE_TIMEOUT, Transport, connect};
use crate::endpoint::Endpoint;
use crate::fault::Fault;

mod answer;
#[cfg(test)]
mod tests;

use answer::{Answer, Parsed};

/// Calls that may wait for their answers on one connection.
pub const CALLS_IN_FLIGHT_MAX: usize = 256;
/// Bytes that may wait to be written before more calls are added.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;
/// Room made for each read.
const READ_BYTES: usize = 16 * 1024;

/// A connection for calls, opened when first needed and again after it broke. `T` is kept for each call in flight.
#[derive(Debug)]
pub struct Pipeline<T> {
    peer: Endpoint,
    open: Option<Open>,
    in_flight: VecDeque<T>,
}

struct Open {
    stream: Box<dyn Transport>,
    unsent: BytesMut,
    /// Whether something written may still be in the buffers of TLS.
    is_flushed: bool,
    received: BytesMut,
    /// When the peer last answered, or the first call was sent after all were answered.
    active: Instant,
    timer: Pin<Box<Sleep>>,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("unsent", &self.unsent.len()).finish_non_exhaustive()
    }
}

impl<T> Pipeline<T> {
    pub fn new(peer: Endpoint) -> Self {
        Self { peer, open: None, in_flight: VecDeque::new() }
    }

    pub fn peer(&self) -> &Endpoint {
        &self.peer
    }

    /// How many more calls may be sent now.
    pub fn room(&self) -> usize {
        match &self.open {
            Some(open) if open.unsent.len() > UNSENT_BYTES_MAX => 0,
            Some(_) | None => CALLS_IN_FLIGHT_MAX.saturating_sub(self.in_flight.len()),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Adds a call, on a new connection if there is none. It is written by the next [`answer`](Self::answer).
    pub async fn send(&mut self, head: &Head, body: &[u8], kept: T) -> Result<(), (T, Fault)> {
        let open = match &mut self.open {
            Some(open) => open,
            none => match connect(&self.peer, false).await {
                Ok(stream) => none.insert(Open::new(stream)),
                Err(fault) => return Err((kept, fault)),
            },
        };
        if self.in_flight.is_empty() {
            open.active = Instant::now();
        }
        head.write(body, &mut open.unsent);
        open.is_flushed = false;
        self.in_flight.push_back(kept);
        Ok(())
    }

    /// Writes what was sent and waits for the answer to the oldest call in flight. Cancel safe.
    ///
    /// After an error the connection is closed and [`abandon`](Self::abandon) gives what was in flight. Without calls in
    /// flight this only notices that the peer closes the connection.
    pub async fn answer(&mut self) -> Result<(T, Result<(), Fault>), Fault> {
        loop {
            let Some(open) = &mut self.open else {
                match self.in_flight.is_empty() {
                    true => return std::future::pending().await,
                    false => return Err(self.lost("the peer closed it")),
                }
            };
            let answer = poll_fn(|cx| open.poll_answer(cx, &self.peer, !self.in_flight.is_empty())).await;
            let is_last = match &answer {
                Ok(Some(answer)) => answer.is_last,
                Ok(None) | Err(_) => true,
            };
            if is_last {
                self.open = None;
            }
            match (answer?, self.in_flight.pop_front()) {
                (Some(answer), Some(kept)) => return Ok((kept, answer.outcome())),
                // Closed while idle, or an answer without a call: the next call opens another connection.
                (None | Some(_), None) => self.open = None,
                (None, Some(kept)) => self.in_flight.push_front(kept),
            }
        }
    }

    /// Closes the connection; the calls in flight, oldest first.
    pub fn abandon(&mut self) -> Vec<T> {
        self.open = None;
        self.in_flight.drain(..).collect()
    }

    /// The fault of a call in flight on a connection that is no longer used.
    pub fn lost(&self, why: &str) -> Fault {
        Fault::Lost { peer: self.peer.to_string(), why: why.to_owned() }
    }
}

impl Open {
    fn new(stream: Box<dyn Transport>) -> Self {
        let now = Instant::now();
        Self {
            stream,
            unsent: BytesMut::new(),
            is_flushed: true,
            received: BytesMut::new(),
            active: now,
            timer: Box::pin(sleep_until(now + RESPONSE_TIMEOUT)),
        }
    }

    /// The next answer; none if the peer closed the connection between answers.
    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        peer: &Endpoint,
        is_awaited: bool,
    ) -> Poll<Result<Option<Answer>, Fault>> {
        let lost = |why: String| Fault::Lost { peer: peer.to_string(), why };
        loop {
            match answer::take(&mut self.received, false).map_err(|err| err.fault(peer))? {
                Parsed::Whole(answer) => {
                    self.active = Instant::now();
                    return Poll::Ready(Ok(Some(answer)));
                }
                Parsed::Partial => (),
            }
            // A peer may answer and close before it has read everything, so reading continues also if this fails.
            let written = self.poll_written(cx);
            self.received.reserve(READ_BYTES);
            match pin!(self.stream.read_buf(&mut self.received)).poll(cx) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(match answer::take(&mut self.received, true) {
                        Ok(Parsed::Whole(answer)) => Ok(Some(answer)),
                        Ok(Parsed::Partial) if self.received.is_empty() => Ok(None),
                        Ok(Parsed::Partial) => Err(lost("the peer closed it within an answer".to_owned())),
                        Err(err) => Err(err.fault(peer)),
                    });
                }
                Poll::Ready(Ok(_)) => (),
                // With TLS also a peer that closes without saying so. No call is lost.
                Poll::Ready(Err(_)) if !is_awaited => return Poll::Ready(Ok(None)),
                Poll::Ready(Err(err)) => return Poll::Ready(Err(lost(err.to_string()))),
                Poll::Pending if let Poll::Ready(Err(err)) = written => {
                    return Poll::Ready(Err(lost(err.to_string())));
                }
                Poll::Pending if is_awaited => {
                    ready!(self.poll_overdue(cx));
                    return Poll::Ready(Err(Fault::Timeout {
                        peer: peer.to_string(),
                        after: RESPONSE_TIMEOUT,
                    }));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.unsent.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.unsent))?;
            let _ = self.unsent.split_to(written);
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the oldest call has waited for too long. The timer is moved only when it fires.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.active + RESPONSE_TIMEOUT;
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(due);
        }
    }
}
