//! `allocator --instructions`: what steps cost in instructions instead of time. Two runs of one build give the same numbers
//! whatever else the machine does: a regression shows at once.
//!
//! Runs the benchmark once per shape and size under callgrind, which counts inside `bench::counted` only and writes a
//! file after each step.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::shapes::Shape;
use super::weight;
use crate::report::Row;

/// What is counted, by the end of its name.
const COUNTED: &str = "*counted";

/// A row per step. `program` is this benchmark as a file.
pub(super) fn count(program: &Path, shape: Shape, agents: usize, frameworks: usize) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let mut valgrind = Command::new("valgrind");
    valgrind
        // The memory allocator returns pages after a delay, so that counts would depend on the time a step takes.
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .args([format!("--toggle-collect={COUNTED}"), format!("--dump-after={COUNTED}")])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program);
    let steps = weight::alone(valgrind, shape, agents, frameworks)
        .context("valgrind is needed (Debian: apt-get install valgrind)")?;
    let mut rows = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let instructions = total(&numbered(&counts, number + 1))?;
        let per_agent = instructions as f64 / agents.max(1) as f64;
        let row =
            Row::new().with("shape", shape.name()).with("agents", agents).with("frameworks", frameworks);
        let row = row.with("step", step["step"].clone()).with("offers", step["offers"].clone());
        rows.push(row.with("instructions", instructions).measured("per_agent", per_agent));
    }
    ensure!(!rows.is_empty(), "nothing was counted: is the program stripped of its names?");
    Ok(rows)
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    PathBuf::from(format!("{}.{number}", path.display()))
}

fn total(file: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(file).context("callgrind wrote no counts of a step")?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    line.and_then(|count| count.trim().parse().ok()).context("callgrind wrote no total")
}
