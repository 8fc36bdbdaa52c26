//! The JSON reader: a pull parser over text in memory.
//!
//! Tracks the path of the current field; independent of messages.
//! Does not recurse: an unknown value of any depth is skipped in one loop, and depth is limited for recursive callers.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};

use super::error::JsonError;
use super::scan;
use crate::missing::MissingFields;
use crate::path::Path;

/// Objects and arrays inside each other, unknown ones included.
pub const JSON_DEPTH_MAX: usize = 200;

/// How much of the offending line an error quotes.
const NEAR_CHARS_MAX: usize = 40;

/// Reads one JSON text, value by value.
#[derive(Debug)]
pub struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    pub(crate) path: Path,
    pub(crate) missing: MissingFields,
}

/// The kinds of JSON values, for lookahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl Found {
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Found::Object => "an object",
            Found::Array => "an array",
            Found::String => "a string",
            Found::Number => "a number",
            Found::Boolean => "a boolean",
            Found::Null => "null",
        }
    }
}

impl<'a> JsonReader<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Result<Self, JsonError> {
        let (text, valid) = match core::str::from_utf8(json) {
            Ok(text) => (text, true),
            Err(error) => {
                let (before, _) = json.split_at(error.valid_up_to());
                (core::str::from_utf8(before).unwrap_or_default(), false)
            }
        };
        let reader = Self { text, at: 0, depth: 0, path: Path::default(), missing: MissingFields::default() };
        if valid { Ok(reader) } else { Err(Self { at: text.len(), ..reader }.syntax()) }
    }

    /// Called after the value: fails on trailing text and on absent required fields.
    pub(crate) fn finish(mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.syntax());
        }
        if self.missing.is_empty() { Ok(()) } else { Err(JsonError::Missing(self.missing)) }
    }

    /// An error about the value at the current path.
    #[cold]
    pub(crate) fn wrong(&self, problem: impl Into<String>) -> JsonError {
        JsonError::Value { path: self.path.to_string(), problem: problem.into() }
    }

    /// The kind of the next value, which stays unread.
    pub(crate) fn peek(&mut self) -> Result<Found, JsonError> {
        self.skip_space();
        match self.text.as_bytes().get(self.at) {
            Some(b'{') => Ok(Found::Object),
            Some(b'[') => Ok(Found::Array),
            Some(b'"') => Ok(Found::String),
            Some(b'-' | b'0'..=b'9') => Ok(Found::Number),
            Some(b't' | b'f') => Ok(Found::Boolean),
            Some(b'n') => Ok(Found::Null),
            Some(_) | None => Err(self.syntax()),
        }
    }

    /// Consumes a `null` if it is next.
    pub(crate) fn null(&mut self) -> Result<bool, JsonError> {
        let is_null = self.peek()? == Found::Null;
        if is_null {
            self.word("null")?;
        }
        Ok(is_null)
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, JsonError> {
        let value = self.text.as_bytes().get(self.at) == Some(&b't');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// The text of a number, which is known to be one.
    pub(crate) fn number(&mut self) -> Result<&'a str, JsonError> {
        let rest = &self.text[self.at..];
        let length = number_prefix(rest.as_bytes());
        if length == 0 {
            return Err(self.syntax());
        }
        self.at += length;
        Ok(&rest[..length])
    }

    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.byte(b'"')?;
        let start = self.at;
        self.at += scan::plain_prefix(&self.text.as_bytes()[start..]);
        let plain = &self.text[start..self.at];
        if self.text.as_bytes().get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        self.escaped_string(plain.to_string()).map(Cow::Owned)
    }

    pub(crate) fn begin_object(&mut self) -> Result<(), JsonError> {
        self.begin(b'{')
    }

    pub(crate) fn begin_array(&mut self) -> Result<(), JsonError> {
        self.begin(b'[')
    }

    /// The key of the next member, or `None` at the end of the object. `first`: directly after the brace.
    pub(crate) fn next_key(&mut self, first: bool) -> Result<Option<Cow<'a, str>>, JsonError> {
        if !self.next(first, b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.skip_space();
        self.byte(b':')?;
        Ok(Some(key))
    }

    /// Whether the array has another element. `first`: directly after the bracket.
    pub(crate) fn next_element(&mut self, first: bool) -> Result<bool, JsonError> {
        self.next(first, b']')
    }

    /// Reads over one value of any kind.
    pub(crate) fn skip_value(&mut self) -> Result<(), JsonError> {
        let outside = self.depth;
        let mut closers = [0u8; JSON_DEPTH_MAX];
        loop {
            let mut first = false;
            match self.peek()? {
                Found::Object => {
                    self.begin_object()?;
                    closers[self.depth - 1] = b'}';
                    first = true;
                }
                Found::Array => {
                    self.begin_array()?;
                    closers[self.depth - 1] = b']';
                    first = true;
                }
                Found::String => drop(self.string()?),
                Found::Number => drop(self.number()?),
                Found::Boolean => drop(self.boolean()?),
                Found::Null => self.word("null")?,
            }
            if !self.skip_to_next_value(outside, first, &closers)? {
                return Ok(());
            }
        }
    }

    /// Closes completed containers. True if another value of the skipped value follows.
    fn skip_to_next_value(
        &mut self,
        outside: usize,
        mut first: bool,
        closers: &[u8; JSON_DEPTH_MAX],
    ) -> Result<bool, JsonError> {
        while self.depth > outside {
            let closer = closers[self.depth - 1];
            let more =
                if closer == b'}' { self.next_key(first)?.is_some() } else { self.next_element(first)? };
            if more {
                return Ok(true);
            }
            first = false;
        }
        Ok(false)
    }

    /// The text between an earlier place and here.
    pub(crate) fn since(&self, place: usize) -> &'a str {
        &self.text[place..self.at]
    }

    pub(crate) fn place(&self) -> usize {
        self.at
    }

    fn begin(&mut self, opener: u8) -> Result<(), JsonError> {
        self.skip_space();
        self.byte(opener)?;
        if self.depth == JSON_DEPTH_MAX {
            return Err(JsonError::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    fn next(&mut self, first: bool, closer: u8) -> Result<bool, JsonError> {
        self.skip_space();
        if self.text.as_bytes().get(self.at) == Some(&closer) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if !first {
            self.byte(b',')?;
            self.skip_space();
        }
        Ok(true)
    }

    /// The rest of a string in which an escape (or something forbidden) was met.
    fn escaped_string(&mut self, mut value: String) -> Result<String, JsonError> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => {
                    self.at += 1;
                    value.push(self.escape()?);
                }
                Some(_) | None => return Err(self.syntax()),
            }
            let start = self.at;
            self.at += scan::plain_prefix(&self.text.as_bytes()[start..]);
            value.push_str(&self.text[start..self.at]);
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let Some(&letter) = self.text.as_bytes().get(self.at) else {
            return Err(self.syntax());
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.syntax()),
        };
        self.at += 1;
        Ok(char::from(plain))
    }

    /// `u` and four digits; a high surrogate needs its low one behind it.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        self.byte(b'u')?;
        let unit = self.four_digits()?;
        if let Some(character) = char::from_u32(unit) {
            return Ok(character);
        }
        self.byte(b'\\')?;
        self.byte(b'u')?;
        let low = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&unit) || !(0xdc00..0xe000).contains(&low) {
            return Err(self.syntax());
        }
        let pair = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        char::from_u32(pair).ok_or_else(|| self.syntax())
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or_else(|| self.syntax())?;
        let mut value = 0;
        for &digit in digits {
            value = value * 16 + char::from(digit).to_digit(16).ok_or_else(|| self.syntax())?;
        }
        self.at += 4;
        Ok(value)
    }

    #[inline]
    fn byte(&mut self, expected: u8) -> Result<(), JsonError> {
        if self.text.as_bytes().get(self.at) != Some(&expected) {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, expected: &str) -> Result<(), JsonError> {
        if !self.text[self.at..].starts_with(expected) {
            return Err(self.syntax());
        }
        self.at += expected.len();
        Ok(())
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
    }

    #[cold]
    fn syntax(&self) -> JsonError {
        let (before, after) = self.text.split_at(self.at.min(self.text.len()));
        JsonError::Syntax {
            line: 1 + before.matches('\n').count(),
            near: after.lines().next().unwrap_or_default().chars().take(NEAR_CHARS_MAX).collect(),
        }
    }
}

/// How many bytes at the start make a JSON number; none if they make none.
pub(super) fn number_prefix(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text[at] == b'0') {
        return 0;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return 0;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        if exponent == 0 {
            return 0;
        }
        at += exponent;
    }
    at
}
