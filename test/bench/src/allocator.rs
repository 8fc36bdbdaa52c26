//! `allocator`: the allocator alone, in the shapes of the benchmarks that Mesos has for its own (those without quota).
//!
//! Each step of a shape is timed in every run; a row gives the least and the median time. A *cycle* is one batch: all
//! agents that changed are looked at and their offers handed out. Nothing but time passes between two cycles besides
//! what the shape says.

mod bench;
mod shapes;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::report::{Report, Row};
use crate::spread::Spread;
use shapes::Shape;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only shapes with this in their name.
    #[arg(long)]
    pub only: Option<String>,
    /// Only sizes with at most so many agents.
    #[arg(long, default_value_t = usize::MAX)]
    pub agents_max: usize,
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
}

/// One timed step of a shape.
struct Step {
    name: &'static str,
    offers: usize,
    took: Duration,
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::new("allocator").setting("runs", options.runs);
    for shape in Shape::ALL {
        let wanted = options.only.as_ref().is_none_or(|only| shape.name().contains(only.as_str()));
        for (agents, frameworks) in shape.sizes().iter().copied() {
            if wanted && agents <= options.agents_max {
                measure(*shape, agents, frameworks, options.runs)
                    .into_iter()
                    .for_each(|row| report.push(row));
            }
        }
    }
    Ok(report)
}

/// A row per step.
fn measure(shape: Shape, agents: usize, frameworks: usize, runs: usize) -> Vec<Row> {
    let mut steps: Vec<(&'static str, usize, Spread)> = Vec::new();
    for _ in 0..runs {
        for (index, step) in shape.run(agents, frameworks).into_iter().enumerate() {
            if steps.len() == index {
                steps.push((step.name, step.offers, Spread::default()));
            }
            steps[index].2.push(step.took);
        }
    }
    let row = |(name, offers, spread): (&'static str, usize, Spread)| {
        Row::new()
            .with("shape", shape.name())
            .with("agents", agents)
            .with("frameworks", frameworks)
            .with("step", name)
            .with("offers", offers)
            .measured("min_ms", spread.min_ms())
            .measured("median_ms", spread.median_ms())
    };
    steps.into_iter().map(row).collect()
}
