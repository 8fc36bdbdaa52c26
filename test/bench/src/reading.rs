//! `read`: what readers cost. One large cluster; readers of `/state`, and tasks launched beside them.
//!
//! First the document alone: how fast it comes. Then short tasks at an even rate, in turns beside nobody, beside work
//! that only keeps the processors busy, and beside readers (`beside`).

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::agent::Life;
use crate::fleet::{self, Fleet};
use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::readers::Readers;
use crate::report::{Report, Row};
use crate::{beside, web};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;

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
    /// How long each row is measured.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Short tasks per second that are launched beside the readers.
    #[arg(long, default_value_t = 1_000)]
    pub rate: usize,
    /// How often launches are measured beside nobody, beside work that concerns nobody, and beside readers.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Ask for compressed documents.
    #[arg(long)]
    pub gzip: bool,
    /// Flags for the master.
    #[arg(long = "master-flag", allow_hyphen_values = true)]
    pub master_flags: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    let agents = options.agents + beside::agents(options);
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
    let bytes = web::get(&master.address, "/state", options.gzip).await?;
    report = report.setting("document_bytes", bytes);
    for readers in [0, 1, options.readers] {
        report.push(documents(&master, options, readers).await?);
    }
    beside::launches(&master, options, &mut report).await?;
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
    let turns_before = Turns::until_now(&master.address).await?;
    let readers_at_work = Readers::start(&master.address, readers, options.gzip)?;
    let before = master.usage()?;
    tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
    let after = master.usage()?;
    let read = readers_at_work.stop().await?;
    let turns = Turns::until_now(&master.address).await?.since(&turns_before);
    let row = read.row(Row::new().with("what", "documents").with("readers", readers));
    let cpu = (after.cpu_seconds - before.cpu_seconds) / read.seconds();
    Ok(turns.row(row).measured("master_cpus", cpu).measured("master_mib", after.rss_mib))
}

/// Turns of the master's loop. Asking for them costs the master more than many launches, so that is not done while those
/// are measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// The longest of the last minute.
    max_ms: f64,
    cpu_max_ms: f64,
    all: f64,
    over_1ms: f64,
    cpu_over_1ms: f64,
}

impl Turns {
    /// All since the master started.
    pub async fn until_now(master: &str) -> Result<Turns> {
        let metrics = web::get_json(master, "/metrics/snapshot").await?;
        let value = |name: &str| metrics[name].as_f64().with_context(|| format!("no metric {name}"));
        Ok(Turns {
            max_ms: value("master/turn_ms/max")?,
            cpu_max_ms: value("master/turn_cpu_ms/max")?,
            all: value("master/turns")?,
            over_1ms: value("master/turns_over_1ms")?,
            cpu_over_1ms: value("master/turns_over_1ms_cpu")?,
        })
    }

    pub fn since(&self, before: &Turns) -> Turns {
        Turns {
            all: self.all - before.all,
            over_1ms: self.over_1ms - before.over_1ms,
            cpu_over_1ms: self.cpu_over_1ms - before.cpu_over_1ms,
            ..*self
        }
    }

    /// Of both together.
    pub fn and(&self, other: &Turns) -> Turns {
        Turns {
            max_ms: self.max_ms.max(other.max_ms),
            cpu_max_ms: self.cpu_max_ms.max(other.cpu_max_ms),
            all: self.all + other.all,
            over_1ms: self.over_1ms + other.over_1ms,
            cpu_over_1ms: self.cpu_over_1ms + other.cpu_over_1ms,
        }
    }

    pub fn row(&self, row: Row) -> Row {
        row.measured("turn_max_ms", self.max_ms)
            .measured("turn_cpu_max_ms", self.cpu_max_ms)
            .measured("turns", self.all)
            .measured("turns_over_1ms", self.over_1ms)
            .measured("turns_over_1ms_cpu", self.cpu_over_1ms)
    }
}
