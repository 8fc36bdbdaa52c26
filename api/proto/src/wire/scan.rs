//! Splits the bytes of one message into its fields; independent of shapes.

use super::WIRE_DEPTH_MAX;

/// The fields of one message in the order of the input, up to the first error.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// The value of a field as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(&'a [u8]),
    Group,
}

pub(super) const TRUNCATED: &str = "truncated";
const BAD_VARINT: &str = "a varint is longer than ten bytes";
const BAD_NUMBER: &str = "a field number is out of range";
const BAD_WIRE_TYPE: &str = "an unknown wire type";
const BAD_GROUP: &str = "an end of group without its start";
const DEEP_GROUP: &str = "groups are nested too deeply";

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), &'static str> {
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            3 => self.group(number)?,
            4 => return Err(BAD_GROUP),
            plain => self.plain(plain)?,
        };
        Ok((number, value))
    }

    /// Reads over a group: unknown by definition, v1 has none.
    fn group(&mut self, number: u32) -> Result<Value<'a>, &'static str> {
        let mut open = [0u32; WIRE_DEPTH_MAX as usize];
        open[0] = number;
        let mut depth = 1;
        while depth > 0 {
            let (number, wire_type) = self.tag()?;
            match wire_type {
                3 => {
                    *open.get_mut(depth).ok_or(DEEP_GROUP)? = number;
                    depth += 1;
                }
                4 if open[depth - 1] == number => depth -= 1,
                4 => return Err(BAD_GROUP),
                plain => drop(self.plain(plain)?),
            }
        }
        Ok(Value::Group)
    }

    fn plain(&mut self, wire_type: u8) -> Result<Value<'a>, &'static str> {
        match wire_type {
            0 => self.varint().map(Value::Varint),
            1 => self.fixed().map(Value::Fixed64),
            2 => self.bytes().map(Value::Bytes),
            5 => self.fixed().map(Value::Fixed32),
            _ => Err(BAD_WIRE_TYPE),
        }
    }

    fn tag(&mut self) -> Result<(u32, u8), &'static str> {
        let tag = u32::try_from(self.varint()?).map_err(|_| BAD_NUMBER)?;
        match tag >> 3 {
            0 => Err(BAD_NUMBER),
            number => Ok((number, (tag & 7) as u8)),
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0u64;
        for (place, &byte) in self.rest.iter().enumerate() {
            if place == 10 {
                return Err(BAD_VARINT);
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Ok(value);
            }
        }
        Err(TRUNCATED)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(self.varint()?).map_err(|_| TRUNCATED)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), &'static str>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
