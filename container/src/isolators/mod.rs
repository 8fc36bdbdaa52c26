//! Isolators: what keeps containers apart, by the names v1 gives them.
//!
//! `--isolation` becomes an [`Isolation`]; each isolator then plans its part of a launch. Which names are known, which of
//! them are built and what they need is said here and nowhere else.

pub(crate) mod directories;
mod disk_du;
mod environment_secret;
mod filesystem_linux;
mod hostname;
mod linux_capabilities;
mod linux_devices;
mod linux_nnp;
pub(crate) mod linux_seccomp;
mod namespaces_ipc;
mod namespaces_pid;
mod network_ports;
pub(crate) mod plan;
mod posix_rlimits;
mod session;
mod site;
pub(crate) mod volumes;
pub(crate) mod watcher;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::disk_du::sandbox_quota;
pub use self::disk_du::{DiskUse, used_bytes};
pub use self::linux_capabilities::parse as parse_capabilities;
pub use self::linux_devices::{AllowedDevice, parse as parse_devices};
pub use self::network_ports::ports;
pub(crate) use self::plan::Plan;
pub(crate) use self::site::{Parent, Site};
use crate::cgroups::Controller;

/// What the operator chose, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    names: BTreeSet<&'static str>,
}

/// Every isolator that is built, and the controllers it takes.
const BUILT: &[(&str, &[Controller])] = &[
    ("posix/cpu", &[]),
    ("posix/mem", &[]),
    ("filesystem/posix", &[]),
    ("filesystem/linux", &[]),
    ("namespaces/pid", &[]),
    ("namespaces/ipc", &[]),
    ("posix/rlimits", &[]),
    ("linux/capabilities", &[]),
    ("linux/devices", &[]),
    ("linux/nnp", &[]),
    ("linux/seccomp", &[]),
    ("volume/host_path", &[]),
    ("volume/sandbox_path", &[]),
    ("volume/secret", &[]),
    ("volume/image", &[]),
    ("docker/runtime", &[]),
    ("docker/volume", &[]),
    ("environment_secret", &[]),
    ("disk/du", &[]),
    ("network/ports", &[]),
    ("cgroups/cpu", &[Controller::Cpu, Controller::Cpuacct]),
    ("cgroups/mem", &[Controller::Memory]),
    ("cgroups/cpuset", &[Controller::Cpuset]),
    ("cgroups/pids", &[Controller::Pids]),
    ("cgroups/devices", &[Controller::Devices]),
    ("cgroups/blkio", &[Controller::Blkio]),
    ("cgroups/all", &Controller::ALL),
];

const FILESYSTEM_LINUX: &str = "filesystem/linux";

/// What can only be done in a mount namespace.
const NEED_MOUNTS: &[&str] = &[
    "namespaces/pid",
    "volume/host_path",
    "volume/secret",
    "volume/image",
    "docker/runtime",
    "docker/volume",
    "linux/devices",
];

/// What is always there.
const IMPLIED: [&str; 1] = ["environment_secret"];

/// Names of v1 that are not built.
const NOT_BUILT: &[&str] = &[
    "filesystem/shared",
    "cgroups/hugetlb",
    "cgroups/net_cls",
    "cgroups/net_prio",
    "cgroups/perf_event",
    "appc/runtime",
    "volume/csi",
    "disk/xfs",
    "gpu/nvidia",
    "network/cni",
    "network/port_mapping",
];

/// What an operator chose for the isolators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolatorOptions {
    /// Where a container with a root file system of its own sees its sandbox. Absolute.
    pub sandbox_directory: PathBuf,
    /// What a container's shared memory may take unless it says so itself; unset: half of the machine's memory.
    pub default_shm_bytes: Option<u64>,
    pub disallow_sharing_agent_pid_namespace: bool,
    pub disallow_sharing_agent_ipc_namespace: bool,
    /// Capabilities of commands that do not ask for any; the most that one may ask for. Bits by the kernel's numbers.
    pub effective_capabilities: Option<u64>,
    pub bounding_capabilities: Option<u64>,
    /// Directories below which the sources of host path volumes are made if they are missing.
    pub host_path_volume_force_creation: Vec<PathBuf>,
    /// Devices of the host that containers may use, beyond the usual ones.
    pub allowed_devices: Vec<AllowedDevice>,
    /// Where profiles of system calls are, and the one for containers that name none.
    pub seccomp_config_dir: Option<PathBuf>,
    pub seccomp_profile_name: Option<String>,
    /// How often disks are looked at, and whether who holds too much is ended.
    pub container_disk_watch_interval: Duration,
    pub enforce_container_disk_quota: bool,
    /// How often ports are looked at, and whether who listens where it may not is ended.
    pub container_ports_watch_interval: Duration,
    pub enforce_container_ports: bool,
    /// Ports that are looked at, from and to; unset: all.
    pub policed_ports: Option<Vec<(u16, u16)>>,
}

impl Default for IsolatorOptions {
    /// The defaults of the v1 flags.
    fn default() -> Self {
        Self {
            sandbox_directory: PathBuf::from("/mnt/mesos/sandbox"),
            default_shm_bytes: None,
            disallow_sharing_agent_pid_namespace: false,
            disallow_sharing_agent_ipc_namespace: false,
            effective_capabilities: None,
            bounding_capabilities: None,
            host_path_volume_force_creation: Vec::new(),
            allowed_devices: Vec::new(),
            seccomp_config_dir: None,
            seccomp_profile_name: None,
            container_disk_watch_interval: Duration::from_secs(15),
            enforce_container_disk_quota: false,
            container_ports_watch_interval: Duration::from_secs(30),
            enforce_container_ports: false,
            policed_ports: None,
        }
    }
}

/// What must hold before the first container is launched: what an operator asked for must not fail task by task.
pub(crate) fn check(isolation: &Isolation, options: &IsolatorOptions) -> Result<(), String> {
    if !options.sandbox_directory.is_absolute() {
        return Err(String::from("--sandbox_directory must be an absolute path"));
    }
    if let (Some(effective), Some(bounding)) = (options.effective_capabilities, options.bounding_capabilities)
        && effective & !bounding != 0
    {
        return Err(String::from("--effective_capabilities are not all among --bounding_capabilities"));
    }
    if isolation.has("linux/seccomp") { linux_seccomp::check(options) } else { Ok(()) }
}

/// How a container is kept apart: every isolator adds its part, in the order in which v1 makes them. The error names
/// what of the launch cannot be had.
pub(crate) fn plan(site: &Site) -> Result<Plan, String> {
    let mut plan = Plan::default();
    if site.spec.is_session {
        session::plan(site, &mut plan);
    }
    for (name, isolator) in &PLANNERS {
        if site.has(name) && !(site.spec.is_session && session::IS_JOINED.contains(name)) {
            isolator(site, &mut plan)?;
        }
    }
    // Setuid programs count on files that an image, a volume or the container around may have replaced.
    let has_foreign_files = site.rootfs.is_some()
        || site.parent.is_some()
        || site.spec.container.as_ref().is_some_and(|container| !container.volumes.is_empty());
    plan.no_new_privs |= site.spec.no_root && has_foreign_files;
    Ok(plan)
}

/// What an isolator adds to a plan.
type Planner = fn(&Site, &mut Plan) -> Result<(), String>;

/// In the order in which v1 makes them; `hide` needs to know what the others decided.
const PLANNERS: [(&str, Planner); 12] = [
    ("filesystem/linux", filesystem_linux::plan),
    ("posix/rlimits", posix_rlimits::plan),
    ("linux/devices", linux_devices::plan),
    ("linux/capabilities", linux_capabilities::plan),
    ("linux/nnp", linux_nnp::plan),
    ("filesystem/linux", hostname::plan),
    ("namespaces/ipc", namespaces_ipc::plan),
    ("namespaces/pid", namespaces_pid::plan),
    ("filesystem/linux", filesystem_linux::hide),
    ("filesystem/linux", volumes::plan),
    ("linux/seccomp", linux_seccomp::plan),
    ("environment_secret", environment_secret::plan),
];

/// Why a choice cannot be served.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsolationFault {
    #[error("'{0}' is given twice")]
    Twice(String),
    #[error("'{0}' and '{1}' cannot be used together")]
    Exclusive(&'static str, &'static str),
    #[error("'{0}' needs 'filesystem/linux'")]
    NeedsMounts(&'static str),
    #[error("the isolator '{0}' is not there yet; there is: {built}", built = built())]
    NotBuilt(String),
    #[error("there is no isolator '{0}'; there is: {built}", built = built())]
    Unknown(String),
}

fn built() -> String {
    BUILT.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Isolation {
    /// From the names in the flag; old names stand for their newer ones.
    pub fn parse<'a>(given: impl IntoIterator<Item = &'a str>) -> Result<Isolation, IsolationFault> {
        let mut names = BTreeSet::new();
        for name in given {
            let meant: &[&str] = match name {
                "process" => &["posix/cpu", "posix/mem"],
                "cgroups" => &["cgroups/cpu", "cgroups/mem"],
                "posix/disk" => &["disk/du"],
                name => &[name],
            };
            for name in meant {
                match BUILT.iter().find(|(known, _)| known == name) {
                    Some((known, _)) if names.insert(*known) => (),
                    Some(_) => return Err(IsolationFault::Twice(name.to_string())),
                    None if NOT_BUILT.contains(name) => {
                        return Err(IsolationFault::NotBuilt(name.to_string()));
                    }
                    None => return Err(IsolationFault::Unknown(name.to_string())),
                }
            }
        }
        let isolation = Isolation { names };
        isolation.check().map(|()| isolation)
    }

    fn check(&self) -> Result<(), IsolationFault> {
        match self.has(FILESYSTEM_LINUX) {
            true if self.has("filesystem/posix") => {
                Err(IsolationFault::Exclusive("filesystem/posix", FILESYSTEM_LINUX))
            }
            true => Ok(()),
            false => match self.names().find(|name| NEED_MOUNTS.contains(name)) {
                Some(name) => Err(IsolationFault::NeedsMounts(name)),
                None => Ok(()),
            },
        }
    }

    /// In the words of v1, without old names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name) || IMPLIED.contains(&name) || (name == "volume/image" && self.mounts())
    }

    /// Whether containers have mount namespaces of their own.
    pub(crate) fn mounts(&self) -> bool {
        self.has(FILESYSTEM_LINUX)
    }

    /// Whether it takes more than processes: root, cgroups, namespaces.
    pub(crate) fn needs_linux(&self) -> Option<&'static str> {
        let groups = ["cgroups/", "namespaces/", "linux/"];
        self.names()
            .find(|name| *name == FILESYSTEM_LINUX || groups.iter().any(|group| name.starts_with(group)))
    }

    /// The controllers wanted by name.
    pub(crate) fn controllers(&self) -> BTreeSet<Controller> {
        let chosen = BUILT.iter().filter(|(name, _)| self.names.contains(name));
        chosen.flat_map(|(_, controllers)| controllers.iter().copied()).collect()
    }

    /// Whether to take whatever the host has.
    pub(crate) fn takes_all_cgroups(&self) -> bool {
        self.names.contains("cgroups/all")
    }
}

#[cfg(test)]
mod tests;
