//! `read`: what readers cost launches. One large cluster, short tasks launched at an even rate all the time, in turns without
//! and with readers (`readers`).
//!
//! The time of a launch is from the moment its ACCEPT is sent until the framework has the update TASK_RUNNING; on the
//! way lie the launch on the agent, TASK_STARTING and its acknowledgement. It counts for the phase in which the ACCEPT was
//! sent. Several frameworks launch, because one sends its acknowledgements one after the other and would be measured
//! instead of the master. Every other round goes backwards, so that neither kind of phase always follows the other.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, machine_cpu_seconds, own_cpu_seconds, raise_open_files};
use crate::readers::{Plan, Read, Readers};
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;

/// Frameworks that launch.
const FRAMEWORKS: usize = 10;

/// Launched by one ACCEPT, on one agent.
const TASKS_PER_ACCEPT: usize = 10;

/// Resources come back with the next allocation, within a second: room for three.
const SECONDS_OF_ROOM: usize = 3;

/// The names of the master's thread that decides and of those that render.
const MACHINE: &str = "master";
const RENDERING: &str = "rendering";

/// Before each phase.
const SETTLING: Duration = Duration::from_secs(1);

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// Running tasks, shared by all agents.
    #[arg(long, default_value_t = 100_000)]
    pub tasks: usize,
    /// Readers of /state-summary, /metrics/snapshot and the tasks of one framework, once a second each.
    #[arg(long, default_value_t = 10)]
    pub dashboards: usize,
    /// Subscribers of the operator event stream.
    #[arg(long, default_value_t = 100)]
    pub subscribers: usize,
    /// Short tasks launched per second.
    #[arg(long, default_value_t = 1_000)]
    pub rate: usize,
    /// Seconds of a phase.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Phases without and with readers.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Flags for the master.
    #[arg(long = "master-flag", allow_hyphen_values = true)]
    pub master_flags: Vec<String>,
}

impl Options {
    /// Agents for the short tasks.
    fn short_agents(&self) -> usize {
        (SECONDS_OF_ROOM * self.rate).div_ceil(TASKS_PER_ACCEPT).max(1)
    }
}

pub fn run(options: &Options) -> Result<Report> {
    let connections = options.agents + options.short_agents() + 3 * options.dashboards + options.subscribers;
    raise_open_files(connections as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &options.master_flags)?;
    let _still = still_cluster(&master, options).await?;
    let mut report = Report::new("read")
        .setting("agents", options.agents)
        .setting("tasks", options.tasks)
        .setting("dashboards", options.dashboards)
        .setting("subscribers", options.subscribers)
        .setting("rate_per_s", options.rate)
        .setting("seconds", options.seconds);
    for (name, path) in [("state_bytes", "/state"), ("summary_bytes", "/state-summary")] {
        report = report.setting(name, web::get(&master.address, path, false).await?);
    }
    let _fleet =
        fleet(&master, options.agents, options.short_agents(), Life::Short, TASKS_PER_ACCEPT).await?;
    let plan = plan(FRAMEWORKS, usize::MAX, usize::MAX, "true");
    let mut frameworks = Frameworks::subscribe_paced(&master.address, plan, options.rate).await?;
    frameworks.offered(options.short_agents()).await?;
    let brake = frameworks.brake();
    let phases = async {
        let phases = phases(&master, options).await;
        brake.pull();
        phases
    };
    let (launched, phases) = tokio::join!(frameworks.launch(), phases);
    launched?;
    write(&frameworks, &phases?, &mut report);
    Ok(report)
}

/// Agents full of running tasks.
async fn still_cluster(master: &Program, options: &Options) -> Result<(Fleet, Frameworks)> {
    let slots = options.tasks.div_ceil(options.agents);
    let fleet = fleet(master, 0, options.agents, Life::Long, slots).await?;
    // A small window, so that no framework falls behind with its updates.
    let plan = plan(4, options.tasks, 500, "sleep 3600");
    let mut frameworks = Frameworks::subscribe(&master.address, plan).await?;
    frameworks.launch().await?;
    Ok((fleet, frameworks))
}

async fn fleet(master: &Program, from: usize, agents: usize, life: Life, slots: usize) -> Result<Fleet> {
    let (backoff, backoff_max) = (Duration::ZERO, fleet::BACKOFF_MAX);
    let fleet =
        Fleet::start(&master.address, from, fleet::Plan { agents, life, slots, backoff, backoff_max });
    fleet.subscribed(agents).await?;
    Ok(fleet)
}

fn plan(frameworks: usize, tasks: usize, window: usize, command: &str) -> framework::Plan {
    let (format, until) = (Format::Protobuf, TaskState::TASK_RUNNING);
    let calls = framework::CALLS;
    framework::Plan { frameworks, tasks, window, format, command: command.to_owned(), until, calls }
}

/// A time without or with readers.
struct Phase {
    from: Instant,
    to: Instant,
    cpus: Cpus,
    /// What had been read before it and in it, if there were readers.
    read: Option<(Read, Read)>,
}

/// Processors in use: by the master, by the thread of it that decides, by those that render, and by programs that have
/// nothing to do with this; and how often the master's threads wait.
#[derive(Clone, Copy, Debug)]
struct Cpus {
    master: f64,
    machine: f64,
    rendering: f64,
    others: f64,
    waits: f64,
}

impl Cpus {
    /// Seconds of each so far.
    fn now(master: &Program) -> Result<Self> {
        let used = master.usage()?.cpu_seconds;
        Ok(Self {
            master: used,
            machine: master.thread_cpu_seconds(MACHINE)?,
            rendering: master.thread_cpu_seconds(RENDERING)?,
            others: machine_cpu_seconds()? - own_cpu_seconds()? - used,
            waits: master.waits()?,
        })
    }

    fn since(self, before: Self, seconds: f64) -> Self {
        let of = |part: fn(&Self) -> f64| (part(&self) - part(&before)) / seconds;
        Self {
            master: of(|it| it.master),
            machine: of(|it| it.machine),
            rendering: of(|it| it.rendering),
            others: of(|it| it.others),
            waits: of(|it| it.waits),
        }
    }

    fn row(self, row: Row) -> Row {
        row.measured("master_cpus", self.master)
            .measured("machine_cpus", self.machine)
            .measured("rendering_cpus", self.rendering)
            .measured("others_cpus", self.others)
            .measured("waits_per_s", self.waits)
    }
}

async fn phases(master: &Program, options: &Options) -> Result<Vec<Phase>> {
    let summary = web::get_json(&master.address, "/state-summary").await?;
    let framework = summary["frameworks"][0]["id"].as_str().context("a framework")?.to_owned();
    let mut phases = Vec::new();
    for round in 0..options.rounds {
        for has_readers in [round % 2 == 1, round % 2 == 0] {
            let plan = Plan { dashboards: options.dashboards, subscribers: options.subscribers };
            let readers = match has_readers {
                true => Some(Readers::start(&master.address, &framework, plan).await?),
                false => None,
            };
            phases.push(phase(master, options, readers).await?);
        }
    }
    Ok(phases)
}

async fn phase(master: &Program, options: &Options, mut readers: Option<Readers>) -> Result<Phase> {
    tokio::time::sleep(SETTLING).await;
    let read = readers.as_mut().map(Readers::read).transpose()?;
    let (from, before) = (Instant::now(), Cpus::now(master)?);
    tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
    let (to, after) = (Instant::now(), Cpus::now(master)?);
    let cpus = after.since(before, (to - from).as_secs_f64());
    let read = read.zip(readers.as_mut().map(Readers::read).transpose()?);
    Ok(Phase { from, to, cpus, read })
}

/// A row for each phase, one for all of a kind, and how many times longer launches take with readers.
fn write(frameworks: &Frameworks, phases: &[Phase], report: &mut Report) {
    let kind = |has_readers: bool| if has_readers { "readers" } else { "nobody" };
    let launched = |phase: &Phase| frameworks.launched_between(phase.from, phase.to);
    for phase in phases {
        let (times, seconds) = (launched(phase), (phase.to - phase.from).as_secs_f64());
        let row = Row::new().with("beside", kind(phase.read.is_some()));
        let row = times.percentiles(row.measured("tasks_per_s", times.len() as f64 / seconds));
        let row = phase.cpus.row(row);
        report.push(match &phase.read {
            Some((before, read)) => read.row(row, before, seconds),
            None => row,
        });
    }
    let [nobody, readers] = [false, true].map(|has_readers| {
        let mut all = Spread::default();
        phases
            .iter()
            .filter(|phase| phase.read.is_some() == has_readers)
            .for_each(|one| all.append(launched(one)));
        report.push(all.percentiles(Row::new().with("beside", format!("{}, all", kind(has_readers)))));
        all
    });
    let ratio = |percent| readers.percentile_ms(percent) / nobody.percentile_ms(percent);
    report.push(ratios("readers / nobody", ratio));
    // Robust against what else goes on: each phase is compared with the one beside it, and the middle counts.
    let rounds: Vec<[Spread; 2]> = phases.chunks_exact(2).map(|round| pair(round, launched)).collect();
    let ratio = |percent| {
        let mut of_rounds: Vec<f64> = rounds
            .iter()
            .map(|[nobody, readers]| readers.percentile_ms(percent) / nobody.percentile_ms(percent))
            .collect();
        of_rounds.sort_by(f64::total_cmp);
        of_rounds.get(of_rounds.len() / 2).copied().unwrap_or(f64::NAN)
    };
    report.push(ratios("the same, median of rounds", ratio));
    report.push(cost(phases));
}

/// What readers take of the master: processors, and what that is for each event that is delivered. Without dashboards
/// all of it is the cost of events.
fn cost(phases: &[Phase]) -> Row {
    let mean = |has_readers: bool, of: &dyn Fn(&Phase) -> f64| {
        let values: Vec<f64> =
            phases.iter().filter(|phase| phase.read.is_some() == has_readers).map(of).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let more = |of: &dyn Fn(&Phase) -> f64| mean(true, of) - mean(false, of);
    let events = mean(true, &|phase| {
        let read = phase.read.as_ref().map_or(0, |(before, read)| read.events_since(before));
        read as f64 / (phase.to - phase.from).as_secs_f64()
    });
    let (cpus, waits) = (more(&|phase| phase.cpus.master), more(&|phase| phase.cpus.waits));
    let row = Row::new().with("beside", "readers - nobody").measured("master_cpus", cpus);
    let row = row.measured("waits_per_s", waits).measured("events_per_s", events);
    match events > 0.0 {
        true => row
            .measured("us_per_event", cpus * 1e6 / events)
            .measured("waits_per_1000_events", waits * 1000.0 / events),
        false => row,
    }
}

fn ratios(what: &str, ratio: impl Fn(f64) -> f64) -> Row {
    let row = Row::new().with("beside", what);
    row.measured("p50_ms", ratio(50.0)).measured("p90_ms", ratio(90.0)).measured("p99_ms", ratio(99.0))
}

/// The launches of one round: without readers, with readers.
fn pair(round: &[Phase], launched: impl Fn(&Phase) -> Spread) -> [Spread; 2] {
    let mut pair = [Spread::default(), Spread::default()];
    round.iter().for_each(|phase| pair[usize::from(phase.read.is_some())].append(launched(phase)));
    pair
}
