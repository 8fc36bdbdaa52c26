//! Why a launch cannot be isolated as it requests, or as the operator chose.

use std::io;
use std::path::PathBuf;

use crate::secrets::SecretDirectoryFault;

/// Of one launch. The text goes to the framework.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanFault {
    #[error("volumes[{index}] '{container_path}': {fault}")]
    Volume { index: usize, container_path: String, fault: VolumeFault },
    #[error("the seccomp profile '{name}': {fault}")]
    Seccomp { name: String, fault: SeccompFault },
    #[error("linux_info.seccomp: profile_name cannot be set if unconfined is")]
    ProfileOfUnconfined,
    #[error("linux_info.{0}: a capability is unknown")]
    UnknownCapability(&'static str),
    #[error("linux_info: only one of effective_capabilities and capability_info may be set")]
    TwoCapabilitySets,
    #[error("Requested capabilities '{requested}', but only '{allowed}' are allowed")]
    Capabilities { requested: String, allowed: String },
    #[error("Sharing agent {0} namespace is not allowed")]
    AgentNamespace(&'static str),
    #[error("Shared memory size cannot be set for a container that shares its parent's")]
    SharedMemoryOfParent,
    #[error("Shared memory size can only be set together with the private IPC mode")]
    SharedMemoryNotPrivate,
    #[error("container.hostname must have 1 to {bytes_max} bytes")]
    Hostname { bytes_max: usize },
    #[error("rlimit_info: {0}")]
    Rlimit(RlimitFault),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeFault {
    #[error("a session cannot have volumes of its own")]
    OfSession,
    #[error("exactly one of host_path, image and source must be set")]
    Source,
    #[error("the host path '{0}' must be absolute")]
    RelativeHostPath(String),
    #[error("the type of its sandbox path is unknown")]
    SandboxPathType,
    #[error("the type of its source is unknown")]
    SourceType,
    #[error("a path of the own sandbox needs an absolute container_path")]
    RelativeContainerPath,
    #[error("it needs the isolator '{0}'")]
    NeedsIsolator(&'static str),
    #[error("container_path must not be empty and must not contain '..'")]
    ContainerPath,
    #[error("container_path does not exist on the host")]
    NotOnHost,
    #[error("the host path '{}' does not exist", .0.display())]
    NoHostPath(PathBuf),
    #[error("the sandbox path '{}' must be relative and stay inside the sandbox", .0.display())]
    SandboxPath(PathBuf),
    #[error("the sandbox path '{}' must stay inside the sandbox", .0.display())]
    ParentsPath(PathBuf),
    #[error("the sandbox is not below the work directory")]
    SandboxOutside,
    #[error("only a nested container has a parent")]
    NoParent,
    #[error("the secret has no value")]
    NoSecretValue,
}

#[derive(Debug, thiserror::Error)]
pub enum SeccompFault {
    #[error("--seccomp_config_dir is not set")]
    NoDirectory,
    #[error("it must be the name of a file in --seccomp_config_dir")]
    Name,
    #[error("cannot read it: {0}")]
    Read(io::Error),
    #[error("invalid profile: {0}")]
    Invalid(ProfileFault),
    #[error("it has no rules for {0}")]
    Architecture(&'static str),
    #[error("it is too long: {instructions} instructions")]
    TooLong { instructions: usize },
    #[error("seccomp filters are not supported on {0}")]
    Unsupported(&'static str),
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileFault {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("a system call has no argument {0}")]
    Argument(u8),
    #[error("a rule of 'syscalls' has no names")]
    NoNames,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RlimitFault {
    #[error("a limit has an unknown type")]
    UnknownType,
    #[error("the soft limit {soft} of {name} is above its hard limit {hard}")]
    SoftAboveHard { name: String, soft: u64, hard: u64 },
    #[error("{0} must have both a soft and a hard limit, or neither")]
    OneOfTwo(String),
    #[error("{0} is listed twice")]
    Twice(String),
}

/// Of flags, before the first launch.
#[derive(Debug, thiserror::Error)]
pub enum OptionsFault {
    #[error("--sandbox_directory must be an absolute path")]
    SandboxDirectory,
    #[error("--secret_dir={}: {fault}", path.display())]
    SecretDirectory { path: PathBuf, fault: SecretDirectoryFault },
    #[error("--effective_capabilities are not all among --bounding_capabilities")]
    Capabilities,
    #[error("'linux/seccomp' needs --seccomp_config_dir")]
    SeccompDirectory,
    #[error("--seccomp_profile_name={name}: {fault}")]
    SeccompProfile { name: String, fault: SeccompFault },
}

/// The value of a flag cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum FlagFault {
    #[error("{err}; {right}")]
    Json { err: serde_json::Error, right: &'static str },
    #[error("unknown capability '{name}'; {right}")]
    UnknownCapability { name: String, right: &'static str },
    #[error("the device '{}': {why}", path.display())]
    Device { path: PathBuf, why: DeviceFault },
}

#[derive(Debug, thiserror::Error)]
pub enum DeviceFault {
    #[error("one of read, write and mknod must be allowed")]
    NoAccess,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a device")]
    NotADevice,
}
