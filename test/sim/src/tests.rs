//! The simulator itself: replay, coverage, and detection of sabotage.

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
fn recorded_regressions_pass() {
    for (name, text) in REGRESSIONS {
        let history = History::parse(text).unwrap_or_else(|reason| panic!("{name}: {reason}"));
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
fn recorded_seed_replays_identically_from_text() {
    for seed in 0..5 {
        let (report, history) = record(seed, Sabotage::None);
        let read = History::parse(&history.to_string()).expect("it was written");
        let again = replay(&read, Sabotage::None, Trace::Off);
        assert_eq!((again.counts, again.violation), (report.counts, report.violation), "seed {seed}");
    }
}

#[test]
fn failing_history_is_shrunk() {
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
fn every_fault_and_outcome_occurs() {
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

/// Some seed violates one of the expected invariants; without the sabotage all tried seeds pass.
fn check(sabotage: Sabotage, detected_by: &[&str]) {
    let noticed = |seed: &u64| {
        let violation = run(*seed, sabotage, Trace::Off).violation;
        violation.is_some_and(|violation| detected_by.contains(&violation.invariant))
    };
    let Some(seed) = (0..SABOTAGED_SEEDS_MAX).find(noticed) else {
        panic!("nobody noticed {sabotage:?} in {SABOTAGED_SEEDS_MAX} seeds");
    };
    for seed in 0..=seed {
        assert_eq!(run(seed, Sabotage::None, Trace::Off).violation, None, "seed {seed} without {sabotage:?}");
    }
}

#[test]
fn master_effect_before_its_record_is_detected() {
    check(Sabotage::MasterBarrier, &["visible_is_durable"]);
}

#[test]
fn agent_effect_before_its_record_is_detected() {
    check(Sabotage::AgentBarrier, &["visible_is_durable"]);
}

#[test]
fn update_acknowledged_before_its_record_is_detected() {
    check(Sabotage::AcknowledgedFirst, &["visible_is_durable"]);
}

#[test]
fn lost_acknowledgement_is_detected() {
    check(Sabotage::LostAcknowledgements, &["acknowledged_not_resent"]);
}

#[test]
fn lost_update_is_detected() {
    check(Sabotage::LostUpdates, &["updates_in_order", "nothing_acknowledged_is_lost"]);
}

#[test]
fn container_missing_from_checkpoint_is_detected() {
    check(Sabotage::LostContainers, &["waits_are_answered", "launch_at_most_once"]);
}

#[test]
fn orphaned_nested_container_is_detected() {
    check(Sabotage::NestedLeftBehind, &["nested_terminates_first", "no_orphan_container"]);
}

#[test]
fn kill_without_escalation_is_detected() {
    check(Sabotage::EndlessKills, &["kills_complete"]);
}

#[test]
fn missing_max_completion_time_is_detected() {
    check(Sabotage::EndlessKills, &["completion_time_is_enforced"]);
}

#[test]
fn wrong_status_to_executor_is_detected() {
    check(Sabotage::ForgedExits, &["terminal_states_are_true"]);
}

#[test]
fn undetected_disk_rollback_is_detected() {
    let detected_by = [
        "acknowledged_not_resent",
        "gone_stays_gone",
        "launch_at_most_once",
        "nothing_acknowledged_is_lost",
        "updates_in_order",
        "visible_is_durable",
    ];
    check(Sabotage::SilentRollback, &detected_by);
}

#[test]
fn write_without_leadership_is_detected() {
    check(Sabotage::Unfenced, &["leaders_write_alone"]);
}

#[test]
fn unauthorized_user_is_detected() {
    check(Sabotage::NoAuthorization, &["users_are_authorized"]);
}

#[test]
fn wrong_wait_status_is_detected() {
    check(Sabotage::ForgedStatus, &["waits_are_answered"]);
}

#[test]
fn duplicate_answer_is_detected() {
    check(Sabotage::RepeatedAnswers, &["waits_are_answered"]);
}

#[test]
fn swarm_effect_before_its_record_is_detected() {
    check(Sabotage::SwarmBarrier, &["containers_persist"]);
}

#[test]
fn lost_swarm_record_is_detected() {
    check(Sabotage::LostSwarmRecords, &["containers_persist"]);
}

#[test]
fn repeated_start_of_a_swarm_container_is_detected() {
    check(Sabotage::RepeatedStarts, &["containers_run_once"]);
}

#[test]
fn launch_of_the_other_kind_is_detected() {
    check(Sabotage::ForgedKinds, &["kinds_are_not_mixed"]);
}

#[test]
fn duplicate_container_name_is_detected() {
    check(Sabotage::ForgedNames, &["container_names_are_unique"]);
}

#[test]
fn wrong_end_of_a_swarm_container_is_detected() {
    check(Sabotage::ForgedEnds, &["container_ends_are_true"]);
}
