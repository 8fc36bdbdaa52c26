//! Sends a machine whether there is enough space for its records.

use std::sync::Arc;

use tepui_store::Room;

use crate::{Commits, Handle};

/// Sends an input whenever the disk has become short of room, or is short no longer. Ends when the state machine has terminated.
pub async fn pass_room<I>(commits: Arc<Commits>, handle: Handle<I>, input: impl Fn(Room) -> I) {
    let mut rooms = commits.watch_room();
    let mut was_short = false;
    loop {
        let has_changed = |room: &Option<Room>| room.is_some_and(|room| room.is_short != was_short);
        // The sender lives as long as `commits`.
        let Some(room) = rooms.wait_for(has_changed).await.ok().and_then(|room| *room) else { return };
        was_short = room.is_short;
        if handle.send(input(room)).await.is_err() {
            return;
        }
    }
}
