//! `swarm-front`: what clients of `tepui swarm` wait for in a large cluster, over HTTP.
//!
//! A real master and a real manager; agents and engines are simulated, each with a real connection. Containers are created
//! through the API first, each measured until the LAUNCH of its task reaches the agent (scheduling, the record and the ACCEPT)
//! and until the answer; some of them one at a time. Then `docker info` and `docker ps -a` are asked for, one after the other,
//! each over a connection of its own, to the last byte of the answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use tokio::task::JoinSet;

use crate::agent::{Agent, Life};
use crate::engine::Engine;
use crate::fleet::{self, Fleet};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

/// The connections of one engine: its events and its pool, at both ends; its agent's link.
const FILES_PER_ENGINE: u64 = 8;
const OTHER_FILES: u64 = 1024;
/// Between two looks at the manager.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Room of an agent beyond its share of the containers.
const SPARE_SLOTS: usize = 20;

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 1_000)]
    pub engines: usize,
    #[arg(long, default_value_t = 30_000)]
    pub containers: usize,
    /// Creates under way at the same time.
    #[arg(long, default_value_t = 16)]
    pub at_once: usize,
    /// Creates that are measured one at a time, after the others.
    #[arg(long, default_value_t = 500)]
    pub single: usize,
    /// Reads of each kind.
    #[arg(long, default_value_t = 200)]
    pub reads: usize,
    /// How long the manager is left alone to count its requests to engines.
    #[arg(long, default_value_t = 10.0)]
    pub idle_seconds: f64,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files(options.engines as u64 * FILES_PER_ENGINE + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &[])?;
    let engines: Result<Vec<Engine>> =
        (0..options.engines).map(|number| Engine::start(folder.path(), number)).collect();
    let engines = engines?;
    let slots = options.containers.div_ceil(options.engines.max(1)) + SPARE_SLOTS;
    let agents = engines.iter().enumerate().map(|(number, it)| Agent::with_engine(number, it.clone(), slots));
    let plan = fleet::Plan {
        agents: options.engines,
        life: Life::Held,
        slots,
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::of(&master.address, agents, plan);
    fleet.subscribed(options.engines).await?;
    let manager = Program::swarm(
        folder.path(),
        &master.address,
        &["mesos.tasktimeout=10m".to_owned(), "mesos.offerrefusetimeout=10ms".to_owned()],
    )?;
    wait_for_engines(&manager.address, options.engines).await?;
    let empty = manager.usage()?.rss_mib;
    let creates = fill(&manager.address, options).await?;
    let mut report = Report::new("swarm-front")
        .setting("engines", options.engines)
        .setting("containers", options.containers)
        .setting("at_once", options.at_once);
    report.push(launch_times(&creates, &engines).percentiles(Row::new().with("what", "create to launch")));
    report.push(answer_times(&creates).percentiles(Row::new().with("what", "create")));
    let single = one_at_a_time(&manager.address, options).await?;
    let row = || Row::new().with("at_once", 1);
    report.push(launch_times(&single, &engines).percentiles(row().with("what", "create to launch")));
    report.push(answer_times(&single).percentiles(row().with("what", "create")));
    for (what, path) in [("info", "/v1.41/info"), ("ps -a", "/v1.41/containers/json?all=1")] {
        let (spread, bytes) = read(&manager.address, path, options.reads).await?;
        report.push(spread.percentiles(Row::new().with("what", what).with("answer_bytes", bytes)));
    }
    let listed = web::get_json(&manager.address, "/v1.41/containers/json?all=1").await?;
    let shown = listed.as_array().map_or(0, Vec::len);
    let expected = options.containers + options.single;
    ensure!(shown == expected, "{shown} of {expected} containers are listed");
    let grown = manager.usage()?.rss_mib - empty;
    let per_thousand = grown * 1000.0 / options.containers.max(1) as f64;
    report.push(Row::new().with("what", "memory").measured("mib_per_1000_containers", per_thousand));
    let requests = idle(&engines, Duration::from_secs_f64(options.idle_seconds)).await;
    report.push(Row::new().with("what", "idle").with("requests_to_engines", requests));
    Ok(report)
}

/// Waits until the manager is connected to all engines and holds offers of all of them.
async fn wait_for_engines(manager: &str, count: usize) -> Result<()> {
    loop {
        let info = web::get_json(manager, "/v1.41/info").await?;
        let rows = info["SystemStatus"].as_array().cloned().unwrap_or_default();
        let healthy = rows.iter().filter(|row| row[1] == "Healthy").count();
        if rows.contains(&json!(["Offers", count.to_string()])) && healthy == count {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// One create, measured.
struct Created {
    name: String,
    began: Instant,
    took: Duration,
}

fn answer_times(creates: &[Created]) -> Spread {
    let mut spread = Spread::default();
    creates.iter().for_each(|create| spread.push(create.took));
    spread
}

/// From the request until the agent has the task.
fn launch_times(creates: &[Created], engines: &[Engine]) -> Spread {
    let launches: HashMap<String, Instant> = engines.iter().flat_map(Engine::launches).collect();
    let mut spread = Spread::default();
    for create in creates {
        if let Some(launched) = launches.get(&create.name) {
            spread.push(launched.saturating_duration_since(create.began));
        }
    }
    spread
}

/// Creates beyond the others, each after the answer to the one before.
async fn one_at_a_time(manager: &str, options: &Options) -> Result<Vec<Created>> {
    let mut creates = Vec::new();
    for number in options.containers..options.containers + options.single {
        creates.push(create(manager, number).await?);
    }
    Ok(creates)
}

/// Creates all containers; returns the last tenth.
async fn fill(manager: &str, options: &Options) -> Result<Vec<Created>> {
    let mut workers = JoinSet::new();
    for worker in 0..options.at_once {
        let (manager, options) = (manager.to_owned(), options.clone());
        workers.spawn(async move {
            let mut last = Vec::new();
            for number in (worker..options.containers).step_by(options.at_once) {
                let created = create(&manager, number).await?;
                if number >= options.containers / 10 * 9 {
                    last.push(created);
                }
            }
            anyhow::Ok(last)
        });
    }
    let mut all = Vec::new();
    while let Some(last) = workers.join_next().await {
        all.extend(last??);
    }
    Ok(all)
}

async fn create(manager: &str, number: usize) -> Result<Created> {
    let body = json!({
        "Image": "busybox",
        "Cmd": ["sleep", "1000"],
        "Env": ["PATH=/bin"],
        "Labels": {"com.example.team": format!("team-{}", number % 50)},
        "HostConfig": {"Memory": 16 << 20, "NetworkMode": "default"},
    });
    let began = Instant::now();
    let name = format!("container-{number}");
    let path = format!("/v1.41/containers/create?name={name}");
    let answer = web::call(manager, http::Method::POST, &path, &body).await?;
    let (status, answer) = web::document(answer).await?;
    ensure!(status == http::StatusCode::CREATED, "create {number}: {status} {answer}");
    Ok(Created { name, began, took: began.elapsed() })
}

async fn read(manager: &str, path: &str, count: usize) -> Result<(Spread, usize)> {
    let (mut spread, mut bytes) = (Spread::default(), 0);
    for _ in 0..count {
        let began = Instant::now();
        bytes = web::get(manager, path, false).await?;
        spread.push(began.elapsed());
    }
    Ok((spread, bytes))
}

/// Requests to all engines while no client asks for anything.
async fn idle(engines: &[Engine], time: Duration) -> u64 {
    let all = || engines.iter().map(Engine::requests).sum::<u64>();
    let before = all();
    tokio::time::sleep(time).await;
    all() - before
}
