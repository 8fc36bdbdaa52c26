//! The kernel's side of cgroups, for tests: where they are mounted and what is in their files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub use tepui_facilities::{v1_mount, v2_mount};
use tepui_types::ContainerId;

/// A place below every mount that no other test uses.
pub fn own_root() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(format!("tepui-test-{}-{number}", std::process::id()))
}

/// Where a controller is mounted, whatever its version.
pub fn mount(controller: &str) -> PathBuf {
    v1_mount(controller).or_else(v2_mount).expect("the controller is mounted")
}

/// The container's cgroup of a controller.
pub fn cgroup(root: &Path, controller: &str, id: &ContainerId) -> PathBuf {
    let above = match id.parent() {
        Some(parent) => cgroup(root, controller, parent).join("mesos"),
        None => mount(controller).join(root),
    };
    above.join(id.value())
}

/// A file of a container's cgroup, one line.
pub fn read(root: &Path, controller: &str, id: &ContainerId, file: &str) -> String {
    let path = cgroup(root, controller, id).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display())).trim().to_owned()
}

/// Who is in a container's cgroup of a controller.
pub fn processes(root: &Path, controller: &str, id: &ContainerId) -> Vec<u32> {
    let cgroup = cgroup(root, controller, id);
    let cgroup = if v2_mount().is_some() { cgroup.join("leaf") } else { cgroup };
    let procs = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    procs.lines().map(|line| line.parse().unwrap()).collect()
}

/// A number of a container's memory cgroup, by the names of v1 and v2; -1: endless.
pub fn memory(root: &Path, id: &ContainerId, (v1, v2): (&str, &str)) -> i64 {
    let file = if v2_mount().is_some() { v2 } else { v1 };
    match read(root, "memory", id, file).as_str() {
        "max" => -1,
        number => number.parse().unwrap(),
    }
}

/// Whatever exists of a root, in any hierarchy: containers that were left behind.
pub fn left_of(root: &Path) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let mounts =
        mounts.lines().filter(|line| line.split(' ').nth(2).is_some_and(|kind| kind.starts_with("cgroup")));
    let roots = mounts.filter_map(|line| Some(Path::new(line.split(' ').nth(1)?).join(root)));
    let directories = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
    };
    roots.flat_map(directories).collect()
}

/// What is mounted in the namespace of the tests, without what those beside this one mount in directories of their own.
pub fn mounts(own: &Path) -> String {
    let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_others = |line: &&str| {
        let point = Path::new(line.split(' ').nth(4).unwrap_or_default());
        point.starts_with(std::env::temp_dir()) && !point.starts_with(own)
    };
    all.lines().filter(|line| !is_others(line)).map(|line| format!("{line}\n")).collect()
}

/// Removes an empty root everywhere.
pub fn remove_root(root: &Path) {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    for line in
        mounts.lines().filter(|line| line.split(' ').nth(2).is_some_and(|kind| kind.starts_with("cgroup")))
    {
        if let Some(mount) = line.split(' ').nth(1) {
            std::fs::remove_dir(Path::new(mount).join(root)).ok();
        }
    }
}
