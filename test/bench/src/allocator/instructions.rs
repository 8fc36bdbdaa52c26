//! `allocator --instructions`: what steps cost in instructions instead of time. Two runs of one build give the same numbers
//! but for the system's own randomness, whatever else the machine does: a regression shows at once.
//!
//! Runs the benchmark once per shape and size under callgrind, which counts inside `bench::counted` only and writes a
//! file after each step.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::shapes::Shape;
use crate::report::Row;

/// What is counted, by the end of its name.
const COUNTED: &str = "*counted";

/// A row per step. `program` is this benchmark as a file.
pub(super) fn count(program: &Path, shape: Shape, agents: usize, frameworks: usize) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .args([format!("--toggle-collect={COUNTED}"), format!("--dump-after={COUNTED}")])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program)
        .args(["allocator", "--runs=1", "--shape", shape.name()])
        .args([format!("--agents={agents}"), format!("--frameworks={frameworks}")])
        .stdin(Stdio::null())
        .output()
        .context("cannot run valgrind (Debian: apt-get install valgrind)")?;
    if !child.status.success() {
        bail!("valgrind: {}: {}", child.status, String::from_utf8_lossy(&child.stderr));
    }
    let said = String::from_utf8_lossy(&child.stdout);
    let report = said.lines().last().context("the benchmark says nothing")?;
    let report: Value = serde_json::from_str(report).context("the benchmark ends with JSON")?;
    let steps = report["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
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
