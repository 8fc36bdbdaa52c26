//! `memory`: resident memory of the master per 1,000 agents and per 1,000 running tasks.
//!
//! One master grows in steps; each row says what a step added. Memory that the process keeps for reuse counts.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 256;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Agents that each step adds.
    #[arg(long, default_value_t = 2_000)]
    pub agents: usize,
    /// Tasks on each agent that each step adds.
    #[arg(long, default_value_t = 10)]
    pub tasks: usize,
    #[arg(long, default_value_t = 3)]
    pub steps: usize,
    /// Wait before each measurement, so that what is freed can be given back.
    #[arg(long, default_value_t = 3.0)]
    pub settle_seconds: f64,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files((options.agents * options.steps) as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &[])?;
    let mut meter =
        Meter { master: &master, settle: Duration::from_secs_f64(options.settle_seconds), last_mib: 0.0 };
    let mut report = Report::new("memory")
        .setting("agents_per_step", options.agents)
        .setting("tasks_per_agent", options.tasks);
    report.push(meter.row("empty", 0).await?);
    let mut running = Vec::new();
    for step in 0..options.steps {
        let plan = fleet::Plan {
            agents: options.agents,
            life: Life::Long,
            slots: options.tasks,
            backoff: Duration::ZERO,
            backoff_max: fleet::BACKOFF_MAX,
        };
        let fleet = Fleet::start(&master.address, step * options.agents, plan);
        fleet.subscribed(options.agents).await?;
        report.push(meter.row("agents", options.agents).await?);
        let plan = framework::Plan {
            frameworks: 1,
            tasks: options.agents * options.tasks,
            window: usize::MAX,
            format: Format::Protobuf,
            command: "sleep 3600".to_owned(),
            until: TaskState::TASK_RUNNING,
            calls: framework::CALLS,
        };
        let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
        frameworks.launch().await?;
        report.push(meter.row("tasks", options.agents * options.tasks).await?);
        running.push((fleet, frameworks));
    }
    Ok(report)
}

struct Meter<'a> {
    master: &'a Program,
    settle: Duration,
    last_mib: f64,
}

impl Meter<'_> {
    async fn row(&mut self, what: &'static str, added: usize) -> Result<Row> {
        tokio::time::sleep(self.settle).await;
        let now = self.master.usage()?;
        let grown = now.rss_mib - self.last_mib;
        self.last_mib = now.rss_mib;
        let row = Row::new()
            .with("added", added)
            .with("of", what)
            .measured("rss_mib", now.rss_mib)
            .measured("peak_mib", now.peak_rss_mib);
        Ok(match added {
            0 => row,
            _ => row
                .measured("kib_per_piece", grown * 1024.0 / added as f64)
                .measured("mib_per_1000", grown * 1000.0 / added as f64),
        })
    }
}
