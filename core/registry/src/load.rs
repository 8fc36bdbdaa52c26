//! From stored keys and values back to the facts.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::Wall;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::mesos::v1::{AgentInfo, MachineInfo};
use tepui_proto::tepui::registry::v1 as stored;
use tepui_proto::{Wire, wire};
use tepui_types::AgentId;

use crate::key::Key;
use crate::operation::{AGENT_DRAINING, QUOTA_V2, WEIGHT_DEFAULT, id_of};
use crate::{Deactivation, Machine, Registry, SCHEMA_VERSION};

/// Why a store is not a registry that this version may open. Nothing is skipped: a fact that was promised to be
/// durable is never silently dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Written by a newer version.
    NewerSchema {
        found: u32,
    },
    UnknownKey {
        key: String,
    },
    /// Only masters with this capability can read the registry.
    MissingCapability {
        name: String,
    },
    /// The value does not have the type of its key.
    Corrupt {
        key: String,
        reason: String,
    },
}

impl Registry {
    /// The registry from its stored entries, in any order.
    pub fn load(entries: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Registry, LoadError> {
        let mut registry = Registry::default();
        for (key, value) in entries {
            let Some(what) = Key::parse(&key) else {
                return Err(LoadError::UnknownKey { key });
            };
            registry.ingest(what, &value).map_err(|wrong| match wrong {
                Wrong::Newer(found) => LoadError::NewerSchema { found },
                Wrong::Capability(name) => LoadError::MissingCapability { name },
                Wrong::Value(reason) => LoadError::Corrupt { key, reason },
            })?;
        }
        Ok(registry)
    }

    fn ingest(&mut self, key: Key, value: &[u8]) -> Result<(), Wrong> {
        match key {
            Key::Schema => self.schema_version = Some(known_version(value)?),
            Key::Cluster => self.cluster_id = Some(decode::<stored::Cluster>(value)?.id),
            Key::Agent(id) => {
                let info = agent(&id, value)?;
                self.agents.insert(id, info);
            }
            Key::Unreachable(id) => {
                let absence: stored::Absence = decode(value)?;
                if let Some(hostname) = absence.hostname {
                    self.unreachable_hostnames.insert(id.clone(), hostname);
                }
                self.unreachable.insert(id, Wall(absence.since_nanos));
            }
            Key::Gone(id) => {
                self.gone.insert(id, Wall(decode::<stored::Absence>(value)?.since_nanos));
            }
            Key::Deactivated(id) => {
                Arc::make_mut(&mut self.deactivated).insert(id, deactivation(value)?);
            }
            // Version 1 also stored default weights.
            Key::Weight(role) => match weight(value)? {
                WEIGHT_DEFAULT => (),
                weight => drop(self.weights.insert(role, weight)),
            },
            Key::Quota(role) => {
                let config = quota(&role, value)?;
                self.quotas.insert(role, config);
            }
            Key::Schedule => {
                self.schedule = decode::<stored::Schedule>(value)?.schedule.into_option().unwrap_or_default();
            }
            Key::Machine(machine) => {
                let info = machine_info(&machine, value)?;
                self.machines.insert(machine, info);
            }
            Key::Capability(name) => {
                decode::<stored::Capability>(value)?;
                self.minimum_capabilities.insert(known_capability(name)?);
            }
        }
        Ok(())
    }
}

enum Wrong {
    Newer(u32),
    Capability(String),
    Value(String),
}

fn decode<M: Wire>(value: &[u8]) -> Result<M, Wrong> {
    wire::decode_record(value).map_err(|err| Wrong::Value(err.to_string()))
}

fn known_version(value: &[u8]) -> Result<u32, Wrong> {
    match decode::<stored::Schema>(value)?.version {
        version @ 1..=SCHEMA_VERSION => Ok(version),
        0 => Err(Wrong::Value("it has no version".into())),
        newer => Err(Wrong::Newer(newer)),
    }
}

fn agent(id: &AgentId, value: &[u8]) -> Result<AgentInfo, Wrong> {
    match decode::<stored::Agent>(value)?.info.into_option() {
        Some(info) if id_of(&info) == *id => Ok(info),
        Some(info) => Err(Wrong::Value(format!("it describes agent '{}'", id_of(&info)))),
        None => Err(Wrong::Value("it describes no agent".into())),
    }
}

fn weight(value: &[u8]) -> Result<f64, Wrong> {
    let weight = decode::<stored::Weight>(value)?.weight;
    let usable = weight.is_finite() && weight > 0.0;
    usable.then_some(weight).ok_or_else(|| Wrong::Value(format!("{weight} is not a valid weight")))
}

fn quota(role: &str, value: &[u8]) -> Result<QuotaConfig, Wrong> {
    match decode::<stored::Quota>(value)?.config.into_option() {
        Some(config) if config.role == role => Ok(config),
        Some(config) => Err(Wrong::Value(format!("it is the quota of role '{}'", config.role))),
        None => Err(Wrong::Value("it is not a quota".into())),
    }
}

fn machine_info(machine: &Machine, value: &[u8]) -> Result<MachineInfo, Wrong> {
    match decode::<stored::Machine>(value)?.info.into_option() {
        Some(info) if Machine::from(&*info.id) == *machine => Ok(info),
        Some(info) => Err(Wrong::Value(format!("it describes machine '{}'", Machine::from(&*info.id)))),
        None => Err(Wrong::Value("it describes no machine".into())),
    }
}

fn deactivation(value: &[u8]) -> Result<Deactivation, Wrong> {
    let stored = decode::<stored::Deactivation>(value)?;
    Ok(Deactivation { drain: stored.drain.into_option(), since: stored.since_nanos.map(Wall) })
}

fn known_capability(name: String) -> Result<String, Wrong> {
    match [QUOTA_V2, AGENT_DRAINING].contains(&name.as_str()) {
        true => Ok(name),
        false => Err(Wrong::Capability(name)),
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NewerSchema { found } => write!(
                f,
                "the registry was written by a newer version (schema {found}; this one reads up to {SCHEMA_VERSION})"
            ),
            LoadError::UnknownKey { key } => {
                write!(f, "unknown key '{key}' in the registry; it may be from a newer version")
            }
            LoadError::MissingCapability { name } => {
                write!(f, "the registry needs a master with the capability {name}, which this one has not")
            }
            LoadError::Corrupt { key, reason } => {
                write!(f, "the registry's value of '{key}' is damaged: {reason}")
            }
        }
    }
}

impl core::error::Error for LoadError {}
