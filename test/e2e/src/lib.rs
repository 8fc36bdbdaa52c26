//! A kit for tests with real processes: clusters of the real binary, a raw HTTP client, a scheduler by hand.
//!
//! Everything binds to loopback on free ports, lives in a temporary directory and ends with its value, also when a
//! test fails. Waiting is always for a condition, with one generous limit.
#![forbid(unsafe_code)]

mod certificates;
mod cluster;
mod disk;
mod etcd;
mod framework;
mod gate;
mod http;
mod limited;
mod person;
pub mod recorded;
mod scheduler;
mod web;
mod wire;

pub use certificates::Certificates;
pub use cluster::{Cluster, Program, binary, cgroup_mounts};
pub use disk::Disk;
pub use etcd::{Etcd, Masters};
pub use framework::{Delivery, Framework};
pub use gate::Gate;
pub use http::{Http, Response, Stream};
pub use limited::{Limited, Sizes, is_root, v1_mount};
pub use person::Person;
pub use scheduler::{Polled, Scheduler, scalar};
pub use web::Web;
pub use wire::Wire;

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up; machines are shared and slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value; panics naming `what` if it never does.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(POLL);
    }
}
