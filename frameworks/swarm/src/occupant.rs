//! What occupies an engine: its containers and images as the filters look at them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A container on an engine, ours or not, running or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The engine's id; empty until the engine has created it.
    pub id: String,
    /// Without a leading slash; empty if it has none yet.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub bindings: Vec<HostBinding>,
    /// `80/tcp`, exposed in the network of the host.
    pub host_mode_ports: Vec<String>,
    /// As its engine listed it last.
    #[serde(default)]
    pub is_running: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBinding {
    pub ip: String,
    pub port: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub id: String,
    pub tags: Vec<String>,
}

impl HostBinding {
    /// Both cannot be bound on one host. An address that is not specified overlaps every other.
    pub fn collides(&self, other: &Self) -> bool {
        let unspecified = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
        !self.port.is_empty()
            && self.port == other.port
            && (self.ip == other.ip || unspecified(&self.ip) || unspecified(&other.ip))
    }
}

impl Occupant {
    /// From an element of the engine's answer to GET /containers/json.
    pub fn from_listed(listed: &Value) -> Option<Occupant> {
        let first_name =
            listed["Names"].as_array().and_then(|names| names.first()?.as_str()).unwrap_or_default();
        let labels = listed["Labels"].as_object().into_iter().flatten();
        let ports = listed["Ports"].as_array().into_iter().flatten();
        let binding = |port: &Value| {
            let ip = port["IP"].as_str().unwrap_or_default().to_owned();
            Some(HostBinding { ip, port: port["PublicPort"].as_u64()?.to_string() })
        };
        Some(Occupant {
            id: listed["Id"].as_str()?.to_owned(),
            name: first_name.trim_start_matches('/').to_owned(),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            bindings: ports.filter_map(binding).collect(),
            host_mode_ports: Vec::new(),
            is_running: matches!(listed["State"].as_str(), Some("running" | "paused" | "restarting")),
        })
    }
}

impl Image {
    /// From an element of the engine's answer to GET /images/json.
    pub fn from_listed(listed: &Value) -> Option<Image> {
        let tags = listed["RepoTags"].as_array().into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).filter(|tag| *tag != "<none>:<none>");
        Some(Image { id: listed["Id"].as_str()?.to_owned(), tags: tags.map(str::to_owned).collect() })
    }

    /// The id, each `repository:tag` and each repository.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        let repositories = self.tags.iter().filter_map(|tag| Some(tag.rsplit_once(':')?.0));
        core::iter::once(&*self.id).chain(self.tags.iter().map(String::as_str)).chain(repositories)
    }
}
