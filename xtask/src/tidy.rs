//! The size ratchet: nothing over the line may grow, nothing under it may cross it.
//!
//! Also: every source file says at its top what it owns, core is `no_std`, and only `container` has `unsafe`.
//! What was over the line when it came in is listed in `xtask/tidy.txt`; `cargo xtask tidy-accept` rewrites that
//! list, and a reviewer sees the diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::report;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 140;
const RATCHET: &str = "xtask/tidy.txt";

pub fn check(root: &Path) -> Result<()> {
    let accepted = read_ratchet(root)?;
    let mut problems = Vec::new();
    let files = sources(root)?;
    for (what, lines) in oversized(root, &files)? {
        match accepted.get(&what) {
            Some(limit) if lines <= *limit => {}
            Some(limit) => problems.push(format!("{what}: grew from {limit} to {lines} lines")),
            None => problems.push(format!("{what}: {lines} lines, over the limit")),
        }
    }
    for file in &files {
        check_content(root, file, &mut problems)?;
    }
    report(&problems, "cut at a natural seam; STYLE.md gives the reasons")
}

/// Writes down everything that is over the line now.
pub fn accept(root: &Path) -> Result<()> {
    let mut text = String::from("# What is over the line (STYLE.md, size). It may shrink, never grow.\n");
    for (what, lines) in oversized(root, &sources(root)?)? {
        writeln!(text, "{lines} {what}")?;
    }
    fs::write(root.join(RATCHET), text).context("cannot write the ratchet file")
}

fn read_ratchet(root: &Path) -> Result<BTreeMap<String, usize>> {
    let text = fs::read_to_string(root.join(RATCHET)).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (lines, what) = line.split_once(' ').context("a ratchet line is `lines what`")?;
            Ok((what.to_string(), lines.parse()?))
        })
        .collect()
}

/// Files and functions over their limit, with their lines. Tests do not count.
fn oversized(root: &Path, files: &[PathBuf]) -> Result<BTreeMap<String, usize>> {
    let mut found = BTreeMap::new();
    for file in files {
        let name = name_of(root, file);
        if is_test(&name) {
            continue;
        }
        let text = fs::read_to_string(file)?;
        let production = production_part(&text);
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
    Ok(found)
}

fn check_content(root: &Path, file: &Path, problems: &mut Vec<String>) -> Result<()> {
    let name = name_of(root, file);
    let text = fs::read_to_string(file)?;
    if !text.starts_with("//!") {
        problems.push(format!("{name}: opens without `//!` saying what it owns"));
    }
    // Expected output of a program is as wide as the program writes it.
    let code = if is_test(&name) { "" } else { production_part(&text) };
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
        check_crate_head(&name, &text, problems);
    }
    Ok(())
}

fn check_crate_head(name: &str, text: &str, problems: &mut Vec<String>) {
    if !name.starts_with("container/") && !text.contains("#![forbid(unsafe_code)]") {
        problems.push(format!("{name}: lacks #![forbid(unsafe_code)]"));
    }
    if name.starts_with("core/") && !text.contains("#![no_std]") && !text.contains("no_std)]") {
        problems.push(format!("{name}: core crates are #![no_std]"));
    }
}

fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for group in
        ["api", "core", "client", "shell", "container", "executors", "frameworks", "ui", "test", "xtask"]
    {
        collect(&root.join(group), &mut files)?;
    }
    files.sort();
    Ok(files)
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

fn is_test(name: &str) -> bool {
    name.ends_with("tests.rs") || name.contains("/tests/")
}

/// The part before the inline tests, which rustfmt and habit keep last.
fn production_part(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
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

fn name_of(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
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
