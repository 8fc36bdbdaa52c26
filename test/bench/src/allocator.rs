//! `allocator`: the allocator alone, in the shapes of the benchmarks that Mesos has for its own, and in whole clusters.
//!
//! Each step of a shape is timed in every run; a row gives the least and the median time and, where the C++ allocator was
//! measured at that size on a machine like ours (`reference`), how many times faster the least is. A *cycle* is one batch:
//! all agents that changed are looked at and their offers handed out. Nothing but time passes between two cycles besides
//! what the shape says. `memory_mib` is what a process of its own has grown by at the end of the step; `per_doubling` is how
//! many times a step costs when there are twice as many agents, between this size and the one before. With `--instructions`
//! steps are counted instead of timed.

mod bench;
mod cluster;
mod instructions;
mod others;
mod progress;
mod quotas;
mod reference;
mod shapes;
mod weight;

use std::collections::BTreeMap;
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
        bail!("unknown shape; shapes: {}", names.join(", "));
    }
    let mut smaller = Sizes::default();
    for (done, (shape, (agents, frameworks))) in wanted.iter().enumerate() {
        let place = format!("{} {agents}x{frameworks}", shape.name());
        progress::show(done, wanted.len(), &place);
        if options.instructions {
            let rows = instructions::count(&options.program()?, *shape, *agents, *frameworks)?;
            rows.into_iter().for_each(|row| report.push(row));
            continue;
        }
        let mut steps = measure(*shape, *agents, *frameworks, options.runs, |run| {
            progress::show(done, wanted.len(), &format!("{place}, run {run} of {}", options.runs));
        });
        if wanted.len() > 1 {
            // What others left in this process is not told from what this one takes.
            weight::weigh(&options.program()?, *shape, *agents, *frameworks, &mut steps)?;
        }
        for (step, spread) in steps {
            let per_doubling = smaller.replace(*shape, step.name, *agents, spread.min_ms());
            report.push(row(*shape, *agents, *frameworks, &step, &spread, per_doubling));
        }
    }
    progress::end();
    Ok(report)
}

/// The agents of the last size, and what each step of it took.
#[derive(Default)]
struct Sizes(BTreeMap<(&'static str, &'static str), (usize, f64)>);

impl Sizes {
    /// Notes what a step took; how many times that is what it took with half as many agents, as it grew since the last.
    fn replace(&mut self, shape: Shape, step: &'static str, agents: usize, ms: f64) -> Option<f64> {
        let (before, took) = self.0.insert((shape.name(), step), (agents, ms))?;
        let doublings = (agents as f64 / before as f64).log2();
        (doublings > 0.0 && took > 0.0 && ms > 0.0).then(|| (ms / took).powf(1.0 / doublings))
    }
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

/// Each step, and what it took in every run.
fn measure(
    shape: Shape,
    agents: usize,
    frameworks: usize,
    runs: usize,
    mut before: impl FnMut(usize),
) -> Vec<(Step, Spread)> {
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
    steps
}

fn row(
    shape: Shape,
    agents: usize,
    frameworks: usize,
    step: &Step,
    spread: &Spread,
    per_doubling: Option<f64>,
) -> Row {
    let mut row = Row::new()
        .with("shape", shape.name())
        .with("agents", agents)
        .with("frameworks", frameworks)
        .with("step", step.name)
        .with("offers", step.offers)
        .measured("min_ms", spread.min_ms())
        .measured("median_ms", spread.median_ms());
    if let Some(theirs) = reference::min_ms(shape.name(), agents, frameworks, step.name) {
        row =
            row.measured("mesos_min_ms", theirs).measured("times_faster", theirs / spread.min_ms().max(1e-6));
    }
    let others = [("per_doubling", per_doubling), ("memory_mib", step.memory_mib)];
    others
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .fold(row, |row, (name, value)| row.measured(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_factor_per_doubling_of_agents_is_reported() {
        let mut sizes = Sizes::default();
        let mut next = |agents, ms| sizes.replace(Shape::Cluster, "step", agents, ms);
        assert_eq!(next(1_000, 1.0), None);
        assert_eq!(next(2_000, 2.0), Some(2.0));
        assert_eq!(next(8_000, 32.0), Some(4.0));
        // Another number of frameworks.
        assert_eq!(next(8_000, 40.0), None);
    }
}
