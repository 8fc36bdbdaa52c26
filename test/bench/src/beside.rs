//! Launches beside readers: short tasks at an even rate all the time; in phases by themselves, beside readers, and beside
//! work of the same low priority that has nothing to do with the master (`idlers`).
//!
//! The third kind is the control: where it is as slow as readers are, it is the full processors that cost, and not what the
//! master does for readers. Every other round goes through the kinds backwards, so that none always follows the same.
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
use crate::idlers::{Idlers, Seen};
use crate::program::Program;
use crate::readers::{Readers, Total};
use crate::reading::{Options, Turns};
use crate::report::{Report, Row};
use crate::spread::Spread;

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

/// What else wants the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nobody,
    Idlers,
    Readers,
}

const KINDS: [Beside; 3] = [Beside::Nobody, Beside::Idlers, Beside::Readers];

impl Beside {
    fn row(self, what: &str, options: &Options) -> Row {
        let (beside, readers) = match self {
            Beside::Nobody => ("nobody", 0),
            Beside::Idlers => ("idle work", 0),
            Beside::Readers => ("readers", options.readers),
        };
        Row::new().with("what", what).with("beside", beside).with("readers", readers)
    }
}

/// A time beside one kind.
struct Phase {
    beside: Beside,
    from: Instant,
    to: Instant,
    read: Total,
    seen: Seen,
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
    for round in 0..options.rounds {
        let mut kinds = KINDS;
        if round % 2 == 1 {
            kinds.reverse();
        }
        for beside in kinds {
            phases.push(phase(master, options, beside).await?);
        }
    }
    Ok(phases)
}

async fn phase(master: &Program, options: &Options, beside: Beside) -> Result<Phase> {
    let turns_before = Turns::until_now(&master.address).await?;
    let readers = if beside == Beside::Readers { options.readers } else { 0 };
    let reading = Readers::start(&master.address, readers, options.gzip)?;
    let idling = (beside == Beside::Idlers).then(Idlers::start).transpose()?;
    tokio::time::sleep(Duration::from_secs_f64(options.seconds * SETTLING)).await;
    let (from, before) = (Instant::now(), master.usage()?);
    tokio::time::sleep(Duration::from_secs_f64(options.seconds * (1.0 - SETTLING))).await;
    let (to, after) = (Instant::now(), master.usage()?);
    let seen = idling.map(Idlers::stop).unwrap_or_default();
    let read = reading.stop().await?;
    let turns = Turns::until_now(&master.address).await?.since(&turns_before);
    let cpus = (after.cpu_seconds - before.cpu_seconds) / (to - from).as_secs_f64();
    Ok(Phase { beside, from, to, read, seen, turns, cpus })
}

fn tell(options: &Options, frameworks: &Frameworks, phases: &[Phase], report: &mut Report) {
    let launched = |phase: &Phase| frameworks.launched_between(phase.from, phase.to);
    for phase in phases {
        let (latencies, seconds) = (launched(phase), (phase.to - phase.from).as_secs_f64());
        let row = phase.turns.row(phase.read.row(phase.beside.row("launches", options)));
        let row = seen(row, phase.seen).measured("master_cpus", phase.cpus);
        let row = row.measured("tasks_per_s", latencies.len() as f64 / seconds);
        report.push(latencies.percentiles(row));
    }
    let kinds = KINDS.map(|kind| {
        let of_kind: Vec<&Phase> = phases.iter().filter(|phase| phase.beside == kind).collect();
        let (mut all, mut turns, mut total) = (Spread::default(), Turns::default(), Seen::default());
        for phase in &of_kind {
            all.append(launched(phase));
            turns = turns.and(&phase.turns);
            total =
                Seen { pauses: total.pauses + phase.seen.pauses, worked: total.worked + phase.seen.worked };
        }
        let p99s: Vec<f64> = of_kind.iter().map(|phase| launched(phase).percentile_ms(99.0)).collect();
        let row = seen(turns.row(kind.row("all phases", options)), total);
        report.push(all.percentiles(row).measured("median_of_p99_ms", median(&p99s)));
        (all.percentile_ms(99.0), median(&p99s))
    });
    let [alone, _, readers] = kinds;
    for (kind, than) in [(Beside::Nobody, kinds[0]), (Beside::Idlers, kinds[1])] {
        let row = kind.row("p99 beside readers / beside", options).measured("ratio", readers.0 / than.0);
        report.push(row.measured("ratio_of_medians", readers.1 / than.1));
    }
    let row = Beside::Nobody.row("p99 beside idle work / beside", options);
    let row = row.measured("ratio", kinds[1].0 / alone.0);
    report.push(row.measured("ratio_of_medians", kinds[1].1 / alone.1));
}

/// How often the machine stood still, and how long somebody watched.
fn seen(row: Row, seen: Seen) -> Row {
    match seen.worked.is_zero() {
        true => row,
        false => row
            .measured("pauses_over_1ms_cpu", seen.pauses as f64)
            .measured("watched_cpus_s", seen.worked.as_secs_f64()),
    }
}

/// The upper one of two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
