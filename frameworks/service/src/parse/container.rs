//! What a pod's containers get: uris, networks, rlimits, host volumes, secrets, labels, shared memory.

use crate::reader::{Field, Members, Reader, Scope, is_below};
use crate::spec::{HostVolume, Network, RLimit, Secret, VolumeMode};

const MODES: &[(&str, VolumeMode)] = &[("RW", VolumeMode::ReadWrite), ("RO", VolumeMode::ReadOnly)];
/// The only network whose ports can be mapped.
const BRIDGE_NETWORK: &str = "mesos-bridge";
const RLIMITS: [&str; 16] = [
    "AS",
    "CORE",
    "CPU",
    "DATA",
    "FSIZE",
    "LOCKS",
    "MEMLOCK",
    "MSGQUEUE",
    "NICE",
    "NOFILE",
    "NPROC",
    "RSS",
    "RTPRIO",
    "RTTIME",
    "SIGPENDING",
    "STACK",
];
const SHM_SIZE_MB_MAX: i64 = 1 << 40;

pub fn uri(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    // Specs of the SDK list `{{BOOTSTRAP_URI}}`; without the variable tasks get the bootstrap of the scheduler.
    if field.is_null() {
        reader.warning(field.at, &field.path, "is empty and has no effect");
        return None;
    }
    let uri = reader.filled_text(field)?;
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "\"<>\\^`{|}".contains(c);
    let escapes = uri.split('%').skip(1);
    let bad_escape =
        |part: &str| !part.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    if uri.contains(forbidden) || escapes.into_iter().any(bad_escape) {
        reader.wrong(field, format!("{uri:?} is no URI"));
    }
    Some(uri)
}

/// `key:value,key:value`; a value may contain colons.
pub fn labels(reader: &mut Reader, field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let text = reader.text(field)?;
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut labels = Vec::new();
    for label in text.split(',') {
        match label.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() => {
                labels.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            Some(_) | None => {
                reader.wrong(
                    field,
                    format!("label {label:?} is not allowed; `key:value,key:value` is expected"),
                );
            }
        }
    }
    Some(labels)
}

pub fn shm_size(reader: &mut Reader, members: &mut Members<'_>) -> Option<u64> {
    let size = reader.optional_scalar(members, "shm-size", |reader, field| {
        reader.integer(field, 1, SHM_SIZE_MB_MAX, "MB")
    });
    size.map(i64::unsigned_abs)
}

pub fn port_number(reader: &mut Reader, field: &Field<'_>, least: i64) -> Option<u16> {
    reader.integer(field, least, i64::from(u16::MAX), "port").and_then(|port| u16::try_from(port).ok())
}

pub fn network(reader: &mut Reader, name: &str, field: &Field<'_>) -> Option<Network> {
    let mut network = Network { name: name.to_owned(), port_mappings: Vec::new(), labels: Vec::new() };
    if field.is_null() {
        return Some(network);
    }
    let mut members = reader.members(field)?;
    let mut port = |reader: &mut Reader, field: &Field<'_>| port_number(reader, field, 1);
    let host = reader.optional_list(&mut members, "host-ports", &mut port);
    let container = reader.optional_list(&mut members, "container-ports", &mut port);
    network.labels = reader.optional(&mut members, "labels", labels).unwrap_or_default();
    reader.reject_unknown(&members);
    if host.len() != container.len() {
        let message = format!(
            "{} host-ports and {} container-ports; each needs the other",
            host.len(),
            container.len()
        );
        reader.wrong(field, message);
    } else if name != BRIDGE_NETWORK && !host.is_empty() {
        reader.wrong(field, format!("ports can be mapped on network {BRIDGE_NETWORK} only"));
    }
    network.port_mappings = host.into_iter().zip(container).collect();
    Some(network)
}

pub fn rlimit(reader: &mut Reader, name: &str, field: &Field<'_>) -> Option<RLimit> {
    if !name.strip_prefix("RLIMIT_").is_some_and(|kind| RLIMITS.contains(&kind)) {
        reader
            .wrong(field, format!("unknown rlimit; RLIMIT_ with one of {} is expected", RLIMITS.join(", ")));
    }
    let unlimited = RLimit { name: name.to_owned(), values: None };
    if field.is_null() {
        return Some(unlimited);
    }
    let mut members = reader.members(field)?;
    let mut value = |key| {
        reader.optional_scalar(&mut members, key, |reader, field| reader.integer(field, -1, i64::MAX, ""))
    };
    let (soft, hard) = (value("soft"), value("hard"));
    reader.reject_unknown(&members);
    match (soft, hard) {
        (None, None) | (Some(-1), Some(-1)) => Some(unlimited),
        (Some(soft), Some(hard)) if 0 <= soft && soft <= hard => {
            Some(RLimit { values: Some((soft.unsigned_abs(), hard.unsigned_abs())), ..unlimited })
        }
        (Some(soft), Some(hard)) if soft == -1 || hard == -1 => {
            reader
                .wrong(field, format!("soft {soft} and hard {hard}: -1 (unlimited) must be given for both"));
            None
        }
        (Some(soft), Some(hard)) => {
            reader.wrong(field, format!("soft {soft} exceeds hard {hard}"));
            None
        }
        (Some(_), None) | (None, Some(_)) => {
            reader.wrong(field, "`soft` and `hard` must be given together");
            None
        }
    }
}

pub fn host_volume(reader: &mut Reader, _name: &str, field: &Field<'_>) -> Option<HostVolume> {
    let mut members = reader.members(field)?;
    let host_path = reader.required(&mut members, "host-path", |reader, field| {
        let path = reader.filled_text(field)?;
        let second = path.strip_prefix('/').and_then(|rest| rest.chars().next());
        if !second.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.') {
            reader.wrong(field, format!("{path:?} is not allowed; an absolute path is expected"));
        }
        Some(path)
    });
    let container_path = reader.required(&mut members, "container-path", mount_path);
    let mode = mode(reader, &mut members, "mode");
    reader.reject_unknown(&members);
    Some(HostVolume { host_path: host_path?, container_path: container_path?, mode })
}

pub fn mode(reader: &mut Reader, members: &mut Members<'_>, key: &'static str) -> VolumeMode {
    reader
        .optional_scalar(members, key, |reader, field| reader.choice(field, MODES, false))
        .unwrap_or(VolumeMode::ReadWrite)
}

/// A path below the sandbox that something of the pod is mounted on.
fn mount_path(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let path = relative_path(reader, field)?;
    check_mount(reader, &path, field);
    Some(path)
}

/// Notes a path of the pod in containers, unless it is the directory of all.
pub fn check_mount(reader: &mut Reader, path: &str, field: &Field<'_>) {
    match is_below(path) {
        true => reader.mount(path, &Scope::Pod, field),
        false => reader.wrong(field, format!("{path:?} is not allowed; it names the whole directory")),
    }
}

/// A path below the sandbox.
pub fn relative_path(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let path = reader.filled_text(field)?;
    if path.starts_with('/') || !is_plain_path(&path) {
        let message = format!(
            "{path:?} is not allowed; a relative path of letters, digits, `.`, `_`, `-` and `/` is expected"
        );
        reader.wrong(field, message);
    }
    Some(path)
}

/// Whether a path has ordinary characters only and does not lead upwards.
pub fn is_plain_path(path: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    path.chars().all(allowed) && path.split('/').all(|part| part != "..")
}

pub fn secret(reader: &mut Reader, _name: &str, field: &Field<'_>) -> Option<Secret> {
    let mut members = reader.members(field)?;
    let secret = reader.required(&mut members, "secret", Reader::filled_text);
    let env_key = reader.optional(&mut members, "env-key", Reader::text_or_absent);
    let file = reader.optional_scalar(&mut members, "file", mount_path);
    reader.reject_unknown(&members);
    let secret = secret?;
    let file = match (&env_key, file) {
        (None, None) => {
            check_mount(reader, &secret, field);
            Some(secret.clone())
        }
        (_, file) => file,
    };
    Some(Secret { secret, env_key, file })
}
