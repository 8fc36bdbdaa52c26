//! Passes events of containers on to the machine, and ends containers when there is no machine any more.

use std::collections::BTreeSet;
use std::time::Duration;

use tepui_container::Containerizer;
use tepui_core_agent::Input;
use tepui_runtime::Handle;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp};
use tokio::sync::mpsc;

/// Events that may wait for the machine; with more, containers wait.
pub(crate) const EVENTS_WAITING_MAX: usize = 1024;

/// Passes events on until the machine has ended, and after that to `leftover`.
pub(crate) async fn pass_events(
    mut events: mpsc::Receiver<ContainerEvent>,
    handle: Handle<Input>,
    leftover: mpsc::UnboundedSender<ContainerId>,
) {
    while let Some(event) = events.recv().await {
        let ended = match &event {
            ContainerEvent::Exited { id, .. } | ContainerEvent::LaunchFailed { id, .. } => Some(id.clone()),
            _ => None,
        };
        if handle.send(Input::Container(event)).await.is_err()
            && let Some(id) = ended
        {
            // Nobody may wait for it; then it does not matter.
            let _ = leftover.send(id);
        }
    }
}

/// Destroys containers and waits until they have ended, but not for ever.
pub(crate) async fn destroy_all(
    containerizer: &Containerizer,
    mut waiting: BTreeSet<ContainerId>,
    mut ended: mpsc::UnboundedReceiver<ContainerId>,
    timeout: Duration,
) {
    for id in &waiting {
        containerizer.submit(ContainerOp::Destroy { id: id.clone() });
    }
    let all_ended = async {
        while !waiting.is_empty() {
            match ended.recv().await {
                Some(id) => waiting.remove(&id),
                None => return,
            };
        }
    };
    if tokio::time::timeout(timeout, all_ended).await.is_err() {
        tracing::warn!(left = waiting.len(), "containers did not end in time");
    }
}
