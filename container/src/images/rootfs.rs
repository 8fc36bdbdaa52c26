//! Root file systems of containers, made of the layers of their images.
//!
//! `<work_dir>/provisioner/<container>/rootfses/<n>/{image,rootfs,upper,work,l}`; `image` names the image. With the
//! overlay backend the layers are mounted in the container's own mount namespace: nothing is mounted on the host, so
//! no mount can be left behind. With the copy backend `rootfs` is the whole tree. Blocking.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tepui_types::ContainerId;

use super::copy;
use super::digest::Digest;
use super::fault::ImageFault;
use super::store::Image;
use super::unpack::Form;
use crate::host::beneath;
use crate::launcher::overlay;
use crate::plan::Overlay;
use crate::runtime_dir;

const ROOTFSES: &str = "rootfses";
const IMAGE: &str = "image";

/// How layers become one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Overlay,
    Copy,
}

/// A root file system that was made for a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rootfs {
    pub path: PathBuf,
    pub overlay: Option<Overlay>,
}

#[derive(Clone, Debug)]
pub(crate) struct Rootfses {
    root: PathBuf,
    backend: Backend,
}

impl Backend {
    pub(crate) fn form(self) -> Form {
        match self {
            Backend::Overlay => Form::Overlay,
            Backend::Copy => Form::Plain,
        }
    }
}

impl Rootfses {
    /// The backend is `wanted`, or the first one that the host supports.
    pub fn open(root: &Path, wanted: Option<Backend>) -> Result<Rootfses, ImageFault> {
        let told = || ImageFault::io(format!("cannot use '{}'", root.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(told())?;
        std::fs::set_permissions(root, PermissionsExt::from_mode(0o700)).map_err(told())?;
        let overlays = || try_overlay(&root.join("trial"));
        let backend = match (wanted, overlays) {
            (Some(Backend::Copy), _) => Backend::Copy,
            (Some(Backend::Overlay), overlays) => {
                overlays().map_err(ImageFault::io("the overlay backend cannot be used"))?;
                Backend::Overlay
            }
            (None, overlays) => match overlays() {
                Ok(()) => Backend::Overlay,
                Err(err) => {
                    tracing::info!(%err, "overlay not available: root filesystems are copied");
                    Backend::Copy
                }
            },
        };
        Ok(Rootfses { root: root.to_owned(), backend })
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Creates the `index`th root file system of a container from the `layers` of an image, the lowest first.
    pub fn make(
        &self,
        id: &ContainerId,
        index: usize,
        image: &Image,
        layers: &[PathBuf],
    ) -> io::Result<Rootfs> {
        let directory = self.of(id).join(ROOTFSES).join(index.to_string());
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(directory.join("rootfs"))?;
        std::fs::write(directory.join(IMAGE), serde_json::to_vec(image)?)?;
        let path = directory.join("rootfs");
        let overlay = match self.backend {
            Backend::Overlay => Some(lay_out(directory, layers)?),
            Backend::Copy => {
                layers.iter().try_for_each(|layer| copy::copy(layer, &path))?;
                None
            }
        };
        Ok(Rootfs { path, overlay })
    }

    /// Removes everything that was made for a container and those nested in it. Its processes have ended.
    pub fn remove(&self, id: &ContainerId) -> io::Result<()> {
        beneath::remove_tree(&self.root, &runtime_dir::below(id))
    }

    /// How many containers have one.
    pub fn containers(&self) -> usize {
        let has_one = |id: &ContainerId| self.of(id).join(ROOTFSES).is_dir();
        runtime_dir::list(&self.root).map_or(0, |ids| ids.iter().filter(|id| has_one(id)).count())
    }

    /// What every root file system here was made of.
    pub fn used(&self) -> io::Result<BTreeSet<Digest>> {
        let mut used = BTreeSet::new();
        for id in runtime_dir::list(&self.root)? {
            for directory in entries(&self.of(&id).join(ROOTFSES))? {
                let text = std::fs::read(directory.join(IMAGE)).unwrap_or_default();
                if let Ok(image) = serde_json::from_slice::<Image>(&text) {
                    used.extend(image.digests());
                }
                // Older agents left nothing but the links.
                used.extend(entries(&directory.join("l"))?.iter().filter_map(|link| linked(link)));
            }
        }
        Ok(used)
    }

    fn of(&self, id: &ContainerId) -> PathBuf {
        self.root.join(runtime_dir::below(id))
    }
}

/// What is in a directory; nothing if it is not there.
fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(err) => Err(err),
    }
}

/// The layer that a link leads to.
fn linked(link: &Path) -> Option<Digest> {
    let layer = std::fs::read_link(link).ok()?;
    Digest::of_hex(layer.parent()?.file_name()?.to_str()?).ok()
}

/// Where all of them are, whether images are used now or were before.
pub(crate) fn root(work_dir: &Path) -> PathBuf {
    work_dir.join("provisioner")
}

/// Removes everything that was made for a container and those nested in it. Its processes have ended.
pub(crate) fn remove(work_dir: &Path, id: &ContainerId) -> io::Result<()> {
    match root(work_dir).exists() {
        true => beneath::remove_tree(&root(work_dir), &runtime_dir::below(id)),
        false => Ok(()),
    }
}

/// Every container that has something here, parents before their children.
pub(crate) fn list(work_dir: &Path) -> io::Result<Vec<ContainerId>> {
    runtime_dir::list(&root(work_dir))
}

/// Prepares what an overlay is mounted from. Links keep the options of the mount short.
fn lay_out(directory: PathBuf, layers: &[PathBuf]) -> io::Result<Overlay> {
    for name in ["upper", "work", "l"] {
        std::fs::create_dir(directory.join(name))?;
    }
    std::fs::set_permissions(directory.join("upper"), PermissionsExt::from_mode(0o755))?;
    for (index, layer) in layers.iter().rev().enumerate() {
        symlink(layer, directory.join(format!("l/{index}")))?;
    }
    if layers.is_empty() {
        std::fs::create_dir(directory.join("l/0"))?;
    }
    Ok(Overlay { directory, layers: layers.len().max(1) })
}

/// Mounts an overlay in a private mount namespace.
fn try_overlay(trial: &Path) -> io::Result<()> {
    let clean = || match std::fs::remove_dir_all(trial) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        Ok(()) | Err(_) => Ok(()),
    };
    clean()?;
    std::fs::create_dir_all(trial.join("rootfs"))?;
    let tried = lay_out(trial.to_owned(), &[]).and_then(|made| overlay::attempt(&made));
    clean()?;
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_backend_is_used_without_overlay_unless_overlay_is_required() {
        let dir = tempfile::tempdir().expect("a directory");
        // In the way of the trial.
        std::fs::write(dir.path().join("trial"), "").expect("written");
        let open = |wanted| {
            Rootfses::open(dir.path(), wanted).map(|made| made.backend()).map_err(|fault| fault.to_string())
        };
        assert_eq!(open(None), Ok(Backend::Copy));
        assert_eq!(open(Some(Backend::Copy)), Ok(Backend::Copy));
        let refused = open(Some(Backend::Overlay)).expect_err("it was asked for");
        assert!(refused.starts_with("the overlay backend cannot be used: "), "{refused}");
    }
}
