//! `read`: what readers cost. One large cluster; readers of `/state`, and tasks launched beside them.
//!
//! First the document alone: how fast it comes, and the longest turn of the master's loop with and without readers.
//! Then short tasks at an even rate, with and without readers: the time from an ACCEPT to the acknowledgement of the
//! update that counts. The readers are nicer than all others here: they stand for people at other machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;
use tokio::task::JoinSet;

use crate::agent::Life;
use crate::crowd::Crowd;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};
use crate::web;

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;

/// How often the master is asked for its metrics.
const METRICS_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// Running tasks, shared by all agents.
    #[arg(long, default_value_t = 100_000)]
    pub tasks: usize,
    /// Who reads `/state`, again and again.
    #[arg(long, default_value_t = 50)]
    pub readers: usize,
    /// How long each of the five rows is measured.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Short tasks per second that are launched beside the readers.
    #[arg(long, default_value_t = 1_000)]
    pub rate: usize,
    /// Ask for compressed documents.
    #[arg(long)]
    pub gzip: bool,
    /// Flags for the master.
    #[arg(long = "master-flag", allow_hyphen_values = true)]
    pub master_flags: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    // Twice the agents that launches need, one after the other.
    let agents = options.agents + 2 * launching(options).1;
    raise_open_files((agents + options.readers) as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &options.master_flags)?;
    let mut report = Report::new("read")
        .setting("agents", options.agents)
        .setting("tasks", options.tasks)
        .setting("readers", options.readers)
        .setting("rate_per_s", options.rate)
        .setting("gzip", options.gzip)
        .setting("seconds", options.seconds);
    let still = still_cluster(&master, options).await?;
    report.push(documents(&master, options, 0).await?);
    report.push(documents(&master, options, 1).await?);
    report.push(documents(&master, options, options.readers).await?);
    report.push(launches(&master, options, 0).await?);
    report.push(launches(&master, options, options.readers).await?);
    drop(still);
    Ok(report)
}

/// Agents full of tasks that run.
async fn still_cluster(master: &Program, options: &Options) -> Result<(Fleet, Frameworks)> {
    let slots = options.tasks.div_ceil(options.agents);
    let plan = fleet::Plan {
        agents: options.agents,
        life: Life::Long,
        slots,
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, 0, plan);
    fleet.subscribed(options.agents).await?;
    let plan = framework::Plan {
        frameworks: 4,
        tasks: options.tasks,
        // So that no framework falls behind with its updates.
        window: 500,
        format: Format::Protobuf,
        command: "sleep 3600".to_owned(),
        until: TaskState::TASK_RUNNING,
    };
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    frameworks.launch().await?;
    Ok((fleet, frameworks))
}

/// `/state` alone: by so many readers, for a while.
async fn documents(master: &Program, options: &Options, readers: usize) -> Result<Row> {
    let readers_at_work = Readers::start(&master.address, readers, options.gzip)?;
    let before = master.usage()?;
    let turns = longest_turn(&master.address, Duration::from_secs_f64(options.seconds)).await?;
    let after = master.usage()?;
    let read = readers_at_work.stop().await?;
    let row = Row::new()
        .with("what", "documents")
        .with("readers", readers)
        .measured("documents_per_s", read.documents as f64 / options.seconds)
        .measured("mb_per_s", read.bytes as f64 / 1e6 / options.seconds)
        .measured("document_mb", read.bytes as f64 / 1e6 / read.documents.max(1) as f64)
        .measured("turn_p99_ms", turns.p99_ms)
        .measured("turn_max_ms", turns.max_ms);
    let cpu = (after.cpu_seconds - before.cpu_seconds) / options.seconds;
    Ok(row.measured("master_cpus", cpu).measured("master_mib", after.rss_mib))
}

/// How many short tasks, on how many agents with room for how many each. One agent's worth is launched at a time, ten
/// times a second.
fn launching(options: &Options) -> (usize, usize, usize) {
    let tasks = (options.rate as f64 * options.seconds).ceil().max(1.0) as usize;
    let slots = (options.rate / 10).max(1);
    (tasks, tasks.div_ceil(slots), slots)
}

/// Short tasks at an even rate, on agents of their own, beside so many readers.
async fn launches(master: &Program, options: &Options, readers: usize) -> Result<Row> {
    let (tasks, agents, slots) = launching(options);
    let from = options.agents + if readers == 0 { 0 } else { agents };
    let plan = fleet::Plan {
        agents,
        life: Life::Short,
        slots,
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, from, plan);
    let plan = framework::Plan {
        frameworks: 1,
        tasks,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "true".to_owned(),
        until: TaskState::TASK_FINISHED,
    };
    let mut frameworks = Frameworks::subscribe_paced(&master.address, plan, options.rate).await?;
    fleet.subscribed(agents).await?;
    frameworks.offered(agents).await?;
    let readers_at_work = Readers::start(&master.address, readers, options.gzip)?;
    let (took, latencies) = frameworks.launch().await?;
    let read = readers_at_work.stop().await?;
    drop((frameworks, fleet));
    agents_left(&master.address, options.agents).await?;
    let row = Row::new()
        .with("what", "launches")
        .with("readers", readers)
        .measured("documents_per_s", read.documents as f64 / took.as_secs_f64())
        .measured("mb_per_s", read.bytes as f64 / 1e6 / took.as_secs_f64())
        .measured("tasks_per_s", tasks as f64 / took.as_secs_f64());
    Ok(latencies.percentiles(row))
}

/// Waits until the master has noticed that all other agents are gone: their resources would be offered to whoever comes
/// next, and withdrawn under its hands.
async fn agents_left(master: &str, agents: usize) -> Result<()> {
    loop {
        let metrics = web::get_json(master, "/metrics/snapshot").await?;
        if metrics["master/slaves_active"].as_f64() == Some(agents as f64) {
            return Ok(());
        }
        tokio::time::sleep(METRICS_INTERVAL).await;
    }
}

/// Readers of `/state`, each asking again as soon as it is answered.
struct Readers {
    _crowd: Crowd,
    stop: Arc<AtomicBool>,
    read: Arc<Read>,
    tasks: JoinSet<Result<()>>,
}

#[derive(Debug, Default)]
struct Read {
    documents: AtomicU64,
    bytes: AtomicU64,
}

struct Total {
    documents: u64,
    bytes: u64,
}

impl Readers {
    fn start(master: &str, count: usize, gzip: bool) -> Result<Self> {
        let crowd = Crowd::start()?;
        let (stop, read) = (Arc::new(AtomicBool::new(false)), Arc::new(Read::default()));
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            tasks.spawn_on(read_on(master.to_owned(), gzip, stop.clone(), read.clone()), crowd.handle());
        }
        Ok(Self { _crowd: crowd, stop, read, tasks })
    }

    async fn stop(mut self) -> Result<Total> {
        self.stop.store(true, Ordering::Relaxed);
        let (documents, bytes) = (&self.read.documents, &self.read.bytes);
        let total =
            Total { documents: documents.load(Ordering::Relaxed), bytes: bytes.load(Ordering::Relaxed) };
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(total)
    }
}

async fn read_on(master: String, gzip: bool, stop: Arc<AtomicBool>, read: Arc<Read>) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let bytes = web::get(&master, "/state", gzip).await.context("a reader of /state")?;
        read.documents.fetch_add(1, Ordering::Relaxed);
        read.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Turns of the master's loop.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    p99_ms: f64,
    max_ms: f64,
}

/// The longest of them in the time to come.
async fn longest_turn(master: &str, time: Duration) -> Result<Turns> {
    let end = Instant::now() + time;
    let mut turns = Turns::default();
    while Instant::now() < end {
        tokio::time::sleep(METRICS_INTERVAL).await;
        let metrics = web::get_json(master, "/metrics/snapshot").await?;
        let value = |name: &str| metrics[name].as_f64().with_context(|| format!("no metric {name}"));
        turns.p99_ms = turns.p99_ms.max(value("master/turn_ms/p99")?);
        turns.max_ms = turns.max_ms.max(value("master/turn_ms/max")?);
    }
    Ok(turns)
}
