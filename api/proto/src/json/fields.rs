//! Conversion of JSON values to message fields.
//!
//! Called by the generated `FromJson` of every message, one function per kind of slot.
//! Each function first clears its slot (the last of duplicate keys wins) and returns whether the field is set.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use buffa::{Enumeration, MessageField, ProtoBox};

use super::error::JsonError;
use super::reader::{Found, JsonReader, number_prefix};
use crate::path::Step;
use crate::shape::Shape;

/// A message that can be read from JSON, field by field.
pub trait FromJson {
    fn shape(&self) -> &'static Shape;
    /// Reads the value of the field at this place of the shape; answers whether the field is set now.
    fn read_field(&mut self, place: usize, reader: &mut JsonReader<'_>) -> Result<bool, JsonError>;
}

/// The value of a field or list element. `None`: an enum value unknown to this version.
pub(crate) trait FieldValue: Sized {
    fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError>;
}

/// One loop for all messages, so that it is compiled once.
pub(crate) fn read_message(message: &mut dyn FromJson, reader: &mut JsonReader<'_>) -> Result<(), JsonError> {
    let found = reader.peek()?;
    if found != Found::Object {
        let at_top = reader.path.is_empty();
        return Err(if at_top { JsonError::NotAnObject } else { unexpected(reader, "an object", found) });
    }
    reader.begin_object()?;
    let shape = message.shape();
    let mut seen = 0u128;
    let mut hint = 0;
    let mut first = true;
    while let Some(key) = reader.next_key(first)? {
        first = false;
        let Some(place) = shape.by_name(&key, hint) else {
            reader.skip_value()?;
            continue;
        };
        hint = place + 1;
        let bit = 1 << place;
        reader.path.push(Step::Field(shape.fields[place].name));
        if seen & bit != 0 {
            reader.missing.forget_inside(&reader.path);
        }
        seen = if message.read_field(place, reader)? { seen | bit } else { seen & !bit };
        reader.path.pop();
    }
    reader.missing.note(&reader.path, shape, shape.required & !seen);
    Ok(())
}

pub(crate) fn required<T: FieldValue + Default>(
    slot: &mut T,
    reader: &mut JsonReader<'_>,
) -> Result<bool, JsonError> {
    *slot = T::default();
    if reader.null()? {
        return Ok(false);
    }
    let start = reader.place();
    match T::read(reader)? {
        Some(value) => *slot = value,
        None => return Err(reader.wrong(format!("unknown value {}", reader.since(start)))),
    }
    Ok(true)
}

pub(crate) fn optional<T: FieldValue>(
    slot: &mut Option<T>,
    reader: &mut JsonReader<'_>,
) -> Result<bool, JsonError> {
    *slot = if reader.null()? { None } else { T::read(reader)? };
    Ok(slot.is_some())
}

pub(crate) fn repeated<T: FieldValue>(
    slot: &mut Vec<T>,
    reader: &mut JsonReader<'_>,
) -> Result<bool, JsonError> {
    slot.clear();
    read_list(slot, reader, T::read)?;
    Ok(true)
}

pub(crate) fn message<M, P>(
    slot: &mut MessageField<M, P>,
    reader: &mut JsonReader<'_>,
) -> Result<bool, JsonError>
where
    M: FromJson + Default,
    P: ProtoBox<M>,
{
    *slot = MessageField::none();
    if reader.null()? {
        return Ok(false);
    }
    read_message(slot.get_or_insert_default(), reader)?;
    Ok(true)
}

pub(crate) fn map<V: FieldValue>(
    slot: &mut BTreeMap<String, V>,
    reader: &mut JsonReader<'_>,
) -> Result<bool, JsonError> {
    slot.clear();
    match reader.peek()? {
        Found::Null => return reader.null().map(|_| false),
        Found::Object => reader.begin_object()?,
        found => return Err(unexpected(reader, "an object", found)),
    }
    let mut first = true;
    while let Some(key) = reader.next_key(first)? {
        first = false;
        reader.path.push(Step::Key(key.to_string()));
        if slot.remove(&*key).is_some() {
            reader.missing.forget_inside(&reader.path);
        }
        if !reader.null()?
            && let Some(value) = V::read(reader)?
        {
            slot.insert(key.into_owned(), value);
        }
        reader.path.pop();
    }
    Ok(true)
}

/// The elements of an array, or a bare value as the only one. Nulls and unknown enum values are left out.
pub(crate) fn read_list<'a, T>(
    list: &mut Vec<T>,
    reader: &mut JsonReader<'a>,
    mut read: impl FnMut(&mut JsonReader<'a>) -> Result<Option<T>, JsonError>,
) -> Result<(), JsonError> {
    match reader.peek()? {
        Found::Null => return reader.null().map(|_| ()),
        Found::Array => reader.begin_array()?,
        Found::Object | Found::String | Found::Number | Found::Boolean => {
            list.extend(read(reader)?);
            return Ok(());
        }
    }
    let mut index = 0;
    while reader.next_element(index == 0)? {
        reader.path.push(Step::Index(index));
        if !reader.null()? {
            list.extend(read(reader)?);
        }
        reader.path.pop();
        index += 1;
    }
    Ok(())
}

pub(crate) fn read_enum<E: Enumeration>(reader: &mut JsonReader<'_>) -> Result<Option<E>, JsonError> {
    Ok(E::from_proto_name(&text(reader, "the name of a value")?))
}

impl FieldValue for String {
    fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
        Ok(Some(text(reader, "a string")?.into_owned()))
    }
}

impl FieldValue for Vec<u8> {
    fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
        /// Padding may be left out, as some clients do.
        const BASE64: GeneralPurpose = GeneralPurpose::new(
            &alphabet::STANDARD,
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
        );
        let encoded = text(reader, "a string of base64")?;
        match BASE64.decode(encoded.as_bytes()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => Err(reader.wrong(format!("not base64: {error}"))),
        }
    }
}

impl FieldValue for bool {
    fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
        match reader.peek()? {
            Found::Boolean => reader.boolean().map(Some),
            Found::String => match &*reader.string()? {
                "true" => Ok(Some(true)),
                "false" => Ok(Some(false)),
                other => Err(reader.wrong(format!("expected a boolean, found the string {other:?}"))),
            },
            found @ (Found::Object | Found::Array | Found::Number | Found::Null) => {
                Err(unexpected(reader, "a boolean", found))
            }
        }
    }
}

impl FieldValue for f64 {
    fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
        let text = number_text(reader)?;
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() || is_infinity(&text) => Ok(Some(value)),
            Ok(_) | Err(_) => Err(reader.wrong(format!("{text} is out of range for a double"))),
        }
    }
}

macro_rules! integers {
    ($($integer:ty, $name:literal;)*) => {$(
        impl FieldValue for $integer {
            fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
                let text = number_text(reader)?;
                let whole = || whole_part(&text).and_then(|value| <$integer>::try_from(value).ok());
                match text.parse().ok().or_else(whole) {
                    Some(value) => Ok(Some(value)),
                    None => Err(reader.wrong(format!(concat!("{} is out of range for ", $name), text))),
                }
            }
        }
    )*};
}
integers! {
    i32, "a 32-bit integer";
    i64, "a 64-bit integer";
    u32, "an unsigned 32-bit integer";
    u64, "an unsigned 64-bit integer";
}

/// The number without its fraction, if it fits.
fn whole_part(number: &str) -> Option<i128> {
    if let Ok(value) = number.parse::<i128>() {
        return Some(value);
    }
    let value: f64 = number.parse().ok()?;
    #[allow(clippy::cast_possible_truncation)]
    // Truncates the fraction on purpose; the bound makes the cast exact.
    (value.abs() < 1e30).then_some(value as i128)
}

/// The text of a number, bare or as a string; a string may also name an infinity.
fn number_text<'a>(reader: &mut JsonReader<'a>) -> Result<Cow<'a, str>, JsonError> {
    match reader.peek()? {
        Found::Number => Ok(Cow::Borrowed(reader.number()?)),
        Found::String => {
            let text = reader.string()?;
            let is_number = !text.is_empty() && number_prefix(text.as_bytes()) == text.len();
            if is_number || is_infinity(&text) {
                return Ok(text);
            }
            Err(reader.wrong(format!("expected a number, found the string {text:?}")))
        }
        found @ (Found::Object | Found::Array | Found::Boolean | Found::Null) => {
            Err(unexpected(reader, "a number", found))
        }
    }
}

fn is_infinity(text: &str) -> bool {
    matches!(text, "Infinity" | "-Infinity")
}

fn text<'a>(reader: &mut JsonReader<'a>, expected: &str) -> Result<Cow<'a, str>, JsonError> {
    match reader.peek()? {
        Found::String => reader.string(),
        found => Err(unexpected(reader, expected, found)),
    }
}

#[cold]
fn unexpected(reader: &JsonReader<'_>, expected: &str, found: Found) -> JsonError {
    reader.wrong(format!("expected {expected}, found {}", found.with_article()))
}
