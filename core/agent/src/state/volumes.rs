//! Where persistent volumes lie on the host, and which ones a container sees.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{DiskKind, Resource, Resources};
use tepui_types::Volume;

/// The persistent volumes among these resources, as a container sees them.
pub(crate) fn volumes(work_dir: &str, resources: &Resources) -> Vec<Volume> {
    resources.iter().filter_map(|resource| volume(work_dir, resource)).collect()
}

fn volume(work_dir: &str, resource: &Resource) -> Option<Volume> {
    let shown = resource.disk()?.volume.as_ref()?;
    Some(Volume {
        source: volume_path(work_dir, resource)?,
        target: shown.container_path.clone(),
        read_only: shown.mode == pb::volume::Mode::RO,
        shared: resource.is_shared(),
    })
}

/// The directory of a persistent volume; none if it is not one, or lies on a disk without directories.
pub fn volume_path(work_dir: &str, resource: &Resource) -> Option<String> {
    let id = resource.persistence_id()?;
    // A role's slashes would make directories of their own.
    let role = resource.reservation_role()?.to_string().replace('/', " ");
    let below = |root: &str| format!("{root}/volumes/roles/{role}/{id}");
    let absolute =
        |root: &str| if root.starts_with('/') { root.to_string() } else { format!("{work_dir}/{root}") };
    match resource.disk()?.source.as_ref().map(|source| &source.kind) {
        None => Some(below(work_dir)),
        Some(DiskKind::Path { root }) => Some(below(&absolute(root.as_deref()?))),
        Some(DiskKind::Mount { root }) => Some(absolute(root.as_deref()?)),
        Some(DiskKind::Block | DiskKind::Raw) => None,
    }
}
