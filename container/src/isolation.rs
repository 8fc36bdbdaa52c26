//! The operator's choice of isolators, by the names v1 gives them.
//!
//! Which names are known, which of them are built and what they require is stated here and nowhere else.

use std::collections::BTreeSet;

use crate::cgroups::Controller;

/// What the operator chose, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    names: BTreeSet<&'static str>,
}

/// Every isolator that is built, and the controllers it takes.
pub(crate) const BUILT: &[(&str, &[Controller])] = &[
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

pub(crate) const FILESYSTEM_LINUX: &str = "filesystem/linux";

/// What can only be done in a mount namespace.
pub(crate) const NEED_MOUNTS: &[&str] = &[
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

/// Why a choice cannot be served.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsolationFault {
    #[error("'{0}' is listed twice")]
    Twice(String),
    #[error("'{0}' and '{1}' cannot be used together")]
    Exclusive(&'static str, &'static str),
    #[error("'{0}' needs 'filesystem/linux'")]
    NeedsMounts(&'static str),
    #[error("unsupported isolator '{0}'; supported: {built}", built = built())]
    NotBuilt(String),
    #[error("unknown isolator '{0}'; supported: {built}", built = built())]
    Unknown(String),
}

fn built() -> String {
    BUILT.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Isolation {
    /// From the names in the flag; old names are aliases of newer ones.
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

    /// The controllers requested by name.
    pub(crate) fn controllers(&self) -> BTreeSet<Controller> {
        let chosen = BUILT.iter().filter(|(name, _)| self.names.contains(name));
        chosen.flat_map(|(_, controllers)| controllers.iter().copied()).collect()
    }

    /// Whether to take whatever the host has.
    pub(crate) fn takes_all_cgroups(&self) -> bool {
        self.names.contains("cgroups/all")
    }
}
