//! Standard output: text that is safe for a terminal, colours where they are supported.
//!
//! Names are untrusted: control characters are escaped, never sent to the terminal. A closed pipe (`| head`) terminates
//! the command without an error.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use serde_json::Value;

/// Prints the text and a line break.
pub fn line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    written.and_then(|()| out.flush()).context("cannot write")
}

/// Prints a line; a closed pipe is ignored.
pub fn notice(text: &str) {
    let _ = line(text);
}

/// Prints bytes verbatim: the output of a task is not escaped, as with `cat`.
pub fn bytes(data: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(data).and_then(|()| out.flush()).context("cannot write")
}

/// Prints JSON: spread out for a person, on one line for a program.
pub fn json(value: &Value) -> Result<()> {
    line(&json_text(value, io::stdout().is_terminal()))
}

fn json_text(value: &Value, spread: bool) -> String {
    escape_json(&if spread { format!("{value:#}") } else { value.to_string() })
}

/// JSON whose strings hold no character that a terminal would act on.
pub fn escape_json(text: &str) -> String {
    // Beyond line breaks of the layout, such characters stand only in strings, where the escape means the same.
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '\n' => out.push(c),
            c if is_unsafe(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
        out
    })
}

/// Whether the error is a closed pipe.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(closed))
}

/// The text with characters that a terminal would act on made visible.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if is_unsafe(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// Control and bidirectional characters. All are below U+10000.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Whether to use colours: standard output is a capable terminal and NO_COLOR (no-color.org) is not set.
pub fn colours() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// What a piece of text means; colours follow from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Heading,
    Good,
    Busy,
    Bad,
    Quiet,
}

impl Tone {
    /// The text in this tone's colour, or as it is.
    pub fn paint(self, text: &str, colours: bool) -> String {
        let code = match self {
            Tone::Plain => return text.to_string(),
            Tone::Heading => "1",
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
        };
        if colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let table = [
            ("a\x1b[31mb\n", "a\\u{1b}[31mb\\n"),
            ("tälk 任务 🦀", "tälk 任务 🦀"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("abc\u{202e}dcba", "abc\\u{202e}dcba"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn escaped_json_is_equivalent() {
        let value = json!({"name": "a\u{9b}\u{1b}\u{7f}\u{202e}ü\n"});
        for spread in [false, true] {
            let text = json_text(&value, spread);
            assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn colours_are_optional() {
        assert_eq!(Tone::Bad.paint("lost", false), "lost");
        assert_eq!(Tone::Bad.paint("lost", true), "\x1b[31mlost\x1b[0m");
        assert_eq!(Tone::Plain.paint("lost", true), "lost");
    }
}
