//! Just enough Rust for the checks: source files, code without comments and strings, paths, names of items.
//!
//! Relies on rustfmt's layout instead of a parser.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file, named relative to the workspace.
pub struct Source {
    pub name: String,
    pub text: String,
}

pub fn sources(root: &Path, groups: &[&str]) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    for group in groups {
        collect(&root.join(group), &mut files)?;
    }
    files.sort();
    let read = |path: PathBuf| -> Result<Source> {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        Ok(Source { name, text: fs::read_to_string(&path)? })
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

pub fn is_test(name: &str) -> bool {
    name.ends_with("tests.rs") || name.contains("/tests/")
}

/// The part before the inline tests, which rustfmt and habit keep last.
pub fn production_part(text: &str) -> &str {
    const HEAD: &str = "\n#[cfg(test)]\nmod ";
    let has_body = |(at, _): &(usize, &str)| {
        text[at + HEAD.len()..].lines().next().is_some_and(|line| line.ends_with('{'))
    };
    text.match_indices(HEAD).find(has_body).map_or(text, |(end, _)| &text[..end])
}

/// `count name` per line; comments start with `#`.
pub fn read_counts(root: &Path, file: &str) -> Result<BTreeMap<String, usize>> {
    let text = fs::read_to_string(root.join(file)).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (count, name) =
                line.split_once(' ').with_context(|| format!("{file}: a line is `count name`: {line:?}"))?;
            Ok((name.to_string(), count.parse().with_context(|| format!("{file}: {line:?}"))?))
        })
        .collect()
}

/// Production code without comments, strings and items that exist in tests only.
pub fn code(text: &str) -> String {
    let mut found = String::new();
    let mut is_test_item = false;
    for line in production_part(text).lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") {
            continue;
        }
        // A `use` or `mod` behind `#[cfg(test)]` is one line under rustfmt, or ends with its `;`.
        if trimmed.starts_with("#[cfg(test)]") {
            is_test_item = true;
            continue;
        }
        if is_test_item {
            is_test_item = !(trimmed.ends_with(';') || trimmed.ends_with('}'));
            continue;
        }
        let line = line.find(" // ").map_or(line, |at| &line[..at]);
        found.push_str(&without_strings(line));
        found.push('\n');
    }
    found
}

fn without_strings(line: &str) -> String {
    let mut found = String::new();
    let mut is_string = false;
    let mut is_escaped = false;
    for c in line.chars() {
        match c {
            '"' if !is_escaped => is_string = !is_string,
            _ if !is_string => found.push(c),
            _ => {}
        }
        is_escaped = is_string && c == '\\' && !is_escaped;
    }
    found
}

/// A path in code, with the name a `use` gives it.
#[derive(Debug, PartialEq, Eq)]
pub struct CodePath {
    pub segments: Vec<String>,
    pub alias: Option<String>,
    pub is_use: bool,
}

/// Every path of `use` statements, groups expanded, and every path of two or more segments elsewhere.
pub fn paths(code: &str) -> Vec<CodePath> {
    let mut found = Vec::new();
    let mut rest = code;
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let trimmed = rest.trim_start();
        let is_use = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "]
            .iter()
            .find(|head| trimmed.starts_with(**head));
        if let (Some(head), Some(end)) = (is_use, rest.find(';')) {
            let start = rest.len() - trimmed.len() + head.len();
            let tree: String = rest[start.min(end)..end].split_whitespace().collect::<Vec<_>>().join(" ");
            expand(&tree, &[], &mut found);
            rest = &rest[end + 1..];
            continue;
        }
        inline(&rest[..line_end], &mut found);
        rest = &rest[line_end..];
    }
    found
}

fn expand(tree: &str, prefix: &[String], found: &mut Vec<CodePath>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let head: Vec<String> = segments(tree[..open].trim_end_matches("::"));
        let prefix = [prefix, &head].concat();
        let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
        split_top(inner).into_iter().for_each(|part| expand(part, &prefix, found));
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_string())),
        None => (tree, None),
    };
    let mut segments = [prefix, &segments(path)].concat();
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self" || last == "*") {
        segments.pop();
    }
    if !segments.is_empty() {
        found.push(CodePath { segments, alias, is_use: true });
    }
}

fn split_top(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(ToString::to_string).collect()
}

fn inline(line: &str, found: &mut Vec<CodePath>) {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in line.split(|c| !is_path(c)).filter(|word| word.contains("::")) {
        let segments = segments(word);
        if segments.len() > 1 {
            found.push(CodePath { segments, alias: None, is_use: false });
        }
    }
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Module,
    Type,
    Function,
    Variant,
    Field,
}

/// Names of modules, types, functions, variants and fields that are declared in the text.
pub fn items(text: &str) -> Vec<(Item, String)> {
    let mut members = None;
    let mut found = Vec::new();
    for line in text.lines() {
        found.extend(item(line).or_else(|| members.and_then(|kind| member(line, kind))));
        members = match line.trim_start() {
            open if open.ends_with('{') && has_keyword(open, "enum") => Some(Item::Variant),
            open if open.ends_with('{') && has_keyword(open, "struct") => Some(Item::Field),
            _ if line.starts_with('}') => None,
            _ => members,
        };
    }
    found
}

fn has_keyword(line: &str, keyword: &str) -> bool {
    line.split('{').next().is_some_and(|head| head.split_whitespace().any(|word| word == keyword))
}

/// A field or variant of a type at the outermost level: rustfmt indents it by four.
fn member(line: &str, kind: Item) -> Option<(Item, String)> {
    let text = line.strip_prefix("    ").filter(|text| text.starts_with(char::is_alphabetic))?;
    let text = ["pub(crate) ", "pub(super) ", "pub "]
        .iter()
        .find_map(|head| text.strip_prefix(head))
        .unwrap_or(text);
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let is_member = match kind {
        Item::Field => text[name.len()..].starts_with(':'),
        _ => name.starts_with(char::is_uppercase),
    };
    is_member.then_some((kind, name))
}

fn item(line: &str) -> Option<(Item, String)> {
    const MODIFIERS: [&str; 8] =
        ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    let mut words = line.split_whitespace().skip_while(|word| MODIFIERS.contains(word));
    let kind = match words.next()? {
        "mod" => Item::Module,
        "struct" | "enum" | "trait" | "type" => Item::Type,
        "fn" => Item::Function,
        _ => return None,
    };
    let name: String = words.next()?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some((kind, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_expanded() {
        let found = paths("use crate::{a, b::{self, C as D}};\nfn f() { super::g::h(); }\n");
        let shown: Vec<String> = found.iter().map(|path| path.segments.join("::")).collect();
        assert_eq!(shown, ["crate::a", "crate::b", "crate::b::C", "super::g::h"]);
        assert_eq!(found[2].alias.as_deref(), Some("D"));
    }

    #[test]
    fn comments_strings_and_test_items_are_no_code() {
        let text = "// crate::a::b\n#[cfg(test)]\nmod testing;\nlet x = \"crate::c::d\"; // crate::e::f\n";
        assert_eq!(code(text), "let x = ;\n");
    }

    #[test]
    fn items_have_a_kind_and_a_name() {
        let found = items("pub(crate) async fn go<T>() {\npub struct A(u8);\nmod b;\nlet fn_x = 1;\n");
        let expected = [(Item::Function, "go"), (Item::Type, "A"), (Item::Module, "b")];
        assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_string())));
    }

    #[test]
    fn members_have_a_kind_and_a_name() {
        let text = "pub enum A {\n    B { c: u8 },\n    D(u8),\n}\nstruct E {\n    pub(crate) f: u8,\n}\nlet g = H {\n    i: 1,\n};\n";
        let expected = [
            (Item::Type, "A"),
            (Item::Variant, "B"),
            (Item::Variant, "D"),
            (Item::Type, "E"),
            (Item::Field, "f"),
        ];
        assert_eq!(items(text), expected.map(|(kind, name)| (kind, name.to_string())));
    }
}
