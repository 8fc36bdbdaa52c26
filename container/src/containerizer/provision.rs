//! Images of containers: made ready before a launch, removed after the end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchSpec};

use super::Context;
use crate::images::{Overlay, rootfs};
use crate::isolators::plan::{Make, Mount, Root, Source, Target};
use crate::launcher::InitSpec;

/// A container has the network of the host, and finds its way about there as the host does.
const NETWORK_FILES: [&str; 3] = ["etc/hosts", "etc/hostname", "etc/resolv.conf"];

/// What was made of a container's images.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    /// The container's own root file system; unset: the host's.
    pub rootfs: Option<PathBuf>,
    overlays: Vec<Overlay>,
}

pub(super) async fn provision(context: &Context, spec: &LaunchSpec) -> Result<Provisioned, String> {
    let Some(image) = image_of(spec) else { return Ok(Provisioned::default()) };
    let Some(images) = &context.images else {
        return Err(String::from(
            "this agent has no images: it was started without --image_providers=docker",
        ));
    };
    let _turn = context.launches.acquire().await;
    let made = images.provision(&spec.id, 0, image).await?;
    Ok(Provisioned { rootfs: Some(made.path), overlays: made.overlay.into_iter().collect() })
}

fn image_of(spec: &LaunchSpec) -> Option<&pb::Image> {
    spec.container.as_ref()?.mesos.as_option()?.image.as_option()
}

impl Provisioned {
    /// Adds to a launch what comes of the images; its plan is made.
    pub fn enter(self, init: &mut InitSpec) {
        init.plan.overlays = self.overlays;
        if self.rootfs.is_none() {
            return;
        }
        let there = NETWORK_FILES.into_iter().filter(|file| Path::new("/").join(file).is_file());
        init.plan.mounts.extend(there.map(|file| Mount::Bind {
            source: Source::host(Path::new("/").join(file)),
            target: Target::new(Root::Rootfs, file, Make::File),
            read_only: true,
        }));
        if let Some(sandbox) = init.plan.sandbox_inside() {
            init.environment.insert(String::from("MESOS_SANDBOX"), sandbox.display().to_string());
        }
    }
}

/// Removes what was made for a container, which has ended.
pub(super) async fn remove(context: &Arc<Context>, id: &ContainerId) {
    let (work_dir, id) = (context.options.work_dir.clone(), id.clone());
    let name = id.to_string();
    let removed = tokio::task::spawn_blocking(move || rootfs::remove(&work_dir, &id)).await;
    if let Ok(Err(err)) = removed {
        tracing::warn!(container = name, %err, "cannot remove the root file system of a container");
    }
}

/// Removes what former agents made for containers that nobody knows any more.
pub(super) async fn remove_forgotten(context: &Arc<Context>, known: BTreeSet<ContainerId>) {
    let work_dir = context.options.work_dir.clone();
    let listed = tokio::task::spawn_blocking(move || rootfs::list(&work_dir)).await;
    let listed = listed.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_else(|err| {
        tracing::warn!(%err, "cannot list root file systems, some may be left");
        Vec::new()
    });
    let is_around = |id: &ContainerId| {
        known.iter().any(|one| std::iter::successors(Some(one), |id| id.parent()).any(|above| above == id))
    };
    for id in listed.iter().filter(|id| !is_around(id)) {
        remove(context, id).await;
    }
}
