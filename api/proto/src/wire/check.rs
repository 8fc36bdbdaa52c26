//! Completeness of a binary message: required fields present, no NaN, depth within its limit.
//!
//! Two passes over the bytes: a fast one that only detects an error, and, after an error, a slow one that locates it.
//! The slow one also merges message fields that are encoded in several parts (no known encoder writes them).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::scan::{Fields, Value};
use super::{WIRE_DEPTH_MAX, WireError};
use crate::missing::MissingFields;
use crate::path::{Path, Step};
use crate::shape::{Kind, Shape};

const NOT_A_NUMBER: &str = "NaN is not a number";
const TOO_DEEP: &str = "nested too deeply";

pub(super) fn check(shape: &'static Shape, bytes: &[u8]) -> Result<(), WireError> {
    if is_complete(shape, bytes, WIRE_DEPTH_MAX) {
        return Ok(());
    }
    let mut inspection = Inspection::default();
    inspection.inspect(shape, bytes, WIRE_DEPTH_MAX)?;
    if inspection.missing.is_empty() { Ok(()) } else { Err(WireError::Missing(inspection.missing)) }
}

fn is_complete(shape: &Shape, bytes: &[u8], depth: u32) -> bool {
    let mut seen = 0u128;
    let mut hint = 0;
    for field in Fields::new(bytes) {
        let Ok((number, value)) = field else {
            return false;
        };
        let Some(place) = shape.by_number(number, hint) else {
            continue;
        };
        hint = place;
        let fits = match (&shape.fields[place].kind, value) {
            (Kind::Message(inner), Value::Bytes(bytes)) => {
                if depth == 0 || !is_complete(inner, bytes, depth - 1) {
                    return false;
                }
                true
            }
            (kind, value) => match fit(kind, value) {
                Fit::Yes => true,
                Fit::No => false,
                Fit::NotANumber => return false,
            },
        };
        seen |= u128::from(fits) << place;
    }
    shape.required & !seen == 0
}

enum Fit {
    Yes,
    /// The wire type is another one, or the enum value is unknown: the field does not count as present.
    No,
    NotANumber,
}

fn fit(kind: &Kind, value: Value<'_>) -> Fit {
    let nan = match (kind, value) {
        (Kind::Double, Value::Fixed64(bits)) => f64::from_le_bytes(bits).is_nan(),
        #[allow(clippy::cast_possible_truncation)]
        // Enum values are the low 32 bits of their varint.
        (Kind::Enum(is_declared), Value::Varint(value)) if !is_declared(value as i32) => {
            return Fit::No;
        }
        (Kind::Varint | Kind::Enum(_), Value::Varint(_))
        | (Kind::Fixed32, Value::Fixed32(_))
        | (Kind::Fixed64, Value::Fixed64(_))
        | (Kind::Bytes | Kind::Message(_), Value::Bytes(_)) => false,
        _ => return Fit::No,
    };
    if nan { Fit::NotANumber } else { Fit::Yes }
}

#[derive(Default)]
struct Inspection {
    path: Path,
    missing: MissingFields,
}

impl Inspection {
    fn inspect(&mut self, shape: &'static Shape, bytes: &[u8], depth: u32) -> Result<(), WireError> {
        let mut seen = 0u128;
        let mut parts: BTreeMap<usize, Vec<&[u8]>> = BTreeMap::new();
        for field in Fields::new(bytes) {
            let (number, value) = field.map_err(|problem| self.malformed(problem))?;
            let Some(place) = shape.by_number(number, 0) else {
                continue;
            };
            let field = &shape.fields[place];
            match fit(&field.kind, value) {
                Fit::Yes => seen |= 1 << place,
                Fit::No => continue,
                Fit::NotANumber => {
                    self.path.push(Step::Field(field.name));
                    return Err(self.malformed(NOT_A_NUMBER));
                }
            }
            if let (Kind::Message(_), Value::Bytes(part)) = (&field.kind, value) {
                parts.entry(place).or_default().push(part);
            }
        }
        self.missing.note(&self.path, shape, shape.required & !seen);
        for (place, parts) in parts {
            self.inspect_field(shape, place, &parts, depth)?;
        }
        Ok(())
    }

    fn inspect_field(
        &mut self,
        shape: &Shape,
        place: usize,
        parts: &[&[u8]],
        depth: u32,
    ) -> Result<(), WireError> {
        let field = &shape.fields[place];
        let Kind::Message(inner) = field.kind else {
            return Ok(());
        };
        self.path.push(Step::Field(field.name));
        let depth = depth.checked_sub(1).ok_or_else(|| self.malformed(TOO_DEEP))?;
        if field.repeated {
            for (index, part) in parts.iter().enumerate() {
                self.path.push(Step::Index(index));
                self.inspect(inner, part, depth)?;
                self.path.pop();
            }
        } else {
            // Messages merge when their bytes are joined.
            let whole = if let [one] = parts { Cow::Borrowed(*one) } else { Cow::Owned(parts.concat()) };
            self.inspect(inner, &whole, depth)?;
        }
        self.path.pop();
        Ok(())
    }

    fn malformed(&self, problem: &'static str) -> WireError {
        WireError::Malformed { path: self.path.to_string(), problem }
    }
}
