//! How large a message is, and which of its fields makes it so.

use core::fmt;

use super::scan::{Fields, Value};
use super::{Wire, encode};

/// A message above its size limit. Displayed as the second half of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversize {
    pub bytes: usize,
    pub limit: usize,
    /// The largest field and its size in bytes.
    pub field: Option<(&'static str, usize)>,
}

/// The bytes of its binary form, without making that.
#[must_use]
pub fn size<M: Wire>(message: &M) -> usize {
    message.encoded_len() as usize
}

/// Whether a message takes at most `limit` bytes.
pub fn check_size<M: Wire>(message: &M, limit: usize) -> Result<(), Oversize> {
    match size(message) {
        bytes if bytes <= limit => Ok(()),
        bytes => Err(Oversize { bytes, limit, field: largest_field(message) }),
    }
}

fn largest_field<M: Wire>(message: &M) -> Option<(&'static str, usize)> {
    let (bytes, shape) = (encode(message), message.shape());
    let taken = |number: u32| -> usize {
        let own = Fields::new(&bytes).flatten().filter(|(other, _)| *other == number);
        own.map(|(_, value)| if let Value::Bytes(bytes) = value { bytes.len() } else { 0 }).sum()
    };
    let fields = shape.fields.iter().map(|field| (field.name, taken(field.number)));
    fields.max_by_key(|(_, bytes)| *bytes)
}

impl fmt::Display for Oversize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "takes {} bytes, more than the limit of {}", self.bytes, self.limit)?;
        match self.field {
            Some((name, bytes)) => write!(f, "; its field '{name}' takes {bytes}"),
            None => Ok(()),
        }
    }
}
