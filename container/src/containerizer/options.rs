//! What an operator chose for containers, and its checks.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::docker::fault::NoEngine;
use crate::docker::{Docker, DockerOptions, DockerSite};
use crate::docker_volume::DockerVolumeOptions;
use crate::images::{ImageFault, ImageOptions, Images};
use crate::isolators::{self, Isolation, IsolatorOptions, OptionsFault};
use crate::launcher::CgroupFault;
use crate::launcher::linux::{CgroupOptions, Launcher};
use crate::stdio::ContainerLogger;

/// What an operator chose. Directories are absolute.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sandboxes and volumes are below it; nothing outside is ever removed but volumes.
    pub work_dir: PathBuf,
    /// Survives the agent, need not survive the machine.
    pub runtime_dir: PathBuf,
    /// Our own program: it serves [`crate::HELPER_COMMAND`].
    pub program: PathBuf,
    /// Run commands as the user they name, which needs root; otherwise as the agent's own.
    pub switch_user: bool,
    /// Where fetched files with `cache` are kept; only its subdirectory `cache` is ours, and it is emptied at the start.
    pub fetcher_cache_dir: PathBuf,
    pub fetcher_cache_size_bytes: u64,
    /// A download that brings nothing for so long has failed.
    pub fetcher_stall_timeout: Duration,
    /// What fetching may leave in the sandbox of a container that has no `disk`, archives unpacked.
    pub fetcher_sandbox_bytes_max: u64,
    /// Where relative URIs begin; without it they are refused.
    pub frameworks_home: Option<PathBuf>,
    pub launcher: Launcher,
    pub isolation: Isolation,
    pub isolators: IsolatorOptions,
    pub cgroups: CgroupOptions,
    pub container_logger: ContainerLogger,
    pub images: ImageOptions,
    pub docker_volumes: DockerVolumeOptions,
    /// Whether containers that are not for a Docker engine are run at all.
    pub mesos: bool,
    /// Without it, containers of type DOCKER are refused.
    pub docker: Option<DockerOptions>,
}

/// Why containers cannot be run at all.
#[derive(Debug, thiserror::Error)]
pub enum ContainerizerFault {
    #[error("cannot use the directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        err: io::Error,
    },
    #[error("{0} must be an absolute path")]
    Relative(PathBuf),
    #[error(transparent)]
    Isolators(#[from] OptionsFault),
    #[error(transparent)]
    Cgroups(#[from] CgroupFault),
    #[error(transparent)]
    Images(#[from] ImageFault),
    #[error("--image_providers needs the isolator 'filesystem/linux'")]
    ImagesNeedMounts,
    #[error(transparent)]
    Docker(#[from] NoEngine),
}

impl Options {
    pub(super) fn check(&self) -> Result<(), ContainerizerFault> {
        for path in [&self.work_dir, &self.runtime_dir] {
            if !path.is_absolute() {
                return Err(ContainerizerFault::Relative(path.clone()));
            }
        }
        Ok(isolators::check(&self.isolation, &self.isolators)?)
    }

    /// The store of images, if containers may have any.
    pub(super) fn open_images(&self) -> Result<Option<Images>, ContainerizerFault> {
        if self.images.docker && !self.isolation.mounts() {
            return Err(ContainerizerFault::ImagesNeedMounts);
        }
        Ok(Images::open(&self.images, &self.work_dir)?)
    }

    /// The Docker engine, if one is to be used.
    pub(super) fn open_docker(&self) -> Result<Option<Docker>, NoEngine> {
        let Some(docker) = self.docker.clone() else { return Ok(None) };
        let site = DockerSite {
            policy: self.cgroups.policy(),
            cgroups_root: self.cgroups.root.clone(),
            program: self.program.clone(),
            work_dir: self.work_dir.clone(),
            agent_start: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos().to_string(),
            sandbox_directory: self.isolators.sandbox_directory.clone(),
        };
        Docker::open(docker, site).map(Some)
    }
}
