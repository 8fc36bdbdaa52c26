//! Typed values out of nodes: every mismatch becomes a problem with its place and path, and reading goes on.
//!
//! Scalars convert as the SDK's parser does: numbers and booleans may be quoted, and texts may look like numbers.

mod mounts;

use std::collections::{BTreeSet, HashMap};

use crate::problem::{PROBLEMS_MAX, Problem, Severity};
use crate::yaml::{Entry, Node, Value, join};
use mounts::Mount;
pub use mounts::{Scope, is_below};

/// Limit of an amount: MB of an exabyte.
const AMOUNT_MAX: f64 = (1_u64 << 40) as f64;
pub const AMOUNT_EXPECTED: &str = "a number from 0.001 to 1099511627776";

/// An amount of a resource, in thousandths as resources have them: more digits would be read differently from a record.
pub fn amount(text: &str) -> Option<f64> {
    let amount = text.trim().parse::<f64>().ok().map(|amount| (amount * 1000.0).round() / 1000.0);
    amount.filter(|amount| (0.001..=AMOUNT_MAX).contains(amount))
}

/// A node with its path.
#[derive(Debug, Clone)]
pub struct Field<'n> {
    node: &'n Node,
    /// Offset to name in problems: the value's for scalars, the key's for collections.
    pub at: usize,
    pub path: String,
}

/// The members of a mapping that are not read yet.
#[derive(Debug)]
pub struct Members<'n> {
    entries: &'n [Entry],
    pub at: usize,
    pub path: String,
    known: Vec<&'static str>,
}

impl<'n> Field<'n> {
    pub fn root(node: &'n Node) -> Field<'n> {
        Field { node, at: node.at, path: String::new() }
    }

    fn member(entry: &'n Entry, path: &str) -> Field<'n> {
        let at = match entry.node.value {
            Value::Scalar { .. } if !entry.node.is_null() => entry.node.at,
            Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => entry.at,
        };
        Field { node: &entry.node, at, path: join(path, &entry.key) }
    }

    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    /// Whether this is a scalar without text, quoted or not.
    fn is_blank(&self) -> bool {
        self.is_null() || matches!(&self.node.value, Value::Scalar { text, .. } if text.is_empty())
    }

    pub fn scalar(&self) -> Option<&'n str> {
        match &self.node.value {
            Value::Scalar { text, .. } => Some(text),
            Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    pub fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    fn kind(&self) -> &'static str {
        match &self.node.value {
            Value::Scalar { .. } => "a text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

impl<'n> Members<'n> {
    /// A member, unless it is absent or null.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'n>> {
        self.known.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!entry.node.is_null()).then(|| Field::member(entry, &self.path))
    }

    pub fn names(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }
}

/// Collects problems while values are read.
#[derive(Debug, Default)]
pub struct Reader {
    /// With offsets in characters of the rendered text, which become lines and columns at the end.
    pub problems: Vec<(usize, Problem)>,
    /// Of all config templates read so far.
    pub template_bytes: usize,
    /// Paths in containers of the pod that is being read.
    mounts: Vec<Mount>,
    claims: Vec<Claim>,
}

/// A name that may have one owner only in the whole file.
#[derive(Debug)]
struct Claim {
    kind: &'static str,
    name: String,
    owner: String,
    at: usize,
    path: String,
}

impl Reader {
    /// Claims a name for an owner; `reject_conflicts` compares all claims.
    pub fn claim(&mut self, kind: &'static str, name: &str, owner: &str, field: &Field<'_>) {
        let (name, owner) = (name.to_owned(), owner.to_owned());
        self.claims.push(Claim { kind, name, owner, at: field.at, path: field.path.clone() });
    }

    pub fn reject_conflicts(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        let mut first: HashMap<(&str, &str), &Claim> = HashMap::new();
        for claim in &claims {
            let holder = *first.entry((claim.kind, claim.name.as_str())).or_insert(claim);
            if holder.owner != claim.owner {
                let message =
                    format!("duplicate {} {:?}; {} has it already", claim.kind, claim.name, holder.path);
                self.error(claim.at, &claim.path, message);
            }
        }
    }

    pub fn error(&mut self, at: usize, path: &str, message: impl Into<String>) {
        self.push(Severity::Error, at, path, message.into());
    }

    pub fn warning(&mut self, at: usize, path: &str, message: impl Into<String>) {
        self.push(Severity::Warning, at, path, message.into());
    }

    /// Reports a problem of a field.
    pub fn wrong(&mut self, field: &Field<'_>, message: impl Into<String>) {
        self.error(field.at, &field.path, message);
    }

    fn push(&mut self, severity: Severity, at: usize, path: &str, message: String) {
        let problem =
            |severity, message| Problem { severity, line: 0, column: 0, path: path.to_owned(), message };
        match self.problems.len() {
            PROBLEMS_MAX => {}
            length if length + 1 == PROBLEMS_MAX => {
                self.problems
                    .push((at, problem(Severity::Error, "more problems follow; these come first".into())));
            }
            _ => self.problems.push((at, problem(severity, message))),
        }
    }

    pub fn required<'n, T>(
        &mut self,
        members: &mut Members<'n>,
        key: &'static str,
        read: impl FnOnce(&mut Reader, &Field<'n>) -> Option<T>,
    ) -> Option<T> {
        match members.take(key) {
            Some(field) => read(self, &field),
            None => {
                self.error(members.at, &members.path, format!("`{key}` is required"));
                None
            }
        }
    }

    pub fn optional<'n, T>(
        &mut self,
        members: &mut Members<'n>,
        key: &'static str,
        read: impl FnOnce(&mut Reader, &Field<'n>) -> Option<T>,
    ) -> Option<T> {
        members.take(key).and_then(|field| read(self, &field))
    }

    /// A list that may be absent; elements that cannot be read are left out.
    pub fn optional_list<'n, T>(
        &mut self,
        members: &mut Members<'n>,
        key: &'static str,
        read: impl FnMut(&mut Reader, &Field<'n>) -> Option<T>,
    ) -> Vec<T> {
        self.optional(members, key, |reader, field| reader.list(field, read)).unwrap_or_default()
    }

    /// A mapping by name that may be absent; members that cannot be read are left out.
    pub fn optional_named<'n, T>(
        &mut self,
        members: &mut Members<'n>,
        key: &'static str,
        read: impl FnMut(&mut Reader, &str, &Field<'n>) -> Option<T>,
    ) -> Vec<T> {
        self.optional(members, key, |reader, field| reader.named(field, read)).unwrap_or_default()
    }

    pub fn text(&mut self, field: &Field<'_>) -> Option<String> {
        let text = field.scalar().map(str::to_owned);
        if text.is_none() {
            self.wrong(field, format!("is {}; a text is expected", field.kind()));
        }
        text
    }

    pub fn filled_text(&mut self, field: &Field<'_>) -> Option<String> {
        let text = self.text(field)?;
        if text.trim().is_empty() {
            self.wrong(field, "is empty");
            return None;
        }
        Some(text)
    }

    /// A text; the empty one counts as absent.
    pub fn text_or_absent(&mut self, field: &Field<'_>) -> Option<String> {
        self.text(field).filter(|text| !text.is_empty())
    }

    pub fn boolean(&mut self, field: &Field<'_>) -> Option<bool> {
        let text = self.text(field)?;
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            "" => None,
            _ => {
                self.wrong(field, format!("{text:?} is no boolean; write true or false"));
                None
            }
        }
    }

    /// A whole number within limits; `unit` follows it in messages.
    pub fn integer(&mut self, field: &Field<'_>, least: i64, most: i64, unit: &str) -> Option<i64> {
        let text = self.text(field)?;
        let plain = text.trim();
        let whole = plain.strip_suffix(".0").unwrap_or(plain);
        let value = whole.replace('_', "").parse::<i64>();
        match value {
            Ok(value) if (least..=most).contains(&value) => Some(value),
            Ok(_) | Err(_) => {
                let limits = match most {
                    i64::MAX => format!("of at least {least}"),
                    most => format!("from {least} to {most}"),
                };
                let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
                self.wrong(
                    field,
                    format!("{text:?} is not allowed; a whole number {limits} is expected{unit}"),
                );
                None
            }
        }
    }

    /// An amount of a resource.
    pub fn amount(&mut self, field: &Field<'_>) -> Option<f64> {
        let text = self.text(field)?;
        let amount = amount(&text);
        if amount.is_none() {
            self.wrong(field, format!("{text:?} is not allowed; {AMOUNT_EXPECTED} is expected"));
        }
        amount
    }

    /// One of a set of words, whatever the case if `any_case`.
    pub fn choice<T: Copy>(&mut self, field: &Field<'_>, choices: &[(&str, T)], any_case: bool) -> Option<T> {
        let text = self.text(field)?;
        let same = |word: &str| if any_case { word.eq_ignore_ascii_case(&text) } else { word == text };
        let found = choices.iter().find(|(word, _)| same(word)).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.wrong(field, format!("{text:?} is not supported; one of {} is expected", words.join(", ")));
        }
        found
    }

    pub fn list<'n, T>(
        &mut self,
        field: &Field<'n>,
        mut read: impl FnMut(&mut Reader, &Field<'n>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Sequence(nodes) = &field.node.value else {
            self.wrong(field, format!("is {}; a list is expected", field.kind()));
            return None;
        };
        let element = |(index, node): (usize, &'n Node)| Field {
            node,
            at: node.at,
            path: format!("{}[{index}]", field.path),
        };
        Some(nodes.iter().enumerate().map(element).filter_map(|field| read(self, &field)).collect())
    }

    pub fn members<'n>(&mut self, field: &Field<'n>) -> Option<Members<'n>> {
        let Value::Mapping(entries) = &field.node.value else {
            self.wrong(field, format!("is {}; a mapping is expected", field.kind()));
            return None;
        };
        Some(Members { entries, at: field.at, path: field.path.clone(), known: Vec::new() })
    }

    /// The members of a mapping whose keys are names.
    pub fn named<'n, T>(
        &mut self,
        field: &Field<'n>,
        mut read: impl FnMut(&mut Reader, &str, &Field<'n>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let members = self.members(field)?;
        let mut values = Vec::new();
        for entry in members.entries {
            if entry.key.trim().is_empty() {
                self.error(entry.at, &field.path, "a name is empty");
                continue;
            }
            values.extend(read(self, &entry.key, &Field::member(entry, &field.path)));
        }
        Some(values)
    }

    /// Rejects members that were not taken.
    pub fn reject_unknown(&mut self, members: &Members<'_>) {
        self.unknown(members, Severity::Error);
    }

    /// Warns of members that were not taken.
    pub fn warn_unknown(&mut self, members: &Members<'_>) {
        self.unknown(members, Severity::Warning);
    }

    fn unknown(&mut self, members: &Members<'_>, severity: Severity) {
        let known: BTreeSet<&str> = members.known.iter().copied().collect();
        for entry in members.entries.iter().filter(|entry| !known.contains(entry.key.as_str())) {
            let path = join(&members.path, &entry.key);
            let keys: Vec<&str> = known.iter().copied().collect();
            let message = match severity {
                Severity::Error => format!("unknown key; the keys here are {}", keys.join(", ")),
                Severity::Warning => "unknown key, ignored".to_owned(),
            };
            self.push(severity, entry.at, &path, message);
        }
    }

    /// A boolean that is false if absent.
    pub fn flag(&mut self, members: &mut Members<'_>, key: &'static str) -> bool {
        self.optional_scalar(members, key, Reader::boolean).unwrap_or(false)
    }

    /// A member that counts as absent when it is blank: templates render missing numbers as nothing.
    pub fn optional_scalar<'n, T>(
        &mut self,
        members: &mut Members<'n>,
        key: &'static str,
        read: impl FnOnce(&mut Reader, &Field<'n>) -> Option<T>,
    ) -> Option<T> {
        members.take(key).filter(|field| !field.is_blank()).and_then(|field| read(self, &field))
    }
}
