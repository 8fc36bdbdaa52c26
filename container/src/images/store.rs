//! The store of images: every layer once, by the digest of its content.
//!
//! `<store>/{images.json,layers/<digest>/<form>,configs/<digest>,staging,gc}`. A layer is unpacked in `staging` and
//! moved; an image is recorded in `images.json` when all of it is on the disk. A [`Hold`] keeps an image while a
//! launch prepares it. An image to remove is first deleted from the records, then moved to `gc`, and only there
//! deleted file by file: content in its final place is always complete. Content that is neither recorded nor used by
//! a container is removed when the store is opened. Blocking. Only root may read the store: layers contain programs
//! that run as root.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::fault::{DocumentFault, ImageFault};
use super::local::Found;
use super::manifest::Config;
use super::reference::Reference;
use super::unpack::Form;

const IMAGES: &str = "images.json";
const LAYERS: &str = "layers";
const CONFIGS: &str = "configs";
const STAGING: &str = "staging";
const GC: &str = "gc";

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
    kept: Arc<Mutex<StoreState>>,
    /// Makes names in `staging` and `gc`.
    named: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct StoreState {
    images: Vec<Image>,
    /// How many are about to use a layer or a configuration.
    held: BTreeMap<Digest, usize>,
}

impl Store {
    /// `used` is what containers of former agents may still use.
    pub fn open(root: &Path, form: Form, used: &BTreeSet<Digest>) -> io::Result<Store> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        std::fs::set_permissions(root, PermissionsExt::from_mode(0o700))?;
        for dir in [STAGING, GC] {
            remove(&root.join(dir))?;
        }
        for dir in [LAYERS, CONFIGS, STAGING, GC] {
            std::fs::create_dir_all(root.join(dir))?;
        }
        let images = match std::fs::read(root.join(IMAGES)) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|err| {
                tracing::warn!(%err, store = %root.display(), "image list damaged: reading all images again");
                Vec::new()
            }),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(err) => return Err(err),
        };
        let kept = Arc::new(Mutex::new(StoreState { images, held: BTreeMap::new() }));
        let store = Store { root: root.to_owned(), form, kept, named: Arc::default() };
        store.move_out(&store.lock(), used)?.delete()?;
        Ok(store)
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of nothing yet.
    pub fn hold(&self) -> Hold {
        Hold { store: self.clone(), digests: Vec::new() }
    }

    /// An image that is here already, with all its layers.
    pub fn get(&self, reference: &Reference, hold: &mut Hold) -> Option<Image> {
        let name = reference.to_string();
        let mut kept = self.lock();
        let image = kept.images.iter().find(|image| image.reference == name)?.clone();
        let is_whole = image.layers.iter().all(|layer| self.layer(layer).is_dir());
        is_whole.then(|| {
            hold.add_to(&mut kept, image.digests());
            image
        })
    }

    /// Takes in what was found.
    pub fn put(&self, reference: &Reference, found: &Found, hold: &mut Hold) -> Result<Image, ImageFault> {
        let config_bytes = found.config.read("the configuration")?;
        let config = Config::parse(&config_bytes)?;
        let layers = config.rootfs.diff_ids;
        hold.add(layers.iter().cloned().chain([Digest::of(&config_bytes)]));
        if layers.len() != found.layers.len() {
            let (configuration, manifest) = (layers.len(), found.layers.len());
            return Err(DocumentFault::LayerCounts { configuration, manifest }.into());
        }
        for (index, (diff_id, blob)) in layers.iter().zip(&found.layers).enumerate() {
            if !self.layer(diff_id).is_dir() {
                let (number, count) = (index + 1, layers.len());
                let place = |fault: ImageFault| ImageFault::Layer { number, count, fault: fault.into() };
                self.ingest_layers(diff_id, |staged| blob.unpack(diff_id, staged, self.form))
                    .map_err(place)?;
            }
        }
        let image = Image { reference: reference.to_string(), config: Digest::of(&config_bytes), layers };
        self.write_down(&image, &config_bytes).map_err(ImageFault::io("cannot store the image"))?;
        Ok(image)
    }

    /// The configuration of an image that is here.
    pub fn config(&self, image: &Image) -> Result<Vec<u8>, ImageFault> {
        let read = std::fs::read(self.root.join(CONFIGS).join(image.config.hex()));
        let bytes = read.map_err(ImageFault::io("cannot read its configuration"))?;
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

    fn ingest_layers(
        &self,
        digest: &Digest,
        unpack: impl FnOnce(&Path) -> Result<(), ImageFault>,
    ) -> Result<(), ImageFault> {
        let staged = self.stage()?;
        unpack(staged.path())?;
        Ok(self.settle(staged.path(), digest)?)
    }

    /// A directory for what is on its way into the store.
    pub fn stage(&self) -> io::Result<Staged> {
        let path = self.fresh(STAGING);
        std::fs::create_dir(&path)?;
        Ok(Staged(path))
    }

    fn fresh(&self, dir: &str) -> PathBuf {
        self.root.join(dir).join(self.named.fetch_add(1, Relaxed).to_string())
    }

    /// A concurrent pull may have stored the same layer.
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
        let mut kept = self.lock();
        let mut images = kept.images.clone();
        images.retain(|known| known.reference != image.reference);
        images.push(image.clone());
        self.save(&images)?;
        kept.images = images;
        Ok(())
    }

    fn save(&self, images: &[Image]) -> io::Result<()> {
        let draft = self.root.join(format!("{IMAGES}.draft"));
        std::fs::write(&draft, serde_json::to_vec_pretty(images)?)?;
        std::fs::File::open(&draft)?.sync_all()?;
        std::fs::rename(draft, self.root.join(IMAGES))
    }

    /// Removes the records of images that are neither named nor in use nor held, and moves their content to `gc`.
    /// `used` is called while no image can become used.
    pub fn sweep(
        &self,
        is_wanted: impl Fn(&Image) -> bool,
        used: impl FnOnce() -> io::Result<BTreeSet<Digest>>,
    ) -> io::Result<Waste> {
        let mut kept = self.lock();
        let used = used()?;
        let needs = |image: &Image| used.contains(&image.config) || kept.held.contains_key(&image.config);
        let stays = |image: &&Image| is_wanted(image) || needs(image);
        let images: Vec<Image> = kept.images.iter().filter(stays).cloned().collect();
        self.save(&images)?;
        kept.images = images;
        self.move_out(&kept, &used)
    }

    /// Moves what belongs to no image and is not used to `gc`.
    fn move_out(&self, kept: &StoreState, used: &BTreeSet<Digest>) -> io::Result<Waste> {
        let of_images = kept.images.iter().flat_map(Image::digests);
        let needed: BTreeSet<Digest> =
            of_images.chain(kept.held.keys().cloned()).chain(used.iter().cloned()).collect();
        let needed: BTreeSet<&str> = needed.iter().map(Digest::hex).collect();
        let mut waste = Vec::new();
        for dir in [LAYERS, CONFIGS] {
            for entry in std::fs::read_dir(self.root.join(dir))? {
                let entry = entry?;
                if !entry.file_name().to_str().is_some_and(|name| needed.contains(name)) {
                    let moved = self.fresh(GC);
                    std::fs::rename(entry.path(), &moved)?;
                    waste.push(moved);
                }
            }
        }
        // After a loss of power nothing may be half in its old place.
        rustix::fs::syncfs(std::fs::File::open(&self.root)?)?;
        Ok(Waste(waste))
    }
}

impl Image {
    pub fn digests(&self) -> impl Iterator<Item = Digest> + '_ {
        self.layers.iter().chain([&self.config]).cloned()
    }
}

/// Layers and configurations that a launch is about to use: they are kept while this lives. It is dropped only after
/// the container is recorded as a user.
#[derive(Debug)]
pub(crate) struct Hold {
    store: Store,
    digests: Vec<Digest>,
}

impl Hold {
    pub fn add(&mut self, digests: impl IntoIterator<Item = Digest>) {
        let store = self.store.clone();
        self.add_to(&mut store.lock(), digests);
    }

    fn add_to(&mut self, kept: &mut StoreState, digests: impl IntoIterator<Item = Digest>) {
        for digest in digests {
            *kept.held.entry(digest.clone()).or_default() += 1;
            self.digests.push(digest);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut kept = self.store.lock();
        for digest in &self.digests {
            if let Some(count) = kept.held.get_mut(digest) {
                *count -= 1;
            }
        }
        kept.held.retain(|_, count| *count > 0);
    }
}

/// What was moved out of the way. Not deleted, it is when the store is opened next.
#[derive(Debug)]
#[must_use]
pub(crate) struct Waste(Vec<PathBuf>);

impl Waste {
    pub fn delete(self) -> io::Result<()> {
        self.0.iter().try_for_each(|path| remove(path))
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
