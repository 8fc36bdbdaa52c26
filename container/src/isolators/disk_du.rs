//! disk/du: what sandboxes and persistent volumes hold, found by walking through them.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tepui_proto::mesos::v1::{self as pb, resource::disk_info::source::Type, task_status::Reason};
use tepui_types::{Termination, Volume};

use crate::usage::DiskUse;

const BYTES_PER_MB: f64 = 1024.0 * 1024.0;
/// What the kernel counts blocks in, whatever a file system does.
const BLOCK_BYTES: u64 = 512;
/// So deep may directories be; what is deeper is not counted.
const DEPTH_MAX: usize = 128;

/// What paths may hold, in bytes.
pub(super) type Quotas = Vec<(PathBuf, u64)>;

/// The limit of each path: of the sandbox the part of `disk` outside of volumes, of a volume its own size; none
/// without such resources. Second: the paths that cannot exceed a limit, because they are disks of their own.
pub(super) fn quotas(sandbox: &str, resources: &[pb::Resource], volumes: &[Volume]) -> (Quotas, Quotas) {
    let (mut quotas, mut whole_disks) = (Vec::new(), Vec::new());
    for resource in resources.iter().filter(|resource| resource.name == "disk") {
        let (disk, size) = (&resource.disk, resource.scalar.value);
        let is_whole = disk.source.r#type == Type::MOUNT;
        match disk.volume.as_option() {
            None => (),
            Some(volume) => {
                let found = volumes.iter().find(|one| one.target == volume.container_path);
                let kind = if is_whole { &mut whole_disks } else { &mut quotas };
                kind.extend(found.map(|one| (PathBuf::from(&one.source), bytes(size))));
            }
        }
    }
    quotas.extend(sandbox_quota(resources).map(|size| (PathBuf::from(sandbox), size)));
    (quotas, whole_disks)
}

/// What a sandbox may hold; none if nothing was given.
pub(crate) fn sandbox_quota(resources: &[pb::Resource]) -> Option<u64> {
    let is_plain = |resource: &&pb::Resource| {
        let disk = &resource.disk;
        resource.name == "disk" && disk.volume.is_unset() && disk.source.r#type != Type::MOUNT
    };
    let sizes = resources.iter().filter(is_plain).map(|resource| resource.scalar.value);
    sizes.reduce(|all, one| all + one).map(bytes)
}

fn bytes(mb: f64) -> u64 {
    (mb * BYTES_PER_MB) as u64 // Saturates.
}

/// What the paths hold. Blocking, and as long as the trees are large.
pub(super) fn measure(quotas: &[(PathBuf, u64)]) -> Vec<DiskUse> {
    let one = |(path, quota): &(PathBuf, u64)| DiskUse {
        path: path.clone(),
        limit_bytes: *quota,
        used_bytes: used_bytes(path),
    };
    quotas.iter().map(one).collect()
}

/// The first path that holds more than it may.
pub(super) fn exceeded(uses: &[DiskUse]) -> Option<Termination> {
    let first = uses.iter().find(|one| one.used_bytes > one.limit_bytes)?;
    Some(limitation(first.used_bytes, first.limit_bytes))
}

fn limitation(used: u64, quota: u64) -> Termination {
    let disk = pb::Resource {
        name: String::from("disk"),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value: used as f64 / BYTES_PER_MB, ..Default::default() }.into(),
        ..Default::default()
    };
    Termination {
        state: Some(pb::TaskState::TASK_FAILED),
        reason: Some(Reason::REASON_CONTAINER_LIMITATION_DISK),
        message: Some(format!("Disk usage ({}) exceeds quota ({})", text(used), text(quota))),
        limited: vec![disk],
        ..Default::default()
    }
}

/// In the largest unit that is not below one, as v1 writes amounts.
fn text(bytes: u64) -> String {
    let units = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// What all files below a path take, each once; links and other file systems are not followed.
pub fn used_bytes(root: &Path) -> u64 {
    let Ok(meta) = root.symlink_metadata() else { return 0 };
    let (device, mut linked, mut total) = (meta.dev(), BTreeSet::new(), meta.blocks());
    let mut next = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = next.pop() {
        // What vanishes meanwhile holds nothing.
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.dev() != device || (meta.nlink() > 1 && !meta.is_dir() && !linked.insert(meta.ino())) {
                continue;
            }
            total += meta.blocks();
            if meta.is_dir() && depth < DEPTH_MAX {
                next.push((entry.path(), depth + 1));
            }
        }
    }
    total.saturating_mul(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_usage_counts_hard_links_once() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("sub")).expect("made");
        let empty = used_bytes(dir.path());
        std::fs::write(dir.path().join("sub/file"), vec![1; 1 << 20]).expect("written");
        std::fs::hard_link(dir.path().join("sub/file"), dir.path().join("again")).expect("linked");
        std::os::unix::fs::symlink("/usr", dir.path().join("out")).expect("linked");
        let used = used_bytes(dir.path()) - empty;
        assert!((1 << 20..(1 << 20) + 16384).contains(&used), "{used}");
        assert_eq!(used_bytes(&dir.path().join("missing")), 0);
    }

    #[test]
    fn disk_quotas_follow_sandbox_and_volume_resources() {
        let resource =
            |text: &str| tepui_proto::json::from_slice(text.replace('\'', "\"").as_bytes()).expect("valid");
        let disk = |disk: &str| {
            resource(&format!("{{'name':'disk','type':'SCALAR','scalar':{{'value':2}},'disk':{disk}}}"))
        };
        let volume = "'persistence':{'id':'x'},'volume':{'mode':'RW','container_path':'data'}";
        let resources = [
            resource("{'name':'cpus','type':'SCALAR','scalar':{'value':2}}"),
            resource("{'name':'disk','type':'SCALAR','scalar':{'value':1}}"),
            disk(&format!("{{{volume}}}")),
            disk(&format!("{{{},'source':{{'type':'MOUNT'}}}}", volume.replace("data", "whole"))),
        ];
        let seen = |target: &str| Volume {
            source: format!("/vol/{target}"),
            target: target.into(),
            read_only: false,
            shared: false,
        };
        let (volumes, mb) = ([seen("data"), seen("whole")], 1 << 20);
        let (kept, whole) = quotas("/box", &resources, &volumes);
        assert_eq!(kept, [("/vol/data".into(), 2 * mb), ("/box".into(), mb)]);
        assert_eq!(whole, [("/vol/whole".into(), 2 * mb)], "looked at, but never too full");
        assert_eq!(quotas("/box", &resources[..1], &volumes), Default::default());
    }

    #[test]
    fn sizes_are_formatted_with_units() {
        for (bytes, shown) in [(7, "7B"), (2048, "2KB"), (3 << 20, "3MB"), (5 << 30, "5GB")] {
            assert_eq!(text(bytes), shown);
        }
    }
}
