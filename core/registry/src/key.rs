//! The names under which facts are stored, and the only place that knows them.

use alloc::format;
use alloc::string::String;

use tepui_types::AgentId;

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Schema,
    Cluster,
    Agent(AgentId),
    Unreachable(AgentId),
    Gone(AgentId),
    Weight(String),
}

const AGENT: &str = "agent/";
const UNREACHABLE: &str = "unreachable/";
const GONE: &str = "gone/";
const WEIGHT: &str = "weight/";
const SCHEMA: &str = "schema";
const CLUSTER: &str = "cluster";

impl Key {
    pub(crate) fn text(&self) -> String {
        match self {
            Key::Schema => SCHEMA.into(),
            Key::Cluster => CLUSTER.into(),
            Key::Agent(id) => format!("{AGENT}{id}"),
            Key::Unreachable(id) => format!("{UNREACHABLE}{id}"),
            Key::Gone(id) => format!("{GONE}{id}"),
            Key::Weight(role) => format!("{WEIGHT}{role}"),
        }
    }

    /// `None` for a key this version does not know.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == SCHEMA {
            return Some(Key::Schema);
        }
        if text == CLUSTER {
            return Some(Key::Cluster);
        }
        let agent_id = |prefix: &str| text.strip_prefix(prefix).filter(|id| !id.is_empty()).map(AgentId::new);
        agent_id(AGENT)
            .map(Key::Agent)
            .or_else(|| agent_id(UNREACHABLE).map(Key::Unreachable))
            .or_else(|| agent_id(GONE).map(Key::Gone))
            .or_else(|| text.strip_prefix(WEIGHT).map(|role| Key::Weight(role.into())))
    }
}
