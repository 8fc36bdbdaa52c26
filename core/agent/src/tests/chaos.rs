//! Anything in any order: the agent never panics, never launches a container twice, and always starts from its records.

use std::collections::BTreeSet;
use std::vec::Vec;

use tepui_fsm::Rng;

use super::driver::World;
use crate::entities::slack;

const SEEDS: u64 = 200;
const COMMANDS: usize = 120;
/// More updates than a task can have in one run.
const ACKNOWLEDGEMENTS_MAX: usize = COMMANDS;

const LINES: [&str; 57] = [
    "up",
    "down",
    "subscribed",
    "subscribed missing=t2",
    "ping",
    "ping in order",
    "recovered",
    "recovered C1",
    "restart",
    "go",
    "wait 1s",
    "wait 11s",
    "wait 70s",
    "launch $t",
    "launch $t framework=G",
    "launch $t executor=$e",
    "launch $t executor=$e old",
    "launch $t reserved",
    "launch $t needs=cpus^:2",
    "launch $t needs=cpus^:2 executor=$e own=cpus^:1",
    "launch $t needs=cpus(ads):3",
    "launch $t needs=cpus(ads):3 executor=$e own=mem:1",
    "launch $t volume",
    "group $e t1,t2",
    "group $e t2,t3 old",
    "kill $t",
    "kill $t grace=1s",
    "ack $t",
    "ack $t framework=G",
    "ack $t uuid=x",
    "shutdown executor $e",
    "shutdown framework F",
    "framework F other",
    "message $e hello",
    "$t subscribe",
    "$e subscribe tasks=t1 updates=t1:RUNNING:a,t2:FINISHED:b",
    "$e subscribe",
    "$t update $t RUNNING",
    "$t update $t FINISHED",
    "$e update $t RUNNING uuid=q",
    "$e update $t FAILED",
    "$e close",
    "$t close",
    "$e launched 7",
    "$t failed fetch no",
    "$t exited 0",
    "$e exited 9",
    "$e unfit no",
    "operation o1 RESERVE cpus:1",
    "operation o2 UNRESERVE cpus:1",
    "operation o3 CREATE disk:64",
    "operation o1 ack",
    "call launch C1.a",
    "call wait C1.a",
    "container C1.a exited 0",
    "disk 0.95",
    "drain grace=1s",
];

#[test]
fn random_inputs_never_overlap_loans_or_launch_twice() {
    for seed in 0..SEEDS {
        let mut rng = Rng::seeded(seed);
        let mut world = World::default().run("has cpus(ads):4;cpus:2;mem:512;disk:128\nstart\nrecovered\ngo");
        for _ in 0..COMMANDS {
            let line = LINES[rng.below(LINES.len() as u64) as usize];
            let task = ["t1", "t2", "t3"][rng.below(3) as usize];
            let executor = ["e1", "e2", "t1"][rng.below(3) as usize];
            let line = line.replace("$t", task).replace("$e", executor);
            world.command(&line.split_whitespace().collect::<Vec<_>>());
            let overlaps = world.agent.as_ref().is_some_and(slack::overlaps);
            assert!(!overlaps, "seed {seed}: {line} lets an owner and a borrower have the same");
        }
        let mut launched = BTreeSet::new();
        let once =
            world.specs.iter().all(|spec| spec.id.parent().is_some() || launched.insert(spec.id.clone()));
        assert!(once, "seed {seed} launches a container twice");
        heal(&mut world, seed);
    }
}

/// After a restart that no container survived, with a patient master, nothing is left.
fn heal(world: &mut World, seed: u64) {
    for line in ["restart", "recovered all", "go"] {
        world.command(&line.split_whitespace().collect::<Vec<_>>());
    }
    for executor in ["e1", "e2", "t1", "t2", "t3"] {
        // What had waited for room has it now.
        world.command(&[executor, "exited", "9"]);
    }
    for _ in 0..ACKNOWLEDGEMENTS_MAX {
        for task in ["t1", "t2", "t3"] {
            world.command(&["ack", task]);
        }
        for operation in ["o1", "o2", "o3"] {
            world.command(&["operation", operation, "ack"]);
        }
    }
    let left = ["framework/", "executor/", "task/", "update/", "container/", "drain"];
    let left = |key: &&std::string::String| left.iter().any(|prefix| key.starts_with(prefix));
    assert_eq!(world.store.keys().find(left), None, "seed {seed}");
}
