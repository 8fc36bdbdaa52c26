//! The binary form of the messages, both ways, and the trait that all of them share.
//!
//! The underlying decoder ignores required fields and NaN; `decode` checks both on the bytes first and reports errors by path.
//! Unknown fields are preserved.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use buffa::{DecodeError, DecodeOptions, Message};

use crate::json::{FromJson, ToJson};
use crate::missing::MissingFields;

mod check;
mod scan;
mod size;
#[cfg(test)]
mod tests;

pub use size::{Oversize, check_size, size};

/// A message of the v1 API or of our own links: binary and JSON, in and out.
///
/// The methods have no type parameters and are implemented per message, so that the code behind them is compiled once, in this crate,
/// and not again in every crate that encodes or decodes. Call [`encode`], [`decode`], [`decode_record`] and [`crate::json`]; the generic
/// methods of `Message` are not exported for the same reason.
pub trait Wire: Message + ToJson + FromJson + fmt::Debug {
    #[doc(hidden)]
    fn encode_wire(&self) -> Vec<u8>;
    #[doc(hidden)]
    fn decode_wire(bytes: &[u8], options: &DecodeOptions) -> Result<Self, DecodeError>
    where
        Self: Sized;
}

/// Messages inside each other; the decoder's own limit, checked first by us to name the place.
pub const WIRE_DEPTH_MAX: u32 = buffa::RECURSION_LIMIT;

/// What elements of lists and maps may take in memory for each byte of input, so that a small body cannot become a large heap.
const ELEMENT_BYTES_PER_INPUT_BYTE_MAX: usize = 16;
/// What they may take in any case.
const ELEMENT_BYTES_MIN: usize = buffa::DEFAULT_ELEMENT_MEMORY_LIMIT;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// More than the caller's limit.
    TooLarge {
        bytes: usize,
        limit: usize,
    },
    /// Not protobuf, or not of this message, in the part named by `path` (empty: the whole).
    Malformed {
        path: String,
        problem: &'static str,
    },
    /// The decoder refused it.
    Decode(DecodeError),
    Missing(MissingFields),
}

/// One message from its binary form of at most `limit` bytes.
pub fn decode<M: Wire>(bytes: &[u8], limit: usize) -> Result<M, WireError> {
    if bytes.len() > limit {
        return Err(WireError::TooLarge { bytes: bytes.len(), limit });
    }
    check::check(M::default_instance().shape(), bytes)?;
    let options = DecodeOptions::new().with_max_message_size(limit).with_element_memory_limit(
        ELEMENT_BYTES_MIN.max(bytes.len().saturating_mul(ELEMENT_BYTES_PER_INPUT_BYTE_MAX)),
    );
    M::decode_wire(bytes, &options).map_err(WireError::Decode)
}

/// One message from a stored record, which may lack required fields that were added later: only the encoding is checked.
pub fn decode_record<M: Wire>(bytes: &[u8]) -> Result<M, DecodeError> {
    M::decode_wire(bytes, &DecodeOptions::new())
}

/// The binary form of a message.
///
/// # Panics
///
/// If it would exceed the 2 GiB limit of protobuf, which is far above our own limits.
#[must_use]
pub fn encode<M: Wire>(message: &M) -> Vec<u8> {
    message.encode_wire()
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "message of {bytes} bytes exceeds the limit of {limit}")
            }
            Self::Malformed { path, problem } if path.is_empty() => f.write_str(problem),
            Self::Malformed { path, problem } => write!(f, "{path}: {problem}"),
            Self::Decode(error) => error.fmt(f),
            Self::Missing(missing) => missing.fmt(f),
        }
    }
}

impl core::error::Error for WireError {}
