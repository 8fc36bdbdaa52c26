//! Scripts: what happens outside as lines, what the master makes durable and visible as answers.
//!
//! `script` plays agents and frameworks and speaks the protocol; the other files are tables of scripts.

mod accept;
mod agents;
mod audit;
mod authorization;
mod counters;
mod disk_pressure;
mod drains;
mod explain;
mod failover;
mod kills;
mod limits;
mod main_path;
mod maintenance;
mod offers;
mod operations;
mod operators_operations;
mod quotas;
mod random;
mod script;
mod slack;
mod terms;
mod updates;
mod weights;
mod wire;

use expect_test::Expect;

use crate::Config;
use script::Script;

/// Runs a script against a new master with default flags.
fn check(script: &str, expected: Expect) {
    check_with(Config::default(), script, expected);
}

fn check_with(config: Config, script: &str, expected: Expect) {
    expected.assert_eq(&said(config, script));
}

/// Everything that comes of a script.
fn said(config: Config, script: &str) -> alloc::string::String {
    let mut run = Script::new(config);
    run.play(script);
    run.said()
}
