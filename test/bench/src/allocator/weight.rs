//! What a shape takes in memory: measured in a process that runs nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Step;
use super::shapes::Shape;
use crate::spread::Spread;

/// Notes with the steps what they had taken in a process of their own. `program` is this benchmark as a file.
pub(super) fn weigh(
    program: &Path,
    shape: Shape,
    agents: usize,
    frameworks: usize,
    steps: &mut [(Step, Spread)],
) -> Result<()> {
    let rows = alone(Command::new(program), shape, agents, frameworks)?;
    for ((step, _), row) in steps.iter_mut().zip(&rows) {
        step.memory_mib = row["memory_mib"].as_f64();
    }
    Ok(())
}

/// The rows of one run of one size of one shape, in a process of its own.
pub(super) fn alone(
    mut program: Command,
    shape: Shape,
    agents: usize,
    frameworks: usize,
) -> Result<Vec<Value>> {
    let child = program
        .args(["allocator", "--runs=1", "--shape", shape.name()])
        .args([format!("--agents={agents}"), format!("--frameworks={frameworks}")])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.get_program().display()))?;
    if !child.status.success() {
        bail!("{}: {}", child.status, String::from_utf8_lossy(&child.stderr));
    }
    let said = String::from_utf8_lossy(&child.stdout);
    let report = said.lines().last().context("the benchmark says nothing")?;
    let report: Value = serde_json::from_str(report).context("the benchmark ends with JSON")?;
    Ok(report["rows"].as_array().cloned().unwrap_or_default())
}
