//! Kills every container below a runtime directory, for a cluster that terminates for good.
//!
//! Containers outlive their agent by design, so complete removal is explicit: recovery destroys containers that are
//! not named as orphans, and here none is named.

use std::time::Duration;

use tepui_types::ContainerOp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::launcher::linux;
use crate::runtime_dir::RuntimeDir;
use crate::{Containerizer, ContainerizerFault, Options};

const WAIT_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Ends all containers and waits for it, not longer than [`WAIT_MAX`]; true if none is left.
pub async fn destroy_all(options: Options) -> Result<bool, ContainerizerFault> {
    let runtime_dir = options.runtime_dir.clone();
    let cgroups_root = options.cgroups.root.clone();
    let (events, mut heard) = mpsc::channel(1);
    let containerizer = Containerizer::start(options, events)?;
    containerizer.submit(ContainerOp::Recover { known: Vec::new() });
    let deadline = Instant::now() + WAIT_MAX;
    while Instant::now() < deadline {
        let left = RuntimeDir::open(&runtime_dir).and_then(|runtime| runtime.list());
        if left.is_ok_and(|left| left.is_empty()) {
            linux::remove_root(&cgroups_root);
            return Ok(true);
        }
        tokio::time::timeout(POLL, heard.recv()).await.ok();
    }
    Ok(false)
}
