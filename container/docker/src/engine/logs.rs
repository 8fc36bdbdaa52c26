//! What a container writes, as the engine sends it: frames of a stream's number, a length and the bytes; or plain bytes
//! if the container has a terminal.

use std::collections::VecDeque;

use super::EngineFault;
use super::transport::Answer;

const HEADER_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// To be read until it ends, which it does with the container.
#[derive(Debug)]
pub struct Logs {
    answer: Answer,
    frames: Option<Frames>,
}

impl Logs {
    pub(super) fn new(answer: Answer, has_terminal: bool) -> Logs {
        Logs { answer, frames: (!has_terminal).then(Frames::default) }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<(Stream, Vec<u8>)>, EngineFault> {
        loop {
            if let Some(piece) = self.frames.as_mut().and_then(|frames| frames.ready.pop_front()) {
                return Ok(Some(piece));
            }
            let Some(chunk) = self.answer.endless_chunk().await? else { return Ok(None) };
            match &mut self.frames {
                Some(frames) => frames.take(&chunk),
                None => return Ok(Some((Stream::Stdout, chunk.to_vec()))),
            }
        }
    }
}

/// Cuts a stream of bytes into pieces; what is longer than one chunk is passed on in parts, so nothing piles up.
#[derive(Debug, Default)]
struct Frames {
    header: Vec<u8>,
    /// Of the frame being read.
    left: usize,
    stream: Option<Stream>,
    ready: VecDeque<(Stream, Vec<u8>)>,
}

impl Frames {
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                let wanted = (HEADER_BYTES - self.header.len()).min(bytes.len());
                self.header.extend_from_slice(&bytes[..wanted]);
                bytes = &bytes[wanted..];
                self.begin();
                continue;
            }
            let (now, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= now.len();
            bytes = rest;
            if let Some(stream) = self.stream {
                self.ready.push_back((stream, now.to_vec()));
            }
        }
    }

    fn begin(&mut self) {
        let &[number, _, _, _, a, b, c, d] = self.header.as_slice() else { return };
        self.stream = match number {
            1 => Some(Stream::Stdout),
            2 => Some(Stream::Stderr),
            _ => None, // What was typed, or an error of the engine: not the container's words.
        };
        self.left = u32::from_be_bytes([a, b, c, d]) as usize;
        self.header.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_frames_split_at_any_byte_are_reassembled() {
        let bytes =
            b"\x01\0\0\0\0\0\0\x03hi\n\x00\0\0\0\0\0\0\x01?\x02\0\0\0\0\0\0\x04err\n\x01\0\0\0\0\0\0\0";
        for size in 1..=bytes.len() {
            let mut frames = Frames::default();
            bytes.chunks(size).for_each(|chunk| frames.take(chunk));
            let all = |wanted| -> Vec<u8> {
                frames
                    .ready
                    .iter()
                    .filter(|(stream, _)| *stream == wanted)
                    .flat_map(|(_, piece)| piece.clone())
                    .collect()
            };
            assert_eq!(
                (all(Stream::Stdout), all(Stream::Stderr)),
                (b"hi\n".to_vec(), b"err\n".to_vec()),
                "{size}"
            );
        }
    }
}
