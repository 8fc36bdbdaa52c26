//! `operators`: many followers of the event stream while tasks are launched, and one that stopped reading.
//!
//! Every task makes four events: TASK_ADDED and three TASK_UPDATED. The stalled follower must not slow the others; at
//! its limit it is cut off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use http_body_util::BodyExt;
use tepui_client::Format;
use tepui_client::v1::TaskState;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::Life;
use crate::client_runtime::ClientRuntime;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};
use crate::web::{self, Records};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;
/// Events per task for each subscriber.
const EVENTS_PER_TASK: usize = 4;

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 1_000)]
    pub subscribers: usize,
    #[arg(long, default_value_t = 2_000)]
    pub tasks: usize,
    #[arg(long, default_value_t = 20)]
    pub agents: usize,
    /// One more subscriber that reads nothing after its first event.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub stalled: bool,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files((options.subscribers * 2 + options.agents) as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let mut report = Report::new("operators")
        .setting("subscribers", options.subscribers)
        .setting("tasks", options.tasks)
        .setting("agents", options.agents)
        .setting("stalled", options.stalled);
    for subscribers in [0, options.subscribers] {
        report.push(once(options, subscribers).await?);
    }
    Ok(report)
}

async fn once(options: &Options, subscribers: usize) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let flag = format!("--max_operator_event_stream_subscribers={}", subscribers + 1);
    let master = Program::master(folder.path(), &[flag])?;
    let slots = options.tasks.div_ceil(options.agents);
    let plan = fleet::Plan {
        agents: options.agents,
        life: Life::Short,
        slots,
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, 0, plan);
    fleet.subscribed(options.agents).await?;
    let plan = framework::Plan {
        frameworks: 1,
        tasks: options.tasks,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "true".to_owned(),
        until: TaskState::TASK_FINISHED,
        calls: framework::CALLS,
    };
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    frameworks.offered(options.agents).await?;
    let empty = master.usage()?;
    let stalled = match options.stalled && subscribers > 0 {
        true => Some(web::subscribe(&master.address).await?),
        false => None,
    };
    let followers = Subscribers::subscribe(&master.address, subscribers).await?;
    let subscribed = master.usage()?;
    let began = Instant::now();
    let (launched, latencies) = frameworks.launch().await?;
    let events = options.tasks * EVENTS_PER_TASK;
    followers.all_heard(events).await?;
    let took = began.elapsed();
    let after = master.usage()?;
    drop(stalled);
    let row = Row::new()
        .with("subscribers", subscribers)
        .measured("tasks_per_s", options.tasks as f64 / launched.as_secs_f64())
        .measured("events_per_s", events as f64 / took.as_secs_f64())
        .measured("deliveries_per_s", (events * subscribers) as f64 / took.as_secs_f64())
        .measured("mib_by_subscribing", subscribed.rss_mib - empty.rss_mib)
        .measured("peak_mib", after.peak_rss_mib)
        .measured("master_cpu_s", after.cpu_seconds - subscribed.cpu_seconds);
    Ok(latencies.percentiles(row))
}

/// Subscribers that read everything.
struct Subscribers {
    _runtime: ClientRuntime,
    heard: Vec<watch::Receiver<usize>>,
    _tasks: JoinSet<Result<()>>,
}

impl Subscribers {
    async fn subscribe(master: &str, count: usize) -> Result<Self> {
        let runtime = ClientRuntime::start()?;
        let (mut heard, mut tasks) = (Vec::new(), JoinSet::new());
        let master: Arc<str> = master.into();
        for _ in 0..count {
            let (sender, receiver) = watch::channel(0);
            tasks.spawn_on(follow(master.clone(), sender), runtime.handle());
            heard.push(receiver);
        }
        for one in &mut heard {
            // SUBSCRIBED and the first HEARTBEAT.
            one.wait_for(|count| *count >= 2).await.context("a subscriber is gone")?;
        }
        Ok(Self { _runtime: runtime, heard, _tasks: tasks })
    }

    /// Waits until every one heard so many events about tasks.
    async fn all_heard(mut self, events: usize) -> Result<()> {
        for one in &mut self.heard {
            one.wait_for(|count| *count >= events + 2).await.context("a subscriber was cut off")?;
        }
        Ok(())
    }
}

async fn follow(master: Arc<str>, heard: watch::Sender<usize>) -> Result<()> {
    let mut events = web::subscribe(&master).await?;
    let mut records = Records::default();
    while let Some(frame) = events.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let count = records.push(&data)?;
        heard.send_modify(|heard| *heard += count);
    }
    Ok(())
}
