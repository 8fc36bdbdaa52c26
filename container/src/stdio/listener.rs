//! A client of a container's output, with its pending bytes.
//!
//! Nothing is dropped: while its backlog is full the container's output waits. A client that does not catch up in
//! time is disconnected, so that it cannot delay the container and other clients for long.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::backlog::Backlog;
use super::frame::{self, Kind};

/// With so much waiting, a listener holds up the container's output.
pub(super) const BACKLOG_BYTES_MAX: usize = 1024 * 1024;

/// A client that delays others for so long, and did not read half of its backlog, is disconnected.
pub(super) const HOLD_UP_MAX: Duration = Duration::from_secs(5);

/// The only client of a session is disconnected after so long without reading.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Listener {
    pub socket: UnixStream,
    backlog: Backlog,
    full_since: Option<Instant>,
    took_last: Instant,
    gone: bool,
}

impl Listener {
    pub fn new(socket: UnixStream, now: Instant) -> Listener {
        let mut listener =
            Listener { socket, backlog: Backlog::default(), full_since: None, took_last: now, gone: false };
        listener.push(Kind::Welcome, &[], now);
        listener
    }

    pub fn push(&mut self, kind: Kind, bytes: &[u8], now: Instant) {
        if self.backlog.is_empty() {
            self.took_last = now;
        }
        self.backlog.push(&frame::encoded(kind, bytes));
        self.send(now);
    }

    /// Sends as much as the listener accepts now.
    pub fn send(&mut self, now: Instant) {
        match self.backlog.drain_into(&self.socket) {
            Ok(0) => (),
            Ok(_) => self.took_last = now,
            Err(_) => self.gone = true,
        }
        if self.backlog.len() <= BACKLOG_BYTES_MAX / 2 {
            self.full_since = None;
        } else if self.backlog.len() >= BACKLOG_BYTES_MAX && self.full_since.is_none() {
            self.full_since = Some(now);
        }
    }

    pub fn close(&mut self) {
        self.gone = true;
    }

    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether something waits for them.
    pub fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Whether they hold up the output.
    pub fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// Until when they may hold it up.
    pub fn deadline(&self, may_take_time: bool) -> Option<Instant> {
        let since = self.full_since?;
        Some(if may_take_time { self.took_last + SILENCE_MAX } else { since + HOLD_UP_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_subscriber_has_a_deadline() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        let start = Instant::now();
        let mut listener = Listener::new(ours, start);
        assert_eq!((listener.is_full(), listener.deadline(false)), (false, None));
        let piece = vec![b'x'; frame::FRAME_BYTES_MAX];
        while !listener.is_full() {
            listener.push(Kind::Stdout, &piece, start);
        }
        let later = start + Duration::from_secs(3);
        listener.push(Kind::Stdout, &piece, later);
        assert_eq!(listener.deadline(false), Some(start + HOLD_UP_MAX), "counted from when it was full");
        assert_eq!(listener.deadline(true), Some(start + SILENCE_MAX));
        drop(theirs);
        listener.send(later);
        assert!(listener.is_gone());
    }
}
