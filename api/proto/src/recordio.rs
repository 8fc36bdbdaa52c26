//! RecordIO, the framing of event streams: the length of a record in decimal, a line feed, the record, no terminator.
//!
//! A push parser for chunks of any size; performs no I/O.

use alloc::vec::Vec;
use core::fmt;

/// The longest header: the digits of the largest length, and the line feed is not one of them.
pub const RECORD_LENGTH_DIGITS_MAX: usize = 20;

/// A record with its header in front.
#[must_use]
pub fn encode(record: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(record.len() + RECORD_LENGTH_DIGITS_MAX);
    encode_into(record, &mut framed);
    framed
}

/// Appends a record with its header in front.
pub fn encode_into(record: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(record.len()).as_bytes());
    out.push(b'\n');
    out.extend_from_slice(record);
}

/// Decodes chunks into records.
///
/// ```
/// use tepui_proto::recordio::Decoder;
///
/// let mut decoder = Decoder::new(1024);
/// decoder.push(b"5\nhello3\nw");
/// assert_eq!(decoder.next(), Some(Ok(b"hello".to_vec())));
/// assert_eq!(decoder.next(), None); // Until more comes.
/// decoder.push(b"ld");
/// assert_eq!(decoder.next(), Some(Ok(b"wld".to_vec())));
/// ```
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the unread part of the buffer begins.
    start: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Record { bytes: usize },
    Broken,
}

/// After an error the rest of the stream cannot be decoded: close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The header is not a decimal number and a line feed.
    BadHeader,
    /// The header announces more than the limit.
    TooLarge { bytes: usize, limit: usize },
    /// The stream ended inside a record.
    Truncated,
}

impl Decoder {
    /// Records of more than `limit` bytes are an error.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), start: 0, state: State::Header }
    }

    /// Adds a chunk. Take all complete records before pushing the next one, and the buffer stays below the limit plus one chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.state == State::Broken {
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Called at the end of the stream: fails on an incomplete record.
    pub fn finish(&self) -> Result<(), RecordError> {
        match self.state {
            State::Header if self.unread().is_empty() => Ok(()),
            State::Header | State::Record { .. } => Err(RecordError::Truncated),
            State::Broken => Ok(()), // Reported already.
        }
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads the header. `None`: it is incomplete.
    fn header(&mut self) -> Option<Result<usize, RecordError>> {
        let header = self.unread();
        let header = &header[..header.len().min(RECORD_LENGTH_DIGITS_MAX + 1)];
        let Some(length) = header.iter().position(|byte| *byte == b'\n') else {
            let hopeless = header.len() > RECORD_LENGTH_DIGITS_MAX || !header.iter().all(u8::is_ascii_digit);
            return hopeless.then_some(Err(RecordError::BadHeader));
        };
        let bytes = parse_length(&header[..length]);
        self.start += length + 1;
        Some(match bytes {
            Some(bytes) if bytes > self.limit => Err(RecordError::TooLarge { bytes, limit: self.limit }),
            Some(bytes) => Ok(bytes),
            None => Err(RecordError::BadHeader),
        })
    }
}

impl Iterator for Decoder {
    type Item = Result<Vec<u8>, RecordError>;

    /// The next complete record. `None`: more input is needed, or an error was returned before.
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = match self.state {
            State::Broken => return None,
            State::Record { bytes } => bytes,
            State::Header => match self.header()? {
                Ok(bytes) => bytes,
                Err(error) => {
                    *self = Self { state: State::Broken, ..Self::new(self.limit) };
                    return Some(Err(error));
                }
            },
        };
        self.state = State::Record { bytes };
        let record = self.unread().get(..bytes)?.to_vec();
        self.start += bytes;
        self.state = State::Header;
        Some(Ok(record))
    }
}

/// Decimal digits only; a number too large to count is no length either.
fn parse_length(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0usize, |length, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        length.checked_mul(10)?.checked_add(usize::from(digit))
    })
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadHeader => f.write_str("a record must begin with its length in decimal and a line feed"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "record of {bytes} bytes exceeds the limit of {limit}")
            }
            Self::Truncated => f.write_str("the stream ended inside a record"),
        }
    }
}

impl core::error::Error for RecordError {}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use alloc::{format, vec};

    use super::{Decoder, RecordError, encode, encode_into};

    const LIMIT: usize = 12;

    /// Decodes a stream in chunks of `size`: records, then the error or the final state.
    fn decode(stream: &[u8], size: usize) -> Vec<String> {
        let mut decoder = Decoder::new(LIMIT);
        let mut said = vec![];
        for chunk in stream.chunks(size) {
            decoder.push(chunk);
            for record in decoder.by_ref() {
                said.push(match record {
                    Ok(record) => String::from_utf8(record).expect("text in this test"),
                    Err(error) => format!("error: {error}"),
                });
            }
        }
        said.extend(decoder.finish().err().map(|error| format!("error: {error}")));
        said
    }

    #[test]
    fn records_split_at_any_byte_are_decoded() {
        let bad_header = "error: a record must begin with its length in decimal and a line feed";
        let truncated = "error: the stream ended inside a record";
        let too_large = "error: record of 13 bytes exceeds the limit of 12";
        let table: [(&str, &[&str]); 13] = [
            ("", &[]),
            ("5\nhello", &["hello"]),
            ("5\nhello0\n2\nab", &["hello", "", "ab"]),
            ("3\n1\n2", &["1\n2"]),
            ("12\nabcdefghijkl", &["abcdefghijkl"]),
            ("007\n1234567", &["1234567"]),
            ("13\nabcdefghijklm", &[too_large]),
            ("1\na13\n", &["a", too_large]),
            ("5\nhell", &[truncated]),
            ("5", &[truncated]),
            ("\nx", &[bad_header]),
            ("5x\nhello", &[bad_header]),
            ("999999999999999999999\n", &[bad_header]),
        ];
        for (stream, expected) in table {
            for size in 1..=stream.len().max(1) {
                assert_eq!(decode(stream.as_bytes(), size), expected, "{stream:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn invalid_headers_fail_immediately() {
        for stream in ["-1\n", "+5\nhello", " 5\nhello", "00000000000000000000000"] {
            let mut decoder = Decoder::new(LIMIT);
            decoder.push(stream.as_bytes());
            assert_eq!(decoder.next(), Some(Err(RecordError::BadHeader)), "{stream:?}");
            decoder.push(b"1\na");
            assert_eq!(decoder.next(), None, "nothing follows an error");
        }
    }

    #[test]
    fn records_round_trip() {
        let mut stream = encode(b"{}");
        encode_into(b"", &mut stream);
        assert_eq!(stream, b"2\n{}0\n");
        assert_eq!(decode(&stream, 1), ["{}".to_string(), String::new()]);
    }
}
