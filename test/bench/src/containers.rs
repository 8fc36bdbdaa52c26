//! `containers`: launching and ending containers on a real agent with every cgroup isolator, by how many are alive; and
//! what a container costs beside a bare fork and exec of the same program.
//!
//! One row per number of containers alive: one after the other for the times, several at once for the rates. In turns with
//! them the kernel's own part is measured: a process that is started, moved into such cgroups and killed without an agent, and
//! a record that is brought to the disk, for which every launch waits.
//! What grows there is not ours. The last two rows are of two agents in turns on the same machine, one with few containers and
//! one with many: what differs there is.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::bare::{Bare, record, timed};
use crate::isolated::{Isolated, SLEEP, Work, bare};
use crate::program::raise_open_files;
use crate::report::{Report, Row};
use crate::spread::Spread;

/// Files that the programs open for each container and for themselves.
const FILES_PER_CONTAINER: u64 = 4;
const OTHER_FILES: u64 = 256;

/// A program that ends at once.
const TRUE: [&str; 1] = ["/bin/true"];

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many containers are alive while others are launched and ended; ascending.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000")]
    pub alive: Vec<usize>,
    /// Containers launched and ended per row.
    #[arg(long, default_value_t = 200)]
    pub samples: usize,
    /// How many are launched or ended at once for the rate.
    #[arg(long, default_value_t = 16)]
    pub at_once: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    ensure!(options.alive.is_sorted(), "--alive must be ascending");
    let most = options.alive.last().copied().unwrap_or(0) + options.samples;
    raise_open_files(most as u64 * FILES_PER_CONTAINER + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let isolated = Isolated::start(1).await?;
    let mut report = Report::new("containers")
        .setting("isolation", "cgroups/all")
        .setting("samples", options.samples)
        .setting("at_once", options.at_once);
    report.push(side_by_side(&isolated, options.samples).await?);
    let mut alive = 0;
    for wanted in &options.alive {
        let fill: Vec<String> = (alive..*wanted).map(|number| format!("alive-{number}")).collect();
        isolated.many(Work::Launch, &fill, options.at_once).await?;
        alive = *wanted;
        report.push(row(&isolated, options, alive).await?);
    }
    in_turns(&isolated, options, alive, &mut report).await?;
    Ok(report)
}

/// Launches and ends on the agent with many containers and on another with the fewest, in turns: the kernel has the same
/// number alive for both, and the machine is as fast for both, so a difference is the agent's own.
async fn in_turns(many: &Isolated, options: &Options, alive: usize, report: &mut Report) -> Result<()> {
    let fewest = options.alive.first().copied().unwrap_or(0);
    let few = Isolated::start(1).await?;
    let fill: Vec<String> = (0..fewest).map(|number| format!("alive-{number}")).collect();
    few.many(Work::Launch, &fill, options.at_once).await?;
    let agents = [(&few, fewest), (many, alive)];
    let mut spreads = [(); 2].map(|()| (Spread::default(), Spread::default()));
    for number in 0..options.samples {
        for ((agent, _), (launches, ends)) in agents.iter().zip(&mut spreads) {
            let id = format!("turn-{number}");
            launches.push(agent.launch(&id, &SLEEP).await?);
            ends.push(agent.destroy(&id).await?);
        }
    }
    for ((_, alive), (launches, ends)) in agents.iter().zip(&spreads) {
        report.push(
            Row::new()
                .with("what", "in turns with another agent")
                .with("alive", *alive)
                .measured("launch_p50_ms", launches.median_ms())
                .measured("launch_p99_ms", launches.percentile_ms(99.0))
                .measured("end_p50_ms", ends.median_ms())
                .measured("end_p99_ms", ends.percentile_ms(99.0)),
        );
    }
    Ok(())
}

/// A program that does nothing, in a container and without one, in turns.
async fn side_by_side(isolated: &Isolated, samples: usize) -> Result<Row> {
    let (mut contained, mut forked) = (Spread::default(), Spread::default());
    for number in 0..samples {
        forked.push(tokio::task::spawn_blocking(|| bare(&TRUE)).await??);
        let (id, began) = (format!("true-{number}"), std::time::Instant::now());
        isolated.launch(&id, &TRUE).await?;
        isolated.wait(&id).await.ok(); // It may have ended, and be forgotten, before anybody asks.
        contained.push(began.elapsed());
    }
    Ok(Row::new()
        .with("what", "true, beside bare fork+exec")
        .measured("p50_ms", contained.percentile_ms(50.0))
        .measured("p99_ms", contained.percentile_ms(99.0))
        .measured("bare_p50_ms", forked.percentile_ms(50.0))
        .measured("bare_p99_ms", forked.percentile_ms(99.0)))
}

async fn row(isolated: &Isolated, options: &Options, alive: usize) -> Result<Row> {
    let before = isolated.agent.usage()?;
    let (mut launches, mut ends) = (Spread::default(), Spread::default());
    let (mut bare_launches, mut bare_ends) = (Spread::default(), Spread::default());
    let mut records = Spread::default();
    for number in 0..options.samples {
        let id = format!("one-{alive}-{number}");
        launches.push(isolated.launch(&id, &SLEEP).await?);
        ends.push(isolated.destroy(&id).await?);
        let (launched, ended) = bare_container(isolated.roots()).await?;
        bare_launches.push(launched);
        bare_ends.push(ended);
        records.push(record(isolated.folder.path())?);
    }
    let cpu = isolated.agent.usage()?.cpu_seconds - before.cpu_seconds;
    let ids: Vec<String> = (0..options.samples).map(|number| format!("many-{alive}-{number}")).collect();
    let launched = isolated.many(Work::Launch, &ids, options.at_once).await?;
    let ended = isolated.many(Work::Destroy, &ids, options.at_once).await?;
    let ours_launch = launches.median_ms() - bare_launches.median_ms() - records.median_ms();
    let ours_end = ends.median_ms() - bare_ends.median_ms();
    let rate = |took: Duration| options.samples as f64 / took.as_secs_f64();
    Ok(Row::new()
        .with("what", "launch and end")
        .with("alive", alive)
        .measured("launch_p50_ms", launches.percentile_ms(50.0))
        .measured("launch_p99_ms", launches.percentile_ms(99.0))
        .measured("launches_per_s", rate(launched))
        .measured("end_p50_ms", ends.percentile_ms(50.0))
        .measured("end_p99_ms", ends.percentile_ms(99.0))
        .measured("ends_per_s", rate(ended))
        .measured("bare_launch_p50_ms", bare_launches.median_ms())
        .measured("bare_end_p50_ms", bare_ends.median_ms())
        .measured("record_p50_ms", records.median_ms())
        .measured("ours_launch_ms", ours_launch)
        .measured("ours_end_ms", ours_end)
        .measured("agent_cpu_ms_each", cpu * 1000.0 / options.samples as f64))
}

/// The times of a launch and an end without an agent.
async fn bare_container(roots: Vec<PathBuf>) -> Result<(Duration, Duration)> {
    let work = move || {
        let (bare, launched) = timed(|| Bare::launch(&roots, "bare"))?;
        let ((), ended) = timed(|| bare.end())?;
        Ok((launched, ended))
    };
    tokio::task::spawn_blocking(work).await?
}
