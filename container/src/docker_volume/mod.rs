//! docker/volume: volumes created and mounted by drivers, counted across containers and kept across restarts of the
//! agent.
//!
//! `<checkpoint_dir>/containers/<id>/volumes` lists the volumes of a container; it is written before the first call
//! to a driver, and removed when nothing is left to undo. A volume is mounted for the first container that uses it
//! and unmounted after the last. One that cannot be unmounted stays recorded and is retried at the next start.
//! Absent: mounts of containers.

mod driver;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tepui_proto::mesos::v1::{self as pb, volume::source};
use tepui_types::ContainerId;
use tokio::sync::Mutex as Turn;

use self::driver::{Driver, DriverFault};
use crate::host::beneath;
use crate::runtime_dir;

const VOLUMES: &str = "volumes";
/// The ID of the mount for drivers: this machine, for all its containers.
const MOUNTED_BY: &str = "tepui";

/// What an operator chose about volumes of drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerVolumeOptions {
    /// Where drivers are looked for.
    pub plugin_dirs: Vec<PathBuf>,
    /// Unset: below the runtime directory.
    pub checkpoint_dir: Option<PathBuf>,
    /// Give volumes to the users of containers.
    pub chown: bool,
    pub mount_timeout: Duration,
    pub unmount_timeout: Duration,
}

impl Default for DockerVolumeOptions {
    /// Docker's own directories and the times of v1.
    fn default() -> Self {
        let dirs = ["/run/docker/plugins", "/etc/docker/plugins", "/usr/lib/docker/plugins"];
        Self {
            plugin_dirs: dirs.map(PathBuf::from).to_vec(),
            checkpoint_dir: None,
            chown: false,
            mount_timeout: Duration::from_secs(120),
            unmount_timeout: Duration::from_secs(600),
        }
    }
}

impl DockerVolumeOptions {
    /// Names of the drivers that can be found now, sorted.
    pub fn drivers(&self) -> Vec<String> {
        let files = self.plugin_dirs.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
        let name = |file: io::Result<std::fs::DirEntry>| {
            let path = file.ok()?.path();
            let is_driver = matches!(path.extension()?.to_str()?, "sock" | "spec" | "json");
            is_driver.then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
        };
        files.filter_map(name).collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// Failures of a container's volumes. The text goes to the framework.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumesFault {
    #[error("volumes[{index}] '{path}': {why}")]
    Field { index: usize, path: String, why: &'static str },
    #[error("the volume '{}' of the driver '{}': {fault}", volume.name, volume.driver)]
    Driver { volume: Volume, fault: DriverFault },
    #[error("cannot persist its volumes: {0}")]
    Persist(io::Error),
    #[error("cannot change the owner of the volume '{}': {err}", path.display())]
    Owner { path: PathBuf, err: io::Error },
}

/// A volume, wherever it is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Volume {
    driver: String,
    name: String,
}

/// What a container uses.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Checkpoint {
    volumes: Vec<MountedVolume>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct MountedVolume {
    #[serde(flatten)]
    volume: Volume,
    /// Written when all volumes of the container are mounted; unknown until then.
    mountpoint: Option<PathBuf>,
}

/// The users of a volume; the lock around it serializes calls to its driver.
#[derive(Debug, Default)]
struct Use {
    containers: BTreeSet<ContainerId>,
    /// Unset: not mounted, or a former agent died before it wrote the path.
    mountpoint: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub(crate) struct DockerVolumes {
    options: DockerVolumeOptions,
    root: PathBuf,
    uses: Arc<Mutex<BTreeMap<Volume, Arc<Turn<Use>>>>>,
}

impl DockerVolumes {
    /// With what former agents wrote down.
    pub fn open(options: &DockerVolumeOptions, runtime_dir: &Path) -> io::Result<DockerVolumes> {
        let root = options.checkpoint_dir.clone();
        let root = root.unwrap_or_else(|| runtime_dir.join("isolators/docker/volume"));
        let all = DockerVolumes { options: options.clone(), root, uses: Arc::default() };
        let mut uses: BTreeMap<Volume, Use> = BTreeMap::new();
        for id in runtime_dir::list(&all.root)? {
            for kept in all.checkpoint(&id)?.volumes {
                let used = uses.entry(kept.volume).or_default();
                used.containers.insert(id.clone());
                used.mountpoint = kept.mountpoint.or(used.mountpoint.take());
            }
        }
        let uses = uses.into_iter().map(|(volume, one)| (volume, Arc::new(Turn::new(one)))).collect();
        *all.uses.lock().unwrap_or_else(PoisonError::into_inner) = uses;
        Ok(all)
    }

    /// Mounts the driver volumes among those of a container: where each is, by its place.
    pub async fn mount(
        &self,
        id: &ContainerId,
        volumes: &[pb::Volume],
    ) -> Result<BTreeMap<usize, PathBuf>, VolumesFault> {
        let wanted = wanted(volumes)?;
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let write = |volumes| self.write(id, &Checkpoint { volumes }).map_err(VolumesFault::Persist);
        let unmounted = |(_, volume, _): &Wanted| MountedVolume { volume: volume.clone(), mountpoint: None };
        write(wanted.iter().map(unmounted).collect())?;
        let (mut ready, mut kept) = (BTreeMap::new(), Vec::new());
        for (index, volume, options) in wanted {
            let mounted = self.mount_one(id, &volume, &options).await;
            let path = mounted.map_err(|fault| VolumesFault::Driver { volume: volume.clone(), fault })?;
            ready.insert(index, path.clone());
            kept.push(MountedVolume { volume, mountpoint: Some(path) });
        }
        write(kept)?;
        Ok(ready)
    }

    /// Undoes what was done for a container, which has ended.
    pub async fn release(&self, id: &ContainerId) {
        let volumes = match self.checkpoint(id) {
            Ok(checkpoint) => checkpoint.volumes,
            Err(err) => {
                return tracing::warn!(container = %id, %err, "cannot read the volumes of a container");
            }
        };
        let mut kept = Vec::new();
        for one in volumes {
            if let Err(fault) = self.unmount_one(id, &one.volume).await {
                let Volume { driver, name } = &one.volume;
                tracing::warn!(container = %id, driver, volume = name, %fault,
                    "cannot unmount a volume, retrying at the next start");
                kept.push(one);
            }
        }
        let settled = match kept.is_empty() {
            true => beneath::remove_tree(&self.root, &runtime_dir::below(id)),
            false => self.write(id, &Checkpoint { volumes: kept }),
        };
        match settled {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(container = %id, %err, "cannot persist the volumes of a container");
            }
            Ok(()) | Err(_) => (),
        }
    }

    /// Undoes what was done for containers that are no more; `known` are all that may be.
    pub async fn release_forgotten(&self, known: &BTreeSet<ContainerId>) {
        let listed = runtime_dir::list(&self.root).unwrap_or_default();
        for id in listed.iter().rev().filter(|id| !known.contains(id)) {
            self.release(id).await;
        }
    }

    /// Changes the owner of volumes to the container's user, if configured.
    pub fn set_owner(&self, paths: &[PathBuf], (uid, gid): (u32, u32)) -> Result<(), VolumesFault> {
        for path in paths.iter().filter(|_| self.options.chown) {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .map_err(|err| VolumesFault::Owner { path: path.clone(), err })?;
        }
        Ok(())
    }

    async fn mount_one(
        &self,
        id: &ContainerId,
        volume: &Volume,
        options: &BTreeMap<String, String>,
    ) -> Result<PathBuf, DriverFault> {
        let (turn, timeout) = (self.turn(volume), self.options.mount_timeout);
        let mut used = turn.lock().await;
        let path = match &used.mountpoint {
            Some(path) => path.clone(),
            None => {
                let driver = Driver::find(&volume.driver, &self.options.plugin_dirs, timeout).await?;
                driver.create(&volume.name, options, timeout).await?;
                let mounted = driver.mount(&volume.name, MOUNTED_BY, timeout).await;
                if let (Err(DriverFault::Late { .. }), true) = (&mounted, used.containers.is_empty()) {
                    // The driver may still complete it; no caller waits for that.
                    let (name, timeout) = (volume.name.clone(), self.options.unmount_timeout);
                    tokio::spawn(async move { driver.unmount(&name, MOUNTED_BY, timeout).await });
                }
                mounted?
            }
        };
        used.mountpoint = Some(path.clone());
        used.containers.insert(id.clone());
        Ok(path)
    }

    async fn unmount_one(&self, id: &ContainerId, volume: &Volume) -> Result<(), DriverFault> {
        let turn = self.turn(volume);
        let mut used = turn.lock().await;
        let is_last = used.containers.iter().all(|one| one == id);
        // A volume that was never mounted has no user.
        if is_last && !used.containers.is_empty() {
            let driver =
                Driver::find(&volume.driver, &self.options.plugin_dirs, self.options.mount_timeout).await?;
            match driver.unmount(&volume.name, MOUNTED_BY, self.options.unmount_timeout).await {
                // It had not come to be mounted.
                Err(DriverFault::Refused(_)) if used.mountpoint.is_none() => (),
                unmounted => unmounted?,
            }
            used.mountpoint = None;
        }
        used.containers.remove(id);
        Ok(())
    }

    fn turn(&self, volume: &Volume) -> Arc<Turn<Use>> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the record of a volume without users and without pending calls.
        uses.retain(|_, one| {
            Arc::strong_count(one) > 1 || one.try_lock().is_ok_and(|one| !one.containers.is_empty())
        });
        uses.entry(volume.clone()).or_default().clone()
    }

    fn checkpoint(&self, id: &ContainerId) -> io::Result<Checkpoint> {
        match std::fs::read(self.root.join(runtime_dir::below(id)).join(VOLUMES)) {
            Ok(text) if text.is_empty() => Ok(Checkpoint::default()),
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Checkpoint::default()),
            Err(err) => Err(err),
        }
    }

    fn write(&self, id: &ContainerId, checkpoint: &Checkpoint) -> io::Result<()> {
        let dir = self.root.join(runtime_dir::below(id));
        std::fs::create_dir_all(&dir)?;
        let draft = dir.join(format!("{VOLUMES}.draft"));
        std::fs::write(&draft, serde_json::to_vec(checkpoint)?)?;
        std::fs::rename(draft, dir.join(VOLUMES))
    }
}

type Wanted = (usize, Volume, BTreeMap<String, String>);

/// The volumes of drivers among those of a container.
fn wanted(volumes: &[pb::Volume]) -> Result<Vec<Wanted>, VolumesFault> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        if volume.source.r#type != Some(source::Type::DOCKER_VOLUME) {
            continue;
        }
        let named = |why| VolumesFault::Field { index, path: volume.container_path.clone(), why };
        let asked = &volume.source.docker_volume;
        let driver = asked.driver.clone().filter(|driver| !driver.is_empty());
        let driver = driver.ok_or_else(|| named("docker_volume.driver must be set"))?;
        if asked.name.is_empty() {
            return Err(named("docker_volume.name must be set"));
        }
        let one = Volume { driver, name: asked.name.clone() };
        if wanted.iter().any(|(_, other, _)| *other == one) {
            return Err(named("a volume of a driver can be used once in a container"));
        }
        let options = asked.driver_options.parameter.iter().map(|one| (one.key.clone(), one.value.clone()));
        wanted.push((index, one, options.collect()));
    }
    Ok(wanted)
}
