//! Draws from the world's one generator, and the units of its clock.

use tepui_fsm::Rng;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// A whole number in `low..=high`.
pub(crate) fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high.saturating_sub(low) + 1)
}

/// Usually in `low..=high`, rarely up to `far`: most things are quick, and the rest is where the bugs are.
pub(crate) fn mostly(rng: &mut Rng, low: u64, high: u64, rarely: f64, far: u64) -> u64 {
    if rng.chance(rarely) { between(rng, high, far) } else { between(rng, low, high) }
}

/// One of these.
pub(crate) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    from.get(rng.below(from.len() as u64) as usize)
}
