//! The manager in a model of a cluster, from seeds: engines and agents die and come back, offers are rescinded, tasks are
//! preempted, clients leave, and the manager is killed between any two of its records and effects.
//!
//! One seed alone, with what happens: `SWARM_SEED=17 cargo test -p tepui-swarm --test model -- --nocapture`; more seeds:
//! `SWARM_SEEDS=10000`.

mod check;
mod cluster;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use world::World;

const SEEDS: u64 = 60;

#[test]
fn no_seed_violates_an_invariant() {
    if let Some(seed) = number("SWARM_SEED") {
        let (world, violation) = play(seed);
        world.trace.iter().for_each(|line| println!("{line}"));
        assert_eq!(violation, None);
        return;
    }
    let (mut created, mut rejected) = (0, 0);
    let mut violations = Vec::new();
    for seed in 0..number("SWARM_SEEDS").unwrap_or(SEEDS) {
        let (world, violation) = play(seed);
        violations.extend(violation.map(|it| format!("seed {seed}: {it}")));
        created += world.creates.values().filter(|it| matches!(it.answer, Some(Ok(_)))).count();
        rejected += world.creates.values().filter(|it| matches!(it.answer, Some(Err(_)))).count();
    }
    assert!(
        violations.is_empty(),
        "{} seeds violate an invariant\n{}",
        violations.len(),
        violations.join("\n")
    );
    assert!(created > rejected / 3 && rejected > created / 10, "{created} created, {rejected} rejected");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn play(seed: u64) -> (World, Option<String>) {
    let mut world = World::new(seed);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let violation = outcome.err().map(|panic| match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without words").to_owned(),
    });
    (world, violation)
}
