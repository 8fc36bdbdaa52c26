//! From what a person types to the thing that is meant: the whole id, a name, the end or the beginning of an id; and if
//! nothing fits, what comes near.
//!
//! Never here: where ids come from.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use unicode_width::UnicodeWidthStr;

use crate::output::printable;
use crate::table;

/// Columns of a terminal that a name takes in a list.
const NAME_COLUMNS_MAX: usize = 40;

/// How many candidates an error names.
const NAMED_MAX: usize = 5;

/// Something that can be meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    pub id: String,
    /// What people may call it instead; empty if nothing.
    pub name: String,
}

impl Known {
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into() }
    }
}

/// The places of those that are meant: the whole id, else the name, else the end of the id after a dash, else its beginning.
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
    let fitting = |way: &fn(&str, &Known) -> bool| -> Vec<usize> {
        (0..known.len()).filter(|index| way(typed, &known[*index])).collect()
    };
    ways.iter().map(fitting).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The place of the one that is meant; an error names what fits or comes near. `list` is the command that shows all.
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

/// Says that nothing fits, and what comes near.
pub fn nothing(noun: &str, typed: &str, known: &[Known], list: &str) -> String {
    let near = suggestions(typed, known);
    if near.is_empty() {
        let why = if known.is_empty() { format!("; there are no {noun}s") } else { String::new() };
        return format!("no {noun} {typed:?}{why}; `{list}` lists them");
    }
    format!("no {noun} {typed:?}; did you mean {}? `{list}` lists all", either(&near))
}

/// Ids and names near to what was typed, the nearest first.
fn suggestions(typed: &str, known: &[Known]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for known in known {
        let tail = known.id.rsplit('-').next().unwrap_or_default();
        let candidates =
            [(known.id.as_str(), known.id.as_str()), (tail, &known.id), (&known.name, &known.name)];
        let near = candidates.iter().filter_map(|(text, shown)| Some((nearness(typed, text)?, *shown)));
        let nearest = near.min_by_key(|(slips, _)| *slips); // The id rather than the name.
        found.extend(nearest);
    }
    found.sort();
    found.dedup();
    let nearest = found.first().map_or(0, |(slips, _)| *slips);
    found.retain(|(slips, _)| *slips <= nearest + 1);
    found.into_iter().take(NAMED_MAX).map(|(_, text)| quoted(text)).collect()
}

/// How far two texts are apart: none if too far to be a slip of the fingers.
fn nearness(typed: &str, text: &str) -> Option<usize> {
    let typed = typed.to_lowercase();
    let text = text.to_lowercase();
    if text.is_empty() || typed.is_empty() {
        return None;
    }
    if text.starts_with(&typed) {
        return Some(0);
    }
    let slips = distance(&typed, &text);
    let allowed = (typed.chars().count() / 3).max(1);
    if slips <= allowed {
        return Some(slips);
    }
    (typed.chars().count() >= 3 && text.contains(&typed)).then_some(allowed + 1)
}

/// How many characters must be added, removed, replaced or swapped with their neighbour to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut line = vec![row];
        for column in 1..=other.len() {
            let same = one[row - 1] == other[column - 1];
            let mut least =
                (above[column - 1] + usize::from(!same)).min(above[column] + 1).min(line[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if swapped {
                least = least.min(before[column - 2] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[other.len()]
}

/// A text as it can be typed: with quotes if it has blanks.
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

/// Ids as short as people like them: what follows the master's own id, where that is enough to tell them apart.
#[derive(Clone, Debug, Default)]
pub struct Short {
    whole: bool,
    doubtful: BTreeSet<String>,
}

impl Short {
    /// Shortens among these ids; `whole` leaves all as they are.
    pub fn among<'i>(ids: impl Iterator<Item = &'i str>, whole: bool) -> Self {
        let ids: BTreeSet<&str> = ids.collect();
        let mut seen = BTreeSet::new();
        let doubtful =
            ids.into_iter().filter_map(tail).filter(|tail| !seen.insert(*tail)).map(str::to_string);
        Self { whole, doubtful: doubtful.collect() }
    }

    pub fn of<'i>(&self, id: &'i str) -> &'i str {
        match tail(id) {
            Some(tail) if !self.whole && !self.doubtful.contains(tail) => tail,
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
    fn ids_names_ends_and_beginnings_fit() {
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
    fn errors_name_what_is_near() {
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
    fn nothing_is_said_plainly() {
        expect![[r#"no agent "x"; there are no agents; `tepui agents` lists them"#]].assert_eq(&nothing(
            "agent",
            "x",
            &[],
            "tepui agents",
        ));
    }

    #[test]
    fn slips_of_the_fingers_count() {
        let table =
            [("task", "task", 0), ("taks", "task", 1), ("tsk", "task", 1), ("", "abc", 3), ("ab", "ba", 1)];
        for (one, other, expected) in table {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn ids_are_shortened_where_they_stay_apart() {
        let (a0, a1, b0) = (format!("{A}-0000"), format!("{A}-0001"), format!("{B}-0000"));
        let ids = [a0.as_str(), &a1, &b0, "web-1"];
        let short = Short::among(ids.into_iter(), false);
        assert_eq!(ids.map(|id| short.of(id)), [a0.as_str(), "0001", &b0, "web-1"]);
        let whole = Short::among(ids.into_iter(), true);
        assert_eq!(ids.map(|id| whole.of(id)), ids);
    }
}
