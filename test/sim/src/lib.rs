//! A whole cluster from a seed: real masters, agents and client sessions under a simulated clock, network and disk.
//!
//! [`run`] plays one seed: first a phase with faults (nothing bad may happen), then one without (everything must heal).
//! The same seed gives the same run, bit for bit. [`record`] also records the draws, and [`replay`] plays them without a
//! seed. Checkers, one file per invariant, are under `check/`.
//!
//! Absent: threads, clocks, sockets, randomness other than the seed. (`main` runs seeds in parallel.)
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
mod swarm;
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

const EVERY_TURN: u64 = 1;

/// The result of one run.
#[derive(Debug)]
pub struct Report {
    pub counts: Counts,
    pub violation: Option<Violation>,
    /// The trace, if enabled.
    pub trace: Trace,
}

/// Plays one seed.
pub fn run(seed: u64, sabotage: Sabotage, trace: Trace) -> Report {
    play(Source::seeded(seed), sabotage, trace, EVERY_TURN)
}

/// Plays one seed faster: the master's books are audited after every so many of its turns only.
pub fn run_with_audits_every(seed: u64, turns: u64) -> Report {
    play(Source::seeded(seed), Sabotage::None, Trace::Off, turns)
}

/// Plays one seed and writes down its history.
pub fn record(seed: u64, sabotage: Sabotage) -> (Report, History) {
    let source = Source::recording(seed);
    let report = play(source.clone(), sabotage, Trace::Off, EVERY_TURN);
    (report, source.history())
}

/// Plays a history again.
pub fn replay(history: &History, sabotage: Sabotage, trace: Trace) -> Report {
    play(Source::replaying(history), sabotage, trace, EVERY_TURN)
}

/// A panic in a machine is a violation like any other.
fn play(source: Source, sabotage: Sabotage, trace: Trace, audit_turns: u64) -> Report {
    let audits = world::Audits::every(audit_turns);
    let mut world = world::World::new(source, sabotage, trace, audits);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let violation = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => Some(Violation { invariant: "no_panic", detail: text(&*panic) }),
    };
    Report { counts: world.counts, violation, trace: world.trace }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").into()
}
