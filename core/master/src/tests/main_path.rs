//! The main path of ARCHITECTURE.md, section 3: the rows of the master are played, and the document must print their outbox.

use alloc::string::String;
use alloc::vec::Vec;

use super::script::Script;
use crate::Config;

/// The input of each row of this program, by the number of the row.
const INPUTS: &[(&str, &str)] = &[
    ("1", "framework F role:web"),
    ("2", "agent A cpus:4 mem:1024"),
    ("3", "settle"),
    ("4", "F accept #0 : launch t1 cpus:1 mem:128"),
    ("9", "A update t1 RUNNING"),
    ("10", "F ack t1"),
];

struct Row {
    number: String,
    handlers: Vec<String>,
    outbox: Vec<String>,
}

/// The rows of this program.
fn rows() -> Vec<Row> {
    let document = include_str!("../../../../ARCHITECTURE.md");
    let section = document.split("\n## ").find(|section| section.starts_with("3. ")).expect("section 3");
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[number, program, _, handlers, _, outbox] = cells.as_slice() else { return None };
        let row = Row { number: number.into(), handlers: quoted(handlers), outbox: quoted(outbox) };
        (program == "master").then_some(row)
    };
    section.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

/// The parts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(String::from).collect()
}

#[test]
fn main_path_matches_the_architecture_document() {
    let rows = rows();
    let numbers: Vec<&str> = rows.iter().map(|row| row.number.as_str()).collect();
    assert_eq!(numbers, INPUTS.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    let mut script = Script::new(Config::default());
    let mut printed = 0;
    for (row, (number, input)) in rows.iter().zip(INPUTS) {
        script.play(input);
        let is_periodic = |line: &&str| line.ends_with("HEARTBEAT") || line.starts_with("record initialize");
        let outbox: Vec<&str> =
            script.output()[printed..].lines().filter(|line| !is_periodic(line)).collect();
        assert_eq!(outbox, row.outbox, "row {number}: {input}");
        printed = script.output().len();
    }
    for row in &rows {
        for handler in &row.handlers {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(handler);
            assert!(path.exists(), "row {}: {handler} does not exist", row.number);
        }
    }
}
