//! The format of a line: `time LEVEL event field=value …`, or the same as one JSON object.
//!
//! User input cannot forge or break lines: control and bidirectional characters are escaped, long values are truncated.
//! Passwords in URLs are masked.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::time::{TIMESTAMP_BYTES, write_timestamp};

/// Values longer than this are cut.
pub const FIELD_BYTES_MAX: usize = 1024;

/// What a JSON line begins with, before the time.
pub(crate) const JSON_START: &str = "{\"time\":\"";
/// The name under which `tracing` passes the text of an event.
const EVENT_TEXT: &str = "message";

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The length in bytes of the time at the start of a line.
    pub(crate) fn time_bytes(self) -> usize {
        match self {
            LogFormat::Text => TIMESTAMP_BYTES,
            LogFormat::Json => JSON_START.len() + TIMESTAMP_BYTES,
        }
    }
}

/// A format, and whether levels are coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub format: LogFormat,
    pub colours: bool,
}

impl Style {
    /// A line about the log itself.
    pub fn own_line(self, at: SystemTime, level: Level, text: &str, count: (&'static str, u64)) -> String {
        let mut buffers = Buffers { event: text.to_owned(), ..Buffers::default() };
        Fields { format: self.format, buffers: &mut buffers }.put_bare(count.0, count.1);
        self.assemble(at, level, &mut buffers);
        buffers.line
    }

    fn assemble(self, at: SystemTime, level: Level, buffers: &mut Buffers) {
        let Buffers { event, fields, line, .. } = buffers;
        line.clear();
        match self.format {
            LogFormat::Text => {
                write_timestamp(at, line);
                line.push_str(if self.colours { coloured(level) } else { plain(level) });
                line.push_str(event);
                line.push_str(fields);
            }
            LogFormat::Json => {
                line.push_str(JSON_START);
                write_timestamp(at, line);
                line.push_str("\",\"level\":\"");
                line.push_str(level.as_str());
                line.push_str("\",\"event\":\"");
                line.push_str(event);
                line.push('"');
                line.push_str(fields);
                line.push('}');
            }
        }
        line.push('\n');
    }
}

/// The parts of a line; one per thread, so that a line needs no allocation.
#[derive(Default)]
struct Buffers {
    event: String,
    fields: String,
    /// One value before it is escaped.
    value: String,
    line: String,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Formats an event and passes the line, with its newline, to `take`.
pub(crate) fn with_line(style: Style, at: SystemTime, event: &Event<'_>, take: impl FnOnce(&str)) {
    BUFFERS.with(|buffers| {
        // A value whose formatting logs would reenter here: the inner line is dropped.
        let Ok(mut buffers) = buffers.try_borrow_mut() else { return };
        buffers.event.clear();
        buffers.fields.clear();
        event.record(&mut Fields { format: style.format, buffers: &mut buffers });
        style.assemble(at, *event.metadata().level(), &mut buffers);
        take(&buffers.line);
    });
}

fn plain(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

fn coloured(level: Level) -> &'static str {
    match level {
        Level::ERROR => " \x1b[31mERROR\x1b[0m ",
        Level::WARN => "  \x1b[33mWARN\x1b[0m ",
        Level::INFO => "  \x1b[32mINFO\x1b[0m ",
        Level::DEBUG => " \x1b[34mDEBUG\x1b[0m ",
        Level::TRACE => " \x1b[35mTRACE\x1b[0m ",
    }
}

struct Fields<'a> {
    format: LogFormat,
    buffers: &'a mut Buffers,
}

impl Fields<'_> {
    fn name(&mut self, name: &str) {
        let fields = &mut self.buffers.fields;
        match self.format {
            LogFormat::Text => {
                fields.push(' ');
                fields.push_str(name);
                fields.push('=');
            }
            LogFormat::Json => {
                fields.push_str(",\"");
                fields.push_str(name);
                fields.push_str("\":");
            }
        }
    }

    /// A number or a truth value.
    fn put_bare(&mut self, name: &str, value: impl std::fmt::Display) {
        self.name(name);
        // Writing to a string cannot fail.
        let _ = write!(self.buffers.fields, "{value}");
    }

    fn put(&mut self, name: &str, value: &str) {
        if name == EVENT_TEXT {
            return escape(value, &mut self.buffers.event);
        }
        self.name(name);
        let fields = &mut self.buffers.fields;
        if self.format == LogFormat::Text && is_bare(value) {
            return fields.push_str(value);
        }
        fields.push('"');
        escape(value, fields);
        fields.push('"');
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_bare(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_bare(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put_bare(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match value.is_finite() {
            true => self.put_bare(field.name(), value),
            false => self.put(field.name(), &value.to_string()),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = std::mem::take(&mut self.buffers.value);
        text.clear();
        // A value that cannot be formatted appears as far as it was.
        let _ = write!(text, "{value:?}");
        self.put(field.name(), &text);
        self.buffers.value = text;
    }
}

/// Whether a value needs no quotes in a text line.
fn is_bare(value: &str) -> bool {
    let simple = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@;,+*#%()[]{}".contains(&byte);
    !value.is_empty() && is_verbatim(value, simple)
}

/// Whether a value of these bytes only appears as it is: neither cut nor masked.
fn is_verbatim(value: &str, allowed: impl Fn(u8) -> bool) -> bool {
    value.len() <= FIELD_BYTES_MAX
        && value.bytes().all(allowed)
        && !(value.contains(':') && value.contains("://"))
}

/// Appends a value in the form that both formats put between quotes.
fn escape(value: &str, into: &mut String) {
    if is_verbatim(value, |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        return into.push_str(value);
    }
    let value = masked(value);
    let shown = cut(&value);
    for character in shown.chars() {
        match character {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            _ if is_hazardous(character) => {
                // Writing to a string cannot fail.
                let _ = write!(into, "\\u{:04x}", u32::from(character));
            }
            _ => into.push(character),
        }
    }
    if shown.len() < value.len() {
        let _ = write!(into, "… ({} bytes more)", value.len() - shown.len());
    }
}

/// Control characters, line separators, and characters that change the direction of text. All have four hex digits.
fn is_hazardous(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn cut(value: &str) -> &str {
    &value[..value.floor_char_boundary(FIELD_BYTES_MAX)]
}

/// The value without users and passwords in URLs.
fn masked(value: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(value);
    let mut from = 0;
    while let Some(start) = masked[from..].find("://").map(|at| from + at + "://".len()) {
        let rest = &masked[start..];
        let authority =
            rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(rest.len());
        if let Some(user) = rest[..authority].rfind('@') {
            masked.to_mut().replace_range(start..start + user, "***");
        }
        from = start;
    }
    masked
}
