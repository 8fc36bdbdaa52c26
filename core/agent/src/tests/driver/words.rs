//! The words of scripts as messages: tasks, executors, resources and options, by the names that scripts give them.

use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::time::Duration;
use std::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_resources::Resources;
use tepui_types::{ExecutorId, FrameworkId, TaskId};

use super::resources;
use crate::{Estimator, QosController};

pub(super) fn executor_call(
    id: &str,
    kind: executor_api::call::Type,
    options: &[&str],
) -> executor_api::Call {
    executor_api::Call {
        executor_id: ExecutorId::new(id).to_proto().into(),
        framework_id: FrameworkId::new(option(options, "framework").unwrap_or("F")).to_proto().into(),
        r#type: Some(kind),
        ..Default::default()
    }
}

pub(super) fn status(task: &str, state: &str, options: &[&str]) -> pb::TaskStatus {
    let name = option(options, "uuid").map_or_else(|| format!("{task}{state}"), Into::into);
    pb::TaskStatus {
        task_id: TaskId::new(task).to_proto().into(),
        state: task_state(state),
        source: Some(pb::task_status::Source::SOURCE_EXECUTOR),
        uuid: Some(uuid(&name)),
        ..Default::default()
    }
}

pub(super) fn task_state(name: &str) -> pb::TaskState {
    use pb::TaskState;
    match name {
        "STAGING" => TaskState::TASK_STAGING,
        "STARTING" => TaskState::TASK_STARTING,
        "RUNNING" => TaskState::TASK_RUNNING,
        "KILLING" => TaskState::TASK_KILLING,
        "KILLED" => TaskState::TASK_KILLED,
        "FINISHED" => TaskState::TASK_FINISHED,
        "FAILED" => TaskState::TASK_FAILED,
        other => std::panic!("what is {other}?"),
    }
}

/// Sixteen bytes made of a name.
pub(super) fn uuid(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}

pub(super) fn task_info(task: &str, options: &[&str]) -> pb::TaskInfo {
    pb::TaskInfo {
        name: task.into(),
        task_id: TaskId::new(task).to_proto().into(),
        agent_id: pb::AgentID { value: "S0".into(), ..Default::default() }.into(),
        resources: resources(option(options, "needs").unwrap_or("cpus:1;mem:64")),
        limits: limits(option(options, "limits").unwrap_or("")),
        max_completion_time: option(options, "max").map(|max| duration_info(duration(max))).into(),
        health_check: option(options, "health").map(health_check).into(),
        command: option(options, "user").map(|user| command_as("sleep", Some(user))).into(),
        ..Default::default()
    }
}

/// `cpus:2;mem:inf`.
pub(super) fn limits(text: &str) -> BTreeMap<String, pb::value::Scalar> {
    let limit = |entry: &str| {
        let (name, value) = entry.split_once(':').expect("name:value");
        (name.into(), pb::value::Scalar { value: value.parse().expect("a number"), ..Default::default() })
    };
    text.split(';').filter(|entry| !entry.is_empty()).map(limit).collect()
}

pub(super) fn executor_info(id: &str, options: &[&str]) -> pb::ExecutorInfo {
    pb::ExecutorInfo {
        executor_id: ExecutorId::new(id).to_proto().into(),
        r#type: Some(pb::executor_info::Type::CUSTOM),
        command: command("./executor").into(),
        resources: resources(option(options, "own").unwrap_or("cpus:0.5;mem:32")),
        labels: labels(option(options, "labels").unwrap_or("")).into(),
        shutdown_grace_period: option(options, "grace").map(|grace| duration_info(duration(grace))).into(),
        ..Default::default()
    }
}

/// `key:value;key:value`.
pub(super) fn labels(text: &str) -> Option<pb::Labels> {
    let label = |entry: &str| {
        let (key, value) = entry.split_once(':').expect("key:value");
        pb::Label { key: key.into(), value: Some(value.into()), ..Default::default() }
    };
    let labels: Vec<pb::Label> = text.split(';').filter(|entry| !entry.is_empty()).map(label).collect();
    (!labels.is_empty()).then(|| pb::Labels { labels, ..Default::default() })
}

/// `A,@B`: variables with the value `set by the task`, or the secret `secret of B`.
pub(super) fn variables(names: &str) -> pb::Environment {
    let variable = |name: &str| match name.strip_prefix('@') {
        None => pb::environment::Variable {
            name: name.into(),
            value: Some("set by the task".into()),
            ..Default::default()
        },
        Some(name) => {
            let reference = pb::secret::Reference { name: format!("secret of {name}"), ..Default::default() };
            pb::environment::Variable {
                name: name.into(),
                r#type: Some(pb::environment::variable::Type::SECRET),
                secret: pb::Secret { reference: reference.into(), ..Default::default() }.into(),
                ..Default::default()
            }
        }
    };
    pb::Environment { variables: names.split(',').map(variable).collect(), ..Default::default() }
}

/// By a command as this user.
fn health_check(user: &str) -> pb::HealthCheck {
    pb::HealthCheck {
        r#type: Some(pb::health_check::Type::COMMAND),
        command: command_as("true", Some(user)).into(),
        ..Default::default()
    }
}

pub(super) fn command_as(value: &str, user: Option<&str>) -> pb::CommandInfo {
    pb::CommandInfo { user: user.map(Into::into), ..command(value) }
}

pub(super) fn command(value: &str) -> pb::CommandInfo {
    pb::CommandInfo { value: Some(value.into()), ..Default::default() }
}

pub(super) fn statically(role: &str) -> pb::resource::ReservationInfo {
    pb::resource::ReservationInfo {
        r#type: Some(pb::resource::reservation_info::Type::STATIC),
        role: Some(role.into()),
        ..Default::default()
    }
}

pub(super) fn revocable(name: &str) -> Option<pb::resource::RevocableInfo> {
    use pb::resource::revocable_info::Type;
    let kind = match name.chars().last() {
        Some('^') => Type::ALLOCATION_SLACK,
        Some('~') => Type::USAGE_SLACK,
        _ => return None,
    };
    Some(pb::resource::RevocableInfo { r#type: Some(kind), ..Default::default() })
}

pub(super) fn estimator(kind: &str, options: &[&str]) -> Estimator {
    match kind {
        "fixed" => Estimator::Fixed(Resources::from_proto(&resources(options[0])).expect("resources")),
        _ => Estimator::Usage {
            compressible_only: !options.contains(&"memory"),
            watch: Duration::from_secs(60),
        },
    }
}

pub(super) fn controller(kind: &str, first: Option<f64>, second: Option<f64>) -> QosController {
    match kind {
        "load" => QosController::Load { five_minutes: first, fifteen_minutes: second },
        _ => QosController::Pressure {
            cpu: first.expect("a percentage"),
            memory: second.expect("a percentage"),
        },
    }
}

pub(super) fn for_dev(mut resources: Vec<pb::Resource>) -> Vec<pb::Resource> {
    for resource in &mut resources {
        let reservation = pb::resource::ReservationInfo {
            r#type: Some(pb::resource::reservation_info::Type::DYNAMIC),
            role: Some("dev".into()),
            ..Default::default()
        };
        resource.reservations.push(reservation);
    }
    resources
}

/// One reserved cpu, or the volume.
pub(super) fn reserved(volume: bool) -> Vec<pb::Resource> {
    let mut resources = for_dev(resources(if volume { "disk:64" } else { "cpus:1" }));
    if volume {
        resources[0].disk = volume_disk().into();
    }
    resources
}

pub(super) fn volume_disk() -> pb::resource::DiskInfo {
    let volume =
        pb::Volume { mode: pb::volume::Mode::RW, container_path: "data".into(), ..Default::default() };
    pb::resource::DiskInfo {
        persistence: pb::resource::disk_info::Persistence { id: "v".into(), ..Default::default() }.into(),
        volume: volume.into(),
        ..Default::default()
    }
}

pub(super) fn option<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

pub(super) fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().expect("milliseconds")),
        None => Duration::from_secs(text.trim_end_matches('s').parse().expect("seconds")),
    }
}

pub(super) fn duration_info(duration: Duration) -> pb::DurationInfo {
    pb::DurationInfo { nanoseconds: duration.as_nanos() as i64, ..Default::default() }
}
