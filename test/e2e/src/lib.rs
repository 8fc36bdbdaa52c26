//! A kit for tests with real processes: clusters of the real binary, a raw HTTP client, a scheduler by hand.
//!
//! Everything binds to loopback on free ports, lives in a temporary directory and ends with its value, also when a
//! test fails. Waiting is always for a condition, with one generous limit.
#![forbid(unsafe_code)]

mod browser;
mod certificates;
mod cluster;
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

pub use browser::visit;
pub use certificates::Certificates;
pub use cluster::{Cluster, Program, binary};
pub use etcd::{Etcd, Masters};
pub use framework::{Delivery, Framework};
pub use gate::Gate;
pub use http::{Http, Response, Stream};
pub use limited::{Limited, Sizes, is_limited, limit_hits, limits_in};
pub use person::Person;
pub use scheduler::{Polled, Scheduler, scalar, still_works};
pub use web::Web;
pub use wire::Wire;

use std::time::{Duration, Instant};

pub use tepui_facilities::{Disk, by_version, cgroup_mount, cgroup_mounts, patience, v1_mount, v2_mount};

const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value; panics naming `what` if it never does.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < patience(), "waited {:?} for {what}", patience());
        std::thread::sleep(POLL);
    }
}
