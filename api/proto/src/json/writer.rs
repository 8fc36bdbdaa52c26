//! The JSON writer: writes values into a byte buffer, with commas and escapes.
//!
//! Used by the generated `ToJson` of every message and by hand-written endpoints, which may flush completed parts
//! (`spilling`), so that a large answer is sent while it is rendered. Independent of messages.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::scan;

/// Doubles from here on may be spelled with an exponent, which v1 writes without a plus sign.
const EXPONENT_FROM: f64 = 1e15;

/// Anything with one JSON form.
pub trait ToJson {
    fn write_json(&self, w: &mut JsonWriter);
}

/// Writes one JSON value piece by piece.
///
/// ```
/// use tepui_proto::json::JsonWriter;
///
/// let mut w = JsonWriter::new();
/// w.object(|w| {
///     w.field("cluster", "demo");
///     w.field("activated_agents", &2);
///     w.array_field("tasks", |w| {
///         for id in ["a", "b"] {
///             w.object(|w| w.field("id", id));
///         }
///     });
/// });
/// assert_eq!(w.into_vec(), br#"{"cluster":"demo","activated_agents":2,"tasks":[{"id":"a"},{"id":"b"}]}"#);
/// ```
#[derive(Debug)]
pub struct JsonWriter {
    out: Vec<u8>,
    /// Whether the next key or value needs a comma before it.
    comma: bool,
    /// From this size on, the next end of an object or `flush_if_large` passes the buffer to `spill`.
    spill_at: usize,
    spill: Option<Spill>,
}

struct Spill(Box<dyn FnMut(Vec<u8>) + Send>);

impl core::fmt::Debug for Spill {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Spill")
    }
}

impl Default for JsonWriter {
    fn default() -> Self {
        Self { out: Vec::new(), comma: false, spill_at: usize::MAX, spill: None }
    }
}

impl JsonWriter {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// A writer that flushes its buffer at the end of an object once it exceeds `bytes`, for answers that are sent while
    /// they are rendered. The rest is returned by [`JsonWriter::into_vec`].
    pub fn spilling(bytes: usize, spill: impl FnMut(Vec<u8>) + Send + 'static) -> Self {
        let spill = Some(Spill(Box::new(spill)));
        Self { out: Vec::with_capacity(bytes), comma: false, spill_at: bytes, spill }
    }

    /// Bytes written and not handed over yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.out
    }

    /// An object whose members `members` writes.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.begin_object();
        members(self);
        self.end_object();
    }

    /// An array whose elements `elements` writes.
    pub fn array(&mut self, elements: impl FnOnce(&mut Self)) {
        self.begin_array();
        elements(self);
        self.end_array();
    }

    /// A member of the current object.
    pub fn field<T: ToJson + ?Sized>(&mut self, name: &str, value: &T) {
        self.key(name);
        value.write_json(self);
    }

    /// A member of the current object, omitted if there is no value.
    pub fn optional_field<T: ToJson + ?Sized>(&mut self, name: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// A member that is an object.
    pub fn object_field(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.key(name);
        self.object(members);
    }

    /// A member that is an array.
    pub fn array_field(&mut self, name: &str, elements: impl FnOnce(&mut Self)) {
        self.key(name);
        self.array(elements);
    }

    /// An array element or the value of a key.
    pub fn value<T: ToJson + ?Sized>(&mut self, value: &T) {
        value.write_json(self);
    }

    pub fn begin_object(&mut self) {
        self.separate();
        self.out.push(b'{');
        self.comma = false;
    }

    pub fn end_object(&mut self) {
        self.out.push(b'}');
        self.comma = true;
        self.flush_if_large();
    }

    /// Flushes the buffer if it is large enough: for objects too large to wait for their end.
    pub fn flush_if_large(&mut self) {
        if self.out.len() >= self.spill_at {
            self.spill();
        }
    }

    pub fn begin_array(&mut self) {
        self.separate();
        self.out.push(b'[');
        self.comma = false;
    }

    pub fn end_array(&mut self) {
        self.out.push(b']');
        self.comma = true;
    }

    /// The key of the next value.
    pub fn key(&mut self, name: &str) {
        self.string(name);
        self.out.push(b':');
        self.comma = false;
    }

    /// A key that is already quoted, escaped and followed by its colon.
    #[inline]
    pub(crate) fn quoted_key(&mut self, key: &'static str) {
        self.separate();
        self.out.extend_from_slice(key.as_bytes());
        self.comma = false;
    }

    #[inline]
    pub fn string(&mut self, text: &str) {
        self.separate();
        self.out.push(b'"');
        let mut rest = text.as_bytes();
        loop {
            let plain = scan::plain_prefix(rest);
            self.out.extend_from_slice(&rest[..plain]);
            let Some(&special) = rest.get(plain) else {
                break;
            };
            self.escaped(special);
            rest = &rest[plain + 1..];
        }
        self.out.push(b'"');
        self.comma = true;
    }

    /// A name that needs no escapes, such as that of an enum value.
    pub(crate) fn plain_name(&mut self, name: &str) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'"');
        self.comma = true;
    }

    /// Bytes as a string of padded base64.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.separate();
        self.out.push(b'"');
        let start = self.out.len();
        let length = bytes.len().div_ceil(3) * 4;
        self.out.resize(start + length, 0);
        STANDARD.encode_slice(bytes, &mut self.out[start..]).expect("the room was made to fit");
        self.out.push(b'"');
        self.comma = true;
    }

    pub fn boolean(&mut self, value: bool) {
        self.literal(if value { b"true" } else { b"false" });
    }

    pub fn null(&mut self) {
        self.literal(b"null");
    }

    #[inline]
    pub fn integer(&mut self, value: impl itoa::Integer) {
        self.literal(itoa::Buffer::new().format(value).as_bytes());
    }

    /// The shortest text that reads back as the same number, always with a fraction or an exponent. Infinities are strings.
    /// JSON has no NaN: readers reject it, and a NaN computed here is written as null.
    #[inline]
    pub fn double(&mut self, value: f64) {
        if value.abs() < EXPONENT_FROM {
            self.literal(zmij::Buffer::new().format_finite(value).as_bytes());
        } else {
            self.large(value);
        }
    }

    /// A value that is JSON already, such as a cached one.
    pub fn raw(&mut self, json: &[u8]) {
        self.literal(json);
    }

    #[cold]
    fn spill(&mut self) {
        let room = Vec::with_capacity(self.out.len());
        let written = core::mem::replace(&mut self.out, room);
        if let Some(Spill(spill)) = &mut self.spill {
            spill(written);
        }
    }

    #[cold]
    fn large(&mut self, value: f64) {
        if value.is_nan() {
            self.null();
        } else if value.is_infinite() {
            self.plain_name(if value > 0.0 { "Infinity" } else { "-Infinity" });
        } else {
            let mut buffer = zmij::Buffer::new();
            let text = buffer.format_finite(value).bytes();
            let text: Vec<u8> = text.filter(|byte| *byte != b'+').collect();
            self.literal(&text);
        }
    }

    #[inline]
    fn literal(&mut self, text: &[u8]) {
        self.separate();
        self.out.extend_from_slice(text);
        self.comma = true;
    }

    #[inline]
    fn separate(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
    }

    #[cold]
    fn escaped(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            other => {
                let [high, low] = [other >> 4, other & 15].map(|digit| HEX[usize::from(digit)]);
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}

impl ToJson for str {
    fn write_json(&self, w: &mut JsonWriter) {
        w.string(self);
    }
}

impl ToJson for String {
    fn write_json(&self, w: &mut JsonWriter) {
        w.string(self);
    }
}

impl ToJson for bool {
    fn write_json(&self, w: &mut JsonWriter) {
        w.boolean(*self);
    }
}

impl ToJson for f64 {
    fn write_json(&self, w: &mut JsonWriter) {
        w.double(*self);
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl ToJson for $integer {
            fn write_json(&self, w: &mut JsonWriter) {
                w.integer(*self);
            }
        }
    )*};
}
integers!(i32 i64 u16 u32 u64 usize);

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, w: &mut JsonWriter) {
        (**self).write_json(w);
    }
}

impl<T: ToJson> ToJson for [T] {
    fn write_json(&self, w: &mut JsonWriter) {
        w.array(|w| self.iter().for_each(|element| element.write_json(w)));
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, w: &mut JsonWriter) {
        self.as_slice().write_json(w);
    }
}

impl<T: ToJson> ToJson for BTreeMap<String, T> {
    fn write_json(&self, w: &mut JsonWriter) {
        w.object(|w| self.iter().for_each(|(name, value)| w.field(name, value)));
    }
}
