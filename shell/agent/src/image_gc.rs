//! Removal of images that no container uses: on request of an operator, and when their disk fills up.
//!
//! Absent: which of them are in use; that is the containerizer's.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use tepui_container::{Containerizer, ImageFault, image_names};
use tepui_http::{HttpError, Response, empty};
use tepui_proto::mesos::v1::agent::call::PruneImages;

use crate::detect;

/// When images are removed automatically, and which never are.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageGc {
    /// The part of the disk that is to stay free, 0.0 to 1.0.
    pub headroom: f64,
    /// How often the disk is looked at.
    pub interval: Duration,
    /// The names of images that stay, as [`image_names`] gives them.
    pub excluded: BTreeSet<String>,
}

impl ImageGc {
    fn is_due(&self, used: f64) -> bool {
        self.headroom + used > 1.0
    }
}

/// PRUNE_IMAGES. What the operator of the agent excluded stays excluded.
pub(crate) async fn prune(
    containerizer: &Containerizer,
    gc: Option<&ImageGc>,
    call: &PruneImages,
) -> Result<Response, HttpError> {
    let failed = |fault: ImageFault| {
        HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("Failed to prune images: {fault}"))
    };
    let mut wanted = image_names(&call.excluded_images).map_err(failed)?;
    wanted.extend(gc.iter().flat_map(|gc| gc.excluded.iter().cloned()));
    containerizer.prune_images(wanted).await.map_err(failed)?;
    tracing::info!("images were pruned");
    Ok(empty(StatusCode::OK))
}

/// Removes images whenever the disk of their `store` has too little room.
pub(crate) async fn watch(containerizer: Containerizer, gc: ImageGc, store: PathBuf) {
    let mut ticks = tokio::time::interval(gc.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let used = match detect::disk_usage(&store) {
            Ok(used) => used,
            Err(err) => {
                tracing::warn!(%err, path = %store.display(), "cannot read the usage of the image disk");
                continue;
            }
        };
        if !gc.is_due(used) {
            continue;
        }
        match containerizer.prune_images(gc.excluded.clone()).await {
            Ok(()) => tracing::info!(used, headroom = gc.headroom, "images were pruned: the disk is full"),
            Err(fault) => tracing::warn!(%fault, "cannot prune images"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_gc_is_due_above_the_headroom() {
        for (headroom, used, is_due) in
            [(0.1, 0.89, false), (0.1, 0.91, true), (0.0, 1.0, false), (1.0, 0.01, true), (1.0, 0.0, false)]
        {
            let gc = ImageGc { headroom, interval: Duration::from_secs(1), excluded: BTreeSet::new() };
            assert_eq!(gc.is_due(used), is_due, "{headroom} {used}");
        }
    }
}
