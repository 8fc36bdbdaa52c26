//! From a framework's request to the engine's document for a container. Pure.
//!
//! The command and environment of a command task are left to its executor, which has the task.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::container_info::docker_info::Network;
use tepui_types::{LaunchSpec, docker_privilege};

use super::fault::DocumentFault;
use super::{limits, parameters, volumes};
use crate::cgroups::Policy;

/// The document, or which field is wrong and why. The container sees its sandbox at `sandbox`; with a `user`, it runs as
/// that one and gains no rights.
pub(super) fn document(
    spec: &LaunchSpec,
    user: Option<(u32, u32)>,
    (name, sandbox): (&str, &Path),
    policy: &Policy,
) -> Result<Value, DocumentFault> {
    let info = spec.container.as_ref().ok_or(DocumentFault::Missing("container"))?;
    let docker = info.docker.as_option().ok_or(DocumentFault::Missing("container.docker"))?;
    let mut document = match spec.of_task {
        true => json!({}),
        false => {
            let (shell, value) = (spec.command.shell.unwrap_or(true), spec.command.value.as_deref());
            tepui_docker::command(shell, value, &spec.command.arguments)
        }
    };
    document["Image"] = docker.image.clone().into();
    document["Env"] = environment(spec, name, sandbox).into();
    let demand = limits::demand(&spec.resources, &spec.limits, spec.of_task);
    document["HostConfig"] = limits::fresh(&demand, policy, spec.of_task);
    let network = network(info, docker)?;
    let config = &mut document["HostConfig"];
    config["NetworkMode"] = network.clone().into();
    config["Privileged"] = docker.privileged.unwrap_or(false).into();
    volumes::add(spec, sandbox, config)?;
    if let Some(hostname) = &info.hostname {
        if network == "host" {
            return Err(DocumentFault::HostnameOnHostNetwork);
        }
        document["Hostname"] = hostname.clone().into();
    }
    parameters::add(&docker.parameters, &mut document)?;
    if let Some((uid, gid)) = user {
        if let Some(field) = docker_privilege(info) {
            return Err(DocumentFault::Privilege(field));
        }
        document["User"] = format!("{uid}:{gid}").into();
        document["HostConfig"]["SecurityOpt"] = json!(["no-new-privileges"]);
    }
    let network = document["HostConfig"]["NetworkMode"].as_str().unwrap_or_default().to_owned();
    publish(docker, &network, &spec.resources, &mut document)?;
    Ok(document)
}

/// Of a command task only the part that its executor does not have.
fn environment(spec: &LaunchSpec, name: &str, sandbox: &Path) -> Vec<String> {
    let mut all = if spec.of_task { BTreeMap::new() } else { spec.environment.clone() };
    all.insert(String::from("MESOS_SANDBOX"), sandbox.display().to_string());
    all.insert(String::from("MESOS_CONTAINER_NAME"), name.to_owned());
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn network(
    info: &pb::ContainerInfo,
    docker: &pb::container_info::DockerInfo,
) -> Result<String, DocumentFault> {
    let named = || match info.network_infos.as_slice() {
        [pb::NetworkInfo { name: Some(name), .. }] => Ok(name.clone()),
        _ => Err(DocumentFault::UserNetwork),
    };
    match docker.network.unwrap_or(Network::HOST) {
        Network::HOST => Ok(String::from("host")),
        Network::BRIDGE => Ok(String::from("bridge")),
        Network::NONE => Ok(String::from("none")),
        Network::USER => named(),
    }
}

/// Ports of the host that lead to ports of the container. The host's must be the task's own.
fn publish(
    docker: &pb::container_info::DockerInfo,
    network: &str,
    resources: &[pb::Resource],
    document: &mut Value,
) -> Result<(), DocumentFault> {
    for (index, mapping) in docker.port_mappings.iter().enumerate() {
        if matches!(network, "host" | "none") {
            return Err(DocumentFault::NetworkWithoutPorts { index, network: network.to_owned() });
        }
        let host = u64::from(mapping.host_port);
        let mut ranges =
            resources.iter().filter(|one| one.name == "ports").flat_map(|ports| &ports.ranges.range);
        if !ranges.any(|range| (range.begin..=range.end).contains(&host)) {
            return Err(DocumentFault::PortOfAnother { index, host });
        }
        let protocol = mapping.protocol.as_deref().unwrap_or("tcp").to_lowercase();
        let port = format!("{}/{protocol}", mapping.container_port);
        document["ExposedPorts"][&port] = json!({});
        let binding = json!({"HostIp": "", "HostPort": host.to_string()});
        match &mut document["HostConfig"]["PortBindings"][&port] {
            Value::Array(bindings) => bindings.push(binding),
            none => *none = json!([binding]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
