//! Offer constraints: the agents that a framework accepts in offers, by their attributes.
//!
//! Made by the master's validation from the v1 message, stored by the allocator per framework and role.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use regex::{Regex, RegexBuilder};
use tepui_resources::Role;

use crate::bits::Bits;
use crate::slab::AgentSlot;
use crate::{AgentSpec, AttributeValue};

/// The longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// The most memory a compiled pattern may take, in bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;
/// How deep a pattern may nest.
const PATTERN_NESTING_MAX: u32 = 32;

/// Per role: groups of which one must hold. A role without groups takes every agent.
#[derive(Clone, Debug, Default)]
pub struct OfferConstraints {
    pub roles: BTreeMap<Role, Vec<Group>>,
}

/// Constraints that must all hold.
pub type Group = Vec<AttributeConstraint>;

#[derive(Clone, Debug)]
pub struct AttributeConstraint {
    pub selector: Selector,
    pub predicate: Predicate,
}

/// The attribute of a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The first attribute of this name.
    Attribute(Arc<str>),
    Hostname,
    Region,
    Zone,
}

/// What must be true of it. Of a value that is no text, every predicate about text is true.
#[derive(Clone, Debug)]
pub enum Predicate {
    Exists,
    NotExists,
    TextEquals(Arc<str>),
    TextNotEquals(Arc<str>),
    TextMatches(Pattern),
    TextNotMatches(Pattern),
}

/// A regular expression that must match a whole text. Its size is limited when it is made.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a text is not a usable pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    TooLong,
    TooBig,
    Syntax(String),
}

/// Whether a framework with these constraints accepts this agent: one group must hold.
pub fn admits(groups: &[Group], agent: &AgentSpec) -> bool {
    groups.iter().any(|group| group.iter().all(|constraint| constraint.holds(agent)))
}

/// Offer constraints, and what was found of agents: texts are compared once for each agent as it is.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    groups: Arc<[Group]>,
    judged: Bits<AgentSlot>,
    admitted: Bits<AgentSlot>,
}

impl Constraints {
    pub(crate) fn new(groups: &[Group]) -> Self {
        Self { groups: Arc::from(groups), judged: Bits::new(), admitted: Bits::new() }
    }

    /// Whether they let this agent be offered, if that is known.
    pub(crate) fn known(&self, agent: AgentSlot) -> Option<bool> {
        self.judged.contains(agent).then(|| self.admitted.contains(agent))
    }

    pub(crate) fn judge(&mut self, slot: AgentSlot, agent: &AgentSpec) -> bool {
        let admitted = self.admit(agent);
        self.judged.insert(slot);
        self.admitted.set(slot, admitted);
        admitted
    }

    /// Whether they let such an agent be offered.
    pub(crate) fn admit(&self, agent: &AgentSpec) -> bool {
        admits(&self.groups, agent)
    }

    /// Another agent may be in this slot.
    pub(crate) fn forget(&mut self, agent: AgentSlot) {
        self.judged.remove(agent);
    }
}

impl AttributeConstraint {
    fn holds(&self, agent: &AgentSpec) -> bool {
        match self.selector.value_on(agent) {
            None => self.predicate.holds_without_value(),
            Some(AttributeValue::Text(text)) => self.predicate.holds_for(&text),
            Some(AttributeValue::NotText) => !matches!(self.predicate, Predicate::NotExists),
        }
    }
}

impl Selector {
    fn value_on(&self, agent: &AgentSpec) -> Option<AttributeValue> {
        let domain = agent.domain.as_ref();
        match self {
            Selector::Attribute(name) => {
                let first = agent.attributes.iter().find(|attribute| attribute.name == *name);
                first.map(|attribute| attribute.value.clone())
            }
            Selector::Hostname => Some(AttributeValue::Text(agent.hostname.clone())),
            Selector::Region => domain.map(|domain| AttributeValue::Text(domain.region.clone())),
            Selector::Zone => domain.map(|domain| AttributeValue::Text(domain.zone.clone())),
        }
    }
}

impl Predicate {
    fn holds_without_value(&self) -> bool {
        match self {
            Predicate::Exists | Predicate::TextEquals(_) | Predicate::TextMatches(_) => false,
            Predicate::NotExists | Predicate::TextNotEquals(_) | Predicate::TextNotMatches(_) => true,
        }
    }

    fn holds_for(&self, text: &str) -> bool {
        match self {
            Predicate::Exists => true,
            Predicate::NotExists => false,
            Predicate::TextEquals(wanted) => text == &**wanted,
            Predicate::TextNotEquals(rejected) => text != &**rejected,
            Predicate::TextMatches(pattern) => pattern.matches(text),
            Predicate::TextNotMatches(pattern) => !pattern.matches(text),
        }
    }
}

impl Pattern {
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLong);
        }
        // On its own first: a stray `)` must not close the group that makes it match whole texts.
        compile(pattern)?;
        compile(&format!("^(?:{pattern})$")).map(Self)
    }

    fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let mut builder = RegexBuilder::new(pattern);
    let limited = builder.size_limit(PATTERN_COMPILED_BYTES_MAX).nest_limit(PATTERN_NESTING_MAX);
    limited.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooBig,
        syntax => PatternError::Syntax(syntax.to_string()),
    })
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::TooLong => write!(f, "it is longer than {PATTERN_BYTES_MAX} bytes"),
            PatternError::TooBig => {
                write!(f, "it takes more than {PATTERN_COMPILED_BYTES_MAX} bytes when compiled")
            }
            PatternError::Syntax(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for PatternError {}
