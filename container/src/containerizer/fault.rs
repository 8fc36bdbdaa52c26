//! Why a container cannot be launched or changed. The text goes to the framework.

use std::io;

use tepui_docker::EngineFault;
use tepui_types::ContainerId;

use crate::docker::fault::{DocumentFault, PullFault};
use crate::docker_volume::VolumesFault;
use crate::host::background::Interrupted;
use crate::images::ImageFault;
use crate::isolators::PlanFault;
use crate::launcher::CgroupFault;
use crate::launcher::remount::RemountFault;
use crate::launcher::supervisor::LauncherFault;
use crate::sandbox::SandboxFault;
use crate::secrets::SecretsFault;
use crate::stdio::RotationFault;

/// Why a launch is rejected without an attempt.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdmissionFault {
    #[error("'{0}' is not a valid container id")]
    InvalidId(ContainerId),
    #[error("Container '{0}' is already launched")]
    AlreadyLaunched(ContainerId),
    #[error("Parent container '{0}' is being destroyed")]
    ParentDestroyed(ContainerId),
    #[error("Parent container '{0}' does not exist")]
    NoParent(ContainerId),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerFault {
    #[error("the command has no value")]
    NoCommand,
    #[error("the command or its environment contains a NUL character")]
    NulCharacter,
    #[error("'{}' cannot be the name of an environment variable", .0.escape_debug())]
    VariableName(String),
    #[error("the sandbox is not below the work directory")]
    SandboxOutside,
    #[error("Parent container does not run")]
    ParentNotRunning,
    #[error("cannot create the runtime directory: {0}")]
    RuntimeDirectory(io::Error),
    #[error("cannot persist its {what}: {err}")]
    Persist { what: &'static str, err: io::Error },
    #[error("{0}")]
    Directories(io::Error),
    #[error("cannot describe its place: {0}")]
    Describe(serde_json::Error),
    #[error("this agent has no images: it was started without --image_providers=docker")]
    NoImages,
    #[error(transparent)]
    Session(#[from] SessionFault),
    #[error(transparent)]
    Docker(#[from] DockerFault),
    #[error(transparent)]
    Plan(#[from] PlanFault),
    #[error(transparent)]
    Cgroups(#[from] CgroupFault),
    #[error(transparent)]
    Sandbox(#[from] SandboxFault),
    #[error(transparent)]
    Launcher(#[from] LauncherFault),
    #[error(transparent)]
    Secrets(#[from] SecretsFault),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error(transparent)]
    Image(#[from] ImageFault),
    #[error(transparent)]
    Rotation(#[from] RotationFault),
    #[error(transparent)]
    Remount(#[from] RemountFault),
    #[error(transparent)]
    Volumes(#[from] VolumesFault),
}

impl ContainerFault {
    /// Whether the agent stops, and the next one finds the container.
    pub fn is_going_down(&self) -> bool {
        matches!(
            self,
            Self::Interrupted(Interrupted::GoingDown)
                | Self::Secrets(SecretsFault::Interrupted(Interrupted::GoingDown))
                | Self::Image(ImageFault::Interrupted(Interrupted::GoingDown))
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionFault {
    #[error("a session has no parent to look into")]
    NoParent,
    #[error("the sandbox of its parent is unknown")]
    UnknownSandbox,
    #[error("the sandbox of its parent is not below the work directory")]
    SandboxOutside,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DockerFault {
    #[error("a DOCKER container cannot have nested containers")]
    Nested,
    #[error("no containerizer for DOCKER containers")]
    NoDocker,
    #[error("no containerizer for containers other than DOCKER")]
    OnlyDocker,
    #[error("the persistent volumes of a running DOCKER container cannot be changed")]
    Volumes,
    #[error("no Docker engine is available")]
    NoEngine,
    #[error(transparent)]
    Document(#[from] DocumentFault),
    #[error(transparent)]
    Pull(#[from] PullFault),
    #[error(transparent)]
    Engine(#[from] EngineFault),
}

impl ContainerFault {
    pub fn persist(what: &'static str) -> impl FnOnce(io::Error) -> ContainerFault {
        move |err| ContainerFault::Persist { what, err }
    }
}
