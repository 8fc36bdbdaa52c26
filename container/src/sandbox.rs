//! Sandboxes: the working directory of a command, its two output files, and the links to volumes in it.
//!
//! Called before a container starts and when its volumes change; blocking. Paths are walked without following links,
//! because a sandbox belongs to its user. Absent: the content of the files, garbage collection.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use tepui_proto::mesos::v1 as pb;
use tepui_types::{LaunchSpec, Volume};

use crate::host::beneath;
use crate::host::user::{self, Identity};

const SANDBOX_MODE: u32 = 0o750;
/// Mode of directories on the way to a sandbox: its user can enter them, and only the agent lists them.
const PATH_MODE: u32 = 0o711;
/// Of directories inside.
const DIRECTORY_MODE: u32 = 0o755;
const OUTPUT_MODE: u32 = 0o644;

/// Why a sandbox could not be made. The words are those of v1 where a client may look for them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxFault {
    #[error("Failed to chown directory to '{0}': No such user '{0}'")]
    NoSuchUser(String),
    #[error("Failed to chown directory to '{user}': {err}")]
    UserDatabase { user: String, err: io::Error },
    #[error("cannot run as '{0}': the agent is not root (run it as root, or with --no-switch_user)")]
    NotRoot(String),
    #[error("the framework may not use root, and its user would be root here")]
    Root,
    #[error("it is not below the work directory")]
    Outside,
    #[error("cannot make {what}: {err}")]
    Make { what: String, err: io::Error },
    #[error("volume path '{0}' must be relative and stay inside the sandbox")]
    VolumeTarget(String),
    #[error("cannot show the volume '{source_path}' as '{target}': {err}")]
    Volume { source_path: String, target: String, err: io::Error },
    #[error("{0}")]
    Unsupported(&'static str),
}

/// The root of sandboxes and their owner.
pub(crate) struct Sandbox<'a> {
    work_dir: &'a Path,
    rest: &'a Path,
    identity: Option<&'a Identity>,
}

/// Replaces the links to volumes in a running container's sandbox.
pub(crate) fn update_volumes(
    work_dir: &Path,
    path: &str,
    before: &[Volume],
    after: &[Volume],
) -> Result<(), SandboxFault> {
    with_owner(work_dir, path, |sandbox, dir| {
        for gone in before.iter().filter(|volume| !after.contains(volume)) {
            sandbox.hide(dir, gone)?;
        }
        sandbox.show_volumes(dir, after)
    })
}

/// Changes the owner of volumes to that of a running container's sandbox.
pub(crate) fn set_volume_owners(work_dir: &Path, path: &str, volumes: &[Volume]) -> Result<(), SandboxFault> {
    with_owner(work_dir, path, |sandbox, _| sandbox.set_volume_owners(volumes))
}

fn with_owner(
    work_dir: &Path,
    path: &str,
    work: impl FnOnce(&Sandbox, &OwnedFd) -> Result<(), SandboxFault>,
) -> Result<(), SandboxFault> {
    let rest = beneath::relative(work_dir, Path::new(path)).ok_or(SandboxFault::Outside)?;
    let failed = |err| SandboxFault::Make { what: String::from("the directory"), err };
    let dir = beneath::open_dir(work_dir, rest).map_err(failed)?;
    let owner = rustix::fs::fstat(&dir).map_err(|err| failed(err.into()))?;
    let identity = Identity { uid: owner.st_uid, gid: owner.st_gid, groups: Vec::new() };
    let identity = Some(&identity).filter(|identity| !identity.is_ours());
    work(&Sandbox { work_dir, rest, identity }, &dir)
}

/// The user of the command; `None` is the agent's.
pub(crate) fn identity(user: Option<&str>, switch_user: bool) -> Result<Option<Identity>, SandboxFault> {
    let Some(name) = user.filter(|_| switch_user) else { return Ok(None) };
    match Identity::lookup(name) {
        Ok(Some(identity)) if identity.is_ours() => Ok(None),
        Ok(Some(identity)) if user::are_root() => Ok(Some(identity)),
        Ok(Some(_)) => Err(SandboxFault::NotRoot(name.to_owned())),
        Ok(None) => Err(SandboxFault::NoSuchUser(name.to_owned())),
        Err(err) => Err(SandboxFault::UserDatabase { user: name.to_owned(), err }),
    }
}

/// The user and group of a container whose framework may not use root; `None` is the agent's.
pub(crate) fn not_root(identity: Option<&Identity>) -> Result<(u32, u32), SandboxFault> {
    let own = || (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    match identity.map_or_else(own, |identity| (identity.uid, identity.gid)) {
        (0, _) => Err(SandboxFault::Root),
        ids => Ok(ids),
    }
}

impl<'a> Sandbox<'a> {
    pub fn new(
        work_dir: &'a Path,
        path: &'a str,
        identity: Option<&'a Identity>,
    ) -> Result<Sandbox<'a>, SandboxFault> {
        let rest = beneath::relative(work_dir, Path::new(path)).ok_or(SandboxFault::Outside)?;
        Ok(Sandbox { work_dir, rest, identity })
    }

    /// Makes everything that must be there before the first file is fetched. Volumes become links, unless they are to be
    /// `mounted` later.
    pub fn prepare(
        &self,
        spec: &LaunchSpec,
        parent: Option<&Path>,
        mounted: bool,
    ) -> Result<(), SandboxFault> {
        let links = if mounted { Vec::new() } else { sandbox_path_volumes(spec, parent)? };
        let failed = |what: &str| {
            let what = what.to_owned();
            move |err| SandboxFault::Make { what, err }
        };
        let dir = self.make().map_err(failed("the directory"))?;
        for name in ["stdout", "stderr"] {
            let file = beneath::open_to_append(&dir, name, OUTPUT_MODE).map_err(failed(name))?;
            self.set_owner(&OwnedFd::from(file)).map_err(failed(name))?;
        }
        if let Some(link) = &spec.latest_link {
            self.link_latest(Path::new(link)).map_err(failed(link))?;
        }
        for link in &links {
            self.make_source(parent, link).map_err(|err| volume_fault(link, err))?;
            self.show(&dir, link)?;
        }
        match mounted {
            true => self.set_volume_owners(&spec.volumes),
            false => self.show_volumes(&dir, &spec.volumes),
        }
    }

    fn make(&self) -> io::Result<OwnedFd> {
        let (parent, name) =
            (self.rest.parent().unwrap_or(Path::new("")), self.rest.file_name().unwrap_or_default());
        let parent = beneath::make_dir(self.work_dir, parent, PATH_MODE)?;
        let dir = beneath::make_dir(&beneath::held(&parent, ""), Path::new(name), SANDBOX_MODE)?;
        rustix::fs::fchmod(&dir, rustix::fs::Mode::from_raw_mode(SANDBOX_MODE))?;
        self.set_owner(&dir)?;
        Ok(dir)
    }

    /// Makes the user the owner, if there is one.
    fn set_owner(&self, file: &OwnedFd) -> io::Result<()> {
        match self.identity {
            Some(identity) => std::os::unix::fs::fchown(file, Some(identity.uid), Some(identity.gid)),
            None => Ok(()),
        }
    }

    /// Points a link such as `runs/latest` here, replacing an older one in one step.
    fn link_latest(&self, link: &Path) -> io::Result<()> {
        let outside = || io::Error::other("it is not below the work directory");
        let rest = beneath::relative(self.work_dir, link).ok_or_else(outside)?;
        let (parent, name) = (rest.parent().unwrap_or(Path::new("")), rest.file_name().unwrap_or_default());
        let parent = beneath::make_dir(self.work_dir, parent, PATH_MODE)?;
        let draft = beneath::held(&parent, format!("{}.draft", name.display()));
        match std::fs::remove_file(&draft) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            Ok(()) | Err(_) => (),
        }
        symlink(self.work_dir.join(self.rest), &draft)?;
        std::fs::rename(&draft, beneath::held(&parent, name))
    }

    fn show_volumes(&self, dir: &OwnedFd, volumes: &[Volume]) -> Result<(), SandboxFault> {
        self.set_volume_owners(volumes)?;
        volumes.iter().try_for_each(|volume| self.show(dir, volume))
    }

    fn set_volume_owners(&self, volumes: &[Volume]) -> Result<(), SandboxFault> {
        let set_owner =
            |volume: &Volume| self.set_volume_owner(volume).map_err(|err| volume_fault(volume, err));
        volumes.iter().try_for_each(set_owner)
    }

    /// A volume belongs to its user. A shared one keeps its first owner.
    fn set_volume_owner(&self, volume: &Volume) -> io::Result<()> {
        let owner = std::fs::metadata(&volume.source)?.uid();
        match self.identity {
            Some(identity) if owner != identity.uid && (!volume.shared || owner == 0) => {
                std::os::unix::fs::chown(&volume.source, Some(identity.uid), Some(identity.gid))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A directory of the parent's sandbox that is missing is made; a volume that is shown there is one already.
    fn make_source(&self, parent: Option<&Path>, volume: &Volume) -> io::Result<()> {
        let (source, parent) = (Path::new(&volume.source), parent.unwrap_or(self.work_dir));
        match std::fs::symlink_metadata(source) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                let outside = || io::Error::from(io::ErrorKind::InvalidInput);
                let above = beneath::relative(self.work_dir, parent).ok_or_else(outside)?;
                let rest = beneath::relative(parent, source).ok_or_else(outside)?;
                let above = beneath::open_dir(self.work_dir, above)?;
                self.set_owner(&beneath::make_dir(&beneath::held(&above, ""), rest, DIRECTORY_MODE)?)
            }
            found => found.map(drop),
        }
    }

    /// Links are all a volume can be without mounts; `read_only` has no effect here.
    fn show(&self, dir: &OwnedFd, volume: &Volume) -> Result<(), SandboxFault> {
        let (parent, name) = self.place(dir, volume, true)?;
        let (link, fault) = (beneath::held(&parent, name), |err| volume_fault(volume, err));
        match symlink(&volume.source, &link) {
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                let there = std::fs::read_link(&link).map_err(|_| fault(err))?;
                let busy = || fault(io::Error::from(io::ErrorKind::AlreadyExists));
                if there == Path::new(&volume.source) { Ok(()) } else { Err(busy()) }
            }
            linked => linked.map_err(fault),
        }
    }

    fn hide(&self, dir: &OwnedFd, volume: &Volume) -> Result<(), SandboxFault> {
        let (parent, name) = self.place(dir, volume, false)?;
        let link = beneath::held(&parent, name);
        // The user may have put something else there; that is not ours to remove.
        match std::fs::read_link(&link) {
            Ok(there) if there == Path::new(&volume.source) => {
                std::fs::remove_file(&link).map_err(|err| volume_fault(volume, err))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn place(&self, dir: &OwnedFd, volume: &Volume, make: bool) -> Result<(OwnedFd, PathBuf), SandboxFault> {
        let target = Path::new(&volume.target);
        let (Some(name), true) = (target.file_name(), beneath::is_inner(target)) else {
            return Err(SandboxFault::VolumeTarget(volume.target.clone()));
        };
        let (root, parent) = (beneath::held(dir, ""), target.parent().unwrap_or(Path::new("")));
        let opened = match make {
            true => beneath::make_dir(&root, parent, DIRECTORY_MODE),
            false => beneath::open_dir(&root, parent),
        };
        Ok((opened.map_err(|err| volume_fault(volume, err))?, PathBuf::from(name)))
    }
}

fn volume_fault(volume: &Volume, err: io::Error) -> SandboxFault {
    SandboxFault::Volume { source_path: volume.source.clone(), target: volume.target.clone(), err }
}

/// What a container may ask for that needs no mounts; the rest is refused by name. A nested container may see a directory
/// of its parent's sandbox, which is how task groups share volumes.
fn sandbox_path_volumes(spec: &LaunchSpec, parent: Option<&Path>) -> Result<Vec<Volume>, SandboxFault> {
    use pb::volume::source::{Type, sandbox_path};
    let Some(info) = &spec.container else { return Ok(Vec::new()) };
    let mut links = Vec::new();
    for volume in &info.volumes {
        let path = &volume.source.sandbox_path;
        let is_parent = volume.source.r#type == Some(Type::SANDBOX_PATH)
            && path.r#type == Some(sandbox_path::Type::PARENT)
            && beneath::is_inner(Path::new(&path.path));
        let (true, Some(parent)) = (is_parent, parent) else {
            return Err(SandboxFault::Unsupported(
                "volumes other than a parent's sandbox path need the linux launcher",
            ));
        };
        links.push(Volume {
            source: parent.join(&path.path).display().to_string(),
            target: volume.container_path.clone(),
            read_only: false,
            shared: true,
        });
    }
    Ok(links)
}
