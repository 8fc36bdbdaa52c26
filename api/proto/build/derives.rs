//! Moves `Clone` of the generated messages out of line.
//!
//! A derived `clone` is `#[inline]`: every crate that clones a message would compile the clones of everything inside it again. The
//! implementations written here are compiled once, in this crate. `Default` stays derived: a struct update is cheap only when inlined.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// What the generator derives for a message.
const DERIVED: &str = "#[derive(Clone, PartialEq, Default)]";
const LEFT_DERIVED: &str = "#[derive(PartialEq, Default)]";

/// Rewrites the generated files of every package in `out`.
pub fn move_out_of_line(out: &Path) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path)?;
            if source.contains(DERIVED) {
                std::fs::write(&path, rewritten(&source)?)?;
            }
        }
    }
    Ok(())
}

fn rewritten(source: &str) -> io::Result<String> {
    let mut out = String::with_capacity(source.len());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix(DERIVED) else {
            out += line;
            out.push('\n');
            continue;
        };
        writeln!(out, "{indent}{LEFT_DERIVED}").expect("writing to a string");
        let message = Message::copy(&mut lines, indent, &mut out)?;
        message.write_clone(&mut out);
    }
    Ok(out)
}

struct Message<'a> {
    name: &'a str,
    fields: Vec<&'a str>,
}

impl<'a> Message<'a> {
    /// Copies the lines of a struct to `out` and takes its name and its fields from them.
    fn copy(lines: &mut impl Iterator<Item = &'a str>, indent: &str, out: &mut String) -> io::Result<Self> {
        let mut message = Message { name: "", fields: Vec::new() };
        for line in lines {
            out.push_str(line);
            out.push('\n');
            let text = line.trim_start();
            if let Some(rest) = text.strip_prefix("pub struct ") {
                message.name = rest.split([' ', ';']).next().unwrap_or_default();
            } else if let Some((field, _)) = text.strip_prefix("pub ").and_then(|rest| rest.split_once(':')) {
                message.fields.push(field);
            }
            if line.strip_prefix(indent) == Some("}") && !message.name.is_empty() {
                return Ok(message);
            }
        }
        Err(io::Error::other("a generated struct has no end"))
    }

    fn write_clone(&self, out: &mut String) {
        let Self { name, fields } = self;
        write!(out, "impl Clone for {name} {{ fn clone(&self) -> Self {{ Self {{")
            .expect("writing to a string");
        for field in fields {
            write!(out, " {field}: Clone::clone(&self.{field}),").expect("writing to a string");
        }
        out.push_str(" } } }\n");
    }
}
