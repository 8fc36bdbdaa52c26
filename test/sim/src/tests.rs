//! The simulator itself: it replays, and it notices what is broken on purpose.

use super::*;

fn trace_of(seed: u64) -> String {
    match run(seed, Sabotage::None, Trace::Keep(String::new())).trace {
        Trace::Keep(text) => text,
        Trace::Off | Trace::Print => String::new(),
    }
}

#[test]
fn a_seed_replays_bit_for_bit() {
    for seed in 0..5 {
        let (first, second) = (trace_of(seed), trace_of(seed));
        assert!(!first.is_empty());
        assert!(first == second, "seed {seed} went two ways");
    }
}
