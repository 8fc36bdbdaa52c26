//! A whole cluster from a seed: real masters, agents and client sessions under a simulated clock, network and disk.
//!
//! [`run`] plays one seed: first a phase with faults (nothing bad may happen), then one without (everything must heal).
//! The same seed gives the same run, bit for bit. Checkers, one file per invariant, are under `check/`.
//!
//! Never here: threads, clocks, sockets, anything random but the seed. (The program around it runs seeds in parallel.)
#![forbid(unsafe_code)]

mod agent;
mod caller;
mod chance;
mod check;
mod counts;
mod drive;
mod event;
mod executor;
mod fault;
mod framework;
mod heal;
mod host;
mod master;
mod net;
mod operator;
mod plan;
mod process;
mod queue;
mod sabotage;
mod script;
mod show;
mod trace;
mod world;

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use check::Violation;
pub use counts::Counts;
pub use sabotage::Sabotage;
pub use trace::Trace;

/// Seeds that once failed, with what was wrong.
pub const REGRESSIONS: &str = include_str!("../regressions.txt");

/// What came of one seed.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub counts: Counts,
    pub violation: Option<Violation>,
    /// What happened, if it was to be kept.
    pub trace: Trace,
}

/// Plays one seed. A panic in a machine is a violation like any other.
pub fn run(seed: u64, sabotage: Sabotage, trace: Trace) -> Report {
    let mut world = world::World::new(seed, sabotage, trace);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let violation = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => Some(Violation { invariant: "no_panic", what: text(&*panic) }),
    };
    Report { seed, counts: world.counts, violation, trace: world.trace }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").into()
}

/// The seeds in [`REGRESSIONS`].
pub fn regressions() -> impl Iterator<Item = u64> {
    REGRESSIONS.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok())
}
