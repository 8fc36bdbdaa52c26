//! `long-running`: an agent with idle containers: its processor time, reads of `/containers`, and the recovery of the containers
//! after it was killed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;
use tepui_client::v1::agent::{Call, call};

use crate::framework::{self, Frameworks};
use crate::isolated::{Isolated, Work};
use crate::program::raise_open_files;
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

const FILES_PER_CONTAINER: u64 = 4;
const OTHER_FILES: u64 = 256;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Tasks that sleep while the agent is watched and read.
    #[arg(long, default_value_t = 200)]
    pub tasks: usize,
    /// How long the agent is watched.
    #[arg(long, default_value_t = 30.0)]
    pub seconds: f64,
    /// How often `/containers` is read.
    #[arg(long, default_value_t = 50)]
    pub reads: usize,
    /// Containers that are alive while the agent is killed and started again.
    #[arg(long, default_value_t = 500)]
    pub recovered: usize,
    /// How often it is.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// How many containers are launched at once.
    #[arg(long, default_value_t = 16)]
    pub at_once: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    let most = options.tasks.max(options.recovered) as u64;
    raise_open_files(most * FILES_PER_CONTAINER + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let mut report = Report::new("long-running").setting("isolation", "cgroups/all");
    idle_and_read(options, &mut report).await?;
    let mut isolated = Isolated::start(1).await?;
    let ids: Vec<String> = (0..options.recovered).map(|number| format!("alive-{number}")).collect();
    isolated.many(Work::Launch, &ids, options.at_once).await?;
    for _ in 0..options.runs {
        report.push(recovery(&mut isolated, options.recovered).await?);
    }
    Ok(report)
}

/// Tasks, because `/containers` shows those.
async fn idle_and_read(options: &Options, report: &mut Report) -> Result<()> {
    let isolated = Isolated::start(options.tasks).await?;
    let plan = framework::Plan {
        frameworks: 1,
        tasks: options.tasks,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "exec sleep 100000".to_owned(),
        until: TaskState::TASK_RUNNING,
        calls: framework::CALLS,
    };
    let mut frameworks = Frameworks::subscribe(&isolated.master.address, plan).await?;
    frameworks.offered(1).await?;
    frameworks.launch().await?;
    let (before, began) = (isolated.agent.usage()?, Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
    let (after, took) = (isolated.agent.usage()?, began.elapsed());
    report.push(
        Row::new()
            .with("what", "idle")
            .with("containers", options.tasks)
            .measured(
                "percent_of_a_core",
                100.0 * (after.cpu_seconds - before.cpu_seconds) / took.as_secs_f64(),
            )
            .measured("rss_mib", after.rss_mib),
    );
    let shown = web::get_json(&isolated.agent.address, "/containers").await?;
    let shown = shown.as_array().map_or(0, Vec::len);
    ensure!(shown == options.tasks, "/containers shows {shown} of {}", options.tasks);
    let (mut times, mut bytes) = (Spread::default(), 0);
    for _ in 0..options.reads {
        let began = Instant::now();
        bytes = web::get(&isolated.agent.address, "/containers", false).await?;
        times.push(began.elapsed());
    }
    let row = Row::new().with("what", "/containers").with("containers", options.tasks).with("bytes", bytes);
    report.push(times.percentiles(row));
    Ok(())
}

async fn recovery(isolated: &mut Isolated, containers: usize) -> Result<Row> {
    isolated.agent.kill();
    let began = Instant::now();
    isolated.agent.restart()?; // Blocks until it listens; nothing else runs here.
    let listens = began.elapsed();
    isolated.admitted().await?;
    let admitted = began.elapsed();
    let found = count(isolated).await?;
    ensure!(found == containers, "{found} of {containers} containers are back");
    let metrics = web::get_json(&isolated.agent.address, "/metrics/snapshot").await?;
    Ok(Row::new()
        .with("what", "recovery")
        .with("containers", containers)
        .measured("recovery_s", metrics["slave/recovery_time_secs"].as_f64().unwrap_or(0.0))
        .measured("listens_s", listens.as_secs_f64())
        .measured("admitted_s", admitted.as_secs_f64()))
}

/// Containers that run, as the agent shows them.
async fn count(isolated: &Isolated) -> Result<usize> {
    let get = call::GetContainers { show_standalone: Some(true), ..Default::default() };
    let call =
        Call { r#type: Some(call::Type::GET_CONTAINERS), get_containers: get.into(), ..Default::default() };
    Ok(isolated.client.agent(&call).await?.get_containers.containers.len())
}
