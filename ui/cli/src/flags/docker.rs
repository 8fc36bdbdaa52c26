//! The flags of `tepui agent` about containers of a Docker engine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tepui_container::{DockerOptions, Logins};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct DockerFlags {
    /// Containerizers: `mesos`, `docker`, or both separated by a comma.
    #[arg(long, default_value = "mesos")]
    pub containerizers: String,
    /// Accepted for compatibility: the Docker engine is used through its socket.
    #[arg(long)]
    pub docker: Option<PathBuf>,
    /// Socket of the Docker engine.
    #[arg(long, default_value = "/var/run/docker.sock")]
    pub docker_socket: PathBuf,
    /// Time for which terminated Docker containers are kept.
    #[arg(long, value_parser = value::duration, default_value = "6hrs")]
    pub docker_remove_delay: Duration,
    /// Grace period of a Docker container between SIGTERM and SIGKILL.
    #[arg(long, value_parser = value::duration, default_value = "0ns")]
    pub docker_stop_timeout: Duration,
    /// Kill unknown Docker containers of this agent on start.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub docker_kill_orphans: bool,
}

impl DockerFlags {
    /// Whether the mesos containerizer is enabled, and the options of the docker containerizer.
    pub fn options(&self, logins: Logins) -> Result<(bool, Option<DockerOptions>)> {
        let names = value::list(&self.containerizers);
        if let Some(other) = names.iter().find(|name| !["mesos", "docker"].contains(&name.as_str())) {
            bail!(
                "--containerizers={}: unknown containerizer '{other}'; supported: mesos, docker",
                self.containerizers
            );
        }
        let has = |name: &str| names.iter().any(|given| given == name);
        if !has("mesos") && !has("docker") {
            bail!("--containerizers is empty; supported: mesos, docker");
        }
        if !self.docker_socket.is_absolute() {
            bail!("--docker_socket={} must be an absolute path", self.docker_socket.display());
        }
        let docker = has("docker").then(|| DockerOptions {
            socket: self.docker_socket.clone(),
            remove_delay: self.docker_remove_delay,
            stop_timeout: self.docker_stop_timeout,
            kill_orphans: self.docker_kill_orphans,
            logins,
        });
        Ok((has("mesos"), docker))
    }
}
