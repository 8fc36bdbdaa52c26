//! From stored keys and values back to the facts.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::Wall;
use tepui_proto::Message;
use tepui_proto::mesos::v1::AgentInfo;
use tepui_proto::tepui::registry::v1 as stored;
use tepui_types::AgentId;

use crate::key::Key;
use crate::operation::id_of;
use crate::{Registry, SCHEMA_VERSION};

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
    /// The value is not what the key stands for.
    Corrupt {
        key: String,
        reason: String,
    },
}

impl Registry {
    /// The registry that all writes so far have left. Keys may come in any order.
    pub fn load(entries: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Registry, LoadError> {
        let mut registry = Registry::default();
        for (key, value) in entries {
            let Some(what) = Key::parse(&key) else {
                return Err(LoadError::UnknownKey { key });
            };
            registry.take_in(what, &value).map_err(|wrong| match wrong {
                Wrong::Newer(found) => LoadError::NewerSchema { found },
                Wrong::Value(reason) => LoadError::Corrupt { key, reason },
            })?;
        }
        Ok(registry)
    }

    fn take_in(&mut self, key: Key, value: &[u8]) -> Result<(), Wrong> {
        match key {
            Key::Schema => self.schema_version = Some(known_version(value)?),
            Key::Cluster => self.cluster_id = Some(decode::<stored::Cluster>(value)?.id),
            Key::Agent(id) => {
                let info = agent(&id, value)?;
                self.agents.insert(id, info);
            }
            Key::Unreachable(id) => {
                self.unreachable.insert(id, since(value)?);
            }
            Key::Gone(id) => {
                self.gone.insert(id, since(value)?);
            }
            Key::Weight(role) => {
                self.weights.insert(role, weight(value)?);
            }
        }
        Ok(())
    }
}

enum Wrong {
    Newer(u32),
    Value(String),
}

fn decode<M: Message>(value: &[u8]) -> Result<M, Wrong> {
    M::decode_from_slice(value).map_err(|err| Wrong::Value(err.to_string()))
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
    usable.then_some(weight).ok_or_else(|| Wrong::Value(format!("{weight} is no weight")))
}

fn since(value: &[u8]) -> Result<Wall, Wrong> {
    Ok(Wall(decode::<stored::Absence>(value)?.since_nanos))
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NewerSchema { found } => write!(
                f,
                "the registry was written by a newer version (schema {found}; this one reads up to {SCHEMA_VERSION})"
            ),
            LoadError::UnknownKey { key } => {
                write!(
                    f,
                    "the registry has a key '{key}' that this version does not know; it may be from a newer one"
                )
            }
            LoadError::Corrupt { key, reason } => {
                write!(f, "the registry's value of '{key}' is damaged: {reason}")
            }
        }
    }
}

impl core::error::Error for LoadError {}
