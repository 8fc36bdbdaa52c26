//! Short forms for tests: containers as one types them, engines and offers as lines.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::{Value, json};
use tepui_placement::HeldOffer;
use tepui_resources::{Resources, Revocable, Role, parse};
use tepui_types::OfferId;

use crate::address::EngineAddress;
use crate::agent::{Agent, Engine, EngineLink};
use crate::occupant::{HostBinding, Image, Occupant};
use crate::rejection::Rejection;
use crate::spec::ContainerSpec;

/// `-c 1 -m 20 -e constraint:node==a -p 80:80 --expose 80 --net host --link a:b --volumes-from a -l k=v IMAGE`; memory in MiB.
pub fn body(options: &str) -> Value {
    let mut words = options.split_whitespace();
    let mut document =
        json!({"Image": "busybox", "Env": [], "Labels": {}, "HostConfig": {"PortBindings": {}}});
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("a value").replace('_', " ");
        let host = |name: &str, value: Value, document: &mut Value| document["HostConfig"][name] = value;
        match word {
            "-c" => host("CpuShares", json!(next().parse::<i64>().expect("cpus")), &mut document),
            "-m" => host("Memory", json!(next().parse::<i64>().expect("MiB") << 20), &mut document),
            "--cpus" => {
                let nanos = next().parse::<f64>().expect("cpus") * 1e9;
                host("NanoCpus", json!(nanos as i64), &mut document);
            }
            "--reserve" => {
                host("MemoryReservation", json!(next().parse::<i64>().expect("MiB") << 20), &mut document)
            }
            "--rm" => document["HostConfig"]["AutoRemove"] = json!(true),
            "--net" => host("NetworkMode", json!(next()), &mut document),
            "--link" => push(&mut document["HostConfig"]["Links"], json!(next())),
            "--volumes-from" => push(&mut document["HostConfig"]["VolumesFrom"], json!(next())),
            "-e" => push(&mut document["Env"], json!(next())),
            "--expose" => document["ExposedPorts"][next() + "/tcp"] = json!({}),
            "-l" => {
                let label = next();
                let (key, value) = label.split_once('=').expect("key=value");
                document["Labels"][key] = json!(value);
            }
            "-p" => {
                let ports = next();
                let (host, container) = ports.rsplit_once(':').expect("host:container");
                let (ip, port) = host.rsplit_once(':').unwrap_or(("", host));
                let list = &mut document["HostConfig"]["PortBindings"][container.to_owned() + "/tcp"];
                push(list, json!({"HostIp": ip, "HostPort": port}));
            }
            image => document["Image"] = json!(image),
        }
    }
    document
}

fn push(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list").push(item);
}

pub fn try_spec(options: &str) -> Result<ContainerSpec, Rejection> {
    ContainerSpec::parse(body(options).to_string().as_bytes(), true)
}

/// With a request of one cpu if it has none of its own.
pub fn spec(options: &str) -> ContainerSpec {
    let has_amount = ["-c ", "-m ", "--cpus ", "--reserve "].iter().any(|it| options.contains(it));
    let options = if has_amount { options.to_owned() } else { alloc::format!("-c 1 {options}") };
    try_spec(&options).expect("a spec")
}

/// `cpus:1;mem:2 + rev cpus:1;mem:2`.
pub fn resources(text: &str) -> Resources {
    let read =
        |text: &str| -> Resources { parse::resources(text, "*").expect("resources").into_iter().collect() };
    let parts =
        text.split(" + ").filter(|part| !part.is_empty()).map(|part| match part.strip_prefix("rev ") {
            Some(part) => read(part).flatten(Revocable::UsageSlack),
            None => read(part),
        });
    parts.fold(Resources::new(), |sum, part| sum + &part).allocate(&Role::from("*"))
}

pub fn held(id: &str, text: &str) -> HeldOffer {
    HeldOffer { id: OfferId::new(id), resources: resources(text) }
}

/// A container on an engine: `NAME key=value … 0.0.0.0:80`, host mode ports as `!80`.
pub fn occupant(text: &str) -> Occupant {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut occupant = Occupant { id: alloc::format!("id-{name}"), name, ..Default::default() };
    for word in words {
        if let Some((key, value)) = word.split_once('=') {
            occupant.labels.insert(key.into(), value.into());
        } else if word == "running" {
            occupant.is_running = true;
        } else if let Some(port) = word.strip_prefix('!') {
            occupant.host_mode_ports.push(port.to_owned() + "/tcp");
        } else {
            let (ip, port) = word.rsplit_once(':').unwrap_or(("", word));
            occupant.bindings.push(HostBinding { ip: ip.into(), port: port.into() });
        }
    }
    occupant
}

pub fn engine(name: &str, labels: &[(&str, &str)], occupants: &[&str], images: &[&str]) -> Engine {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let image = |tag: &&str| Image { id: alloc::format!("sha256:{tag}"), tags: Vec::from([tag.to_string()]) };
    Engine {
        id: alloc::format!("engine-{name}"),
        name: name.to_owned(),
        labels,
        occupants: occupants.iter().map(|text| occupant(text)).collect(),
        images: images.iter().map(image).collect(),
    }
}

/// A healthy agent with offers `(id, resources)`.
pub fn agent(name: &str, offers: &[(&str, &str)]) -> Agent {
    agent_with(engine(name, &[], &[], &[]), offers)
}

pub fn agent_with(engine: Engine, offers: &[(&str, &str)]) -> Agent {
    let address = EngineAddress::Tcp { host: engine.name.clone(), port: 2375 };
    let mut agent = Agent::new(engine.name.clone(), address, "/run/docker.sock".into());
    agent.engine = EngineLink::Up(Arc::new(engine));
    agent.offers = offers.iter().map(|(id, text)| (OfferId::new(*id), held(id, text))).collect();
    agent
}
