//! `DockerInfo.parameters`: options of `docker run` by their long names, and their fields in the Engine API.
//!
//! An option that is not in the table is rejected by its name: ignoring one silently would run a container other than
//! the requested one.

use serde_json::{Map, Value, json};
use tepui_proto::mesos::v1 as pb;

use super::fault::{DocumentFault, ParameterFault};

/// How the text of an option becomes a value.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Boolean,
    /// `64m`; -1 is endless.
    Bytes,
    /// May be given more than once.
    List,
    /// `name=value`, may be given more than once.
    Pairs,
    /// `1.5` processors, in billionths.
    Processors,
    Ulimit,
    Device,
    /// `path[:options]`.
    Tmpfs,
    /// `port[/protocol]`.
    Expose,
    /// `host:container[/protocol]`.
    Publish,
    /// A program without arguments.
    Entrypoint,
}

use Kind::{
    Boolean, Bytes, Device, Entrypoint, Expose, List, Number, Pairs, Processors, Publish, Text, Tmpfs, Ulimit,
};

const TABLE: &[(&str, Kind, &str)] = &[
    ("add-host", List, "HostConfig.ExtraHosts"),
    ("blkio-weight", Number, "HostConfig.BlkioWeight"),
    ("cap-add", List, "HostConfig.CapAdd"),
    ("cap-drop", List, "HostConfig.CapDrop"),
    ("cgroup-parent", Text, "HostConfig.CgroupParent"),
    ("cgroupns", Text, "HostConfig.CgroupnsMode"),
    ("cpu-period", Number, "HostConfig.CpuPeriod"),
    ("cpu-quota", Number, "HostConfig.CpuQuota"),
    ("cpu-rt-period", Number, "HostConfig.CpuRealtimePeriod"),
    ("cpu-rt-runtime", Number, "HostConfig.CpuRealtimeRuntime"),
    ("cpu-shares", Number, "HostConfig.CpuShares"),
    ("cpus", Processors, "HostConfig.NanoCpus"),
    ("cpuset-cpus", Text, "HostConfig.CpusetCpus"),
    ("cpuset-mems", Text, "HostConfig.CpusetMems"),
    ("device", Device, "HostConfig.Devices"),
    ("device-cgroup-rule", List, "HostConfig.DeviceCgroupRules"),
    ("dns", List, "HostConfig.Dns"),
    ("dns-opt", List, "HostConfig.DnsOptions"),
    ("dns-option", List, "HostConfig.DnsOptions"),
    ("dns-search", List, "HostConfig.DnsSearch"),
    ("domainname", Text, "Domainname"),
    ("entrypoint", Entrypoint, "Entrypoint"),
    ("env", List, "Env"),
    ("expose", Expose, "ExposedPorts"),
    ("group-add", List, "HostConfig.GroupAdd"),
    ("hostname", Text, "Hostname"),
    ("init", Boolean, "HostConfig.Init"),
    ("interactive", Boolean, "OpenStdin"),
    ("ip", Text, "IPv4Address"),
    ("ip6", Text, "IPv6Address"),
    ("ipc", Text, "HostConfig.IpcMode"),
    ("kernel-memory", Bytes, "HostConfig.KernelMemory"),
    ("label", Pairs, "Labels"),
    ("link", List, "HostConfig.Links"),
    ("log-driver", Text, "HostConfig.LogConfig.Type"),
    ("log-opt", Pairs, "HostConfig.LogConfig.Config"),
    ("mac-address", Text, "MacAddress"),
    ("memory", Bytes, "HostConfig.Memory"),
    ("memory-reservation", Bytes, "HostConfig.MemoryReservation"),
    ("memory-swap", Bytes, "HostConfig.MemorySwap"),
    ("memory-swappiness", Number, "HostConfig.MemorySwappiness"),
    ("net", Text, "HostConfig.NetworkMode"),
    ("net-alias", List, "Aliases"),
    ("network", Text, "HostConfig.NetworkMode"),
    ("network-alias", List, "Aliases"),
    ("oom-kill-disable", Boolean, "HostConfig.OomKillDisable"),
    ("oom-score-adj", Number, "HostConfig.OomScoreAdj"),
    ("pid", Text, "HostConfig.PidMode"),
    ("pids-limit", Number, "HostConfig.PidsLimit"),
    ("privileged", Boolean, "HostConfig.Privileged"),
    ("publish", Publish, "HostConfig.PortBindings"),
    ("publish-all", Boolean, "HostConfig.PublishAllPorts"),
    ("read-only", Boolean, "HostConfig.ReadonlyRootfs"),
    ("rm", Boolean, "HostConfig.AutoRemove"),
    ("runtime", Text, "HostConfig.Runtime"),
    ("security-opt", List, "HostConfig.SecurityOpt"),
    ("shm-size", Bytes, "HostConfig.ShmSize"),
    ("stop-signal", Text, "StopSignal"),
    ("stop-timeout", Number, "StopTimeout"),
    ("storage-opt", Pairs, "HostConfig.StorageOpt"),
    ("sysctl", Pairs, "HostConfig.Sysctls"),
    ("tmpfs", Tmpfs, "HostConfig.Tmpfs"),
    ("tty", Boolean, "Tty"),
    ("ulimit", Ulimit, "HostConfig.Ulimits"),
    ("user", Text, "User"),
    ("userns", Text, "HostConfig.UsernsMode"),
    ("uts", Text, "HostConfig.UTSMode"),
    ("volume", List, "HostConfig.Binds"),
    ("volume-driver", Text, "HostConfig.VolumeDriver"),
    ("volumes-from", List, "HostConfig.VolumesFrom"),
    ("workdir", Text, "WorkingDir"),
];

/// Where options about the container's place in its network wait until that is known.
const ENDPOINT: [&str; 3] = ["IPv4Address", "IPv6Address", "Aliases"];

/// Merges the options into a document.
pub(super) fn add(parameters: &[pb::Parameter], document: &mut Value) -> Result<(), DocumentFault> {
    for (index, parameter) in parameters.iter().enumerate() {
        let (key, value) = (parameter.key.as_str(), parameter.value.as_str());
        let found = TABLE.iter().find(|(name, _, _)| *name == key).ok_or(ParameterFault::Unsupported);
        found
            .and_then(|(_, kind, path)| put(*kind, value, at(document, path)))
            .map_err(|fault| DocumentFault::Parameter { index, key: key.to_owned(), fault })?;
    }
    join_network(document);
    Ok(())
}

/// Where a value is, made if it is not there.
fn at<'a>(document: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(document, |value, step| &mut value[step])
}

fn put(kind: Kind, text: &str, to: &mut Value) -> Result<(), ParameterFault> {
    let not = |expected| move || ParameterFault::Value { text: text.to_owned(), expected };
    match kind {
        Text => *to = text.into(),
        Number => *to = text.parse::<i64>().ok().ok_or_else(not("not a number"))?.into(),
        Boolean => *to = boolean(text).ok_or_else(not("neither true nor false"))?.into(),
        Bytes => *to = bytes(text).ok_or_else(not("not a size such as 64m"))?.into(),
        Processors => *to = billionths(text).ok_or_else(not("not a number"))?.into(),
        List => push(to, text.into()),
        Entrypoint => *to = json!([text]),
        Pairs => {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            to[name] = value.into();
        }
        Tmpfs => {
            let (path, options) = text.split_once(':').unwrap_or((text, ""));
            to[path] = options.into();
        }
        Ulimit => push(to, ulimit(text).ok_or_else(not("not name=soft[:hard]"))?),
        Device => push(to, device(text)),
        Expose => to[with_protocol(text)] = json!({}),
        Publish => {
            let (host, container) = text.rsplit_once(':').ok_or_else(not("not host:container"))?;
            let (ip, port) = host.rsplit_once(':').unwrap_or(("", host));
            push(&mut to[with_protocol(container)], json!({"HostIp": ip, "HostPort": port}));
        }
    }
    Ok(())
}

fn push(list: &mut Value, value: Value) {
    match list {
        Value::Array(list) => list.push(value),
        other => *other = Value::Array(vec![value]),
    }
}

pub(super) fn with_protocol(port: &str) -> String {
    if port.contains('/') { port.to_owned() } else { format!("{port}/tcp") }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// `512`, `64m`, `1gb`; -1.
fn bytes(text: &str) -> Option<i64> {
    if text == "-1" {
        return Some(-1);
    }
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let unit: i64 = match lower[digits..].trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    lower[..digits].parse::<i64>().ok()?.checked_mul(unit)
}

fn billionths(text: &str) -> Option<i64> {
    let amount: f64 = text.parse().ok()?;
    (amount.is_finite() && amount >= 0.0).then_some((amount * 1e9).round() as i64)
}

fn ulimit(text: &str) -> Option<Value> {
    let (name, limits) = text.split_once('=')?;
    let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
    Some(json!({"Name": name, "Soft": soft.parse::<i64>().ok()?, "Hard": hard.parse::<i64>().ok()?}))
}

/// `host[:container[:permissions]]`.
fn device(text: &str) -> Value {
    let mut parts = text.split(':');
    let host = parts.next().unwrap_or_default();
    let (container, permissions) = (parts.next().unwrap_or(host), parts.next().unwrap_or("rwm"));
    json!({"PathOnHost": host, "PathInContainer": container, "CgroupPermissions": permissions})
}

/// Addresses and names belong to the network that was chosen in the end.
fn join_network(document: &mut Value) {
    let Value::Object(all) = document else { return };
    let [v4, v6, aliases] = ENDPOINT.map(|key| all.remove(key));
    let mut endpoint = Map::new();
    if v4.is_some() || v6.is_some() {
        let text = |address: Option<Value>| address.unwrap_or_else(|| "".into());
        endpoint.insert("IPAMConfig".into(), json!({"IPv4Address": text(v4), "IPv6Address": text(v6)}));
    }
    endpoint.extend(aliases.map(|aliases| ("Aliases".into(), aliases)));
    if let Some(network) = document["HostConfig"]["NetworkMode"].as_str().map(str::to_owned)
        && !endpoint.is_empty()
    {
        document["NetworkingConfig"]["EndpointsConfig"][network] = Value::Object(endpoint);
    }
}
