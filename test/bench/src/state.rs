//! `state`: `/state` in the shape of Mesos' benchmark of it: few agents, many running and completed tasks, several clients at
//! once. All clients of a round ask at the same moment; rounds are apart, so that each begins with nothing rendered.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;
use tokio::task::JoinSet;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;

/// Between two rounds: the same document is not rendered again before.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Half of them have the running tasks, the others had the completed ones.
    #[arg(long, default_value_t = 100)]
    pub agents: usize,
    #[arg(long, default_value_t = 10_000)]
    pub running: usize,
    #[arg(long, default_value_t = 10_000)]
    pub completed: usize,
    /// Clients at once, a row for each number.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 20])]
    pub clients: Vec<usize>,
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    let clients = options.clients.iter().max().copied().unwrap_or(0);
    raise_open_files((options.agents + clients) as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let kept = format!("--max_completed_tasks_per_framework={}", options.completed);
    let master = Program::master(folder.path(), &[kept])?;
    let half = (options.agents / 2).max(1);
    let _running = tasks(&master, 0, half, Life::Long, options.running).await?;
    let _completed = tasks(&master, half, half, Life::Short, options.completed).await?;
    let state = web::get_json(&master.address, "/state").await?;
    for (list, expected) in [("tasks", options.running), ("completed_tasks", options.completed)] {
        let frameworks = state["frameworks"].as_array().context("a list of frameworks")?;
        let found: usize = frameworks.iter().filter_map(|one| Some(one[list].as_array()?.len())).sum();
        ensure!(found == expected, "{list}: {found} in /state, expected {expected}");
    }
    let mut report = Report::new("state")
        .setting("agents", 2 * half)
        .setting("running", options.running)
        .setting("completed", options.completed);
    for clients in &options.clients {
        let (spread, bytes) = rounds(&master, *clients, options.rounds).await?;
        let row = Row::new().with("clients", *clients).measured("mb", bytes as f64 / 1e6);
        report.push(spread.percentiles(row));
    }
    Ok(report)
}

/// Agents on which tasks run, or ran.
async fn tasks(
    master: &Program,
    from: usize,
    agents: usize,
    life: Life,
    tasks: usize,
) -> Result<(Fleet, Frameworks)> {
    let (command, until) = match life {
        Life::Long | Life::Held => ("sleep 3600", TaskState::TASK_RUNNING),
        Life::Short => ("true", TaskState::TASK_FINISHED),
    };
    let (slots, backoff) = (tasks.div_ceil(agents), Duration::ZERO);
    let plan = fleet::Plan { agents, life, slots, backoff, backoff_max: fleet::BACKOFF_MAX };
    let fleet = Fleet::start(&master.address, from, plan);
    fleet.subscribed(agents).await?;
    let mut frameworks = Frameworks::subscribe(
        &master.address,
        framework::Plan {
            frameworks: 4,
            tasks,
            window: 500,
            format: Format::Protobuf,
            command: command.to_owned(),
            until,
            calls: framework::CALLS,
        },
    )
    .await?;
    frameworks.launch().await?;
    Ok((fleet, frameworks))
}

/// The time of every answer, and the size of one.
async fn rounds(master: &Program, clients: usize, rounds: usize) -> Result<(Spread, usize)> {
    let (mut spread, mut bytes) = (Spread::default(), 0);
    for _ in 0..rounds {
        tokio::time::sleep(PAUSE).await;
        let mut answers = JoinSet::new();
        for _ in 0..clients {
            let address = master.address.clone();
            answers.spawn(async move {
                let began = Instant::now();
                web::get(&address, "/state", false).await.map(|bytes| (began.elapsed(), bytes))
            });
        }
        while let Some(answer) = answers.join_next().await {
            let (took, size) = answer??;
            spread.push(took);
            bytes = size;
        }
    }
    Ok((spread, bytes))
}
