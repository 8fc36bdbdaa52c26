//! Support for tests with real processes: clusters of the real binary, a raw HTTP client, a scheduler in JSON.
//!
//! Processes bind to loopback on free ports, use a temporary directory and are killed on drop, also when a test fails.
//! Waits are for conditions, with one generous timeout.
#![forbid(unsafe_code)]

mod browser;
mod buttervolume;
mod certificates;
mod cluster;
#[path = "../../../container/docker/tests/common/mod.rs"]
pub mod dockerd;
mod etcd;
mod framework;
mod gate;
mod http;
mod image;
mod limited;
pub mod recorded;
pub mod registry;
mod scheduler;
mod service;
pub mod swarm;
mod terminal_session;
mod volume_driver;
mod web;
mod wire;

pub use browser::Browser;
pub use buttervolume::Buttervolume;
pub use certificates::Certificates;
pub use cluster::{Cluster, Program, binary};
pub use etcd::{Etcd, Masters};
pub use framework::{Delivery, Framework};
pub use gate::Gate;
pub use http::{Http, Response, Stream};
pub use image::save_image;
pub use limited::{Limited, Sizes, is_limited, limit_hits, limits_in};
pub use registry::Registry;
pub use scheduler::{Polled, Scheduler, scalar, still_works};
pub use service::{Service, TaskInstance};
pub use terminal_session::TerminalSession;
pub use volume_driver::{Fault, VolumeDriver};
pub use web::Web;
pub use wire::Wire;

use std::time::{Duration, Instant};

pub use tepui_facilities::{Disk, by_version, cgroup_mount, cgroup_mounts, patience, v1_mount, v2_mount};

const POLL: Duration = Duration::from_millis(20);

/// Sends a signal to a process by its name in capitals. After STOP nothing in it runs any more: the kernel stops its threads
/// only when one of them handles the signal, which may take long on a busy machine.
pub fn signal(process: u32, name: &str) {
    let status =
        std::process::Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.expect("kill starts").success(), "the signal {name} can be sent");
    if name == "STOP" {
        wait_for("the process to stop", || is_stopped(process).then_some(()));
    }
}

/// Whether all threads of a process are stopped.
fn is_stopped(process: u32) -> bool {
    std::fs::read_dir(format!("/proc/{process}/task")).expect("the process runs").all(|task| {
        let stat = std::fs::read_to_string(task.expect("a thread").path().join("stat")).unwrap_or_default();
        // The name in parentheses may contain anything; the state follows it. A thread that has exited has none.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

/// Waits until `condition` returns a value; panics with `condition_name` after the timeout.
pub fn wait_for<T>(condition_name: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < patience(), "waited {:?} for {condition_name}", patience());
        std::thread::sleep(POLL);
    }
}
