//! Outcomes of health checks and checks: most succeed, after a delay.

use tepui_executors::checks::Outcome;

use crate::chance::{MS, SECOND, mostly};
use crate::world::World;

/// The duration and outcome of an attempt.
pub(crate) fn draw(world: &mut World) -> (u64, Outcome) {
    let wait = mostly(&mut world.rng, MS, 100 * MS, 0.1, 2 * SECOND);
    let outcome = match world.rng.below(20) {
        0..=12 => Outcome::Connected(true),
        13..=16 => Outcome::Connected(false),
        17..=18 => Outcome::Failed("timed out".into()),
        _ => Outcome::Skipped,
    };
    world.counts.probes += 1;
    world.counts.failed_probes += u64::from(is_bad(&outcome));
    (wait, outcome)
}

/// Whether a task may be killed for it.
pub(crate) fn is_bad(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Connected(false) | Outcome::Failed(_) | Outcome::Exited(1..))
}
