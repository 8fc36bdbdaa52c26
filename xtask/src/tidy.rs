//! The size ratchet: files and functions over the limit may not grow, and none may cross it.
//!
//! Also: every source file opens with a module comment, files of tests belong to a binary, core is `no_std`, only `container`
//! has `unsafe`, and names follow the style guide (`words.rs`). Exceptions are listed in `xtask/tidy.txt` and
//! `xtask/words.txt`; `cargo xtask tidy-accept` rewrites both lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::rust::{self, Source, is_test, production_part};
use crate::{report, words};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 140;
const RATCHET: &str = "xtask/tidy.txt";
const GROUPS: [&str; 10] =
    ["api", "core", "client", "shell", "container", "executors", "frameworks", "ui", "test", "xtask"];

pub fn check(root: &Path) -> Result<()> {
    let accepted = rust::read_counts(root, RATCHET)?;
    let mut problems = Vec::new();
    let files = rust::sources(root, &GROUPS)?;
    for (what, lines) in oversized(&files) {
        match accepted.get(&what) {
            Some(limit) if lines <= *limit => {}
            Some(limit) => problems.push(format!("{what}: grew from {limit} to {lines} lines")),
            None => problems.push(format!("{what}: {lines} lines, over the limit")),
        }
    }
    for file in &files {
        check_content(file, &mut problems);
    }
    check_test_modules(&files, &mut problems);
    words::check(root, &mut problems)?;
    report(&problems, "cut at a natural seam; STYLE.md gives the reasons")
}

/// Writes the current exceptions.
pub fn accept(root: &Path) -> Result<()> {
    let mut text = String::from(
        "# Files and functions over the limit (STYLE.md, Size). A count may shrink, never grow.\n",
    );
    for (what, lines) in oversized(&rust::sources(root, &GROUPS)?) {
        writeln!(text, "{lines} {what}")?;
    }
    fs::write(root.join(RATCHET), text).context("cannot write the ratchet file")?;
    words::accept(root)
}

/// Files and functions over their limit, with their lines. Tests do not count.
fn oversized(files: &[Source]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for Source { name, text } in files {
        if is_test(name) {
            continue;
        }
        let production = production_part(text);
        let lines = production.lines().count();
        if lines > FILE_LINES_MAX {
            found.insert(name.clone(), lines);
        }
        for (function, lines) in functions(production) {
            if lines > FUNCTION_LINES_MAX {
                found.insert(format!("{name} fn {function}"), lines);
            }
        }
    }
    found
}

fn check_content(Source { name, text }: &Source, problems: &mut Vec<String>) {
    if !text.starts_with("//!") {
        problems.push(format!("{name}: opens without `//!` saying what it owns"));
    }
    // Expected output of a program is as wide as the program writes it.
    let code = if is_test(name) { "" } else { production_part(text) };
    for (number, line) in code.lines().enumerate() {
        if line.chars().count() > LINE_COLUMNS_MAX && !line.contains("http") && !line.contains('"') {
            problems.push(format!("{name}:{}: longer than {LINE_COLUMNS_MAX} columns", number + 1));
        }
    }
    for (number, line) in text.lines().enumerate() {
        if line.ends_with(' ') {
            problems.push(format!("{name}:{}: trailing blank", number + 1));
        }
    }
    if name.ends_with("src/lib.rs") || name.ends_with("src/main.rs") {
        check_crate_head(name, text, problems);
    }
}

/// A file beside the `main.rs` of a test binary is a module of it: otherwise its tests would never run.
fn check_test_modules(files: &[Source], problems: &mut Vec<String>) {
    let mains = files.iter().filter_map(|file| Some((file.name.strip_suffix("main.rs")?, &file.text)));
    for (folder, main) in mains.filter(|(folder, _)| folder.contains("/tests/")) {
        for Source { name, .. } in files {
            let module = name.strip_prefix(folder).and_then(|rest| rest.strip_suffix(".rs"));
            let is_lost = |module: &str| module != "main" && !main.contains(&format!("mod {module};"));
            if module.is_some_and(|module| !module.contains('/') && is_lost(module)) {
                problems.push(format!("{name}: no module of {folder}main.rs, its tests never run"));
            }
        }
    }
}

fn check_crate_head(name: &str, text: &str, problems: &mut Vec<String>) {
    if !name.starts_with("container/") && !text.contains("#![forbid(unsafe_code)]") {
        problems.push(format!("{name}: lacks #![forbid(unsafe_code)]"));
    }
    if name.starts_with("core/") && !text.contains("#![no_std]") && !text.contains("no_std)]") {
        problems.push(format!("{name}: core crates are #![no_std]"));
    }
}

/// Each function with its length. Relies on rustfmt: a body ends with a brace at the indentation of its `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = lines[start..].iter().position(|line| {
            line.len() - line.trim_start().len() == indent
                && (line.trim() == "}" || line.trim_end().ends_with(';'))
        });
        if let Some(length) = end {
            found.push((name, length + 1));
        }
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    let at = line.find("fn ")?;
    let before = &line[..at];
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    if !before.split_whitespace().all(|word| words.contains(&word)) {
        return None;
    }
    let name: String = line[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_fn_to_closing_brace() {
        let text = "pub fn a() {\n    b();\n}\n\nimpl X {\n    fn b(&self) {\n    }\n    const fn c();\n}\n";
        let found = functions(text);
        assert_eq!(found, [("a".into(), 3), ("b".into(), 2), ("c".into(), 1)]);
    }

    #[test]
    fn inline_tests_do_not_count() {
        assert_eq!(production_part("a\n\n#[cfg(test)]\nmod tests {\n}\n"), "a\n");
    }
}
