//! Launches beside readers: short tasks at an even rate all the time, readers in every other phase.
//!
//! The time of a launch is from the moment its ACCEPT is sent until the framework has the update TASK_RUNNING; on the
//! way lie the launch on the agent, TASK_STARTING and its acknowledgement. It counts for the phase in which the ACCEPT was
//! sent, however late the task runs; the first moments of a phase count for none. Several frameworks launch, because one
//! sends its acknowledgements one after the other and would be measured instead of the master. The readers have
//! the lowest priority there is: they stand for people at other machines.

use std::time::{Duration, Instant};

use anyhow::Result;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::Program;
use crate::readers::{Readers, Total};
use crate::reading::{Options, Turns, watch_turns};
use crate::report::{Report, Row};

const FRAMEWORKS: usize = 10;

/// Launched by one ACCEPT, on one agent.
const TASKS_PER_ACCEPT: usize = 10;

/// What is offered again comes with the next allocation, within a second: room for three.
const SECONDS_OF_ROOM: usize = 3;

/// The beginning of a phase that counts for none, as a part of a phase.
const SETTLING: f64 = 0.1;

/// How many agents the launches need beside the still ones.
pub fn agents(options: &Options) -> usize {
    (SECONDS_OF_ROOM * options.rate).div_ceil(TASKS_PER_ACCEPT).max(1)
}

/// A time with or without readers.
struct Phase {
    readers: usize,
    from: Instant,
    to: Instant,
    read: Total,
    turns: Turns,
    cpus: f64,
}

/// Short tasks at an even rate, on agents of their own; a row for each phase and one for all.
pub async fn launches(master: &Program, options: &Options, report: &mut Report) -> Result<()> {
    let agents = agents(options);
    let plan = fleet::Plan {
        agents,
        life: Life::Short,
        slots: TASKS_PER_ACCEPT,
        backoff: Duration::ZERO,
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, options.agents, plan);
    fleet.subscribed(agents).await?;
    let plan = framework::Plan {
        frameworks: FRAMEWORKS,
        // Until the phases are over.
        tasks: usize::MAX,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "true".to_owned(),
        until: TaskState::TASK_RUNNING,
    };
    let mut frameworks = Frameworks::subscribe_paced(&master.address, plan, options.rate).await?;
    frameworks.offered(agents).await?;
    let brake = frameworks.brake();
    let phases = async {
        let phases = phases(master, options).await;
        brake.pull();
        phases
    };
    let (launched, phases) = tokio::join!(frameworks.launch(), phases);
    launched?;
    tell(options, &frameworks, &phases?, report);
    Ok(())
}

async fn phases(master: &Program, options: &Options) -> Result<Vec<Phase>> {
    let mut phases = Vec::new();
    for _ in 0..options.pairs {
        for readers in [0, options.readers] {
            phases.push(phase(master, options, readers).await?);
        }
    }
    Ok(phases)
}

async fn phase(master: &Program, options: &Options, readers: usize) -> Result<Phase> {
    let at_work = Readers::start(&master.address, readers, options.gzip)?;
    tokio::time::sleep(Duration::from_secs_f64(options.seconds * SETTLING)).await;
    let (from, before) = (Instant::now(), master.usage()?);
    let turns =
        watch_turns(&master.address, Duration::from_secs_f64(options.seconds * (1.0 - SETTLING))).await?;
    let (to, after) = (Instant::now(), master.usage()?);
    let read = at_work.stop().await?;
    let cpus = (after.cpu_seconds - before.cpu_seconds) / (to - from).as_secs_f64();
    Ok(Phase { readers, from, to, read, turns, cpus })
}

fn tell(options: &Options, frameworks: &Frameworks, phases: &[Phase], report: &mut Report) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for (number, phase) in phases.iter().enumerate() {
        let latencies = frameworks.launched_between(phase.from, phase.to);
        match number % 2 {
            0 => without.push(latencies.percentile_ms(99.0)),
            _ => with.push(latencies.percentile_ms(99.0)),
        }
        let seconds = (phase.to - phase.from).as_secs_f64();
        let row = phase.read.row(Row::new().with("what", "launches").with("readers", phase.readers));
        let row = phase.turns.row(row).measured("master_cpus", phase.cpus);
        let row = row.measured("tasks_per_s", latencies.len() as f64 / seconds);
        report.push(latencies.percentiles(row));
    }
    for (readers, p99s) in [(0, &without), (options.readers, &with)] {
        let row = Row::new().with("what", "median of phases").with("readers", readers);
        report.push(row.measured("p99_ms", median(p99s)));
    }
    let ratios: Vec<f64> = without.iter().zip(&with).map(|(without, with)| with / without).collect();
    let row = Row::new()
        .with("what", "p99 with / without")
        .measured("ratio", median(&with) / median(&without))
        .measured("ratio_min", ratios.iter().copied().fold(f64::INFINITY, f64::min))
        .measured("ratio_max", ratios.iter().copied().fold(0.0, f64::max));
    report.push(row);
}

/// The upper one of two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
