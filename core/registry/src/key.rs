//! The keys under which facts are stored; they are defined only here.

use alloc::format;
use alloc::string::String;

use tepui_types::AgentId;

use crate::Machine;

/// The kind of entry of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Schema,
    Cluster,
    Schedule,
    Agent(AgentId),
    Unreachable(AgentId),
    Gone(AgentId),
    Deactivated(AgentId),
    Weight(String),
    Quota(String),
    Machine(Machine),
    Capability(String),
}

const AGENT: &str = "agent/";
const UNREACHABLE: &str = "unreachable/";
const GONE: &str = "gone/";
const DEACTIVATED: &str = "deactivated/";
const WEIGHT: &str = "weight/";
const QUOTA: &str = "quota/";
const MACHINE: &str = "machine/";
const CAPABILITY: &str = "capability/";
const SCHEMA: &str = "schema";
const CLUSTER: &str = "cluster";
const SCHEDULE: &str = "schedule";

/// Never stored: to delete it is a write, which only the leader can make.
pub(crate) const FENCE: &str = "fence";

impl Key {
    pub(crate) fn text(&self) -> String {
        match self {
            Key::Schema => SCHEMA.into(),
            Key::Cluster => CLUSTER.into(),
            Key::Schedule => SCHEDULE.into(),
            Key::Agent(id) => format!("{AGENT}{id}"),
            Key::Unreachable(id) => format!("{UNREACHABLE}{id}"),
            Key::Gone(id) => format!("{GONE}{id}"),
            Key::Deactivated(id) => format!("{DEACTIVATED}{id}"),
            Key::Weight(role) => format!("{WEIGHT}{role}"),
            Key::Quota(role) => format!("{QUOTA}{role}"),
            Key::Machine(machine) => format!("{MACHINE}{machine}"),
            Key::Capability(name) => format!("{CAPABILITY}{name}"),
        }
    }

    /// `None` for a key unknown to this version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            SCHEMA => return Some(Key::Schema),
            CLUSTER => return Some(Key::Cluster),
            SCHEDULE => return Some(Key::Schedule),
            _ => (),
        }
        let named = |prefix: &str| text.strip_prefix(prefix).filter(|name| !name.is_empty());
        let agent = |prefix: &str| named(prefix).map(AgentId::new);
        agent(AGENT)
            .map(Key::Agent)
            .or_else(|| agent(UNREACHABLE).map(Key::Unreachable))
            .or_else(|| agent(GONE).map(Key::Gone))
            .or_else(|| agent(DEACTIVATED).map(Key::Deactivated))
            .or_else(|| named(WEIGHT).map(|role| Key::Weight(role.into())))
            .or_else(|| named(QUOTA).map(|role| Key::Quota(role.into())))
            .or_else(|| named(MACHINE).and_then(Machine::parse).map(Key::Machine))
            .or_else(|| named(CAPABILITY).map(|name| Key::Capability(name.into())))
    }
}
