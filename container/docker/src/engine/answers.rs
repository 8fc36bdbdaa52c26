//! Answers of the engine, as far as they are used here. An empty value is `null`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::EngineFault;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Created {
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub warnings: Vec<String>,
}

/// A container, with the engine's complete document.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    pub id: String,
    pub state: State,
    pub networks: BTreeMap<String, Network>,
    pub has_terminal: bool,
    /// The signal of a polite kill.
    pub stop_signal: Option<String>,
    pub raw: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct State {
    pub running: bool,
    /// `created`, `running`, `exited` and others.
    pub status: String,
    /// 0 if it does not run.
    pub pid: i32,
    pub exit_code: i64,
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    pub error: String,
}

/// How a container takes part in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Network {
    #[serde(rename = "IPAddress", deserialize_with = "or_default")]
    pub ip_address: String,
    #[serde(rename = "GlobalIPv6Address", deserialize_with = "or_default")]
    pub ipv6_address: String,
}

/// An address of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub ip: String,
    pub is_ipv6: bool,
}

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Listed {
    pub id: String,
    /// Each begins with a slash.
    #[serde(default, deserialize_with = "or_default")]
    pub names: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    pub state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Image {
    pub id: String,
}

impl Inspected {
    pub(super) fn new(raw: Value) -> Result<Inspected, EngineFault> {
        let garbled = |why: String| EngineFault::Garbled { doing: "inspect the container", why };
        let state = State::deserialize(&raw["State"]).map_err(|err| garbled(format!("State: {err}")))?;
        let networks = match &raw["NetworkSettings"]["Networks"] {
            Value::Null => BTreeMap::new(),
            given => BTreeMap::deserialize(given).map_err(|err| garbled(format!("Networks: {err}")))?,
        };
        let config = &raw["Config"];
        Ok(Inspected {
            id: raw["Id"].as_str().ok_or_else(|| garbled(String::from("it has no Id")))?.to_owned(),
            state,
            networks,
            has_terminal: config["Tty"].as_bool().unwrap_or(false),
            stop_signal: config["StopSignal"].as_str().map(str::to_owned),
            raw,
        })
    }

    /// All that are its own; none on the host's network.
    pub fn addresses(&self) -> Vec<Address> {
        let of = |network: &Network| {
            let (v4, v6) = (network.ip_address.clone(), network.ipv6_address.clone());
            [Address { ip: v4, is_ipv6: false }, Address { ip: v6, is_ipv6: true }]
        };
        self.networks.values().flat_map(of).filter(|address| !address.ip.is_empty()).collect()
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
