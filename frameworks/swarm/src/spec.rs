//! A container as a client asks for it: the document of POST /containers/create, read once.
//!
//! What matters to placement becomes fields; the document itself goes to the engine with everything that is in it. Entries of
//! `Env` that are meant for Swarm move to labels, which is the form that classic Swarm stores.

mod amounts;
mod swarm_env;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};
use tepui_placement::{Kind, Port, Request};
use tepui_types::AgentId;

use crate::expression::Expression;
use crate::occupant::HostBinding;
use crate::rejection::Rejection;
use crate::res_type::{Choice, RES_TYPE};

pub use amounts::Amounts;
pub use swarm_env::Reschedule;
use swarm_env::SwarmEnv;

/// Label with the id of the task that holds the resources of a container.
pub const TASK_LABEL: &str = "com.docker.swarm.mesos.task";
/// Label with the id of the framework that the task belongs to.
pub const FRAMEWORK_LABEL: &str = "com.docker.swarm.mesos.framework";
/// Label with the name that the user gave.
pub const NAME_LABEL: &str = "com.docker.swarm.mesos.name";

#[derive(Clone, Debug)]
pub struct ContainerSpec {
    document: Map<String, Value>,
    pub image: String,
    pub labels: BTreeMap<String, String>,
    pub constraints: Vec<Expression>,
    pub affinities: Vec<Expression>,
    pub whitelists: Vec<Expression>,
    pub choice: Choice,
    pub reschedule: Reschedule,
    pub amounts: Amounts,
    pub network: String,
    /// `80/tcp`, as listed in the document.
    pub exposed_ports: Vec<String>,
    pub bindings: Vec<Binding>,
    pub volumes_from: Vec<String>,
    pub links: Vec<String>,
    /// The engine removes the container when it exits.
    pub auto_remove: bool,
    /// The only agents that will do: their engines have the image. Not part of the document.
    pub agents: Option<Vec<AgentId>>,
}

/// One port of a container on a port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// `80/tcp`.
    pub container_port: String,
    pub host_ip: String,
    /// `None`: any port that is offered.
    pub host_port: Option<u16>,
}

impl ContainerSpec {
    /// Reads the body of a create call. `revocable`: whether revocable resources are offered to this framework.
    pub fn parse(body: &[u8], revocable: bool) -> Result<Self, Rejection> {
        let document: Value = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the body is not valid JSON: {error}")))?;
        let Value::Object(mut document) = document else {
            return Err(bad("the body must be a JSON object".to_owned()));
        };
        let image = text(&document, "Image")?;
        if image.is_empty() {
            return Err(bad("Image must name an image".to_owned()));
        }
        let mut labels = strings_by_name(&document, "Labels")?;
        let env = SwarmEnv::take(&mut document, &mut labels)?;
        let choice = Choice::from_constraints(&env.constraints)
            .and_then(|choice| if revocable { Ok(choice) } else { choice.without_revocable() })
            .map_err(|error| bad(error.to_string()))?;
        let host = object(&document, "HostConfig")?.cloned().unwrap_or_default();
        let spec = Self {
            image,
            choice,
            reschedule: env.reschedule,
            constraints: env.constraints,
            affinities: env.affinities,
            whitelists: env.whitelists,
            amounts: Amounts::parse(&host)?,
            network: text(&host, "NetworkMode")?,
            exposed_ports: names(&document, "ExposedPorts")?,
            bindings: bindings(&host)?,
            volumes_from: strings(&host, "VolumesFrom")?,
            links: strings(&host, "Links")?,
            auto_remove: flag(&host, "AutoRemove")?,
            agents: None,
            labels,
            document,
        };
        Ok(spec)
    }

    /// The document as JSON, as far as [`ContainerSpec::parse`] reads the same from it again.
    pub fn body(&self) -> String {
        let mut document = self.document.clone();
        let labels =
            self.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect();
        document.insert("Labels".to_owned(), Value::Object(labels));
        Value::Object(document).to_string()
    }

    /// Whether it matters for placement which containers are on an engine, not only how many.
    pub fn depends_on_occupants(&self) -> bool {
        let has_ports = !self.bindings.is_empty() || self.is_host_network() && !self.exposed_ports.is_empty();
        has_ports || !self.affinities.is_empty() || !self.dependencies().is_empty()
    }

    pub fn is_host_network(&self) -> bool {
        self.network == "host"
    }

    /// What the container needs of the offers of one agent.
    pub fn request(&self) -> Request {
        let port = |binding: &Binding| match binding.host_port {
            Some(port) => Port::Exactly(u64::from(port)),
            None => Port::Any,
        };
        Request { amounts: self.amounts.quantities(), ports: self.bindings.iter().map(port).collect() }
    }

    /// The labels of the container once it is placed.
    pub fn placed_labels(
        &self,
        kind: Kind,
        framework: &str,
        task: &str,
        name: &str,
    ) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.insert(FRAMEWORK_LABEL.to_owned(), framework.to_owned());
        labels.insert(RES_TYPE.to_owned(), kind.as_str().to_owned());
        labels.insert(TASK_LABEL.to_owned(), task.to_owned());
        labels.insert(NAME_LABEL.to_owned(), name.to_owned());
        labels
    }

    /// The document for the engine: the user's own with the labels and host ports of the placement.
    pub fn placed_document(&self, labels: &BTreeMap<String, String>, ports: &[u64]) -> Value {
        let mut document = self.document.clone();
        let labels = labels.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect();
        document.insert("Labels".to_owned(), Value::Object(labels));
        let host = document.entry("HostConfig").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(host) = host {
            self.amounts.write(host);
            if !self.bindings.is_empty() {
                host.insert("PortBindings".to_owned(), self.placed_bindings(ports));
            }
        }
        Value::Object(document)
    }

    fn placed_bindings(&self, ports: &[u64]) -> Value {
        let mut all: Map<String, Value> = Map::new();
        for (binding, port) in self.bindings.iter().zip(ports) {
            let entry = all.entry(binding.container_port.clone()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = entry {
                list.push(serde_json::json!({"HostIp": binding.host_ip, "HostPort": port.to_string()}));
            }
        }
        Value::Object(all)
    }

    /// The host ports that the container occupies on its engine, running or not.
    pub fn host_bindings(&self, ports: &[u64]) -> Vec<HostBinding> {
        let bound = self.bindings.iter().zip(ports);
        bound
            .map(|(binding, port)| HostBinding { ip: binding.host_ip.clone(), port: port.to_string() })
            .collect()
    }

    /// The names of containers that must be on the same engine, each with the option that asks for it.
    pub fn dependencies(&self) -> Vec<(String, &str)> {
        let before_colon = |text: &'_ str| text.find(':').unwrap_or(text.len());
        let volumes = self
            .volumes_from
            .iter()
            .map(|from| (format!("--volumes-from={from}"), &from[..before_colon(from)]));
        let links = self.links.iter().map(|link| (format!("--link={link}"), &link[..before_colon(link)]));
        let network = self.network.strip_prefix("container:");
        let network = network.map(|name| (format!("--net=container:{name}"), name));
        volumes.chain(links).chain(network).collect()
    }
}

fn bindings(host: &Map<String, Value>) -> Result<Vec<Binding>, Rejection> {
    let mut all = Vec::new();
    for (container_port, list) in object(host, "PortBindings")?.into_iter().flatten() {
        let field = format!("HostConfig.PortBindings[{container_port:?}]");
        let list = match list {
            Value::Array(list) => list.as_slice(),
            Value::Null => &[],
            _ => return Err(bad(format!("{field} must be a list of bindings"))),
        };
        for binding in list {
            let Value::Object(binding) = binding else {
                return Err(bad(format!("{field} must be a list of bindings")));
            };
            let port = text(binding, "HostPort")?;
            let host_port = match port.as_str() {
                "" | "0" => None,
                port => Some(port.parse::<u16>().map_err(|_| {
                    bad(format!("{field}: host port {port:?} must be one number from 1 to 65535"))
                })?),
            };
            let host_ip = text(binding, "HostIp")?;
            all.push(Binding { container_port: container_port.clone(), host_ip, host_port });
        }
    }
    Ok(all)
}

fn bad(message: String) -> Rejection {
    Rejection::BadParameter(message)
}

/// An absent text is empty.
fn text(document: &Map<String, Value>, field: &str) -> Result<String, Rejection> {
    match document.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(bad(format!("{field} must be a string"))),
    }
}

fn flag(document: &Map<String, Value>, field: &str) -> Result<bool, Rejection> {
    match document.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(bad(format!("{field} must be true or false"))),
    }
}

fn object<'d>(
    document: &'d Map<String, Value>,
    field: &str,
) -> Result<Option<&'d Map<String, Value>>, Rejection> {
    match document.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(bad(format!("{field} must be an object"))),
    }
}

fn names(document: &Map<String, Value>, field: &str) -> Result<Vec<String>, Rejection> {
    Ok(object(document, field)?.into_iter().flatten().map(|(name, _)| name.clone()).collect())
}

fn strings(document: &Map<String, Value>, field: &str) -> Result<Vec<String>, Rejection> {
    let wrong = || bad(format!("{field} must be a list of strings"));
    match document.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            list.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn strings_by_name(
    document: &Map<String, Value>,
    field: &str,
) -> Result<BTreeMap<String, String>, Rejection> {
    let wrong = || bad(format!("{field} must be an object of strings"));
    let all = object(document, field)?.into_iter().flatten();
    all.map(|(name, value)| Ok((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned()))).collect()
}

#[cfg(test)]
mod tests;
