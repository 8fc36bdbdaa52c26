//! Input of isolators for one launch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tepui_proto::mesos::v1 as pb;
use tepui_types::LaunchSpec;

use super::{Isolation, IsolatorOptions};
use crate::host::process::Process;
use crate::host::user::Identity;
use crate::runtime_dir::Mounted;

/// One launch, with everything that is decided about it so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub spec: &'a LaunchSpec,
    pub isolation: &'a Isolation,
    pub options: &'a IsolatorOptions,
    pub work_dir: &'a Path,
    /// The user of the command; unset: the agent's.
    pub identity: Option<&'a Identity>,
    /// The root file system made of the container's image, if it has one.
    pub rootfs: Option<&'a Path>,
    /// Volumes made ready before, by their index among those of the container: their paths on the host.
    pub ready: &'a BTreeMap<usize, PathBuf>,
    pub parent: Option<&'a Parent>,
}

/// The container around a nested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// Holds its namespaces; unset if it has none of its own.
    pub process: Option<Process>,
    /// Where its command began, as seen in its mount namespace.
    pub directory: PathBuf,
    pub sandbox: PathBuf,
    /// The root file system of its task, if it stays outside of that itself.
    pub root: Option<PathBuf>,
    /// Persistent volumes that are mounted in its sandbox.
    pub volumes: Vec<Mounted>,
}

impl<'a> Site<'a> {
    pub fn has(&self, isolator: &str) -> bool {
        self.isolation.has(isolator)
    }

    pub fn linux_info(&self) -> Option<&'a pb::LinuxInfo> {
        self.spec.container.as_ref().and_then(|info| info.linux_info.as_option())
    }

    pub fn is_nested(&self) -> bool {
        self.spec.id.parent().is_some()
    }
}
