//! A whole cluster from a seed: real masters, agents and client sessions under a simulated clock, network and disk.
//!
//! [`run`] plays one seed: first a phase with faults (nothing bad may happen), then one without (everything must heal).
//! The same seed gives the same run, bit for bit. [`record`] also writes down what was drawn, and [`replay`] plays that
//! without a seed. Checkers, one file per invariant, are under `check/`.
//!
//! Never here: threads, clocks, sockets, anything random but the seed. (The program around it runs seeds in parallel.)
#![forbid(unsafe_code)]

mod agent;
mod caller;
mod chance;
mod check;
mod clock;
mod counts;
mod disk;
mod drive;
mod election;
mod event;
mod executor;
mod fault;
mod framework;
mod heal;
mod history;
mod host;
mod master;
mod measure;
mod net;
mod operator;
mod plan;
mod probe;
mod process;
mod queue;
mod regressions;
mod sabotage;
mod script;
mod show;
mod shrink;
mod trace;
mod users;
mod world;

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};

use chance::Source;

pub use check::Violation;
pub use counts::Counts;
pub use history::History;
pub use regressions::REGRESSIONS;
pub use sabotage::Sabotage;
pub use shrink::shrink;
pub use trace::Trace;

/// What came of one run.
#[derive(Debug)]
pub struct Report {
    pub counts: Counts,
    pub violation: Option<Violation>,
    /// What happened, if it was to be kept.
    pub trace: Trace,
}

/// Plays one seed.
pub fn run(seed: u64, sabotage: Sabotage, trace: Trace) -> Report {
    play(Source::seeded(seed), sabotage, trace)
}

/// Plays one seed and writes down its history.
pub fn record(seed: u64, sabotage: Sabotage) -> (Report, History) {
    let source = Source::recording(seed);
    let report = play(source.clone(), sabotage, Trace::Off);
    (report, source.history())
}

/// Plays a history again.
pub fn replay(history: &History, sabotage: Sabotage, trace: Trace) -> Report {
    play(Source::replaying(history), sabotage, trace)
}

/// A panic in a machine is a violation like any other.
fn play(source: Source, sabotage: Sabotage, trace: Trace) -> Report {
    let mut world = world::World::new(source, sabotage, trace);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let violation = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => Some(Violation { invariant: "no_panic", what: text(&*panic) }),
    };
    Report { counts: world.counts, violation, trace: world.trace }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").into()
}
