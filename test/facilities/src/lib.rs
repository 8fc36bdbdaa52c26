//! Requirements of tests on the machine beyond Rust: root, cgroups, Docker, programs.
//!
//! A test that lacks a facility returns early. The skip is never silent: it is appended to the file that
//! `TEPUI_SKIPPED` names, from which `./check` counts and names skipped tests, and it panics if `TEPUI_REQUIRE`, a list
//! of names separated by commas, has the facility. `test/offers` prints the facilities of a machine; it has independent
//! probes, so that a broken probe here fails the tests it would skip.
#![forbid(unsafe_code)]

mod disk;
mod port;
mod probe;

use std::fs::File;
use std::io::Write;
use std::time::Duration;

pub use disk::Disk;
pub use port::Port;
pub use probe::{
    buttervolume, by_version, cgroup_mount, cgroup_mounts, is_root, pymesos, v1_mount, v2_mount,
};

/// Something a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facility {
    Root,
    /// Mount namespaces and new mounts.
    Mounts,
    /// The cpu and memory controllers, on v1 or v2, and the rights to create cgroups.
    Cgroups,
    /// The cpu, memory and freezer controllers on v1.
    CgroupsV1,
    /// A writable mount of v2, with or without controllers.
    CgroupsV2,
    /// A Docker engine that a test can start for itself.
    Docker,
    /// A statically linked busybox, of which images are made.
    Busybox,
    /// The third-party client that `test/setup` installs.
    Pymesos,
    /// The volume driver that `test/setup` installs, and a kernel with btrfs.
    Buttervolume,
    /// The server and the client of the Debian package.
    Postgresql,
    /// A program in PATH.
    Program(&'static str),
}

impl Facility {
    /// The name in `TEPUI_REQUIRE` and in the list of skipped tests.
    pub fn name(self) -> &'static str {
        match self {
            Facility::Root => "root",
            Facility::Mounts => "mounts",
            Facility::Cgroups => "cgroups",
            Facility::CgroupsV1 => "cgroups-v1",
            Facility::CgroupsV2 => "cgroups-v2",
            Facility::Docker => "docker",
            Facility::Busybox => "busybox",
            Facility::Pymesos => "pymesos",
            Facility::Buttervolume => "buttervolume",
            Facility::Postgresql => "postgresql",
            Facility::Program(name) => name,
        }
    }
}

/// True if the machine has all of these. Otherwise the running test is recorded as skipped and must return.
#[must_use]
pub fn available(facilities: &[Facility]) -> bool {
    match facilities.iter().find_map(|facility| Some((*facility, probe::missing(*facility)?))) {
        Some((facility, reason)) => {
            skip(facility, &reason);
            false
        }
        None => true,
    }
}

/// Records the running test as skipped because a facility is missing. The test returns after it.
pub fn skip(facility: Facility, reason: &str) {
    let (name, reason) = (facility.name(), reason.trim().replace('\n', " "));
    let required = std::env::var("TEPUI_REQUIRE").unwrap_or_default();
    assert!(!is_listed(&required, name), "TEPUI_REQUIRE lists {name}, but it is missing: {reason}");
    let test = test_name();
    eprintln!("skipped: needs {name}: {reason}");
    let Some(path) = std::env::var_os("TEPUI_SKIPPED") else { return };
    let mut file = File::options().create(true).append(true).open(path).expect("TEPUI_SKIPPED is writable");
    // One write: tests of several processes append to the same file.
    file.write_all(format!("{test}\t{name}\t{reason}\n").as_bytes()).expect("TEPUI_SKIPPED is writable");
}

/// How long a test waits for a condition before it fails. Only a failing test waits that long; an emulated machine sets
/// `TEPUI_TEST_PATIENCE_SECS`.
pub fn patience() -> Duration {
    const DEFAULT_SECS: u64 = 120;
    let seconds = std::env::var("TEPUI_TEST_PATIENCE_SECS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(DEFAULT_SECS))
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split(',').any(|one| one.trim() == name)
}

/// `package::binary test`, as the test runner names it. The thread of a test has the test's name, unless tests run one
/// at a time.
fn test_name() -> String {
    let variable = |name| std::env::var(name).ok();
    let binary = variable("NEXTEST_BINARY_ID").unwrap_or_else(|| {
        let path = std::env::current_exe().unwrap_or_default();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = file.rsplit_once('-').map_or(file.as_str(), |(stem, _)| stem);
        variable("CARGO_PKG_NAME").map_or_else(|| stem.to_owned(), |package| format!("{package}::{stem}"))
    });
    let thread = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    let after_exact = || std::env::args().skip_while(|word| word != "--exact").nth(1);
    let test = thread.or_else(|| variable("NEXTEST_TEST_NAME")).or_else(after_exact);
    format!("{binary} {}", test.unwrap_or_else(|| "?".to_owned()))
}

#[cfg(test)]
mod tests;
