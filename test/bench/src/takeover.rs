//! `takeover`: the leading one of several masters is killed; another takes its place.
//!
//! The clock starts with SIGKILL and stops at the first offer that a framework receives from the new leader. The new
//! leader may wait for the lease of the old one; the time beyond that is the promise.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use tepui_client::scheduler::{self, Event, Scheduler};
use tepui_client::v1::FrameworkInfo;

use crate::agent::Life;
use crate::etcd::Etcd;
use crate::fleet::{self, Fleet};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 256;

/// How long anything may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 1000)]
    pub agents: usize,
    /// Members of etcd.
    #[arg(long, default_value_t = 3)]
    pub members: usize,
    #[arg(long, default_value_t = 2)]
    pub lease_seconds: u64,
    /// Agents whose link broke wait a random time, at first up to this, twice that after each failure.
    #[arg(long, default_value_t = 100)]
    pub backoff_ms: u64,
    /// ... up to this. Real agents with etcd find the new leader at once; these find it by trying.
    #[arg(long, default_value_t = 1000)]
    pub backoff_max_ms: u64,
    /// How often the leader is killed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files(options.agents as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let etcd = Etcd::start(folder.path(), options.members).await?;
    let flags = [
        format!("--registry={}", etcd.address()),
        format!("--leader_lease={}secs", options.lease_seconds),
        "--allocation_interval=100ms".to_owned(),
    ];
    let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
    std::fs::create_dir_all(&first)?;
    std::fs::create_dir_all(&second)?;
    // The first of them leads.
    let mut leader = Program::master(&first, &flags)?;
    let mut framework = connect(&etcd.address())?;
    until_subscribed(&mut framework).await?;
    let mut standby = Program::master(&second, &flags)?;
    let plan = fleet::Plan {
        agents: options.agents,
        life: Life::Long,
        slots: 1,
        backoff: Duration::from_millis(options.backoff_ms),
        backoff_max: Duration::from_millis(options.backoff_max_ms),
    };
    let fleet = Fleet::start(&format!("{},{}", leader.address, standby.address), 0, plan);
    fleet.subscribed(options.agents).await?;
    let mut report = Report::new("takeover")
        .setting("agents", options.agents)
        .setting("etcd_members", options.members)
        .setting("lease_s", options.lease_seconds)
        .setting("backoff_ms", options.backoff_ms)
        .setting("backoff_max_ms", options.backoff_max_ms);
    for number in 1..=options.runs {
        let row = once(options, &mut leader, &fleet, &mut framework, (number + 1) * options.agents).await?;
        report.push(row.with("run", number));
        // The dead one becomes the standby of the next run.
        leader.restart()?;
        std::mem::swap(&mut leader, &mut standby);
    }
    Ok(report)
}

async fn once(
    options: &Options,
    leader: &mut Program,
    fleet: &Fleet,
    framework: &mut Scheduler,
    subscribed: usize,
) -> Result<Row> {
    let began = Instant::now();
    leader.kill();
    until_subscribed(framework).await?;
    let led = began.elapsed();
    until_offered(framework).await?;
    let offered = began.elapsed();
    fleet.subscribed(subscribed).await?;
    let back = began.elapsed();
    Ok(Row::new()
        .measured("subscribed_s", led.as_secs_f64())
        .measured("first_offer_s", offered.as_secs_f64())
        .measured("beyond_lease_s", offered.as_secs_f64() - options.lease_seconds as f64)
        .measured("all_agents_s", back.as_secs_f64()))
}

fn connect(masters: &str) -> Result<Scheduler> {
    let framework = FrameworkInfo {
        name: "takeover".to_owned(),
        user: "root".to_owned(),
        failover_timeout: Some(3600.0),
        ..Default::default()
    };
    let options = scheduler::Options { backoff_max: Duration::from_millis(100), ..Default::default() };
    Ok(scheduler::connect_with(masters, framework, options)?)
}

async fn until_subscribed(framework: &mut Scheduler) -> Result<()> {
    until(framework, |event| matches!(event, Event::Subscribed(_))).await
}

async fn until_offered(framework: &mut Scheduler) -> Result<()> {
    until(framework, |event| matches!(event, Event::Offers(_))).await
}

async fn until(framework: &mut Scheduler, is_it: impl Fn(&Event) -> bool) -> Result<()> {
    let waiting = async {
        loop {
            match framework.next_event().await {
                Some(event) if is_it(&event) => return Ok(()),
                Some(_) => (),
                None => bail!("the framework's session has ended"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.context("nothing happens")?
}
