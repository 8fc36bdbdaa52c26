//! `pods.<pod>.tasks.<name>`.

use std::collections::BTreeMap;

use super::{Input, check_name, container, resources};
use crate::reader::{Field, Members, Reader};
use crate::spec::{
    ConfigTemplate, Discovery, Goal, HealthCheck, IpcMode, ReadinessCheck, ResourceSet, TaskSpec, Visibility,
};
use crate::{bootstrap, mustache};

const KILL_GRACE_PERIOD_SECS_MAX: i64 = 3600;
/// Limit of the config templates of a service together: each config of each task has its own copy.
const TEMPLATES_BYTES_MAX: usize = 8 << 20;
const SECONDS_MAX: i64 = 10 * 365 * 24 * 3600;
const GOALS: &[(&str, Goal)] = &[("RUNNING", Goal::Running), ("FINISH", Goal::Finish), ("ONCE", Goal::Once)];

pub fn task(
    reader: &mut Reader,
    input: Input<'_>,
    pod: &str,
    name: &str,
    field: &Field<'_>,
    sets: &mut Vec<ResourceSet>,
) -> Option<TaskSpec> {
    check_name(reader, "task", name, field);
    let mut members = reader.members(field)?;
    let goal = reader.required(&mut members, "goal", |reader, field| reader.choice(field, GOALS, true));
    let cmd = reader.required(&mut members, "cmd", Reader::text);
    let resource_set = own_or_shared(reader, name, &mut members, sets);
    let ipc_modes = [("PRIVATE", IpcMode::Private), ("SHARE_PARENT", IpcMode::ShareParent)];
    let ipc_mode =
        reader.optional(&mut members, "ipc-mode", |reader, field| reader.choice(field, &ipc_modes, false));
    let shm_size_mb = container::shm_size(reader, &mut members);
    if ipc_mode == Some(IpcMode::ShareParent) && shm_size_mb.is_some() {
        reader.error(members.at, &members.path, "`shm-size` excludes `ipc-mode: SHARE_PARENT`");
    }
    let essential = reader.optional_scalar(&mut members, "essential", Reader::boolean).unwrap_or(true);
    let grace = reader.optional_scalar(&mut members, "kill-grace-period", |reader, field| {
        reader.integer(field, 0, KILL_GRACE_PERIOD_SECS_MAX, "seconds")
    });
    reject_encryption(reader, &mut members);
    let task = TaskSpec {
        name: name.to_owned(),
        goal: Goal::Running,
        essential,
        cmd: String::new(),
        env: environment(reader, input.env, pod, &mut members),
        labels: reader.optional(&mut members, "labels", container::labels).unwrap_or_default(),
        configs: configs(reader, input, &mut members),
        resource_set: resource_set.unwrap_or_default(),
        health_check: reader.optional(&mut members, "health-check", health_check),
        readiness_check: reader.optional(&mut members, "readiness-check", readiness_check),
        discovery: reader.optional(&mut members, "discovery", |reader, field| discovery(reader, pod, field)),
        kill_grace_period_secs: grace.map_or(0, i64::unsigned_abs),
        ipc_mode,
        shm_size_mb,
    };
    reader.reject_unknown(&members);
    if !task.configs.is_empty() && cmd.as_deref().is_some_and(|cmd| !bootstrap::is_mentioned(cmd)) {
        reader.warning(
            members.at,
            &format!("{}.configs", members.path),
            "are rendered by `./bootstrap`, which `cmd` does not run",
        );
    }
    Some(TaskSpec { goal: goal?, cmd: cmd?, ..task })
}

/// The id of the task's resource set: one of the pod, or an implicit one made of the task's own keys.
fn own_or_shared(
    reader: &mut Reader,
    task: &str,
    members: &mut Members<'_>,
    sets: &mut Vec<ResourceSet>,
) -> Option<String> {
    let shared = members.take("resource-set");
    let Some(field) = shared else {
        let set = resources::resources(reader, &format!("{task}-resource-set"), members);
        if !resources::has_resources(members) {
            let message =
                "has no resources; one of cpus, gpus, memory and ports is required, or resource-set";
            reader.error(members.at, &members.path, message);
        }
        let id = set.id.clone();
        sets.push(set);
        return Some(id);
    };
    for key in resources::KEYS {
        if let Some(own) = members.take(key) {
            reader.warning(own.at, &own.path, "has no effect beside `resource-set`");
        }
    }
    let id = reader.filled_text(&field)?;
    if sets.iter().all(|set| set.id != id) {
        let known: Vec<&str> = sets.iter().map(|set| set.id.as_str()).collect();
        reader.wrong(&field, format!("the pod has no resource set {id:?}; it has: {}", known.join(", ")));
        return None;
    }
    Some(id)
}

/// `env` with the variables over it that the scheduler's environment has for all pods or for this one.
fn environment(
    reader: &mut Reader,
    scheduler: &BTreeMap<String, String>,
    pod: &str,
    members: &mut Members<'_>,
) -> BTreeMap<String, String> {
    let given = reader.optional_named(members, "env", |reader, name, field| match field.is_null() {
        true => Some((name.to_owned(), String::new())),
        false => Some((name.to_owned(), reader.text(field)?)),
    });
    let mut env: BTreeMap<String, String> = given.into_iter().collect();
    let own = format!("TASKCFG_{}_", environment_name(pod));
    for (name, value) in scheduler {
        let target = name.strip_prefix("TASKCFG_ALL_").or_else(|| name.strip_prefix(&own));
        if let Some(target) = target.filter(|target| !target.is_empty()) {
            env.insert(target.to_owned(), value.clone());
        }
    }
    env
}

/// Upper case, with `_` for what no name of a variable has.
fn environment_name(name: &str) -> String {
    name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn configs(reader: &mut Reader, input: Input<'_>, members: &mut Members<'_>) -> Vec<ConfigTemplate> {
    let mut dests: Vec<String> = Vec::new();
    reader.optional_named(members, "configs", |reader, name, field| {
        let mut members = reader.members(field)?;
        let content =
            reader.required(&mut members, "template", |reader, field| template(reader, input, field));
        let dest = reader.required(&mut members, "dest", |reader, field| {
            let dest = reader.filled_text(field)?;
            if dests.contains(&dest) {
                reader.wrong(field, format!("another config of the task has the dest {dest:?}"));
            }
            dests.push(dest.clone());
            Some(dest)
        });
        reader.reject_unknown(&members);
        Some(ConfigTemplate { name: name.to_owned(), dest: dest?, content: content? })
    })
}

fn template(reader: &mut Reader, input: Input<'_>, field: &Field<'_>) -> Option<String> {
    let path = reader.filled_text(field)?;
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        reader.wrong(field, format!("{path:?} leads out of the directory of the spec; give a path below it"));
        return None;
    }
    let content = match (input.template)(&path) {
        Ok(content) => content,
        Err(message) => {
            reader.wrong(field, format!("cannot read template {path:?}: {message}"));
            return None;
        }
    };
    if content.is_empty() {
        reader.wrong(field, format!("template {path:?} is empty"));
        return None;
    }
    reader.template_bytes += content.len();
    if reader.template_bytes > TEMPLATES_BYTES_MAX {
        reader.wrong(
            field,
            format!("the templates of the service exceed {TEMPLATES_BYTES_MAX} bytes together"),
        );
        return None;
    }
    if let Err(error) = mustache::render(&content, &BTreeMap::new()) {
        let line = content[..error.at].matches('\n').count() + 1;
        reader.wrong(field, format!("template {path:?}, line {line}: {}", error.message));
        return None;
    }
    Some(content)
}

pub fn seconds(reader: &mut Reader, field: &Field<'_>) -> Option<u64> {
    reader.integer(field, 0, SECONDS_MAX, "seconds").map(i64::unsigned_abs)
}

fn health_check(reader: &mut Reader, field: &Field<'_>) -> Option<HealthCheck> {
    let mut members = reader.members(field)?;
    let cmd = reader.required(&mut members, "cmd", Reader::filled_text);
    let interval = reader.required(&mut members, "interval", seconds);
    let grace_period = reader.required(&mut members, "grace-period", seconds);
    let failures = reader.required(&mut members, "max-consecutive-failures", |reader, field| {
        reader.integer(field, 1, i64::from(u32::MAX), "")
    });
    let delay = reader.required(&mut members, "delay", seconds);
    let timeout = reader.required(&mut members, "timeout", seconds);
    reader.reject_unknown(&members);
    Some(HealthCheck {
        cmd: cmd?,
        interval_secs: interval?,
        grace_period_secs: grace_period?,
        max_consecutive_failures: u32::try_from(failures?).ok()?,
        delay_secs: delay?,
        timeout_secs: timeout?,
    })
}

fn readiness_check(reader: &mut Reader, field: &Field<'_>) -> Option<ReadinessCheck> {
    let mut members = reader.members(field)?;
    let cmd = reader.required(&mut members, "cmd", Reader::filled_text);
    let interval = reader.required(&mut members, "interval", seconds);
    let timeout = reader.required(&mut members, "timeout", seconds);
    let delay = reader.optional_scalar(&mut members, "delay", seconds);
    reader.reject_unknown(&members);
    Some(ReadinessCheck {
        cmd: cmd?,
        interval_secs: interval?,
        delay_secs: delay.unwrap_or(0),
        timeout_secs: timeout?,
    })
}

fn discovery(reader: &mut Reader, pod: &str, field: &Field<'_>) -> Option<Discovery> {
    const VISIBILITIES: &[(&str, Visibility)] = &[
        ("FRAMEWORK", Visibility::Framework),
        ("CLUSTER", Visibility::Cluster),
        ("EXTERNAL", Visibility::External),
    ];
    let mut members = reader.members(field)?;
    let prefix = reader.optional(&mut members, "prefix", |reader, field| {
        let prefix = reader.text_or_absent(field)?;
        reader.claim("discovery prefix", &prefix, pod, field);
        Some(prefix)
    });
    let visibility = reader
        .optional_scalar(&mut members, "visibility", |reader, field| reader.choice(field, VISIBILITIES, true))
        .unwrap_or(Visibility::Cluster);
    reader.reject_unknown(&members);
    Some(Discovery { prefix, visibility })
}

/// There is no authority that issues certificates: a task that asks for encryption must not run without it.
fn reject_encryption(reader: &mut Reader, members: &mut Members<'_>) {
    let message = "is not supported: no certificates are issued; give them to the task with `secrets`, \
                   `host-volumes` or `external-volumes`";
    reader.optional_list(members, "transport-encryption", |reader, entry| {
        reader.error(entry.at, &entry.path, message);
        None::<()>
    });
}
