//! `pods.<name>`.

use super::{Input, check_name, container, external, resources, task};
use crate::reader::{Field, Members, Reader, Scope};
use crate::spec::{Constraint, IpcMode, PodSpec, ResourceSet, Seccomp, TaskSpec};

/// Limit of the instances of a pod.
const COUNT_MAX: i64 = 100_000;
/// Limit of the tasks of a pod.
const TASKS_MAX: usize = 1000;
const DEFAULT_ROLE: &str = "*";

pub fn pod(
    reader: &mut Reader,
    input: Input<'_>,
    service: &str,
    name: &str,
    field: &Field<'_>,
) -> Option<PodSpec> {
    check_name(reader, "pod", name, field);
    let mut members = reader.members(field)?;
    let count =
        reader.required(&mut members, "count", |reader, field| reader.integer(field, 0, COUNT_MAX, "pods"));
    let mut resource_sets = reader.optional_named(&mut members, "resource-sets", resources::resource_set);
    let tasks = tasks(reader, input, name, &mut members, &mut resource_sets);
    let volumes = resources::volumes(reader, &mut members, &Scope::Pod);
    let ipc_mode = reader.optional(&mut members, "ipc-mode", |reader, field| {
        reader.choice(field, &[("PRIVATE", IpcMode::Private)], false)
    });
    let pod = PodSpec {
        name: name.to_owned(),
        count: 0,
        allow_decommission: reader.flag(&mut members, "allow-decommission"),
        image: reader.optional(&mut members, "image", Reader::filled_text),
        uris: reader.optional_list(&mut members, "uris", container::uri),
        placement: reader.optional(&mut members, "placement", placement).unwrap_or_default(),
        networks: reader.optional_named(&mut members, "networks", container::network),
        rlimits: reader.optional_named(&mut members, "rlimits", container::rlimit),
        volumes,
        host_volumes: reader.optional_named(&mut members, "host-volumes", container::host_volume),
        external_volumes: reader.optional_named(&mut members, "external-volumes", |reader, key, field| {
            external::volume(reader, service, name, key, field)
        }),
        secrets: reader.optional_named(&mut members, "secrets", container::secret),
        pre_reserved_role: reader
            .optional(&mut members, "pre-reserved-role", Reader::text_or_absent)
            .unwrap_or_else(|| DEFAULT_ROLE.to_owned()),
        share_pid_namespace: reader.flag(&mut members, "share-pid-namespace"),
        seccomp: seccomp(reader, &mut members),
        ipc_mode,
        shm_size_mb: container::shm_size(reader, &mut members),
        resource_sets,
        tasks: tasks.unwrap_or_default(),
    };
    reader.reject_mount_collisions(pod.image.is_some());
    // The SDK ignores unknown keys here, and shipped specs rely on it.
    reader.warn_unknown(&members);
    Some(PodSpec { count: u32::try_from(count?).ok()?, ..pod })
}

fn tasks(
    reader: &mut Reader,
    input: Input<'_>,
    pod: &str,
    members: &mut Members<'_>,
    sets: &mut Vec<ResourceSet>,
) -> Option<Vec<TaskSpec>> {
    reader.required(members, "tasks", |reader, field| {
        let tasks =
            reader.named(field, |reader, name, field| task::task(reader, input, pod, name, field, sets))?;
        if tasks.is_empty() && field.is_mapping() && reader.members(field)?.names().next().is_none() {
            reader.wrong(field, "is empty; one task at least is required");
        }
        if tasks.len() > TASKS_MAX {
            reader.wrong(field, format!("{} tasks; the limit is {TASKS_MAX}", tasks.len()));
            return None;
        }
        Some(tasks)
    })
}

fn placement(reader: &mut Reader, field: &Field<'_>) -> Option<Vec<Constraint>> {
    let text = reader.text(field)?;
    Constraint::parse(&text).map_err(|message| reader.wrong(field, message)).ok()
}

fn seccomp(reader: &mut Reader, members: &mut Members<'_>) -> Seccomp {
    let unconfined = reader.flag(members, "seccomp-unconfined");
    let profile = members.take("seccomp-profile-name");
    match (unconfined, profile) {
        (true, Some(field)) => {
            reader.wrong(&field, "excludes `seccomp-unconfined: true`");
            Seccomp::Unconfined
        }
        (true, None) => Seccomp::Unconfined,
        (false, Some(field)) => reader.text_or_absent(&field).map_or(Seccomp::Default, Seccomp::Profile),
        (false, None) => Seccomp::Default,
    }
}
