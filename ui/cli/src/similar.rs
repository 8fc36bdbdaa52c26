//! Matches typed text with ids and names: the complete id, a name, the suffix or prefix of an id; without a match,
//! suggestions.
//!
//! Absent: the source of ids.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use unicode_width::UnicodeWidthStr;

use crate::output::printable;
use crate::table;

/// Columns of a terminal that a name takes in a list.
const NAME_COLUMNS_MAX: usize = 40;

/// How many candidates an error names.
const NAMED_MAX: usize = 5;

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    pub id: String,
    /// An alternative name; empty if there is none.
    pub name: String,
}

impl Known {
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into() }
    }
}

/// The indexes of all matches: by complete id, else by name, else by the suffix of the id after a dash, else by its prefix.
pub fn matching(typed: &str, known: &[Known]) -> Vec<usize> {
    let ways: [fn(&str, &Known) -> bool; 4] = [
        |typed, known| known.id == typed,
        |typed, known| known.name == typed,
        |typed, known| known.id.strip_suffix(typed).is_some_and(|rest| rest.ends_with('-')),
        |typed, known| known.id.starts_with(typed),
    ];
    if typed.is_empty() {
        return Vec::new();
    }
    let fitting = |matches: &fn(&str, &Known) -> bool| -> Vec<usize> {
        (0..known.len()).filter(|index| matches(typed, &known[*index])).collect()
    };
    ways.iter().map(fitting).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The index of the only match; an error names the matches or suggestions. `list` is the command that lists all.
pub fn one(noun: &str, typed: &str, known: &[Known], list: &str) -> Result<usize> {
    let found = matching(typed, known);
    let ids: BTreeSet<&str> = found.iter().map(|index| known[*index].id.as_str()).collect();
    match (found.first(), ids.len()) {
        (Some(first), 1) => Ok(*first),
        (None, _) | (Some(_), 0) => bail!("{}", nothing(noun, typed, known, list)),
        (Some(_), count) => {
            let more = if count > NAMED_MAX { ", …" } else { "" };
            let named: Vec<String> = ids.into_iter().take(NAMED_MAX).map(printable).collect();
            bail!("{typed:?} fits {count} {noun}s: {}{more}", named.join(", "))
        }
    }
}

/// The error for no match, with suggestions.
pub fn nothing(noun: &str, typed: &str, known: &[Known], list: &str) -> String {
    let near = suggestions(typed, known);
    if near.is_empty() {
        let reason = if known.is_empty() { format!("; there are no {noun}s") } else { String::new() };
        return format!("no {noun} {typed:?}{reason}; `{list}` lists them");
    }
    format!("no {noun} {typed:?}; did you mean {}? `{list}` lists all", either(&near))
}

/// Similar ids and names, the most similar first.
fn suggestions(typed: &str, known: &[Known]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for known in known {
        let tail = known.id.rsplit('-').next().unwrap_or_default();
        let candidates =
            [(known.id.as_str(), known.id.as_str()), (tail, &known.id), (&known.name, &known.name)];
        let near = candidates.iter().filter_map(|(text, shown)| Some((similarity(typed, text)?, *shown)));
        let nearest = near.min_by_key(|(edits, _)| *edits); // The id rather than the name.
        found.extend(nearest);
    }
    found.sort();
    found.dedup();
    let nearest = found.first().map_or(0, |(edits, _)| *edits);
    found.retain(|(edits, _)| *edits <= nearest + 1);
    found.into_iter().take(NAMED_MAX).map(|(_, text)| quoted(text)).collect()
}

/// How far two texts are apart: none if too far to be a slip of the fingers.
fn similarity(typed: &str, text: &str) -> Option<usize> {
    let typed = typed.to_lowercase();
    let text = text.to_lowercase();
    if text.is_empty() || typed.is_empty() {
        return None;
    }
    if text.starts_with(&typed) {
        return Some(0);
    }
    let edits = strsim::osa_distance(&typed, &text);
    let allowed = (typed.chars().count() / 3).max(1);
    if edits <= allowed {
        return Some(edits);
    }
    (typed.chars().count() >= 3 && text.contains(&typed)).then_some(allowed + 1)
}

/// A text as it can be typed: quoted if it contains blanks.
fn quoted(text: &str) -> String {
    if text.contains(char::is_whitespace) { format!("{text:?}") } else { printable(text) }
}

fn either(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Short ids: without the master's id where they stay unique.
#[derive(Clone, Debug, Default)]
pub struct Short {
    whole: bool,
    ambiguous: BTreeSet<String>,
}

impl Short {
    /// Shortens these ids; `whole` disables it.
    pub fn among<'i>(ids: impl Iterator<Item = &'i str>, whole: bool) -> Self {
        let ids: BTreeSet<&str> = ids.collect();
        let mut seen = BTreeSet::new();
        let ambiguous =
            ids.into_iter().filter_map(tail).filter(|tail| !seen.insert(*tail)).map(str::to_string);
        Self { whole, ambiguous: ambiguous.collect() }
    }

    pub fn of<'i>(&self, id: &'i str) -> &'i str {
        match tail(id) {
            Some(tail) if !self.whole && !self.ambiguous.contains(tail) => tail,
            Some(_) | None => id,
        }
    }

    /// A name that a user chose, cut where it would push the other columns off the screen.
    pub fn name(&self, name: &str) -> String {
        match !self.whole && name.width() > NAME_COLUMNS_MAX {
            true => format!("{}…", table::cut(name, NAME_COLUMNS_MAX - 1)),
            false => name.to_string(),
        }
    }
}

/// What follows the 36 characters of a master's id and a dash.
fn tail(id: &str) -> Option<&str> {
    const MASTER_ID_CHARS: usize = 36;
    let (master, rest) = id.split_at_checked(MASTER_ID_CHARS)?;
    let is_uuid = master.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    rest.strip_prefix('-').filter(|tail| is_uuid && !tail.is_empty())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const A: &str = "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764";
    const B: &str = "2b2ac9de-da1d-4633-95a3-9f4a9a6a0764";

    fn known() -> Vec<Known> {
        vec![
            Known::new(format!("{A}-0000"), "marathon"),
            Known::new(format!("{A}-0001"), "chronos"),
            Known::new(format!("{B}-0000"), "chronos"),
            Known::new("web-1", ""),
            Known::new("web-10", ""),
            Known::new("evil\x1b[31m", ""),
        ]
    }

    #[test]
    fn ids_match_by_prefix_suffix_and_name() {
        let table: &[(&str, &[usize])] = &[
            ("web-1", &[3]),
            ("web", &[3, 4]),
            ("marathon", &[0]),
            ("chronos", &[1, 2]),
            ("0001", &[1]),
            ("0000", &[0, 2]),
            ("2b", &[2]),
            ("", &[]),
            ("001", &[]),
        ];
        for (typed, places) in table {
            assert_eq!(matching(typed, &known()), *places, "{typed}");
        }
    }

    #[test]
    fn errors_suggest_similar_names() {
        let check = |typed: &str, expected: Expect| {
            expected.assert_eq(&one("task", typed, &known(), "tepui tasks").unwrap_err().to_string());
        };
        check("web", expect![[r#""web" fits 2 tasks: web-1, web-10"#]]);
        check("wbe-1", expect![[r#"no task "wbe-1"; did you mean web-1? `tepui tasks` lists all"#]]);
        check(
            "web-100",
            expect![[r#"no task "web-100"; did you mean web-10 or web-1? `tepui tasks` lists all"#]],
        );
        check("marathn", expect![[r#"no task "marathn"; did you mean marathon? `tepui tasks` lists all"#]]);
        check("zzz", expect![[r#"no task "zzz"; `tepui tasks` lists them"#]]);
        check("evli\x1b", expect![[r#"no task "evli\u{1b}"; `tepui tasks` lists them"#]]);
    }

    #[test]
    fn empty_lists_print_a_message() {
        expect![[r#"no agent "x"; there are no agents; `tepui agents` lists them"#]].assert_eq(&nothing(
            "agent",
            "x",
            &[],
            "tepui agents",
        ));
    }

    #[test]
    fn ids_are_shortened_while_unique() {
        let (a0, a1, b0) = (format!("{A}-0000"), format!("{A}-0001"), format!("{B}-0000"));
        let ids = [a0.as_str(), &a1, &b0, "web-1"];
        let short = Short::among(ids.into_iter(), false);
        assert_eq!(ids.map(|id| short.of(id)), [a0.as_str(), "0001", &b0, "web-1"]);
        let whole = Short::among(ids.into_iter(), true);
        assert_eq!(ids.map(|id| whole.of(id)), ids);
    }
}
