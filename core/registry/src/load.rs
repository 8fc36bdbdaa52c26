//! From stored keys and values back to the facts.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::Wall;
use tepui_proto::Message;
use tepui_proto::tepui::registry::v1 as stored;

use crate::key::Key;
use crate::operation::id_of;
use crate::{Registry, SCHEMA_VERSION};

/// Why a store is not a registry that this version may open. Nothing is skipped: a fact that was promised to be
/// durable is never silently dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Written by a newer version.
    NewerSchema { found: u32 },
    UnknownKey { key: String },
    /// The value is not what the key stands for.
    Corrupt { key: String, reason: String },
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
            Key::Schema => match decode::<stored::Schema>(value)?.version {
                version @ 1..=SCHEMA_VERSION => self.schema_version = Some(version),
                0 => return Err(Wrong::Value("it has no version".into())),
                newer => return Err(Wrong::Newer(newer)),
            },
            Key::Cluster => self.cluster_id = Some(decode::<stored::Cluster>(value)?.id),
            Key::Agent(id) => match decode::<stored::Agent>(value)?.info.into_option() {
                Some(info) if id_of(&info) == id => drop(self.agents.insert(id, info)),
                Some(info) => return Err(Wrong::Value(alloc::format!("it describes agent '{}'", id_of(&info)))),
                None => return Err(Wrong::Value("it describes no agent".into())),
            },
            Key::Unreachable(id) => drop(self.unreachable.insert(id, since(value)?)),
            Key::Gone(id) => drop(self.gone.insert(id, since(value)?)),
            Key::Weight(role) => match decode::<stored::Weight>(value)?.weight {
                weight if weight.is_finite() && weight > 0.0 => drop(self.weights.insert(role, weight)),
                weight => return Err(Wrong::Value(alloc::format!("{weight} is no weight"))),
            },
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
                write!(f, "the registry has a key '{key}' that this version does not know; it may be from a newer one")
            }
            LoadError::Corrupt { key, reason } => write!(f, "the registry's value of '{key}' is damaged: {reason}"),
        }
    }
}

impl core::error::Error for LoadError {}
