//! Wall clocks: each process has one, and it may jump. Nothing but dates may depend on it.

use tepui_fsm::{Mono, Now, Wall};

use crate::chance::{SECOND, between};
use crate::fault::any_node;
use crate::net::Node;
use crate::world::World;

/// The wall time at the start of the simulation.
const EPOCH: u64 = 1_700_000_000 * SECOND;
const DAY: u64 = 24 * 3600 * SECOND;

impl World {
    /// The time of a process.
    pub(crate) fn now_of(&self, node: Node) -> Now {
        Now { mono: Mono(self.queue.now()), wall: self.wall_of(node) }
    }

    pub(crate) fn wall_of(&self, node: Node) -> Wall {
        Wall((EPOCH + self.queue.now()).saturating_add_signed(self.hardware(node).clock_error))
    }
}

/// A clock is set: a little or by days, forwards or backwards. It stays wrong until it jumps again.
pub(crate) fn jump(world: &mut World) {
    let node = any_node(world);
    let longest = match world.rng.below(4) {
        0 => 400 * DAY,
        1 => 3600 * SECOND,
        _ => 20 * SECOND,
    };
    let size = between(&mut world.rng, 0, longest).cast_signed();
    let error = if world.rng.chance(0.5) { size } else { -size };
    world.counts.clock_jumps += 1;
    world.trace_line(|| format!("the clock of {node:?} is wrong by {} s", error / SECOND.cast_signed()));
    world.hardware_mut(node).clock_error = error;
}
