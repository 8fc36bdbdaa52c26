//! `end-to-end`: real tasks on real agents, and beside them as many bare forks and execs of the same command. Every task is a
//! sandbox, a supervisor, an executor and a shell.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::{TASK_CPUS, TASK_MEM};
use crate::framework::{self, Frameworks};
use crate::program::{Program, own_and_children_cpu_seconds};
use crate::report::{Report, Row};

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 500)]
    pub tasks: usize,
    #[arg(long, default_value_t = 1)]
    pub agents: usize,
    /// Tasks that an agent has room for at once.
    #[arg(long, default_value_t = 25)]
    pub slots: usize,
    /// How long the master waits before it offers again what came back.
    #[arg(long, default_value = "1secs")]
    pub allocation_interval: String,
    #[arg(long, default_value = "true")]
    pub command: String,
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::new("end-to-end")
        .setting("tasks", options.tasks)
        .setting("agents", options.agents)
        .setting("slots", options.slots)
        .setting("allocation_interval", options.allocation_interval.clone());
    let runtime = tokio::runtime::Runtime::new()?;
    for number in 1..=options.runs {
        report.push(runtime.block_on(once(options))?.with("run", number));
    }
    Ok(report)
}

async fn once(options: &Options) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let interval = format!("--allocation_interval={}", options.allocation_interval);
    let master = Program::master(folder.path(), &[interval])?;
    let plan = framework::Plan {
        frameworks: 1,
        tasks: options.tasks,
        window: usize::MAX,
        format: Format::Protobuf,
        command: options.command.clone(),
        until: TaskState::TASK_FINISHED,
        calls: framework::CALLS,
    };
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    let slots = options.slots as f64;
    let resources = format!(
        "--resources=cpus:{:.1};mem:{};disk:10240;ports:[31000-32000]",
        TASK_CPUS * slots,
        TASK_MEM * slots
    );
    let agents: Vec<Program> = (0..options.agents)
        .map(|index| Program::agent(folder.path(), index, &master.address, std::slice::from_ref(&resources)))
        .collect::<Result<_>>()?;
    frameworks.offered(options.agents).await?;
    let (took, latencies) = frameworks.launch().await?;
    let agent = agents.first().context("there is an agent")?.usage()?;
    let master = master.usage()?;
    let row = Row::new()
        .measured("tasks_per_s", options.tasks as f64 / took.as_secs_f64())
        .measured("seconds", took.as_secs_f64());
    let row = latencies
        .percentiles(row)
        .measured("master_cpu_s", master.cpu_seconds)
        .measured("agent_cpu_s", agent.cpu_seconds)
        .measured("executors_cpu_s", agent.children_cpu_seconds);
    bare(options, row)
}

/// The same commands without a cluster, one after the other.
fn bare(options: &Options, row: Row) -> Result<Row> {
    let (began, before) = (Instant::now(), own_and_children_cpu_seconds()?);
    for _ in 0..options.tasks {
        Command::new("sh").args(["-c", &options.command]).status()?;
    }
    let (took, cpu) = (began.elapsed(), own_and_children_cpu_seconds()? - before);
    Ok(row.measured("bare_per_s", options.tasks as f64 / took.as_secs_f64()).measured("bare_cpu_s", cpu))
}
