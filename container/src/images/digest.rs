//! Digests: what content is called by, and the reading that finds out whether it is called right.

use std::fmt;
use std::io::{self, Read};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::fault::DocumentFault;

const PREFIX: &str = "sha256:";
const HEX_CHARS: usize = 64;

/// `sha256:` and 64 digits: safe to be a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest(String);

impl Digest {
    pub fn parse(text: &str) -> Result<Digest, DocumentFault> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.strip_prefix(PREFIX) {
            Some(hex) if hex.len() == HEX_CHARS && hex.bytes().all(is_digit) => Ok(Digest(hex.to_owned())),
            _ => Err(DocumentFault::Digest(text.to_owned())),
        }
    }

    pub fn of_hex(hex: &str) -> Result<Digest, DocumentFault> {
        Digest::parse(&format!("{PREFIX}{hex}"))
    }

    pub fn of(bytes: &[u8]) -> Digest {
        Digest::from_hash(ring::digest::digest(&SHA256, bytes).as_ref())
    }

    fn from_hash(hash: &[u8]) -> Digest {
        Digest(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn hex(&self) -> &str {
        &self.0
    }

    /// Whether `bytes` match the digest.
    pub fn check(&self, what: &str, bytes: &[u8]) -> Result<(), DocumentFault> {
        self.compare(what, &Digest::of(bytes))
    }

    pub fn compare(&self, what: &str, found: &Digest) -> Result<(), DocumentFault> {
        if self == found {
            return Ok(());
        }
        let (found, expected) = (found.to_string(), self.to_string());
        Err(DocumentFault::Damaged { what: what.to_owned(), found, expected })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = DocumentFault;

    fn try_from(text: String) -> Result<Digest, DocumentFault> {
        Digest::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// Hashes and counts what is read through it.
pub(super) struct Hashed<R> {
    reader: R,
    context: Context,
    bytes: u64,
}

impl<R: Read> Hashed<R> {
    pub fn new(reader: R) -> Hashed<R> {
        Hashed { reader, context: Context::new(&SHA256), bytes: 0 }
    }

    /// How much was read so far.
    pub fn count(&self) -> u64 {
        self.bytes
    }

    /// Of everything, including the part that was not read yet.
    pub fn finish(self) -> io::Result<Digest> {
        self.finish_with().map(|(digest, _)| digest)
    }

    /// As [`Hashed::finish`], with what was read from.
    pub fn finish_with(mut self) -> io::Result<(Digest, R)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((Digest::from_hash(self.context.finish().as_ref()), self.reader))
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.context.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_case_sha256_digests_are_accepted() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b""), Digest::parse(empty).expect("a digest"));
        for bad in ["", "sha256:", "sha512:00", &empty[7..], &empty.to_uppercase(), "sha256:../../etc"] {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
        assert!(
            Digest::of(b"").check("it", b"x").expect_err("another").to_string().contains("not sha256:e3b0")
        );
    }

    #[test]
    fn digest_includes_unread_bytes() {
        let mut hashed = Hashed::new(&b"hello"[..]);
        hashed.read_exact(&mut [0; 2]).expect("two bytes");
        assert_eq!(hashed.count(), 2);
        assert_eq!(hashed.finish().expect("read"), Digest::of(b"hello"));
    }
}
