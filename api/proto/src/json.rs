//! The JSON form of the v1 messages, both ways.
//!
//! Out: field names and enum values verbatim, in order of declaration; bytes as base64; 64-bit integers as numbers; doubles always with a
//! fraction or an exponent, infinities as `"Infinity"` and `"-Infinity"`. Unset and empty fields are omitted, except that a field with
//! an explicit default that is not deprecated is written with its default.
//! In: the reverse, and lenient where v1 is: unknown fields ignored, `null` means unset, numbers and booleans also as strings, fractions
//! truncated for integers, a bare value for a list of one, an unknown enum value dropped unless the field is required. Everything else
//! that does not fit is an error with its path, and so is every absent required field.
//! NaN is rejected in all input (here and in [`crate::wire`]), so no message of a peer contains it.

use alloc::vec::Vec;

mod error;
pub(crate) mod fields;
mod reader;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

pub use error::JsonError;
pub use fields::FromJson;
pub use reader::{JSON_DEPTH_MAX, JsonReader};
pub use writer::{JsonWriter, ToJson};

/// One message from JSON text; trailing text is an error.
pub fn from_slice<M: FromJson + Default>(json: &[u8]) -> Result<M, JsonError> {
    let mut reader = JsonReader::new(json)?;
    let mut message = M::default();
    fields::read_message(&mut message, &mut reader)?;
    reader.finish()?;
    Ok(message)
}

/// Messages from JSON text that is an array of them, or one of them.
pub fn list_from_slice<M: FromJson + Default>(json: &[u8]) -> Result<Vec<M>, JsonError> {
    let mut reader = JsonReader::new(json)?;
    let mut messages = Vec::new();
    fields::read_list(&mut messages, &mut reader, |reader| {
        let mut message = M::default();
        fields::read_message(&mut message, reader)?;
        Ok(Some(message))
    })?;
    reader.finish()?;
    Ok(messages)
}

/// The JSON text of a value.
#[must_use]
pub fn to_vec<T: ToJson + ?Sized>(value: &T) -> Vec<u8> {
    let mut writer = JsonWriter::new();
    value.write_json(&mut writer);
    writer.into_vec()
}
