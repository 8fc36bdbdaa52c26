//! Layers compressed by zstd: one frame after the other, and what is to be skipped between them.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const FRAME: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Behind any of sixteen first bytes.
const SKIPPED: &[u8] = &[0x2a, 0x4d, 0x18];

/// The header of a frame without content.
const PRIMER: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00];

/// Whether something begins as what zstd compressed does.
pub(super) fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(FRAME)
        || start.split_first().is_some_and(|(first, rest)| first >> 4 == 5 && rest.starts_with(SKIPPED))
}

/// All frames of a reader. The decoder allocates no more than the window of a frame, which has a limit.
pub(super) struct Zstd<R> {
    reader: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    pub fn new(reader: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        // The library checks the window of the first frame only.
        decoder.init(PRIMER).expect("a header that is right");
        Zstd { reader, decoder, in_frame: false }
    }

    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    pub fn into_inner(self) -> R {
        self.reader
    }

    /// Begins with the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.reader.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.reader) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(err) => return Err(damaged(&err)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink())? == bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn decode(&mut self, wanted: usize) -> io::Result<()> {
        while self.decoder.can_collect() < wanted && !self.decoder.is_finished() {
            let more = BlockDecodingStrategy::UptoBytes(wanted - self.decoder.can_collect());
            self.decoder.decode_blocks(&mut self.reader, more).map_err(|err| damaged(&err))?;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            self.in_frame = true;
            self.decode(buffer.len())?;
            match self.decoder.read(buffer)? {
                0 => self.in_frame = false,
                read => return Ok(read),
            }
        }
        Ok(0)
    }
}

fn damaged(err: &FrameDecoderError) -> io::Error {
    io::Error::other(format!("invalid zstd stream: {err}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::zstd;
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        Zstd::new(bytes).read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn concatenated_zstd_frames_are_read() {
        let skipped = [&[0x5a][..], SKIPPED, &3_u32.to_le_bytes(), b"xyz"].concat();
        let long = vec![7; 300_000];
        let all = [&skipped[..], &zstd(b"one "), &zstd(b""), &skipped, &zstd(&long), &skipped].concat();
        assert!(is_zstd(&all) && is_zstd(&zstd(b"")) && !is_zstd(b"x") && !is_zstd(b""));
        assert_eq!(read(&all).expect("whole"), [b"one ", &long[..]].concat());
        assert_eq!(read(b"").expect("nothing"), b"");
    }

    #[test]
    fn truncated_or_corrupt_zstd_is_rejected() {
        let whole = zstd(&(0..50_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        for size in [1, 4, 7, whole.len() / 2, whole.len() - 1] {
            assert!(read(&whole[..size]).is_err(), "{size}");
        }
        let skipped = [&[0x50][..], SKIPPED, &3_u32.to_le_bytes(), b"x"].concat();
        assert!(read(&skipped).is_err());
        assert!(read(&[&whole[..], b"rest"].concat()).is_err());
        // A window of some gigabytes.
        let window = [FRAME, &[0x00, 0xb8, 0x00, 0x00, 0x00]].concat();
        assert!(read(&window).expect_err("too large").to_string().contains("window_size is too big"));
    }
}
