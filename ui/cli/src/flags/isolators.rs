//! Flags of `tepui agent` for isolators, with the names and defaults of v1.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tepui_container::IsolatorOptions;

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct IsolatorFlags {
    /// Path of the sandbox in containers with their own root filesystem.
    #[arg(long, default_value = "/mnt/mesos/sandbox")]
    pub sandbox_directory: PathBuf,
    /// Capabilities of commands that request none: `{"capabilities":["NET_RAW"]}`.
    #[arg(long, alias = "allowed_capabilities", value_parser = value::capabilities)]
    pub effective_capabilities: Option<value::Capabilities>,
    /// Capabilities that a command may request: `{"capabilities":["NET_RAW","MKNOD"]}`.
    #[arg(long, value_parser = value::capabilities)]
    pub bounding_capabilities: Option<value::Capabilities>,
    /// Host devices that containers may use:
    /// `{"allowed_devices":[{"device":{"path":"/dev/fuse"},"access":{"read":true}}]}`.
    #[arg(long, value_parser = value::devices)]
    pub allowed_devices: Option<value::Devices>,
    /// Directory of seccomp profiles in Docker's format.
    #[arg(long)]
    pub seccomp_config_dir: Option<PathBuf>,
    /// Default seccomp profile: a file in --seccomp_config_dir.
    #[arg(long)]
    pub seccomp_profile_name: Option<String>,
    /// Directory of secrets by reference: PRINCIPAL/NAME or PRINCIPAL/NAME/KEY, files that only the agent's user can read.
    #[arg(long)]
    pub secret_dir: Option<PathBuf>,
    /// Directories (colon-separated) below which missing sources of host path volumes are created.
    #[arg(long)]
    pub host_path_volume_force_creation: Option<String>,
    /// Default size of /dev/shm in containers.
    #[arg(long, value_parser = value::bytes)]
    pub default_container_shm_size: Option<u64>,
    /// Reject containers that share the agent's pid namespace.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub disallow_sharing_agent_pid_namespace: bool,
    /// Reject containers that share the agent's ipc namespace.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub disallow_sharing_agent_ipc_namespace: bool,
    /// Interval at which `disk/du` measures disk usage of containers.
    #[arg(long, value_parser = value::duration, default_value = "15secs")]
    pub container_disk_watch_interval: Duration,
    /// Kill containers that exceed their disk resources.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub enforce_container_disk_quota: bool,
    /// Interval at which `network/ports` checks listening ports of containers.
    #[arg(long, value_parser = value::duration, default_value = "30secs")]
    pub container_ports_watch_interval: Duration,
    /// Kill containers that listen on ports outside of their resources.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub enforce_container_ports: bool,
    /// Ports to check, as in `[31000-32000]` [default: all].
    #[arg(long, value_parser = value::port_ranges)]
    pub container_ports_isolated_range: Option<value::PortRanges>,
    /// Check only ports that the agent offers.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub check_agent_port_range_only: bool,
    /// Accepted for compatibility: processes and threads are always counted.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub cgroups_cpu_enable_pids_and_tids_count: bool,
}

impl IsolatorFlags {
    pub fn options(&self) -> Result<IsolatorOptions> {
        if self.check_agent_port_range_only && self.container_ports_isolated_range.is_some() {
            bail!(
                "only one of --check_agent_port_range_only and --container_ports_isolated_range may be set"
            );
        }
        let creation = self.host_path_volume_force_creation.as_deref().unwrap_or_default();
        Ok(IsolatorOptions {
            sandbox_directory: self.sandbox_directory.clone(),
            default_shm_bytes: self.default_container_shm_size,
            disallow_sharing_agent_pid_namespace: self.disallow_sharing_agent_pid_namespace,
            disallow_sharing_agent_ipc_namespace: self.disallow_sharing_agent_ipc_namespace,
            effective_capabilities: self.effective_capabilities.map(|set| set.0),
            bounding_capabilities: self.bounding_capabilities.map(|set| set.0),
            host_path_volume_force_creation: directories(creation)?,
            allowed_devices: self.allowed_devices.clone().map(|devices| devices.0).unwrap_or_default(),
            seccomp_config_dir: self.seccomp_config_dir.clone(),
            seccomp_profile_name: self.seccomp_profile_name.clone(),
            secret_dir: self.secret_dir.clone(),
            container_disk_watch_interval: self.container_disk_watch_interval,
            enforce_container_disk_quota: self.enforce_container_disk_quota,
            container_ports_watch_interval: self.container_ports_watch_interval,
            enforce_container_ports: self.enforce_container_ports,
            policed_ports: self.container_ports_isolated_range.clone().map(|ranges| ranges.0),
        })
    }
}

/// A list by colons, as in `PATH`.
fn directories(text: &str) -> Result<Vec<PathBuf>> {
    let directories: Vec<PathBuf> =
        text.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect();
    match directories.iter().find(|path| !path.is_absolute()) {
        Some(path) => bail!("--host_path_volume_force_creation: '{}' must be absolute", path.display()),
        None => Ok(directories),
    }
}
