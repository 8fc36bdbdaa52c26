//! Shrinks a failing history: removes draws while the same violation remains.
//!
//! The result is minimal and depends on few parts of the simulator.

use crate::history::History;
use crate::sabotage::Sabotage;
use crate::trace::Trace;
use crate::{Violation, replay};

/// Replays of one history; when they are used up, it stays as small as it is by then.
const REPLAYS_MAX: usize = 5_000;

/// The minimal part of a history with this violation; the whole history if its replay does not show it.
pub fn shrink(history: &History, violation: &Violation, sabotage: Sabotage) -> History {
    let mut replays = 0;
    let mut fails = |draws: &[_]| {
        replays += 1;
        let history: History = draws.iter().cloned().collect();
        replays <= REPLAYS_MAX
            && is_alike(replay(&history, sabotage, Trace::Off).violation.as_ref(), violation)
    };
    let draws: Vec<_> = history.draws().cloned().collect();
    reduce(draws, &mut fails).into_iter().collect()
}

/// The same invariant, in the same words besides names and numbers. Of several complaints the first counts.
fn is_alike(found: Option<&Violation>, wanted: &Violation) -> bool {
    found.is_some_and(|found| {
        found.invariant == wanted.invariant && words(&found.detail).eq(words(&wanted.detail))
    })
}

fn words(detail: &str) -> impl Iterator<Item = &str> {
    let first = detail.split(';').next().unwrap_or_default();
    first.split(|char: char| !char.is_alphanumeric()).filter(|word| word.chars().all(char::is_alphabetic))
}

/// Removes ever smaller pieces, until no single item can be removed.
fn reduce<T: Clone>(mut items: Vec<T>, fails: &mut impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut piece = items.len().div_ceil(2);
    while piece > 0 {
        let before = items.len();
        let mut at = 0;
        while at < items.len() {
            let rest = [&items[..at], &items[items.len().min(at + piece)..]].concat();
            match fails(&rest) {
                true => items = rest,
                false => at += piece,
            }
        }
        let is_done = piece == 1 && items.len() == before;
        piece = if is_done { 0 } else { piece.div_ceil(2).min(items.len()) };
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_the_relevant_steps() {
        let mut tries = 0;
        let mut fails = |items: &[u32]| {
            tries += 1;
            [3, 500, 501, 999].iter().all(|wanted| items.contains(wanted))
        };
        assert_eq!(reduce((0..1000).collect(), &mut fails), [3, 500, 501, 999]);
        assert!(tries < 200, "{tries}");
    }

    #[test]
    fn violations_are_compared_without_names_and_numbers() {
        let violation = |detail: &str| Violation { invariant: "heals", detail: detail.into() };
        let wanted = violation("Settling: A1 is Terminating; the master has 1 of 2 agents");
        for (detail, alike) in [
            ("Settling: A0 is Terminating; A1 is down", true),
            ("Restarted: A0 is Terminating", false),
            ("Settling: A0 is down", false),
        ] {
            assert_eq!(is_alike(Some(&violation(detail)), &wanted), alike, "{detail}");
        }
        assert!(!is_alike(None, &wanted));
    }
}
