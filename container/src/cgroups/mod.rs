//! Cgroups: which resources of the machine the processes of a container may use, on v1, v2 and hosts with both.
//!
//! Planning is pure: a [`Demand`] and a place become a list of [`plan::Step`]s, one file per controller and version
//! (`v1/`, `v2/`); `plan::apply` alone writes. Where each controller lives is found out once, at the start of the agent.
//! What a container has is kept in its runtime directory, so that a later agent with other flags still ends it.
//! Never here: processes being started, tasks, reasons for the end of a task other than memory.

pub(crate) mod burst;
pub(crate) mod counted;
pub(crate) mod demand;
pub(crate) mod destroy;
pub(crate) mod devices;
pub(crate) mod hierarchy;
pub(crate) mod layout;
pub(crate) mod machine;
pub(crate) mod mark;
pub(crate) mod oom;
pub(crate) mod oom_watch;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod shortage;
mod v1;
mod v2;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use self::demand::{Demand, Limit, Policy};
use self::devices::Rule;
pub(crate) use self::place::{Cgroups, Place};
use self::plan::Step;
pub(crate) use self::v1::cpu::{cpu_quota_us, cpu_shares};

/// What the kernel can account or limit for a group of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Controller {
    Cpu,
    Cpuacct,
    Cpuset,
    Memory,
    Pids,
    Devices,
    Blkio,
    /// Membership of processes in a container, by which it is killed: `freezer` on v1, every cgroup on v2.
    Core,
}

impl Controller {
    pub const ALL: [Controller; 8] = [
        Controller::Cpu,
        Controller::Cpuacct,
        Controller::Cpuset,
        Controller::Memory,
        Controller::Pids,
        Controller::Devices,
        Controller::Blkio,
        Controller::Core,
    ];

    /// The kernel's name for it on v1.
    pub fn v1_name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Cpuacct => "cpuacct",
            Controller::Cpuset => "cpuset",
            Controller::Memory => "memory",
            Controller::Pids => "pids",
            Controller::Devices => "devices",
            Controller::Blkio => "blkio",
            Controller::Core => "freezer",
        }
    }

    /// The kernel's name on v2; none if every cgroup has it there, or none has.
    pub fn v2_name(self) -> Option<&'static str> {
        match self {
            Controller::Cpu => Some("cpu"),
            Controller::Cpuset => Some("cpuset"),
            Controller::Memory => Some("memory"),
            Controller::Pids => Some("pids"),
            Controller::Blkio => Some("io"),
            Controller::Cpuacct | Controller::Core | Controller::Devices => None,
        }
    }
}

/// Which of the kernel's two interfaces a cgroup has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Version {
    V1,
    V2,
}

/// What a fresh cgroup needs before any process may enter it.
fn prepare(version: Version, controller: Controller, cgroup: &Path, devices: &[Rule]) -> Vec<Step> {
    match (version, controller) {
        (Version::V1, Controller::Cpuset) => v1::cpuset::prepare(cgroup),
        (Version::V1, Controller::Devices) => v1::devices::prepare(cgroup, devices),
        (Version::V2, Controller::Devices) => v2::devices::prepare(cgroup, devices),
        (Version::V1, Controller::Pids) => v1::pids::prepare(cgroup),
        (Version::V2, Controller::Pids) => v2::pids::prepare(cgroup),
        (
            Version::V1 | Version::V2,
            Controller::Cpu | Controller::Cpuacct | Controller::Memory | Controller::Blkio | Controller::Core,
        )
        | (Version::V2, Controller::Cpuset) => Vec::new(),
    }
}

/// What makes a cgroup hold its processes to a demand; `fresh` if none was set before.
fn settle(
    version: Version,
    controller: Controller,
    cgroup: &Path,
    demand: &Demand,
    policy: &Policy,
    fresh: bool,
) -> Vec<Step> {
    match (version, controller) {
        (Version::V1, Controller::Cpu) => v1::cpu::settle(cgroup, demand, policy, fresh),
        (Version::V2, Controller::Cpu) => v2::cpu::settle(cgroup, demand, policy),
        (Version::V1, Controller::Memory) => v1::memory::settle(cgroup, demand, policy, fresh),
        (Version::V2, Controller::Memory) => v2::memory::settle(cgroup, demand, fresh),
        (
            Version::V1 | Version::V2,
            Controller::Cpuacct
            | Controller::Cpuset
            | Controller::Pids
            | Controller::Devices
            | Controller::Blkio
            | Controller::Core,
        ) => Vec::new(),
    }
}
