//! Resource sets, in a pod or implicit in a task: amounts, ports, volumes, limits.

use std::collections::BTreeSet;

use super::container::port_number;
use crate::reader::{AMOUNT_EXPECTED, Field, Members, Reader, Scope, amount};
use crate::spec::{Limit, Limits, Port, ResourceSet, Vip, Volume, VolumeKind};

/// The keys of resources.
pub const KEYS: [&str; 7] = ["cpus", "gpus", "memory", "ports", "volume", "volumes", "resource-limits"];
const MB_MAX: i64 = 1 << 40;
const PROFILE_CHARACTERS_MAX: usize = 128;

pub fn resource_set(reader: &mut Reader, id: &str, field: &Field<'_>) -> Option<ResourceSet> {
    let mut members = reader.members(field)?;
    let set = resources(reader, id, &mut members);
    if !has_resources(&members) {
        reader.wrong(field, "has no resources; one of cpus, gpus, memory and ports is required");
    }
    reader.reject_unknown(&members);
    Some(set)
}

/// Whether something besides volumes is given, valid or not.
pub fn has_resources(members: &Members<'_>) -> bool {
    members.names().any(|name| matches!(name, "cpus" | "gpus" | "memory" | "ports"))
}

pub fn resources(reader: &mut Reader, id: &str, members: &mut Members<'_>) -> ResourceSet {
    let cpus = reader.optional_scalar(members, "cpus", Reader::amount);
    let memory_mb = reader.optional_scalar(members, "memory", megabytes);
    ResourceSet {
        id: id.to_owned(),
        cpus,
        gpus: reader.optional_scalar(members, "gpus", Reader::amount),
        memory_mb,
        ports: reader.optional(members, "ports", ports).unwrap_or_default(),
        volumes: volumes(reader, members, &Scope::ResourceSet(id.to_owned())),
        limits: reader
            .optional(members, "resource-limits", |reader, field| limits(reader, cpus, memory_mb, field))
            .unwrap_or_default(),
    }
}

fn megabytes(reader: &mut Reader, field: &Field<'_>) -> Option<u64> {
    reader.integer(field, 1, MB_MAX, "MB").map(i64::unsigned_abs)
}

fn ports(reader: &mut Reader, field: &Field<'_>) -> Option<Vec<Port>> {
    let names: Vec<&str> = reader.members(field)?.names().collect();
    let mut taken: BTreeSet<u16> = BTreeSet::new();
    reader.named(field, |reader, name, field| {
        let port = port(reader, name, &names, field)?;
        if port.port != 0 && !taken.insert(port.port) {
            reader.wrong(field, format!("duplicate port value {}", port.port));
        }
        if port.advertise {
            reader.claim("advertised port", name, &field.path, field);
        }
        Some(port)
    })
}

fn port(reader: &mut Reader, name: &str, names: &[&str], field: &Field<'_>) -> Option<Port> {
    let mut members = reader.members(field)?;
    let number = reader.required(&mut members, "port", |reader, field| port_number(reader, field, 0));
    let env_key = reader.optional(&mut members, "env-key", Reader::text_or_absent);
    let advertise = reader.flag(&mut members, "advertise");
    let vip = reader.optional(&mut members, "vip", |reader, field| vip(reader, name, names, field));
    let ranges = reader.optional_list(&mut members, "ranges", range);
    reader.reject_unknown(&members);
    let number = number?;
    if number != 0 && !ranges.is_empty() {
        reader.wrong(field, format!("`ranges` are for dynamic ports (`port: 0`), not for port {number}"));
    }
    Some(Port { name: name.to_owned(), port: number, env_key, advertise, vip, ranges })
}

fn vip(reader: &mut Reader, port: &str, names: &[&str], field: &Field<'_>) -> Option<Vip> {
    let mut members = reader.members(field)?;
    let number = reader.required(&mut members, "port", |reader, field| port_number(reader, field, 0));
    let prefix = reader.optional(&mut members, "prefix", |reader, field| {
        let prefix = reader.text_or_absent(field)?;
        if prefix != port && names.contains(&prefix.as_str()) {
            reader.wrong(field, format!("{prefix:?} is the name of another port"));
        }
        Some(prefix)
    });
    reader.reject_unknown(&members);
    Some(Vip { prefix: prefix.unwrap_or_else(|| port.to_owned()), port: number? })
}

fn range(reader: &mut Reader, field: &Field<'_>) -> Option<(u16, u16)> {
    let mut members = reader.members(field)?;
    let mut bound =
        |key| reader.optional_scalar(&mut members, key, |reader, field| port_number(reader, field, 0));
    let begin = bound("begin").unwrap_or(0);
    let end = bound("end").filter(|end| *end != 0).unwrap_or(u16::MAX);
    reader.reject_unknown(&members);
    if begin > end {
        reader.wrong(field, format!("begin {begin} exceeds end {end}"));
    }
    Some((begin, end))
}

/// `volume` and `volumes`; a pod may have both.
pub fn volumes(reader: &mut Reader, members: &mut Members<'_>, scope: &Scope) -> Vec<Volume> {
    let mounted = |reader: &mut Reader, field: &Field<'_>| {
        let volume = volume(reader, field)?;
        reader.mount(&volume.path, scope, field);
        Some(volume)
    };
    let single = members.take("volume");
    let several = members.take("volumes");
    if let (Scope::ResourceSet(_), Some(_), Some(field)) = (scope, &single, &several) {
        reader.wrong(field, "`volume` and `volumes` exclude each other");
    }
    let mut volumes = Vec::new();
    if let Some(field) = single {
        volumes.extend(mounted(reader, &field));
    }
    if let Some(field) = several {
        let more = reader.named(&field, |reader, _, field| mounted(reader, field));
        volumes.extend(more.unwrap_or_default());
    }
    volumes
}

fn volume(reader: &mut Reader, field: &Field<'_>) -> Option<Volume> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Root,
        Mount,
    }
    let mut members = reader.members(field)?;
    if super::external::is_fork_form(&mut members) {
        super::external::show_new_form(reader, field, &mut members);
        return None;
    }
    let path = reader.required(&mut members, "path", volume_path);
    let kind = reader.required(&mut members, "type", |reader, field| {
        if field.scalar() == Some("PATH") {
            reader.warning(field.at, &field.path, "PATH is treated as MOUNT");
            return Some(Kind::Mount);
        }
        reader.choice(field, &[("ROOT", Kind::Root), ("MOUNT", Kind::Mount)], true)
    });
    let size = reader.required(&mut members, "size", megabytes);
    let profiles = members.take("profiles");
    if let (Some(Kind::Root), Some(field)) = (kind, &profiles) {
        reader.wrong(field, "profiles are for MOUNT volumes");
    }
    let profiles = profiles.and_then(|field| profile_names(reader, &field)).unwrap_or_default();
    reader.reject_unknown(&members);
    let kind = match kind? {
        Kind::Root => VolumeKind::Root,
        Kind::Mount => VolumeKind::Mount { profiles },
    };
    Some(Volume { path: path?, kind, size_mb: size? })
}

fn volume_path(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let path = reader.filled_text(field)?;
    let first = path.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !first || !path.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let message = format!(
            "{path:?} is not allowed; letters, digits, `_` and `-` are expected, first a letter or digit"
        );
        reader.wrong(field, message);
    }
    Some(path)
}

fn profile_names(reader: &mut Reader, field: &Field<'_>) -> Option<Vec<String>> {
    let mut seen: Vec<String> = Vec::new();
    reader.list(field, |reader, field| {
        let profile = reader.filled_text(field)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !profile.chars().all(allowed) || profile.len() > PROFILE_CHARACTERS_MAX {
            let message = format!("profile {profile:?} is not allowed; up to {PROFILE_CHARACTERS_MAX} letters, digits, `_`, `.` and `-` are expected");
            reader.wrong(field, message);
        } else if seen.contains(&profile) {
            reader.wrong(field, format!("profile {profile:?} is given twice"));
        }
        seen.push(profile.clone());
        Some(profile)
    })
}

fn limits(
    reader: &mut Reader,
    cpus: Option<f64>,
    memory_mb: Option<u64>,
    field: &Field<'_>,
) -> Option<Limits> {
    let mut members = reader.members(field)?;
    let cpus_limit = reader.optional_scalar(&mut members, "cpus", |reader, field| limit(reader, cpus, field));
    let memory = memory_mb.map(|amount| amount as f64);
    let memory_limit =
        reader.optional_scalar(&mut members, "memory", |reader, field| limit(reader, memory, field));
    // The SDK's documentation has `mem`, its parser `memory`.
    let mem_limit = reader.optional_scalar(&mut members, "mem", |reader, field| limit(reader, memory, field));
    reader.reject_unknown(&members);
    Some(Limits { cpus: cpus_limit, memory_mb: memory_limit.or(mem_limit) })
}

fn limit(reader: &mut Reader, request: Option<f64>, field: &Field<'_>) -> Option<Limit> {
    let text = reader.text(field)?;
    if text.trim().is_empty() {
        return None;
    }
    if text.trim().eq_ignore_ascii_case("unlimited") {
        return Some(Limit::Unlimited);
    }
    match amount(&text) {
        Some(amount) => {
            if let Some(request) = request.filter(|request| *request > amount) {
                reader.wrong(field, format!("limit {amount} is below the request {request}"));
            }
            Some(Limit::Amount(amount))
        }
        None => {
            let message = format!("{text:?} is not allowed; {AMOUNT_EXPECTED} or `unlimited` is expected");
            reader.wrong(field, message);
            None
        }
    }
}
