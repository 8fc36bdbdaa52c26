//! `allocator`: the allocator alone, in the shapes of the benchmarks that Mesos has for its own, and in whole clusters.
//!
//! Each step of a shape is timed in every run; a row gives the least and the median time and, where the C++ allocator was
//! measured at that size on a machine like ours (`reference`), how many times faster the least is. A *cycle* is one batch:
//! all agents that changed are looked at and their offers handed out. Nothing but time passes between two cycles besides
//! what the shape says. With `--instructions` steps are counted instead of timed.

mod bench;
mod cluster;
mod instructions;
mod others;
mod quotas;
mod reference;
mod shapes;

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::report::{Report, Row};
use crate::spread::Spread;
use shapes::Shape;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only the shape of this name, as `quota-many-roles`, or those with this in their names; all of them without.
    #[arg(long)]
    pub shape: Option<String>,
    /// So many agents instead of the sizes of each shape.
    #[arg(long)]
    pub agents: Option<usize>,
    /// So many frameworks.
    #[arg(long)]
    pub frameworks: Option<usize>,
    /// Only sizes with at most so many agents.
    #[arg(long, default_value_t = usize::MAX)]
    pub agents_max: usize,
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Count instructions instead of time, with valgrind. Slow: choose shapes or `--agents-max 1000`.
    #[arg(long)]
    pub instructions: bool,
    /// This benchmark as a file, if another program runs it.
    #[arg(skip)]
    pub program: Option<PathBuf>,
}

/// One timed step of a shape.
struct Step {
    name: &'static str,
    offers: usize,
    took: Duration,
    /// What the process grew by since the shape began.
    memory_mib: Option<f64>,
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::new("allocator").setting("runs", options.runs);
    let exact = |part: &str| Shape::ALL.iter().any(|shape| shape.name() == part);
    let named = |shape: &Shape| match options.shape.as_deref() {
        Some(name) if exact(name) => shape.name() == name,
        Some(part) => shape.name().contains(part),
        None => true,
    };
    let sized = |shape: Shape| options.sizes(shape).into_iter().map(move |size| (shape, size));
    let wanted: Vec<(Shape, (usize, usize))> =
        Shape::ALL.iter().copied().filter(named).flat_map(sized).collect();
    if !Shape::ALL.iter().any(named) {
        let names: Vec<&str> = Shape::ALL.iter().map(|shape| shape.name()).collect();
        bail!("there is no such shape; there are: {}", names.join(", "));
    }
    for (done, (shape, (agents, frameworks))) in wanted.iter().enumerate() {
        let place = format!("[{}/{}] {} {agents}x{frameworks}", done + 1, wanted.len(), shape.name());
        let rows = match options.instructions {
            true => {
                progress(&place);
                instructions::count(&options.program()?, *shape, *agents, *frameworks)?
            }
            false => measure(*shape, *agents, *frameworks, options.runs, |run| {
                progress(&format!("{place}, run {run} of {}", options.runs));
            }),
        };
        rows.into_iter().for_each(|row| report.push(row));
    }
    progress("");
    Ok(report)
}

impl Options {
    fn program(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(|| std::env::current_exe().context("where is this program?"), Ok)
    }

    fn sizes(&self, shape: Shape) -> Vec<(usize, usize)> {
        let Some(agents) = self.agents else {
            let small = shape.sizes().iter().copied().filter(|(agents, _)| *agents <= self.agents_max);
            return small.map(|(agents, own)| (agents, self.frameworks.unwrap_or(own))).collect();
        };
        let known: Vec<(usize, usize)> =
            shape.sizes().iter().copied().filter(|(own, _)| *own == agents).collect();
        match (self.frameworks, known.is_empty()) {
            (Some(frameworks), _) => vec![(agents, frameworks)],
            (None, false) => known,
            (None, true) => vec![(agents, shape.frameworks(agents))],
        }
    }
}

/// Where it is, for people who wait.
fn progress(text: &str) {
    if stderr().is_terminal() {
        // A terminal that went away is nobody to tell.
        let _ = write!(stderr(), "\r\x1b[K{text}");
    }
}

/// A row per step.
fn measure(
    shape: Shape,
    agents: usize,
    frameworks: usize,
    runs: usize,
    mut before: impl FnMut(usize),
) -> Vec<Row> {
    let mut steps: Vec<(Step, Spread)> = Vec::new();
    for run in 0..runs {
        before(run + 1);
        for (index, step) in shape.run(agents, frameworks).into_iter().enumerate() {
            let took = step.took;
            if steps.len() == index {
                steps.push((step, Spread::default()));
            }
            steps[index].1.push(took);
        }
    }
    let row = |(step, spread): (Step, Spread)| {
        let mut row = Row::new()
            .with("shape", shape.name())
            .with("agents", agents)
            .with("frameworks", frameworks)
            .with("step", step.name)
            .with("offers", step.offers)
            .measured("min_ms", spread.min_ms())
            .measured("median_ms", spread.median_ms());
        if let Some(theirs) = reference::min_ms(shape.name(), agents, frameworks, step.name) {
            row = row
                .measured("mesos_min_ms", theirs)
                .measured("times_faster", theirs / spread.min_ms().max(1e-6));
        }
        match step.memory_mib {
            Some(memory) => row.measured("memory_mib", memory),
            None => row,
        }
    };
    steps.into_iter().map(row).collect()
}
