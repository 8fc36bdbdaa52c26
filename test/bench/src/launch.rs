//! `launch`: short command tasks through the real HTTP API of a real master, against simulated agents.
//!
//! From the first ACCEPT to the acknowledgement of the last TASK_FINISHED; the latency of a task is from its ACCEPT to
//! the acknowledgement of its TASK_FINISHED. The processor time of the frameworks and agents, which share the machine with
//! the master, is printed beside the master's.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, own_cpu_seconds, raise_open_files};
use crate::report::{Report, Row};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 256;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many tasks in all.
    #[arg(long, default_value_t = 20_000)]
    pub tasks: usize,
    #[arg(long, default_value_t = 200)]
    pub agents: usize,
    /// Frameworks that share the tasks.
    #[arg(long, default_value_t = 4)]
    pub frameworks: usize,
    /// Calls per framework that may be unanswered at once.
    #[arg(long, default_value_t = framework::CALLS)]
    pub calls: usize,
    /// Tasks per framework that may be on their way at once, one agent's worth in any case; all if not given.
    #[arg(long)]
    pub window: Option<usize>,
    /// JSON instead of protobuf between frameworks and master.
    #[arg(long = "json-api")]
    pub json_api: bool,
    /// How often, each time with a new master.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Flags for the master.
    #[arg(long = "master-flag", allow_hyphen_values = true)]
    pub master_flags: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    let window = options.window.unwrap_or(options.tasks);
    let mut report = Report::new("launch")
        .setting("tasks", options.tasks)
        .setting("agents", options.agents)
        .setting("frameworks", options.frameworks)
        .setting("calls", options.calls)
        .setting("window", window)
        .setting("api", if options.json_api { "json" } else { "protobuf" });
    raise_open_files(options.agents as u64 + OTHER_FILES)?;
    // One thread: frameworks and agents leave the other processors to the master.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for number in 1..=options.runs {
        report.push(runtime.block_on(once(options, window))?.with("run", number));
    }
    Ok(report)
}

async fn once(options: &Options, window: usize) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &options.master_flags)?;
    let plan = framework::Plan {
        frameworks: options.frameworks,
        tasks: options.tasks,
        window,
        format: if options.json_api { Format::Json } else { Format::Protobuf },
        command: "true".to_owned(),
        until: TaskState::TASK_FINISHED,
        calls: options.calls,
    };
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    let plan = fleet::Plan {
        agents: options.agents,
        life: Life::Short,
        slots: options.tasks.div_ceil(options.agents),
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, 0, plan);
    fleet.subscribed(options.agents).await?;
    frameworks.offered(options.agents).await?;
    let (before, own_before) = (master.usage()?, own_cpu_seconds()?);
    let (took, latencies) = frameworks.launch().await?;
    let (after, own_after) = (master.usage()?, own_cpu_seconds()?);
    let per_task = |seconds: f64| seconds * 1e6 / options.tasks as f64;
    let row = Row::new()
        .measured("tasks_per_s", options.tasks as f64 / took.as_secs_f64())
        .measured("seconds", took.as_secs_f64());
    Ok(latencies
        .percentiles(row)
        .measured("master_cpu_us_per_task", per_task(after.cpu_seconds - before.cpu_seconds))
        .measured("bench_cpu_us_per_task", per_task(own_after - own_before))
        .measured("master_peak_mib", after.peak_rss_mib))
}
