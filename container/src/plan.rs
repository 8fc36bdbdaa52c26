//! The plan of a container: everything its first process does between fork and exec, as plain values.
//!
//! Isolators write it (`isolators::plan`), the supervisor obeys it (`launcher::enter`). Its text is what tests compare.
//! Never here: decisions, system calls.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::process::Process;

/// What of the kernel a container may have for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Namespace {
    Mount,
    Pid,
    Ipc,
    Uts,
}

/// How a container is kept apart. Done in this order: join, namespaces, mounts, root file system, working directory,
/// limits, user, capabilities, privileges, system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Plan {
    /// Made by the agent before anything else, if they are missing.
    #[serde(skip)]
    pub directories: Vec<NewDirectory>,
    /// Namespaces of another container.
    pub join: Option<Join>,
    /// Namespaces of its own. If there are any, a tiny init of ours holds them until the command has ended.
    pub namespaces: BTreeSet<Namespace>,
    /// Trees made of the layers of images; mounted before anything else.
    pub overlays: Vec<Overlay>,
    /// In order. Nothing of it is seen outside of the container's own mount namespace.
    pub mounts: Vec<Mount>,
    /// Becomes `/` after the mounts.
    pub rootfs: Option<PathBuf>,
    /// The command itself stays outside of the root file system and its working directory, and lets others in.
    pub stays_outside: bool,
    /// A directory in a joined mount namespace that becomes `/`.
    pub chroot: Option<PathBuf>,
    /// As the command sees it; unset: the sandbox.
    pub working_directory: Option<PathBuf>,
    pub hostname: Option<String>,
    pub rlimits: Vec<Rlimit>,
    pub capabilities: Option<Capabilities>,
    pub no_new_privs: bool,
    /// Programs for the kernel, each installed on top of those before.
    pub seccomp: Vec<Filter>,
}

/// A tree that is to be mounted in a container's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overlay {
    /// Holds `rootfs`, `upper`, `work` and a link `l/<n>` to every layer, the highest first.
    pub directory: PathBuf,
    pub layers: usize,
}

/// A directory of the host that something is mounted from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewDirectory {
    pub source: Source,
    pub owner: Option<(u32, u32)>,
}

/// The first process of a container whose namespaces are entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Join {
    pub process: Process,
    pub namespaces: BTreeSet<Namespace>,
}

/// Something of the host to be shown. No link is followed from `root` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Only the operator decides its target.
    pub root: PathBuf,
    /// Below it; empty for itself.
    pub path: PathBuf,
}

/// Where a target starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Root {
    /// `/` of the host.
    Host,
    /// The sandbox, as the host sees it.
    Sandbox,
    /// The container's own root file system.
    Rootfs,
}

/// What to make of a target that is missing; directories above it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Make {
    Directory,
    File,
    /// It must be there.
    Nothing,
    /// It need not be there: then the step is left out.
    Optional,
}

/// A place in the container. Links lead to where they would if `root` were `/`: never out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub root: Root,
    /// Relative.
    pub path: PathBuf,
    pub make: Make,
}

/// One step in making what the container sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mount {
    /// A file or a directory with all that is mounted below it.
    Bind {
        source: Source,
        target: Target,
        read_only: bool,
    },
    /// What another container sees.
    Parents {
        process: Process,
        path: PathBuf,
        target: Target,
    },
    /// The sandbox itself.
    Sandbox {
        target: Target,
    },
    Proc {
        target: Target,
    },
    /// Read-only.
    Sysfs {
        target: Target,
    },
    Devpts {
        target: Target,
    },
    Tmpfs {
        target: Target,
        mode: u32,
        bytes_max: Option<u64>,
    },
    /// A device file.
    Node {
        target: Target,
        kind: NodeKind,
        major: u32,
        minor: u32,
        mode: u32,
    },
    Link {
        target: Target,
        to: PathBuf,
    },
    /// What is there can be read only from now on.
    ReadOnly {
        target: Target,
    },
    /// What is there cannot be seen any more.
    Mask {
        target: Target,
    },
    /// A file that is on no disk.
    Secret {
        target: Target,
        content: Secret,
        mode: u32,
        owner: Option<(u32, u32)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NodeKind {
    Character,
    Block,
}

impl NodeKind {
    /// The usual notation.
    pub fn letter(self) -> char {
        match self {
            NodeKind::Character => 'c',
            NodeKind::Block => 'b',
        }
    }
}

/// Bytes that are never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Secret(pub Vec<u8>);

/// A limit of setrlimit(2); unset: none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rlimit {
    pub name: String,
    pub resource: u32,
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// Sets of capabilities as bits by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capabilities {
    /// Also permitted, inheritable and ambient: a command that is not root keeps them.
    /// Unset: whatever the user's are within the bounding set.
    pub effective: Option<u64>,
    pub bounding: u64,
}

/// A program for the kernel: code, jump if true, jump if false, operand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Filter(pub Vec<(u16, u8, u8, u32)>);

impl Plan {
    /// Whether anything needs a process of ours inside.
    pub fn needs_init(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Where the container sees its sandbox, if not where the host does.
    pub fn sandbox_inside(&self) -> Option<PathBuf> {
        self.mounts.iter().find_map(|mount| match mount {
            Mount::Sandbox { target } => Some(PathBuf::from("/").join(&target.path)),
            _ => None,
        })
    }
}

impl Source {
    /// What the operator or a framework named; links are theirs.
    pub fn host(path: impl Into<PathBuf>) -> Source {
        Source { root: path.into(), path: PathBuf::new() }
    }

    pub fn whole(&self) -> PathBuf {
        if self.path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.path) }
    }
}

impl Target {
    pub fn new(root: Root, path: impl Into<PathBuf>, make: Make) -> Target {
        Target { root, path: path.into(), make }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for directory in &self.directories {
            writeln!(f, "make {}", directory.source)?;
        }
        if let Some(join) = &self.join {
            writeln!(f, "join{} of {}", words(&join.namespaces), join.process.pid)?;
        }
        if !self.namespaces.is_empty() {
            writeln!(f, "own{}", words(&self.namespaces))?;
        }
        for overlay in &self.overlays {
            writeln!(f, "overlay {} layers on {}/rootfs", overlay.layers, overlay.directory.display())?;
        }
        self.mounts.iter().try_for_each(|mount| writeln!(f, "{mount}"))?;
        if let Some(rootfs) = &self.rootfs {
            let how = if self.stays_outside { "outside of" } else { "pivot" };
            writeln!(f, "{how} {}", rootfs.display())?;
        }
        if let Some(root) = &self.chroot {
            writeln!(f, "chroot {}", root.display())?;
        }
        if let Some(directory) = &self.working_directory {
            writeln!(f, "cd {}", directory.display())?;
        }
        if let Some(hostname) = &self.hostname {
            writeln!(f, "hostname {hostname}")?;
        }
        for Rlimit { name, soft, hard, .. } in &self.rlimits {
            let show =
                |limit: &Option<u64>| limit.map_or(String::from("infinity"), |limit| limit.to_string());
            writeln!(f, "rlimit {name} {} {}", show(soft), show(hard))?;
        }
        if let Some(sets) = &self.capabilities {
            let effective = sets.effective.map_or(String::new(), |set| format!(" effective {set:#x}"));
            writeln!(f, "capabilities{effective} bounding {:#x}", sets.bounding)?;
        }
        if self.no_new_privs {
            writeln!(f, "no new privileges")?;
        }
        self.seccomp.iter().try_for_each(|filter| writeln!(f, "seccomp {} instructions", filter.0.len()))
    }
}

fn words(namespaces: &BTreeSet<Namespace>) -> String {
    namespaces.iter().map(|one| format!(" {one:?}").to_lowercase()).collect()
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mount::Bind { source, target, read_only } => {
                write!(f, "bind {source} on {target}{}", if *read_only { " ro" } else { "" })
            }
            Mount::Parents { process, path, target } => {
                write!(f, "bind {} of {} on {target}", path.display(), process.pid)
            }
            Mount::Sandbox { target } => write!(f, "sandbox on {target}"),
            Mount::Proc { target } => write!(f, "proc on {target}"),
            Mount::Sysfs { target } => write!(f, "sysfs on {target}"),
            Mount::Devpts { target } => write!(f, "devpts on {target}"),
            Mount::Tmpfs { target, mode, bytes_max } => {
                write!(f, "tmpfs on {target} {mode:o}")?;
                bytes_max.map_or(Ok(()), |bytes| write!(f, " {bytes} bytes"))
            }
            Mount::Node { target, kind, major, minor, mode } => {
                write!(f, "node {target} {} {major}:{minor} {mode:o}", kind.letter())
            }
            Mount::Link { target, to } => write!(f, "link {target} to {}", to.display()),
            Mount::ReadOnly { target } => write!(f, "read-only {target}"),
            Mount::Mask { target } => write!(f, "mask {target}"),
            Mount::Secret { target, content, mode, .. } => {
                write!(f, "secret of {} bytes on {target} {mode:o}", content.0.len())
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_os_str().is_empty() {
            true => write!(f, "{}", self.root.display()),
            false => write!(f, "{}//{}", self.root.display(), self.path.display()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = match self.root {
            Root::Host => "",
            Root::Sandbox => "sandbox:",
            Root::Rootfs => "rootfs:",
        };
        let make = match self.make {
            Make::Directory => " (make a directory)",
            Make::File => " (make a file)",
            Make::Nothing => "",
            Make::Optional => " (if there)",
        };
        write!(f, "{root}/{}{make}", self.path.display())
    }
}
