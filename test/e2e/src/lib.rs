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
