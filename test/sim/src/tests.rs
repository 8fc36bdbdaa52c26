//! The simulator itself: it replays, it has enough to do, and it notices what is broken on purpose.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;

/// Seeds in which something broken on purpose must show.
const SABOTAGED_SEEDS_MAX: u64 = 150;

fn hash_of_trace(seed: u64) -> u64 {
    let report = run(seed, Sabotage::None, Trace::Keep(String::new()));
    let Trace::Keep(text) = report.trace else { panic!("the trace was to be kept") };
    assert!(text.lines().count() > 100, "seed {seed} does next to nothing");
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_seed_replays_bit_for_bit() {
    for seed in 0..10 {
        assert_eq!(hash_of_trace(seed), hash_of_trace(seed), "seed {seed} went two ways");
    }
    assert_ne!(hash_of_trace(0), hash_of_trace(1));
}

#[test]
fn what_once_failed_passes() {
    for (name, text) in REGRESSIONS {
        let history = History::parse(text).unwrap_or_else(|why| panic!("{name}: {why}"));
        let violation = replay(&history, Sabotage::None, Trace::Off).violation;
        assert_eq!(violation, None, "{name}");
    }
}

#[test]
fn every_recorded_regression_is_played() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions");
    let files = std::fs::read_dir(directory).expect("the directory of recordings");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("a plain name"));
    let names: BTreeSet<String> = names.filter(|name| name.ends_with(".txt")).collect();
    let played: BTreeSet<String> = REGRESSIONS.iter().map(|(name, _)| format!("{name}.txt")).collect();
    assert_eq!(names, played);
}

#[test]
fn a_recorded_seed_plays_alike_from_its_text() {
    for seed in 0..5 {
        let (report, history) = record(seed, Sabotage::None);
        let read = History::parse(&history.to_string()).expect("it was written");
        let again = replay(&read, Sabotage::None, Trace::Off);
        assert_eq!((again.counts, again.violation), (report.counts, report.violation), "seed {seed}");
    }
}

#[test]
fn a_failing_history_is_made_small() {
    let sabotage = Sabotage::MasterBarrier;
    let failing = (0..SABOTAGED_SEEDS_MAX).map(|seed| record(seed, sabotage));
    let mut failing = failing.filter_map(|(report, history)| Some((report.violation?, history)));
    let (violation, history) = failing.next().expect("some seed shows it");
    let small = shrink(&history, &violation, sabotage);
    assert!(small.len() * 20 < history.len(), "{} of {} draws are left", small.len(), history.len());
    let found = replay(&small, sabotage, Trace::Off).violation.map(|found| found.invariant);
    assert_eq!(found, Some(violation.invariant));
    assert_eq!(replay(&small, Sabotage::None, Trace::Off).violation, None, "without what is broken");
}

#[test]
fn every_kind_of_fault_and_outcome_comes_up() {
    let mut counts = Counts::default();
    for seed in 0..SABOTAGED_SEEDS_MAX {
        let report = run(seed, Sabotage::None, Trace::Off);
        assert_eq!(report.violation, None, "seed {seed}");
        counts += report.counts;
        if counts.fields().iter().all(|(_, count)| *count > 0) {
            return;
        }
    }
    let missing: Vec<_> = counts.fields().into_iter().filter(|(_, count)| *count == 0).collect();
    panic!("none of {missing:?} in {counts}");
}

/// Some seed shows what is broken to one of the checkers that are there for it; without it all seeds tried are fine.
fn check(sabotage: Sabotage, noticed_by: &[&str]) {
    let noticed = |seed: &u64| {
        let violation = run(*seed, sabotage, Trace::Off).violation;
        violation.is_some_and(|violation| noticed_by.contains(&violation.invariant))
    };
    let Some(seed) = (0..SABOTAGED_SEEDS_MAX).find(noticed) else {
        panic!("nobody noticed {sabotage:?} in {SABOTAGED_SEEDS_MAX} seeds");
    };
    for seed in 0..=seed {
        assert_eq!(run(seed, Sabotage::None, Trace::Off).violation, None, "seed {seed} without {sabotage:?}");
    }
}

#[test]
fn a_master_that_speaks_before_it_writes_is_noticed() {
    check(Sabotage::MasterBarrier, &["visible_is_durable"]);
}

#[test]
fn an_agent_that_speaks_before_it_writes_is_noticed() {
    check(Sabotage::AgentBarrier, &["visible_is_durable"]);
}

#[test]
fn updates_confirmed_before_they_are_written_are_noticed() {
    check(Sabotage::AcknowledgedFirst, &["visible_is_durable"]);
}

#[test]
fn lost_acknowledgements_are_noticed() {
    check(Sabotage::LostAcknowledgements, &["acknowledged_not_resent"]);
}

#[test]
fn lost_updates_are_noticed() {
    check(Sabotage::LostUpdates, &["updates_in_order", "nothing_acknowledged_is_lost"]);
}

#[test]
fn containers_that_a_disk_forgets_are_noticed() {
    check(Sabotage::LostContainers, &["waits_are_answered", "launch_at_most_once"]);
}

#[test]
fn nested_containers_left_behind_are_noticed() {
    check(Sabotage::NestedLeftBehind, &["nested_ends_first", "no_orphan_container"]);
}

#[test]
fn agents_that_wait_for_ever_for_kills_are_noticed() {
    check(Sabotage::EndlessKills, &["kills_end"]);
}

#[test]
fn agents_that_let_tasks_take_as_long_as_they_like_are_noticed() {
    check(Sabotage::EndlessKills, &["times_end"]);
}

#[test]
fn executors_told_another_status_are_noticed() {
    check(Sabotage::ForgedExits, &["ends_are_true"]);
}

#[test]
fn disks_that_go_back_unnoticed_are_noticed() {
    let noticed_by = [
        "acknowledged_not_resent",
        "gone_stays_gone",
        "launch_at_most_once",
        "nothing_acknowledged_is_lost",
        "updates_in_order",
        "visible_is_durable",
    ];
    check(Sabotage::SilentRollback, &noticed_by);
}

#[test]
fn masters_that_write_without_leading_are_noticed() {
    check(Sabotage::Unfenced, &["leaders_write_alone"]);
}

#[test]
fn users_without_rules_are_noticed() {
    check(Sabotage::NoAuthorization, &["users_are_authorized"]);
}

#[test]
fn waits_told_another_status_are_noticed() {
    check(Sabotage::ForgedStatus, &["waits_are_answered"]);
}

#[test]
fn calls_answered_twice_are_noticed() {
    check(Sabotage::RepeatedAnswers, &["waits_are_answered"]);
}
