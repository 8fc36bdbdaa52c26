//! Passes events of containers on to the machine.

use tepui_core_agent::Input;
use tepui_runtime::Handle;
use tepui_types::ContainerEvent;
use tokio::sync::mpsc;

/// Events that may wait for the machine; with more, containers wait.
pub(crate) const EVENTS_WAITING_MAX: usize = 1024;

/// Passes events on until the state machine has terminated. What happens after that is found by the next start.
pub(crate) async fn pass_events(mut events: mpsc::Receiver<ContainerEvent>, handle: Handle<Input>) {
    while let Some(event) = events.recv().await {
        if handle.send(Input::Container(event)).await.is_err() {
            return;
        }
    }
}
