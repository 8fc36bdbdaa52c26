//! The store of images: every layer once, by the digest of its content.
//!
//! `<store>/{images.json,layers/<digest>/<form>,configs/<digest>,staging,gc}`. A layer is unpacked in `staging` and moved;
//! an image is written down in `images.json` when all of it is on the disk. What is not written down is removed when the
//! store is opened: it may be half. Blocking. Nobody but root may look inside: layers hold programs that run as root.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::local::Found;
use super::manifest::Config;
use super::reference::Reference;
use super::unpack::Form;

const IMAGES: &str = "images.json";
const LAYERS: &str = "layers";
const CONFIGS: &str = "configs";
const STAGING: &str = "staging";

/// An image of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    pub reference: String,
    pub config: Digest,
    /// The lowest first.
    pub layers: Vec<Digest>,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
    form: Form,
    images: Arc<Mutex<Vec<Image>>>,
    staged: Arc<AtomicU64>,
}

impl Store {
    pub fn open(root: &Path, form: Form) -> io::Result<Store> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        std::fs::set_permissions(root, PermissionsExt::from_mode(0o700))?;
        remove(&root.join(STAGING))?;
        for dir in [LAYERS, CONFIGS, STAGING] {
            std::fs::create_dir_all(root.join(dir))?;
        }
        let images = match std::fs::read(root.join(IMAGES)) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|err| {
                tracing::warn!(%err, store = %root.display(), "the list of images is damaged: all are read again");
                Vec::new()
            }),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(err) => return Err(err),
        };
        let store = Store {
            root: root.to_owned(),
            form,
            images: Arc::new(Mutex::new(images)),
            staged: Arc::default(),
        };
        store.drop_unknown()?;
        Ok(store)
    }

    /// An image that is here already, with all its layers.
    pub fn get(&self, reference: &Reference) -> Option<Image> {
        let name = reference.to_string();
        let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let image = images.iter().find(|image| image.reference == name)?;
        image.layers.iter().all(|layer| self.layer(layer).is_dir()).then(|| image.clone())
    }

    /// Takes in what was found.
    pub fn put(&self, reference: &Reference, found: &Found) -> Result<Image, String> {
        let config_bytes = found.config.read("the configuration")?;
        let config = Config::parse(&config_bytes)?;
        let layers = config.rootfs.diff_ids;
        if layers.len() != found.layers.len() {
            let (said, there) = (layers.len(), found.layers.len());
            return Err(format!("the configuration names {said} layers, the manifest {there}"));
        }
        for (index, (diff_id, blob)) in layers.iter().zip(&found.layers).enumerate() {
            if !self.layer(diff_id).is_dir() {
                let place = |why: String| format!("layer {} of {}: {why}", index + 1, layers.len());
                self.take_in(diff_id, |staged| blob.unpack(diff_id, staged, self.form)).map_err(place)?;
            }
        }
        let image = Image { reference: reference.to_string(), config: Digest::of(&config_bytes), layers };
        self.write_down(&image, &config_bytes).map_err(|err| format!("cannot keep the image: {err}"))?;
        Ok(image)
    }

    /// The configuration of an image that is here.
    pub fn config(&self, image: &Image) -> Result<Vec<u8>, String> {
        let read = std::fs::read(self.root.join(CONFIGS).join(image.config.hex()));
        let bytes = read.map_err(|err| format!("cannot read its configuration: {err}"))?;
        image.config.check("the configuration", &bytes)?;
        Ok(bytes)
    }

    /// Where a layer is, whether it is there or not.
    pub fn layer(&self, digest: &Digest) -> PathBuf {
        self.root.join(LAYERS).join(digest.hex()).join(match self.form {
            Form::Overlay => "overlay",
            Form::Plain => "plain",
        })
    }

    fn take_in(
        &self,
        digest: &Digest,
        unpack: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<(), String> {
        let told = |err: io::Error| err.to_string();
        let staged = self.stage().map_err(told)?;
        unpack(staged.path())?;
        self.settle(staged.path(), digest).map_err(told)
    }

    /// A directory for what is on its way into the store.
    pub fn stage(&self) -> io::Result<Staged> {
        let path = self.root.join(STAGING).join(self.staged.fetch_add(1, Relaxed).to_string());
        std::fs::create_dir(&path)?;
        Ok(Staged(path))
    }

    /// Somebody else may have been faster with the same layer.
    fn settle(&self, staged: &Path, digest: &Digest) -> io::Result<()> {
        let place = self.layer(digest);
        std::fs::create_dir_all(place.parent().unwrap_or(&self.root))?;
        match std::fs::rename(staged, &place) {
            Err(_) if place.is_dir() => Ok(()),
            moved => moved,
        }
    }

    fn write_down(&self, image: &Image, config: &[u8]) -> io::Result<()> {
        std::fs::write(self.root.join(CONFIGS).join(image.config.hex()), config)?;
        // What is written down must be there after the machine lost power.
        rustix::fs::syncfs(std::fs::File::open(&self.root)?)?;
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        images.retain(|known| known.reference != image.reference);
        images.push(image.clone());
        self.save(&images)
    }

    fn save(&self, images: &[Image]) -> io::Result<()> {
        let draft = self.root.join(format!("{IMAGES}.draft"));
        std::fs::write(&draft, serde_json::to_vec_pretty(images)?)?;
        std::fs::File::open(&draft)?.sync_all()?;
        std::fs::rename(draft, self.root.join(IMAGES))
    }

    fn drop_unknown(&self) -> io::Result<()> {
        let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let layers: BTreeSet<&str> = images.iter().flat_map(|image| &image.layers).map(Digest::hex).collect();
        let configs: BTreeSet<&str> = images.iter().map(|image| image.config.hex()).collect();
        for (dir, known) in [(LAYERS, layers), (CONFIGS, configs)] {
            for entry in std::fs::read_dir(self.root.join(dir))? {
                let entry = entry?;
                if !entry.file_name().to_str().is_some_and(|name| known.contains(name)) {
                    remove(&entry.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Gone when it is dropped.
#[derive(Debug)]
pub(super) struct Staged(PathBuf);

impl Staged {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        remove(&self.0).ok(); // Emptied when the store is opened next.
    }
}

/// A tree or a file; nothing there is no error.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(err) => Err(err),
    };
    match removed {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
