//! `idle`: processor time of `tepui dev` while nothing happens.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::program::Program;
use crate::report::{Report, Row};

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How long each look takes.
    #[arg(long, default_value_t = 30.0)]
    pub seconds: f64,
    /// Agents of the cluster.
    #[arg(long, default_value_t = 1)]
    pub agents: u32,
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Wait before the first look, so that starting is over.
    #[arg(long, default_value_t = 3.0)]
    pub settle_seconds: f64,
}

pub fn run(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let cluster = Program::dev(folder.path(), &[format!("--agents={}", options.agents)])?;
    let mut report =
        Report::new("idle").setting("agents", options.agents).setting("seconds", options.seconds);
    std::thread::sleep(Duration::from_secs_f64(options.settle_seconds));
    for number in 1..=options.runs {
        let (before, began) = (cluster.usage()?, Instant::now());
        std::thread::sleep(Duration::from_secs_f64(options.seconds));
        let (after, took) = (cluster.usage()?, began.elapsed());
        let cpu = after.cpu_seconds - before.cpu_seconds;
        report.push(
            Row::new()
                .with("run", number)
                .measured("cpu_s", cpu)
                .measured("percent_of_a_core", 100.0 * cpu / took.as_secs_f64())
                .measured("rss_mib", after.rss_mib),
        );
    }
    cluster.stop()?;
    Ok(report)
}
