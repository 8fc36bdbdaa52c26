//! The parts that documents of the classic endpoints (`/state`, `/tasks`, …) share on master and agent.
//!
//! Hand-written shapes, older than v1: the old words, ids as plain strings, resources as an object of sums.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tepui_proto::Enumeration;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Format, LegacyValue, Resources, legacy_attributes};
use tepui_types::DiskPressure;

/// The version of the v1 API that we are compatible with; what clients compare.
pub const API_VERSION: &str = "1.12.0";

/// The user of the build.
const BUILD_USER: &str = "tepui";

/// When it was built: as old as the program's file is. The program itself does not say, so that the same source gives the
/// same binary.
struct Built {
    date: String,
    time: f64,
}

static BUILT: LazyLock<Built> = LazyLock::new(|| {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let told = file.and_then(|file| file.modified()).unwrap_or(UNIX_EPOCH);
    // A file may have any time; nothing was built before 1970, nor in the future.
    let built = told.min(SystemTime::now()).max(UNIX_EPOCH);
    let time = built.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs() as f64);
    Built { date: httpdate::fmt_http_date(built), time }
});

/// What `/version` and GET_VERSION say.
pub fn version_info() -> pb::VersionInfo {
    pb::VersionInfo {
        version: API_VERSION.to_owned(),
        build_date: Some(BUILT.date.clone()),
        build_time: Some(BUILT.time),
        build_user: Some(BUILD_USER.to_owned()),
        ..Default::default()
    }
}

/// The document of `/version`.
pub fn version() -> Vec<u8> {
    let mut w = JsonWriter::new();
    w.object(|w| {
        w.field("build_date", &*BUILT.date);
        w.field("build_time", &BUILT.time);
        w.field("build_user", BUILD_USER);
        w.field("version", API_VERSION);
    });
    w.into_vec()
}

/// The first members of `/state`.
pub fn version_members(w: &mut JsonWriter) {
    w.field("version", API_VERSION);
    w.field("build_date", &*BUILT.date);
    w.field("build_time", &BUILT.time);
    w.field("build_user", BUILD_USER);
}

/// The document of `/flags`.
pub fn flags<'a>(flags: impl IntoIterator<Item = &'a (String, String)>) -> Vec<u8> {
    let mut w = JsonWriter::new();
    w.object(|w| flags_member(w, flags));
    w.into_vec()
}

/// The directory of a log that we write ourselves.
pub fn log_dir(file: Option<&Path>) -> Option<String> {
    file.and_then(Path::parent).map(|folder| folder.display().to_string())
}

pub fn flags_member<'a>(w: &mut JsonWriter, flags: impl IntoIterator<Item = &'a (String, String)>) {
    w.object_field("flags", |w| flags.into_iter().for_each(|(name, value)| w.field(name, value)));
}

/// `cpus`, `gpus`, `mem`, `disk` always, and whatever else there is.
pub fn resources(w: &mut JsonWriter, name: &str, resources: &Resources) {
    w.object_field(name, |w| {
        for (name, value) in resources.legacy() {
            w.key(&name);
            legacy_value(w, &value);
        }
    });
}

/// The same per role, by the innermost reservation.
pub fn reserved_resources(w: &mut JsonWriter, name: &str, all: &Resources) {
    w.object_field(name, |w| {
        for (role, reserved) in all.by_reservation() {
            resources(w, role.as_str(), &reserved);
        }
    });
}

/// As protobuf, with both ways of writing reservations.
pub fn resources_full(w: &mut JsonWriter, name: &str, resources: &Resources) {
    w.array_field(name, |w| {
        resources.to_proto(Format::Endpoint).iter().for_each(|resource| w.value(resource))
    });
}

pub fn reserved_resources_full(w: &mut JsonWriter, name: &str, all: &Resources) {
    w.object_field(name, |w| {
        for (role, reserved) in all.by_reservation() {
            resources_full(w, role.as_str(), &reserved);
        }
    });
}

pub fn attributes(w: &mut JsonWriter, attributes: &[pb::Attribute]) {
    w.object_field("attributes", |w| {
        for (name, value) in legacy_attributes(attributes) {
            w.key(name);
            legacy_value(w, &value);
        }
    });
}

/// Left out when unset.
pub fn labels(w: &mut JsonWriter, labels: Option<&pb::Labels>) {
    if let Some(labels) = labels {
        w.field("labels", &labels.labels);
    }
}

/// Left out when unset.
pub fn domain(w: &mut JsonWriter, domain: Option<&pb::DomainInfo>) {
    w.optional_field("domain", domain);
}

/// Enum values by name.
pub fn names<E: Enumeration>(w: &mut JsonWriter, name: &str, values: impl IntoIterator<Item = E>) {
    w.array_field(name, |w| values.into_iter().for_each(|value| w.string(value.proto_name())));
}

/// The role that resources are allocated to.
pub fn role_of(resources: &Resources) -> Option<&str> {
    resources.iter().find_map(|resource| resource.allocation()).map(|role| role.as_str())
}

/// Members of a task's statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Statuses {
    /// As v1 writes them.
    #[default]
    Brief,
    /// Also source, reason and message.
    Explained,
}

/// One task.
pub fn task(w: &mut JsonWriter, task: &pb::Task, used: &Resources) {
    task_with(w, task, used, Statuses::Brief);
}

pub fn task_with(w: &mut JsonWriter, task: &pb::Task, used: &Resources, statuses: Statuses) {
    w.object(|w| {
        w.field("id", &task.task_id.value);
        w.field("name", &task.name);
        w.field("framework_id", &task.framework_id.value);
        w.field("executor_id", &task.executor_id.value);
        w.field("slave_id", &task.agent_id.value);
        w.field("state", task.state.proto_name());
        resources(w, "resources", used);
        if !task.limits.is_empty() {
            w.object_field("limits", |w| {
                task.limits.iter().for_each(|(name, limit)| w.field(name, &limit.value))
            });
        }
        w.field("role", role_of(used).unwrap_or("*"));
        w.array_field("statuses", |w| task.statuses.iter().for_each(|one| status(w, one, statuses)));
        w.optional_field("user", task.user.as_ref());
        labels(w, task.labels.as_option());
        w.optional_field("discovery", task.discovery.as_option());
        w.optional_field("container", task.container.as_option());
        w.optional_field("health_check", task.health_check.as_option());
    });
}

/// What an executor or a queued task runs.
pub fn command(w: &mut JsonWriter, command: &pb::CommandInfo) {
    w.object_field("command", |w| {
        w.optional_field("shell", command.shell.as_ref());
        w.optional_field("value", command.value.as_ref());
        w.field("argv", &command.arguments);
        w.optional_field("environment", command.environment.as_option());
        w.array_field("uris", |w| {
            for uri in &command.uris {
                w.object(|w| {
                    w.field("value", &uri.value);
                    w.field("executable", &uri.executable.unwrap_or(false));
                });
            }
        });
    });
}

fn status(w: &mut JsonWriter, status: &pb::TaskStatus, statuses: Statuses) {
    w.object(|w| {
        w.field("state", status.state.proto_name());
        w.field("timestamp", &status.timestamp.unwrap_or(0.0));
        labels(w, status.labels.as_option());
        if let Some(container) = status.container_status.as_option() {
            w.object_field("container_status", |w| container_status(w, container));
        }
        w.optional_field("healthy", status.healthy.as_ref());
        if statuses == Statuses::Explained {
            w.optional_field("source", status.source.map(|source| source.proto_name()));
            w.optional_field("reason", status.reason.map(|reason| reason.proto_name()));
            w.optional_field("message", status.message.as_ref());
        }
    });
}

fn container_status(w: &mut JsonWriter, status: &pb::ContainerStatus) {
    w.optional_field("container_id", status.container_id.as_option());
    if !status.network_infos.is_empty() {
        w.array_field("network_infos", |w| {
            status.network_infos.iter().for_each(|info| network_info(w, info))
        });
    }
    w.optional_field("cgroup_info", status.cgroup_info.as_option());
}

fn network_info(w: &mut JsonWriter, info: &pb::NetworkInfo) {
    w.object(|w| {
        if !info.groups.is_empty() {
            w.field("groups", &info.groups);
        }
        labels(w, info.labels.as_option());
        if !info.ip_addresses.is_empty() {
            w.field("ip_addresses", &info.ip_addresses);
        }
        w.optional_field("name", info.name.as_ref());
        if !info.port_mappings.is_empty() {
            w.field("port_mappings", &info.port_mappings);
        }
    });
}

fn legacy_value(w: &mut JsonWriter, value: &LegacyValue) {
    match value {
        LegacyValue::Number(number) => w.double(*number),
        LegacyValue::Text(text) => w.string(text),
    }
}

/// Only of a program under disk pressure; v1 has no such member.
pub fn disk_pressure(w: &mut JsonWriter, pressure: &DiskPressure) {
    w.object_field("disk_pressure", |w| {
        w.field("since", &pressure.since.as_secs_f64());
        w.field("available_bytes", &pressure.available_bytes);
    });
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tepui_proto::json;
    use tepui_resources::{Role, parse};

    use super::*;

    #[test]
    fn task_json_has_the_v1_format() {
        let given: pb::Task = json::from_slice(
            br#"{"name":"web","task_id":{"value":"t1"},"framework_id":{"value":"F"},"agent_id":{"value":"S0"},
                "state":"TASK_RUNNING","limits":{"cpus":{"value":"Infinity"}},
                "labels":{"labels":[{"key":"a","value":"b"}]},
                "statuses":[{"task_id":{"value":"t1"},"state":"TASK_RUNNING","timestamp":1.5,"message":"hidden","healthy":true,
                  "container_status":{"container_id":{"value":"c"},"executor_pid":7,
                    "network_infos":[{"ip_addresses":[{"ip_address":"127.0.0.1"}]}]}}]}"#,
        )
        .unwrap();
        let used = parse::resources("cpus:0.5;mem:32;ports:[31000-31001]", "*").unwrap();
        let used: Resources = used.into_iter().collect();
        let mut w = JsonWriter::new();
        task(&mut w, &given, &used.allocate(&Role::from("dev")));
        expect![[r#"{"id":"t1","name":"web","framework_id":"F","executor_id":"","slave_id":"S0","state":"TASK_RUNNING","resources":{"cpus":0.5,"gpus":0.0,"mem":32.0,"disk":0.0,"ports":"[31000-31001]"},"limits":{"cpus":"Infinity"},"role":"dev","statuses":[{"state":"TASK_RUNNING","timestamp":1.5,"container_status":{"container_id":{"value":"c"},"network_infos":[{"ip_addresses":[{"protocol":"IPv4","ip_address":"127.0.0.1"}]}]},"healthy":true}],"labels":[{"key":"a","value":"b"}]}"#]]
        .assert_eq(&String::from_utf8(w.into_vec()).unwrap());
    }

    #[test]
    fn explained_statuses_have_source_and_reason() {
        let given: pb::TaskStatus = json::from_slice(
            br#"{"task_id":{"value":"t1"},"state":"TASK_FAILED","timestamp":1.5,"source":"SOURCE_AGENT",
                "reason":"REASON_CONTAINER_LIMITATION_MEMORY","message":"Memory limit exceeded"}"#,
        )
        .unwrap();
        for (statuses, expected) in [
            (Statuses::Brief, expect![[r#"{"state":"TASK_FAILED","timestamp":1.5}"#]]),
            (
                Statuses::Explained,
                expect![[
                    r#"{"state":"TASK_FAILED","timestamp":1.5,"source":"SOURCE_AGENT","reason":"REASON_CONTAINER_LIMITATION_MEMORY","message":"Memory limit exceeded"}"#
                ]],
            ),
        ] {
            let mut w = JsonWriter::new();
            status(&mut w, &given, statuses);
            expected.assert_eq(&String::from_utf8(w.into_vec()).unwrap());
        }
    }
}
