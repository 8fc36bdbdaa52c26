//! Isolators: what keeps containers apart, by the names v1 gives them.
//!
//! Each isolator that the operator chose (`isolation`) plans its part of a launch.

pub(crate) mod directories;
mod disk_du;
mod fault;
mod filesystem_linux;
mod hostname;
mod linux_capabilities;
mod linux_devices;
mod linux_nnp;
pub(crate) mod linux_seccomp;
mod namespaces_ipc;
mod namespaces_pid;
mod network_ports;
mod posix_rlimits;
mod session;
mod site;
pub(crate) mod volumes;
pub(crate) mod watcher;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::disk_du::sandbox_quota;
pub use self::disk_du::used_bytes;
pub(crate) use self::fault::PlanFault;
pub use self::fault::{DeviceFault, FlagFault, OptionsFault};
pub use self::linux_capabilities::parse as parse_capabilities;
pub use self::linux_devices::parse as parse_devices;
pub use self::network_ports::ports;
pub(crate) use self::site::{Parent, Site};
pub use crate::cgroups::devices::AllowedDevice;
pub use crate::isolation::Isolation;
use crate::plan::Plan;
use crate::secrets;

/// What an operator chose for the isolators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolatorOptions {
    /// Where a container with a root file system of its own sees its sandbox. Absolute.
    pub sandbox_directory: PathBuf,
    /// Default size of a container's shared memory; unset: half of the machine's memory.
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
    /// Secrets that launches may refer to, in a directory for each principal.
    pub secret_dir: Option<PathBuf>,
    /// Interval of disk measurements, and whether a container above its limit is killed.
    pub container_disk_watch_interval: Duration,
    pub enforce_container_disk_quota: bool,
    /// Interval of port checks, and whether a container that listens on another's port is killed.
    pub container_ports_watch_interval: Duration,
    pub enforce_container_ports: bool,
    /// Range of checked ports; unset: all.
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
            secret_dir: None,
            container_disk_watch_interval: Duration::from_secs(15),
            enforce_container_disk_quota: false,
            container_ports_watch_interval: Duration::from_secs(30),
            enforce_container_ports: false,
            policed_ports: None,
        }
    }
}

/// Checks before the first launch: a wrong configuration must not fail task by task.
pub(crate) fn check(isolation: &Isolation, options: &IsolatorOptions) -> Result<(), OptionsFault> {
    if !options.sandbox_directory.is_absolute() {
        return Err(OptionsFault::SandboxDirectory);
    }
    if let Some(path) = &options.secret_dir {
        let fault = |fault| OptionsFault::SecretDirectory { path: path.clone(), fault };
        secrets::check(path).map_err(fault)?;
    }
    if let (Some(effective), Some(bounding)) = (options.effective_capabilities, options.bounding_capabilities)
        && effective & !bounding != 0
    {
        return Err(OptionsFault::Capabilities);
    }
    if isolation.has("linux/seccomp") { linux_seccomp::check(options) } else { Ok(()) }
}

/// How a container is kept apart: every isolator adds its part, in the order in which v1 makes them. The error names
/// what of the launch cannot be had.
pub(crate) fn plan(site: &Site) -> Result<Plan, PlanFault> {
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
type Planner = fn(&Site, &mut Plan) -> Result<(), PlanFault>;

/// In the order of v1; `hide` depends on the others' decisions.
const PLANNERS: [(&str, Planner); 11] = [
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
];

#[cfg(test)]
mod tests;
