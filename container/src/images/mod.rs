//! Images: where they come from, the store of their layers, and the root file systems made of them.
//!
//! Fed by the containerizer when a container with an image is launched or has ended. An image is found (`local`, `registry`), taken
//! into the `store` layer by layer (`blob`, `unpack`), and becomes a `rootfs`.
//! Never here: mounts of containers, commands.

mod blob;
mod copy;
mod credential;
mod digest;
mod fault;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod helper;
mod local;
mod login;
mod manifest;
mod reference;
mod registry;
pub(crate) mod rootfs;
mod runtime;
mod store;
mod tar;
#[cfg(any(test, feature = "fuzz"))]
mod testing;
mod unpack;
mod user;
mod zstd;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tepui_proto::mesos::v1 as pb;
use tepui_types::ContainerId;
use tokio::sync::oneshot;

pub(crate) use self::credential::Login;
pub use self::fault::{
    DocumentFault, EntryFault, HelperFault, ImageFault, LoginFault, RegistryFault, UserFault,
};
use self::local::Found;
pub use self::login::Logins;
pub(crate) use self::reference::Reference;
use self::registry::Registry;
pub use self::rootfs::Backend;
use self::rootfs::{Rootfs, Rootfses};
pub(crate) use self::runtime::Runtime;
use self::store::{Hold, Image, Staged, Store};
use crate::host::background::{self, Interrupted};
use crate::host::user::Identity;
use crate::pulls::{Pull, Pulls};

/// What an operator chose about images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageOptions {
    /// Whether containers may have Docker and OCI images at all.
    pub docker: bool,
    /// Where images come from: a directory of the host, absolute, or `http(s)://host[:port]`.
    pub docker_registry: String,
    /// Logins for registries.
    pub docker_config: Logins,
    /// Where their layers are kept. Absolute.
    pub docker_store_dir: PathBuf,
    /// Unset: the first that works here.
    pub backend: Option<Backend>,
}

/// What was made of an image for a container.
#[derive(Debug)]
pub(crate) struct Made {
    pub rootfs: Rootfs,
    pub runtime: Runtime,
    /// The user named by the image.
    pub user: Option<Result<Identity, ImageFault>>,
}

/// The images of an agent that supports them.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    origin: Origin,
    logins: Logins,
    store: Store,
    rootfses: Rootfses,
    /// One launch reads an image; others of the same image wait.
    pulls: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>,
    times: Pulls,
}

impl Images {
    /// `None` if images are disabled.
    pub fn open(options: &ImageOptions, work_dir: &Path) -> Result<Option<Images>, ImageFault> {
        if !options.docker {
            return Ok(None);
        }
        if !options.docker_store_dir.is_absolute() {
            return Err(ImageFault::RelativeStore(options.docker_store_dir.clone()));
        }
        let rootfses = Rootfses::open(&rootfs::root(work_dir), options.backend)?;
        let store = rootfses
            .used()
            .and_then(|used| Store::open(&options.docker_store_dir, rootfses.backend().form(), &used));
        let path = options.docker_store_dir.display();
        let store = store.map_err(ImageFault::io(format!("cannot use --docker_store_dir={path}")))?;
        tracing::info!(backend = ?rootfses.backend(), registry = options.docker_registry, "image provisioning enabled");
        let origin = Origin::parse(&options.docker_registry)?;
        let logins = options.docker_config.clone();
        Ok(Some(Images { origin, logins, store, rootfses, pulls: Arc::default(), times: Pulls::default() }))
    }

    /// How long images took to come.
    pub fn pulls(&self) -> Vec<Pull> {
        self.times.kept()
    }

    /// How many containers have a root file system.
    pub fn rootfses(&self) -> usize {
        self.rootfses.containers()
    }

    /// Makes the `index`th root file system of a container.
    pub async fn provision(
        &self,
        id: &ContainerId,
        index: usize,
        image: &pb::Image,
    ) -> Result<Made, ImageFault> {
        let (image, hold) = self.get(image).await?;
        let (images, id) = (self.clone(), id.clone());
        let (done, made) = oneshot::channel();
        let work = move || {
            let made = images.make(&id, index, &image);
            drop(hold); // Its user is recorded.
            // The caller was dropped: the container was destroyed and its root file system removed.
            if let Err(Ok(_)) = done.send(made)
                && let Err(err) = images.rootfses.remove(&id)
            {
                tracing::warn!(container = %id, %err, "cannot remove the root file system of a container");
            }
        };
        background::blocking(work).await?;
        made.await.unwrap_or(Err(ImageFault::Interrupted(Interrupted::GoingDown)))
    }

    fn make(&self, id: &ContainerId, index: usize, image: &Image) -> Result<Made, ImageFault> {
        let named = ImageFault::of(&image.reference);
        let config = self.store.config(image).map_err(&named)?;
        let runtime = Runtime::parse(&config).map_err(|fault| named(fault.into()))?;
        let layers: Vec<PathBuf> = image.layers.iter().map(|layer| self.store.layer(layer)).collect();
        let rootfs = self.rootfses.make(id, index, image, &layers);
        let rootfs = rootfs.map_err(|err| named(ImageFault::io("cannot create its root filesystem")(err)))?;
        let user =
            runtime.user().map(|user| user::resolve(user, &layers).map_err(|fault| named(fault.into())));
        Ok(Made { rootfs, runtime, user })
    }

    /// Removes images that no container uses, except the named ones, and their unshared layers.
    pub async fn prune(&self, wanted: BTreeSet<String>) -> Result<(), ImageFault> {
        let images = self.clone();
        let sweep = move || {
            let used = || images.rootfses.used();
            Ok(images.store.sweep(|image| wanted.contains(&image.reference), used)?)
        };
        let waste = blocking(sweep).await?;
        // What is not deleted now is when the agent starts next.
        tokio::task::spawn_blocking(move || {
            if let Err(err) = waste.delete() {
                tracing::warn!(%err, "cannot delete leftover files of images");
            }
        });
        Ok(())
    }

    /// The image, from the store or from where images come from.
    async fn get(&self, image: &pb::Image) -> Result<(Image, Hold), ImageFault> {
        let reference = reference_of(image)?;
        let turn = self.turn(&reference);
        let _turn = turn.lock().await;
        let mut hold = self.store.hold();
        if image.cached.unwrap_or(true) {
            let (store, wanted) = (self.store.clone(), reference.clone());
            let got = blocking(move || Ok((store.get(&wanted, &mut hold), hold))).await?;
            match got {
                (Some(image), hold) => return Ok((image, hold)),
                (None, unused) => hold = unused,
            }
        }
        self.times.time(self.bring(image, &reference, hold)).await
    }

    /// The image, from where images come from.
    async fn bring(
        &self,
        image: &pb::Image,
        reference: &Reference,
        hold: Hold,
    ) -> Result<(Image, Hold), ImageFault> {
        let named = ImageFault::of(reference);
        match &self.origin {
            Origin::Directory(dir) => {
                let (dir, wanted) = (dir.clone(), reference.clone());
                let found = blocking(move || local::find(&dir, &wanted)).await?;
                self.put(reference, found, hold, None).await.map_err(named)
            }
            Origin::Registry(registry) => {
                self.pull(registry, &image.docker, reference, hold).await.map_err(named)
            }
        }
    }

    /// Takes in what was found, perhaps in `staged`, which is not needed any more then.
    async fn put(
        &self,
        reference: &Reference,
        found: Found,
        mut hold: Hold,
        staged: Option<Staged>,
    ) -> Result<(Image, Hold), ImageFault> {
        let (store, reference) = (self.store.clone(), reference.clone());
        let put = move || {
            let put = store.put(&reference, &found, &mut hold);
            drop(staged);
            Ok((put?, hold))
        };
        blocking(put).await
    }

    async fn pull(
        &self,
        registry: &Registry,
        image: &pb::image::Docker,
        reference: &Reference,
        mut hold: Hold,
    ) -> Result<(Image, Hold), ImageFault> {
        let own = match image.config.as_option() {
            Some(secret) => {
                let value = secret.value.as_option();
                let value = value.ok_or(ImageFault::NoSecretValue)?;
                Some(Logins::parse(&value.data)?)
            }
            None => None,
        };
        let staged = self.store.stage().map_err(ImageFault::io("cannot allocate space for it"))?;
        let logins = own.as_ref().unwrap_or(&self.logins);
        let found = registry.pull(reference, logins, &self.store, staged.path(), &mut hold).await?;
        self.put(reference, found, hold, Some(staged)).await
    }

    fn turn(&self, reference: &Reference) -> Arc<tokio::sync::Mutex<()>> {
        let mut pulls = self.pulls.lock().unwrap_or_else(PoisonError::into_inner);
        pulls.retain(|_, turn| Arc::strong_count(turn) > 1);
        pulls.entry(reference.to_string()).or_default().clone()
    }
}

/// Where images come from.
#[derive(Clone, Debug)]
enum Origin {
    Directory(PathBuf),
    Registry(Registry),
}

impl Origin {
    fn parse(text: &str) -> Result<Origin, ImageFault> {
        match Path::new(text).is_absolute() {
            true => Ok(Origin::Directory(PathBuf::from(text))),
            false => Registry::parse(text).map(Origin::Registry),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageFault> + Send + 'static,
) -> Result<T, ImageFault> {
    background::blocking(work).await?
}

/// The names by which images are kept.
pub fn image_names<'a>(
    images: impl IntoIterator<Item = &'a pb::Image>,
) -> Result<BTreeSet<String>, ImageFault> {
    images.into_iter().map(|image| Ok(reference_of(image)?.to_string())).collect()
}

fn reference_of(image: &pb::Image) -> Result<Reference, ImageFault> {
    match image.r#type == pb::image::Type::DOCKER {
        true => Reference::parse(&image.docker.name),
        false => Err(ImageFault::Type),
    }
}
