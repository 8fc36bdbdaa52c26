//! Why containers cannot have cgroups here, or one of them not those that it needs.

use std::io;
use std::path::PathBuf;

use crate::cgroups::plan::StepFault;
use crate::host::background::Interrupted;
use crate::isolation::IsolationFault;

#[derive(Debug, thiserror::Error)]
pub enum CgroupFault {
    #[error("the launcher is posix")]
    PosixLauncher,
    #[error("the linux launcher cannot be used: {0}")]
    LinuxLauncher(Box<CgroupFault>),
    #[error("'{isolator}' needs the linux launcher: {fault}")]
    NeedsLinuxLauncher { isolator: &'static str, fault: Box<CgroupFault> },
    #[error("the agent is not root")]
    NotRoot,
    #[error("'{}' is not a relative path of a cgroup", .0.display())]
    Root(PathBuf),
    #[error("cannot read the mount table: {0}")]
    MountTable(io::Error),
    #[error("neither the v1 freezer nor cgroup v2 is mounted")]
    NotMounted,
    #[error("cannot create the cgroup {}: {err}", path.display())]
    Create { path: PathBuf, err: io::Error },
    #[error("'cgroups/devices' needs a kernel that runs programs for cgroups v2 (CONFIG_CGROUP_BPF)")]
    DevicesNeedPrograms,
    #[error("the cgroup controller '{0}' is not mounted here")]
    NoController(&'static str),
    #[error("a container with cgroups of its own needs '{0}'")]
    MissingRequest(&'static str),
    #[error("cannot mark the owner of its cgroups: {0}")]
    Mark(io::Error),
    #[error("cannot persist its cgroups: {0}")]
    Persist(io::Error),
    #[error(transparent)]
    Isolation(#[from] IsolationFault),
    #[error(transparent)]
    Apply(#[from] StepFault),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
