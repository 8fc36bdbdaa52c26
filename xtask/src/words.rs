//! Words that do not appear in the names of modules, types, functions, variants and fields, and phrases that do not appear in comments
//! (STYLE.md, Language).
//!
//! Pronouns, question words, prepositions and verbs of people: the field has a noun or a verb for each. Those that
//! existed before the rule are counted per crate in `xtask/words.txt`, separately for shipped names, names of tests and
//! comments; a count may shrink, never grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::rust::{self, Item};

const RATCHET: &str = "xtask/words.txt";
const GROUPS: [&str; 10] =
    ["api", "core", "client", "shell", "container", "executors", "frameworks", "ui", "test", "xtask"];

/// In no name.
const NOWHERE: &str = "\
    what which whose whom who why about around beside somebody nobody anybody everybody asked told \
    said heard telling tells hears says sees knows wants glance eyes reign aside belongings wish \
    wishes whoever whatever anyone someone follower followers stranger strangers pretend unheard \
    crowd crowds happening happenings unhurried standing";
/// Not in names of modules and types.
const NOT_IN_NOUNS: &str = "inside given kept few way ending near";
/// Not as the whole name of a module or type.
const NOT_A_NOUN: &str = "left over around shown seen typed hands rim tables tasks_of";
/// Not as the whole name of a function.
const NOT_A_FUNCTION: &str = "\
    call_off take_in happen give_back take_back come_back go_on let_go tasks_of is_for_want_of_room";
/// Not as the first word of a function: what people do.
const NOT_A_VERB: &str = "tell hear see say strike look remember forgive sit";
/// Not in comments.
const NOT_IN_COMMENTS: [&str; 14] = [
    "nobody",
    "somebody",
    "everybody",
    "whoever",
    "for want of",
    "hear",
    "hears",
    "is told",
    "are told",
    "tells",
    "who may",
    "is asked for",
    "gives way",
    "of its own accord",
];

pub fn check(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let accepted = rust::read_counts(root, RATCHET)?;
    for (folder, names) in found(root)? {
        let limit = accepted.get(&folder).copied().unwrap_or(0);
        if names.len() > limit {
            problems.push(format!(
                "{folder}: {} words that the style guide rejects, {limit} accepted: {}",
                names.len(),
                names.join(", ")
            ));
        }
    }
    Ok(())
}

/// Writes the current counts; part of `cargo xtask tidy-accept`.
pub fn accept(root: &Path) -> Result<()> {
    let mut text = String::from(
        "# Words that STYLE.md rejects in names and comments, per crate. A count may shrink, never grow.\n",
    );
    for (folder, names) in found(root)? {
        writeln!(text, "{} {folder}", names.len())?;
    }
    fs::write(root.join(RATCHET), text).context("cannot write the ratchet file")
}

fn found(root: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in rust::sources(root, &GROUPS)? {
        let folder = folder_of(&source.name);
        let shipped = if rust::is_test(&source.name) { "" } else { rust::production_part(&source.text) };
        let tests = &source.text[shipped.len()..];
        let rejected = [
            (folder.clone(), rejected(shipped)),
            (format!("{folder} tests"), rejected(tests)),
            (format!("{folder} comments"), rejected_phrases(&source.text)),
        ];
        for (key, words) in rejected.into_iter().filter(|(_, words)| !words.is_empty()) {
            found.entry(key).or_default().extend(words);
        }
    }
    Ok(found)
}

/// The crate's folder: the part before `/src/`, `/tests/`, `/examples/`.
fn folder_of(name: &str) -> String {
    let cut = ["/src/", "/tests/", "/examples/", "/benches/", "/build.rs"]
        .iter()
        .filter_map(|part| name.find(part))
        .min();
    name[..cut.unwrap_or(name.len())].to_string()
}

fn rejected(text: &str) -> Vec<String> {
    let items = rust::items(text).into_iter();
    items.filter(|(kind, name)| is_rejected(*kind, name)).map(|(_, name)| name).collect()
}

fn is_rejected(kind: Item, name: &str) -> bool {
    let words = words(name);
    let has = |list: &str| words.iter().any(|word| contains(list, word));
    let whole = words.join("_");
    has(NOWHERE)
        || match kind {
            Item::Function => contains(NOT_A_FUNCTION, &whole) || contains(NOT_A_VERB, &words[0]),
            Item::Variant | Item::Field => false,
            Item::Module | Item::Type => has(NOT_IN_NOUNS) || contains(NOT_A_NOUN, &whole),
        }
}

fn rejected_phrases(text: &str) -> Vec<String> {
    let comments = text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| {
        let plain = comment.replace(|c: char| !c.is_alphanumeric(), " ").to_lowercase();
        format!(" {plain} ")
    });
    let phrases = |comment: String| {
        let found = NOT_IN_COMMENTS.iter().filter(move |phrase| comment.contains(&format!(" {phrase} ")));
        found.map(ToString::to_string)
    };
    comments.flat_map(phrases).collect()
}

fn contains(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

/// `TaskState` and `task_state` as `task`, `state`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is always a last word").extend(c.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_words_are_detected_by_item_kind() {
        let table = [
            (Item::Type, "Which", true),
            (Item::Type, "TaskState", false),
            (Item::Module, "why", true),
            (Item::Module, "gateway", false),
            (Item::Type, "Ending", true),
            (Item::Function, "tell", true),
            (Item::Function, "tell_agent", true),
            (Item::Function, "telling_apart", true),
            (Item::Variant, "Told", true),
            (Item::Field, "heard", true),
            (Item::Field, "next_ask", false),
            (Item::Function, "take_back", true),
            (Item::Type, "Follower", true),
            (Item::Function, "who_may_burst_goes_first", true),
            (Item::Function, "is_left", false),
            (Item::Type, "Left", true),
            (Item::Type, "Hands", true),
            (Item::Function, "is_for_want_of_room", true),
        ];
        for (kind, name, expected) in table {
            assert_eq!(is_rejected(kind, name), expected, "{kind:?} {name}");
        }
    }

    #[test]
    fn rejected_phrases_are_detected_in_comments_only() {
        let text = "/// Nobody hears it.\nfn f() {} // Killed for want of memory.\nlet nobody = \"tells\";\n";
        assert_eq!(rejected_phrases(text), ["nobody", "hears", "for want of"]);
    }
}
