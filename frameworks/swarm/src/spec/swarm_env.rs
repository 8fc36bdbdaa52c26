//! Entries of `Env` that are meant for Swarm: `constraint:…`, `affinity:…`, `whitelist:…`, `reschedule:…`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::{bad, strings};
use crate::expression::{Expression, ExpressionError};
use crate::rejection::Rejection;
use crate::res_type::{RES_TYPE, malformed};

/// (prefix in `Env`, label that keeps the entries as a JSON array).
const KINDS: [(&str, &str); 4] = [
    ("affinity", "com.docker.swarm.affinities"),
    ("constraint", "com.docker.swarm.constraints"),
    ("whitelist", "com.docker.swarm.whitelists"),
    ("reschedule", "com.docker.swarm.reschedule-policies"),
];

/// What becomes of a container whose agent fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reschedule {
    #[default]
    Off,
    OnNodeFailure,
}

pub(super) struct SwarmEnv {
    pub affinities: Vec<Expression>,
    pub constraints: Vec<Expression>,
    pub whitelists: Vec<Expression>,
    pub reschedule: Reschedule,
}

impl SwarmEnv {
    /// Moves the entries from `Env` of the document to the labels, behind those that the labels have already.
    pub fn take(
        document: &mut Map<String, Value>,
        labels: &mut BTreeMap<String, String>,
    ) -> Result<Self, Rejection> {
        let mut found: [Vec<String>; 4] = KINDS.map(|(_, label)| stored(labels, label));
        let mut rest = Vec::new();
        for entry in strings(document, "Env")? {
            let kind = entry.split_once(':').and_then(|(prefix, text)| {
                Some((KINDS.iter().position(|(name, _)| *name == prefix)?, text.to_owned()))
            });
            match kind {
                Some((at, text)) => found[at].push(text),
                None => rest.push(Value::String(entry)),
            }
        }
        if document.contains_key("Env") {
            document.insert("Env".to_owned(), Value::Array(rest));
        }
        for ((_, label), entries) in KINDS.iter().zip(&found) {
            if !entries.is_empty() {
                labels.insert((*label).to_owned(), Value::from(entries.clone()).to_string());
            }
        }
        let [affinities, constraints, whitelists, policies] = found;
        Ok(Self {
            affinities: parse("affinity", &affinities)?,
            constraints: parse("constraint", &constraints)?,
            whitelists: parse("whitelist", &whitelists)?,
            reschedule: reschedule(&policies)?,
        })
    }
}

/// What does not parse is ignored, as classic Swarm does: any client may have set the label for a purpose of its own.
fn stored(labels: &BTreeMap<String, String>, label: &str) -> Vec<String> {
    labels.get(label).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn parse(filter: &str, entries: &[String]) -> Result<Vec<Expression>, Rejection> {
    let expression = |entry: &String| {
        let parsed = Expression::parse(entry)?;
        // A single slash is an unfinished regular expression.
        match parsed.value == "/" && parsed.key != RES_TYPE {
            true => Err(ExpressionError::Value(parsed.value)),
            false => Ok(parsed),
        }
    };
    let all: Result<_, ExpressionError> = entries.iter().map(expression).collect();
    all.map_err(|error| bad(malformed(filter, &error)))
}

fn reschedule(policies: &[String]) -> Result<Reschedule, Rejection> {
    match policies {
        [] => Ok(Reschedule::Off),
        [policy] => match policy.as_str() {
            "off" => Ok(Reschedule::Off),
            "on-node-failure" => Ok(Reschedule::OnNodeFailure),
            other => Err(Rejection::Failed(format!("invalid reschedule policy: {other}"))),
        },
        _ => Err(Rejection::Failed("too many reschedule policies".to_owned())),
    }
}
