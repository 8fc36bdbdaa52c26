//! Isolators: what keeps containers apart, by the names v1 gives them.
//!
//! `--isolation` becomes an [`Isolation`]; each isolator then plans its part of a launch. Which names are known, which of
//! them are built and what they need is said here and nowhere else.

use std::collections::BTreeSet;

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
    ("cgroups/cpu", &[Controller::Cpu, Controller::Cpuacct]),
    ("cgroups/mem", &[Controller::Memory]),
    ("cgroups/cpuset", &[Controller::Cpuset]),
    ("cgroups/pids", &[Controller::Pids]),
    ("cgroups/devices", &[Controller::Devices]),
    ("cgroups/blkio", &[Controller::Blkio]),
    ("cgroups/all", &Controller::ALL),
];

/// Names of v1 that are not built.
const NOT_BUILT: &[&str] = &[
    "filesystem/linux",
    "filesystem/shared",
    "posix/rlimits",
    "cgroups/hugetlb",
    "cgroups/net_cls",
    "cgroups/net_prio",
    "cgroups/perf_event",
    "appc/runtime",
    "docker/runtime",
    "linux/devices",
    "linux/capabilities",
    "linux/nnp",
    "linux/seccomp",
    "namespaces/ipc",
    "namespaces/pid",
    "volume/sandbox_path",
    "volume/host_path",
    "volume/image",
    "volume/secret",
    "volume/csi",
    "docker/volume",
    "disk/du",
    "disk/xfs",
    "gpu/nvidia",
    "network/cni",
    "network/port_mapping",
    "network/ports",
    "environment_secret",
];

/// Why a choice cannot be served.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsolationFault {
    #[error("'{0}' is given twice")]
    Twice(String),
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
        Ok(Isolation { names })
    }

    /// In the words of v1, without old names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied()
    }

    /// Whether it takes more than processes: root, cgroups, namespaces.
    pub(crate) fn needs_linux(&self) -> Option<&'static str> {
        self.names().find(|name| name.starts_with("cgroups/"))
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
mod tests {
    use super::*;

    #[test]
    fn names_old_names_and_mistakes() {
        let names = |given: &str| Isolation::parse(given.split(',')).map(|it| it.names().collect::<Vec<_>>());
        assert_eq!(names("process").as_deref(), Ok(&["posix/cpu", "posix/mem"][..]));
        assert_eq!(
            names("cgroups,cgroups/pids").as_deref(),
            Ok(&["cgroups/cpu", "cgroups/mem", "cgroups/pids"][..])
        );
        for (given, error) in [
            ("posix/cpu,process", IsolationFault::Twice("posix/cpu".into())),
            ("network/cni", IsolationFault::NotBuilt("network/cni".into())),
            ("cgroups/memory", IsolationFault::Unknown("cgroups/memory".into())),
        ] {
            assert_eq!(names(given), Err(error), "{given}");
        }
    }
}
