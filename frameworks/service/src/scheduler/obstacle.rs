//! Why offers of an agent were not used, and the sum of it over all agents in words.

use std::collections::BTreeMap;
use std::fmt;

use tepui_resources::Scalar;
use tepui_types::AgentId;

/// Agents whose obstacles are kept for each pod type.
pub(super) const WAIT_AGENTS_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A placement rule.
    Excluded(String),
    Short {
        name: String,
        requested: Scalar,
        offered: Scalar,
    },
    Port(u64),
    Ports(usize),
    NoDisk {
        path: String,
        size: Scalar,
    },
    /// A reservation of the pod is not in the offers of its agent.
    NotOffered {
        name: String,
        id: String,
    },
    NoIsolator,
    NoPlugin(String),
    Deactivated,
    /// The executor of running tasks is not in the offer.
    NoExecutor(String),
}

impl Obstacle {
    /// The stage of the evaluation, as `/v2/debug/offers` names it.
    pub fn stage(&self) -> &'static str {
        match self {
            Obstacle::Excluded(_) => "PlacementRule",
            Obstacle::Short { .. } => "Resource",
            Obstacle::Port(_) | Obstacle::Ports(_) => "Port",
            Obstacle::NoDisk { .. } => "Volume",
            Obstacle::NotOffered { .. } => "Reservation",
            Obstacle::NoIsolator | Obstacle::NoPlugin(_) => "ExternalVolume",
            Obstacle::Deactivated => "Agent",
            Obstacle::NoExecutor(_) => "Executor",
        }
    }
}

/// The stages of an evaluation, in order.
const STAGES: [&str; 8] =
    ["Agent", "PlacementRule", "ExternalVolume", "Executor", "Reservation", "Resource", "Port", "Volume"];

/// Each stage of an evaluation: `PASS(Stage)`, or `FAIL(Stage):reason` for each obstacle.
pub(super) fn explain(obstacles: &[Obstacle]) -> Vec<String> {
    let of = |stage: &'static str| {
        let own = obstacles.iter().filter(move |own| own.stage() == stage);
        let failed: Vec<String> = own.map(|own| format!("FAIL({stage}):{own:#}")).collect();
        if failed.is_empty() { vec![format!("PASS({stage})")] } else { failed }
    };
    STAGES.into_iter().flat_map(of).collect()
}

/// In the plural, as a part of a sum: `lack mem 4096`; in the alternate form with all that is known.
impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Excluded(rule) => write!(out, "excluded by {rule}"),
            Obstacle::Short { name, requested, offered } if out.alternate() => {
                write!(out, "requested {name} {requested}, offered {offered}")
            }
            Obstacle::Short { name, requested, .. } => write!(out, "lack {name} {requested}"),
            Obstacle::Port(port) => write!(out, "lack port {port}"),
            Obstacle::Ports(count) => write!(out, "lack {count} ports"),
            Obstacle::NoDisk { path, size } => write!(out, "lack a MOUNT disk of {size} MB for {path}"),
            Obstacle::NotOffered { name, id } if out.alternate() => {
                write!(out, "the reserved {name} with resource_id {id} is not offered")
            }
            Obstacle::NotOffered { name, .. } => write!(out, "did not offer the reserved {name}"),
            Obstacle::NoIsolator => write!(out, "lack the isolator docker/volume"),
            Obstacle::NoPlugin(plugin) => write!(out, "lack the volume driver {plugin}"),
            Obstacle::Deactivated => write!(out, "deactivated or draining"),
            Obstacle::NoExecutor(_) => write!(out, "did not offer the running executor"),
        }
    }
}

/// Beginnings that several obstacles of one agent share.
const SHARED: [&str; 2] = ["lack ", "did not offer the reserved "];

/// The obstacles of one agent, shortages as one: `lack cpus 2, mem 4096`.
pub(super) fn phrase(obstacles: &[Obstacle]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for obstacle in obstacles {
        let text = obstacle.to_string();
        let shared = SHARED.into_iter().find(|own| text.starts_with(own));
        let last = parts.last_mut().filter(|last| shared.is_some_and(|own| last.starts_with(own)));
        match last.zip(shared) {
            Some((last, shared)) => {
                let rest = &text[shared.len()..];
                if !last[shared.len()..].split(", ").any(|own| own == rest) {
                    last.push_str(", ");
                    last.push_str(rest);
                }
            }
            None => parts.push(text),
        }
    }
    parts.join(" and ")
}

/// Why a step waits: the last obstacles of each agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// By agent: its phrase.
    agents: BTreeMap<AgentId, String>,
    /// Agents by phrase: the sum costs nothing.
    phrases: BTreeMap<String, usize>,
}

impl Wait {
    pub(super) fn insert(&mut self, agent: AgentId, phrase: String) {
        self.remove(&agent);
        if self.agents.len() < WAIT_AGENTS_MAX {
            *self.phrases.entry(phrase.clone()).or_default() += 1;
            self.agents.insert(agent, phrase);
        }
    }

    pub(super) fn remove(&mut self, agent: &AgentId) {
        let Some(phrase) = self.agents.remove(agent) else { return };
        if let Some(count) = self.phrases.get_mut(&phrase) {
            *count -= 1;
            if *count == 0 {
                self.phrases.remove(&phrase);
            }
        }
    }
}

/// `3 agents: 2 lack mem 4096, 1 excluded by hostname:UNIQUE`.
impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.agents.is_empty() {
            return write!(out, "no offers yet");
        }
        let plural = if self.agents.len() == 1 { "" } else { "s" };
        write!(out, "{} agent{plural}: ", self.agents.len())?;
        let mut phrases: Vec<(&String, &usize)> = self.phrases.iter().collect();
        phrases.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (at, (phrase, count)) in phrases.into_iter().enumerate() {
            write!(out, "{}{count} {phrase}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
