//! The order by lot, an alternative to shares: heavier roles tend to come first.
//!
//! Each competitor runs a race against its siblings whose time is drawn from an exponential distribution with its
//! weight: the first is a weighted draw, and so is the first of the rest. Drawn anew for every agent that is shown.

use alloc::vec::Vec;

use tepui_fsm::Rng;

use crate::options::Sorter;
use crate::share::{Share, Weight};
use crate::slab::{ClientSlot, NodeSlot};
use crate::tree::Tree;

/// Binary digits after the point of a logarithm.
const DIGITS: u32 = 40;

impl Tree {
    /// Draws a new order of the clients that are ordered by lot. The bookings must be settled.
    pub(crate) fn draw_order(&mut self) {
        if self.sorters.frameworks == Sorter::Random {
            let clients: Vec<ClientSlot> = self.clients.iter().map(|(slot, _)| slot).collect();
            for slot in clients {
                let share = race(&mut self.rng, Weight::ONE);
                self.clients[slot].key = self.clients[slot].key.with(share, 0);
            }
        }
        if self.sorters.roles == Sorter::Random {
            let nodes: Vec<NodeSlot> = self.nodes.iter().map(|(slot, _)| slot).collect();
            for slot in nodes {
                let (share, own) =
                    (race(&mut self.rng, self.nodes[slot].weight), race(&mut self.rng, Weight::ONE));
                let node = &mut self.nodes[slot];
                node.key = node.key.with(share, 0);
                node.own_key = node.own_key.with(own, 0);
            }
        }
        if self.sorters.frameworks == Sorter::Random || self.sorters.roles == Sorter::Random {
            self.version += 1;
            self.sort_by_keys();
        }
    }
}

/// How long a race takes: `-log2(u) / weight` of a random `u` between 0 and 1.
fn race(rng: &mut Rng, weight: Weight) -> Share {
    let drawn = rng.next_u64() | 1;
    let zeros = drawn.leading_zeros();
    // The digits after the first 1 are the fraction f; log2(1 + f) is f + 0.344 f (1 - f) within a hundredth.
    let fraction = ((drawn << zeros << 1) >> (u64::BITS - DIGITS)) as i128;
    let one = 1i128 << DIGITS;
    let logarithm = fraction + ((fraction * (one - fraction)) >> DIGITS) * 344 / 1000;
    let time = i128::from(zeros + 1) * one - logarithm;
    Share::of(i64::try_from(time).unwrap_or(i64::MAX), 1 << DIGITS, weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn win_rate_of_a_draw_is_proportional_to_the_weight() {
        let mut rng = Rng::seeded(7);
        for (weight, percent) in [(1.0, 50), (3.0, 75), (9.0, 90), (0.25, 20)] {
            let won = |_: &u32| race(&mut rng, Weight::from_f64(weight)) < race(&mut rng, Weight::ONE);
            let wins = (0..20_000u32).filter(won).count();
            assert!(
                wins.abs_diff(200 * percent) < 300,
                "weight {weight} won {wins} of 20000, not {percent} %"
            );
        }
    }
}
