//! `pods.<pod>.external-volumes.<name>`: the proposed keys and those that the SDK shipped; both kinds of files work.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::container;
use crate::reader::{Field, Members, Reader};
use crate::spec::{ExternalVolume, PORTWORX_PLUGIN, REXRAY_PLUGIN, Sharing, size_is_in_gb};
use crate::yaml;

const SIZE_MB_MAX: i64 = 1 << 40;
/// Units of sizes of Portworx; GB without one.
const SIZE_UNITS: [&str; 10] = ["", "K", "KB", "M", "MB", "G", "GB", "GiB", "T", "TB"];
const SHARINGS: &[(&str, Sharing)] =
    &[("POD_EXCLUSIVE", Sharing::PodExclusive), ("POD_SHARED", Sharing::PodShared)];
/// Keys of volumes in the Portworx fork of the SDK.
const FORK_KEYS: [&str; 3] = ["docker_volume_driver", "docker_volume_name", "docker_driver_options"];

type OptionRule = (&'static str, &'static str, &'static str, fn(&str) -> bool);

/// Options whose values a driver is known to reject: plugin, option, expected value. All others are up to the driver.
const OPTIONS: &[OptionRule] = &[
    (PORTWORX_PLUGIN, "size", "a size in GB, as 10 or 10G,", is_size),
    (PORTWORX_PLUGIN, "repl", "1, 2 or 3", |value| ["1", "2", "3"].contains(&value)),
    (PORTWORX_PLUGIN, "shared", "true or false", is_boolean),
    (PORTWORX_PLUGIN, "sharedv4", "true or false", is_boolean),
    (PORTWORX_PLUGIN, "secure", "true or false", is_boolean),
    (PORTWORX_PLUGIN, "io_priority", "high, medium or low", is_priority),
    (PORTWORX_PLUGIN, "priority_io", "high, medium or low", is_priority),
    (REXRAY_PLUGIN, "size", "a whole number of GB", is_count),
    (REXRAY_PLUGIN, "IOPS", "a whole number", is_count),
];

fn is_count(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|count| count > 0)
}

fn is_size(value: &str) -> bool {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_unit = SIZE_UNITS.iter().any(|own| own.eq_ignore_ascii_case(unit));
    is_unit && is_count(&value[..value.len() - unit.len()])
}

fn is_boolean(value: &str) -> bool {
    ["true", "false"].contains(&value)
}

fn is_priority(value: &str) -> bool {
    ["high", "medium", "low"].iter().any(|own| own.eq_ignore_ascii_case(value))
}

pub fn volume(
    reader: &mut Reader,
    service: &str,
    pod: &str,
    key: &str,
    field: &Field<'_>,
) -> Option<ExternalVolume> {
    let mut members = reader.members(field)?;
    let kind =
        reader.required(&mut members, "type", |reader, field| reader.choice(field, &[("DOCKER", ())], false));
    let is_proposed = members.names().any(|name| name == "driver");
    let plugin = plugin(reader, &mut members);
    let container_path = reader.required(&mut members, "container-path", container_path);
    let options = reader.optional(&mut members, "driver-options", driver_options).unwrap_or_default();
    let size_field = members.take("size");
    let size_mb = size_field.as_ref().and_then(|field| reader.integer(field, 1, SIZE_MB_MAX, "MB"));
    let volume_name = reader.optional(&mut members, "volume-name", volume_name);
    let mode = container::mode(reader, &mut members, "volume-mode");
    let sharing = reader.optional_scalar(&mut members, "volume-sharing", |reader, field| {
        reader.choice(field, SHARINGS, false)
    });
    reader.reject_unknown(&members);
    let plugin = plugin?;
    match &size_field {
        Some(field) => check_size(reader, &plugin, &options, field),
        // The SDK shipped without the key, next to `driver-name`.
        None if is_proposed && size_is_in_gb(&plugin) && !options.contains_key("size") => {
            reader.error(members.at, &members.path, "`size` is required (MB)");
        }
        None => (),
    }
    for (_, key, expected, is_valid) in OPTIONS.iter().filter(|(own, ..)| *own == plugin) {
        if let Some(value) = options.get(*key).filter(|value| !is_valid(value)) {
            let message = format!("option `{key}={value}` is not allowed; {expected} is expected");
            reader.error(members.at, &format!("{}.driver-options", members.path), message);
        }
    }
    let volume = ExternalVolume {
        key: key.to_owned(),
        sharing: resolve_sharing(reader, &plugin, &options, sharing, field),
        plugin,
        container_path: container_path?,
        options,
        size_mb: size_mb.map(i64::unsigned_abs),
        volume_name,
        mode,
    };
    kind?;
    claim_name(reader, &volume, service, pod, field);
    Some(volume)
}

/// The Docker plugin that `driver` (of the proposal) or `driver-name` (as shipped) stands for.
fn plugin(reader: &mut Reader, members: &mut Members<'_>) -> Option<String> {
    let named = |driver: String| match driver.as_str() {
        "PWX" => PORTWORX_PLUGIN.to_owned(),
        "REXRAY" => REXRAY_PLUGIN.to_owned(),
        _ => driver,
    };
    match (members.take("driver"), members.take("driver-name")) {
        (Some(_), Some(field)) => {
            reader.wrong(&field, "`driver` and `driver-name` exclude each other");
            None
        }
        (Some(field), None) => reader.filled_text(&field).map(named),
        (None, Some(field)) => reader.filled_text(&field),
        (None, None) => {
            let message = "`driver` is required: PWX, REXRAY or the name of a Docker volume plugin";
            reader.error(members.at, &members.path, message);
            None
        }
    }
}

fn container_path(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let path = reader.filled_text(field)?;
    if container::is_plain_path(&path) {
        container::check_mount(reader, &path, field);
    } else {
        let message =
            format!("{path:?} is not allowed; a path of letters, digits, `.`, `_`, `-` and `/` is expected");
        reader.wrong(field, message);
    }
    Some(path)
}

fn is_volume_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
}

fn volume_name(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let name = reader.text_or_absent(field)?;
    if !is_volume_name(&name) {
        let message = format!(
            "{name:?} is not allowed; letters, digits, `.`, `_`, `-` and `/` are expected, and options in `driver-options`"
        );
        reader.wrong(field, message);
    } else if name.contains("__") {
        reader.wrong(
            field,
            format!("{name:?} contains `__`, which stands for a slash in the names of volumes"),
        );
    }
    Some(name)
}

/// `key=value;key=value`, or a mapping, whose values may contain semicolons.
fn driver_options(reader: &mut Reader, field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    let pairs = match field.is_mapping() {
        true => reader.named(field, |reader, key, field| Some((key.to_owned(), reader.text(field)?)))?,
        false => option_text(reader, field)?,
    };
    let mut options = BTreeMap::new();
    for (key, value) in pairs {
        if key == "name" {
            reader.wrong(field, "option `name` is not allowed; give `volume-name`");
        } else if value.is_empty() {
            reader.wrong(field, format!("option `{key}` has no value"));
        } else if options.insert(key.clone(), value).is_some() {
            reader.wrong(field, format!("option `{key}` is given twice"));
        }
    }
    Some(options)
}

fn option_text(reader: &mut Reader, field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let text = reader.text(field)?;
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let mut pairs = Vec::new();
    for option in text.strip_suffix(';').unwrap_or(&text).split(';') {
        match option.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                pairs.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            Some(_) | None => {
                reader.wrong(
                    field,
                    format!("option {option:?} is not allowed; `key=value;key=value` is expected"),
                );
            }
        }
    }
    Some(pairs)
}

fn check_size(reader: &mut Reader, plugin: &str, options: &BTreeMap<String, String>, field: &Field<'_>) {
    if options.contains_key("size") {
        reader.wrong(field, "is given in `driver-options` too; give one of them");
    } else if !size_is_in_gb(plugin) {
        let message =
            format!("the unit of driver {plugin:?} is not known; give its size in `driver-options`");
        reader.wrong(field, message);
    }
}

/// The sharing as proposed, or as shipped: `shared=true` for Portworx.
fn resolve_sharing(
    reader: &mut Reader,
    plugin: &str,
    options: &BTreeMap<String, String>,
    given: Option<Sharing>,
    field: &Field<'_>,
) -> Sharing {
    let shared = options.get("shared").filter(|_| plugin == PORTWORX_PLUGIN).map(String::as_str);
    match (given, shared) {
        (Some(Sharing::PodExclusive), Some("true")) => {
            reader.wrong(field, "`volume-sharing: POD_EXCLUSIVE` contradicts option `shared=true`");
            Sharing::PodExclusive
        }
        (Some(Sharing::PodShared), Some(value)) if value != "true" => {
            reader.wrong(field, format!("`volume-sharing: POD_SHARED` contradicts option `shared={value}`"));
            Sharing::PodShared
        }
        (Some(Sharing::PodShared), None)
            if plugin == PORTWORX_PLUGIN && options.get("sharedv4").is_some_and(|value| value == "false") =>
        {
            reader.wrong(field, "`volume-sharing: POD_SHARED` contradicts option `sharedv4=false`");
            Sharing::PodShared
        }
        (Some(sharing), _) => sharing,
        (None, Some("true")) => Sharing::PodShared,
        (None, _) => Sharing::PodExclusive,
    }
}

/// Two exclusive volumes of one driver may not get one name, which pods of two types with one `volume-name` would.
fn claim_name(reader: &mut Reader, volume: &ExternalVolume, service: &str, pod: &str, field: &Field<'_>) {
    let base = volume.base_name(service, pod);
    if volume.volume_name.is_none() && !is_volume_name(&base) {
        let message =
            format!("drivers may reject the name {base:?}, made of service and pod; give `volume-name`");
        reader.wrong(field, message);
    }
    let name = format!("{}:{base}", volume.plugin);
    match volume.sharing {
        Sharing::PodExclusive => reader.claim("external volume", &name, &field.path, field),
        Sharing::PodShared => {
            reader.claim("external volume", &name, "shared", field);
            // In one pod, a driver would mount it twice.
            reader.claim("external volume of a pod", &format!("{name} of {pod}"), &field.path, field);
        }
    }
}

/// Whether a volume is written as in the Portworx fork of the SDK.
pub fn is_fork_form(members: &mut Members<'_>) -> bool {
    let docker = members.take("type").is_some_and(|field| field.scalar() == Some("DOCKER"));
    docker || members.names().any(|name| FORK_KEYS.contains(&name))
}

/// Lines of a volume: keys with their values.
type Lines = Vec<(&'static str, String)>;

/// Rejects a volume of the fork with the same volume in today's form, as far as that is valid.
pub fn show_new_form(reader: &mut Reader, field: &Field<'_>, members: &mut Members<'_>) {
    let (mut lines, left_out) = new_form(members);
    let mut message = "a volume of a driver is declared in its pod, not as a resource; write there\n  external-volumes:\n    VOLUME:".to_owned();
    // Their places in the order of the documentation.
    for (at, key, placeholder) in [(2, "size", "SIZE"), (3, "container-path", "PATH")] {
        if fault(&lines).is_some_and(|(_, message)| message.contains(&format!("`{key}` is required"))) {
            lines.insert(at.min(lines.len()), (key, placeholder.to_owned()));
        }
    }
    for (key, value) in &lines {
        write!(message, "\n      {key}: {}", quoted(value)).expect("a string takes everything");
    }
    for ((key, value), reason) in left_out {
        write!(message, "\n  without `{key}: {value}`: {reason}").expect("a string takes everything");
    }
    reader.wrong(field, message);
}

/// The lines that are valid together, and the others with their reasons.
fn new_form(members: &mut Members<'_>) -> (Lines, Vec<((&'static str, String), String)>) {
    let mut given = |key| members.take(key).and_then(|field| field.scalar()).filter(|text| !text.is_empty());
    let driver = given("docker_volume_driver").filter(|name| *name != PORTWORX_PLUGIN).unwrap_or("PWX");
    let fork = [
        ("type", Some("DOCKER")),
        ("driver", Some(driver)),
        ("size", given("size")),
        ("container-path", given("path")),
        ("driver-options", given("docker_driver_options")),
        ("volume-name", given("docker_volume_name")),
    ];
    let mut lines: Lines =
        fork.into_iter().filter_map(|(key, value)| Some((key, value?.to_owned()))).collect();
    let mut left_out = Vec::new();
    while let Some((path, reason)) = fault(&lines)
        && let Some(at) = lines.iter().position(|(key, _)| *key == path)
    {
        left_out.push((lines.remove(at), reason));
    }
    (lines, left_out)
}

/// The first problem of a volume that is written so: its key and message.
fn fault(lines: &Lines) -> Option<(String, String)> {
    let text: String = lines.iter().map(|(key, value)| format!("{key}: {}\n", quoted(value))).collect();
    let (root, _) = yaml::read(&text).ok()?;
    let mut reader = Reader::default();
    volume(&mut reader, "service", "pod", "VOLUME", &Field::root(&root));
    let problem = reader.problems.into_iter().next()?.1;
    Some((problem.path.trim_start_matches('.').to_owned(), problem.message))
}

/// A value as YAML.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=;,".contains(c);
    match value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', "''")),
    }
}
