//! Bytes that wait for a peer that is slower than their source.

use std::io::{self, Write};

/// A queue of bytes. The writer checks its length first.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: Vec<u8>,
    /// Where what was not taken begins.
    start: usize,
}

impl Backlog {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Gives away as much as is taken now; how much that was. An error means that the peer is gone.
    pub fn drain_into(&mut self, mut peer: impl Write) -> io::Result<usize> {
        let before = self.len();
        while !self.is_empty() {
            match peer.write(&self.bytes[self.start..]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(taken) => self.start += taken,
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => break,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
                Err(err) => return Err(err),
            }
        }
        let taken = before - self.len();
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        Ok(taken)
    }
}
