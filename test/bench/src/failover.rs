//! `failover`: the master is killed and started again on the same registry and port; all agents come back with their
//! tasks.
//!
//! The clock starts with SIGKILL and ends when every agent has heard SUBSCRIBED again. Whether every task is back is
//! counted afterwards.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use tepui_client::Format;
use tepui_client::operator::Client;
use tepui_client::v1::TaskState;
use tepui_client::v1::master::{Call, call};

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 256;

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// Tasks on each agent.
    #[arg(long, default_value_t = 10)]
    pub tasks: usize,
    #[arg(long, default_value_t = 4)]
    pub frameworks: usize,
    /// Agents whose link broke wait a random time, at first up to this, twice that after each failure. The default is
    /// that of `tepui agent`.
    #[arg(long, default_value_t = 1000)]
    pub backoff_ms: u64,
    /// How often the master is killed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Flags for the master.
    #[arg(long = "master-flag", allow_hyphen_values = true)]
    pub master_flags: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files(options.agents as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let mut master = Program::master(folder.path(), &options.master_flags)?;
    let plan = framework::Plan {
        frameworks: options.frameworks,
        tasks: options.agents * options.tasks,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "sleep 3600".to_owned(),
        until: TaskState::TASK_RUNNING,
        calls: framework::CALLS,
    };
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    let plan = fleet::Plan {
        agents: options.agents,
        life: Life::Long,
        slots: options.tasks,
        backoff: Duration::from_millis(options.backoff_ms),
        backoff_max: fleet::BACKOFF_MAX,
    };
    let began = Instant::now();
    let fleet = Fleet::start(&master.address, 0, plan);
    fleet.subscribed(options.agents).await?;
    let registered = began.elapsed();
    frameworks.offered(options.agents).await?;
    let (launched, _) = frameworks.launch().await?;
    let mut report = Report::new("failover")
        .setting("agents", options.agents)
        .setting("tasks", options.agents * options.tasks)
        .setting("backoff_ms", options.backoff_ms)
        .setting("registered_in_s", registered.as_secs_f64())
        .setting("launched_in_s", launched.as_secs_f64());
    for number in 1..=options.runs {
        let row = once(options, &mut master, &fleet, (number + 1) * options.agents).await?;
        report.push(row.with("run", number));
    }
    Ok(report)
}

async fn once(options: &Options, master: &mut Program, fleet: &Fleet, subscribed: usize) -> Result<Row> {
    let began = Instant::now();
    master.kill();
    // Blocks this thread only; the agents live on others.
    master.restart()?;
    let listens = began.elapsed();
    fleet.subscribed(subscribed).await?;
    let back = began.elapsed();
    let usage = master.usage()?;
    let (agents, tasks) = count(&master.address).await?;
    ensure!(agents == options.agents, "{agents} agents are back");
    ensure!(tasks == options.agents * options.tasks, "{tasks} tasks are back");
    Ok(Row::new()
        .measured("back_s", back.as_secs_f64())
        .measured("restart_s", listens.as_secs_f64())
        .measured("reregister_s", (back - listens).as_secs_f64())
        .measured("master_cpu_s", usage.cpu_seconds)
        .measured("rss_mib", usage.rss_mib)
        .measured("peak_rss_mib", usage.peak_rss_mib))
}

/// Agents and tasks as the master shows them.
async fn count(master: &str) -> Result<(usize, usize)> {
    let client = Client::new(master)?;
    let ask = |kind| Call { r#type: Some(kind), ..Default::default() };
    let agents = client.master(&ask(call::Type::GET_AGENTS)).await?;
    let tasks = client.master(&ask(call::Type::GET_TASKS)).await?;
    Ok((agents.get_agents.agents.len(), tasks.get_tasks.tasks.len()))
}
