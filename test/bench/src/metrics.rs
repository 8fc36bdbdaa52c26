//! `metrics`: how long `/metrics/snapshot` and `/metrics` take with many frameworks.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use tepui_client::Format;
use tepui_client::v1::TaskState;

use crate::framework::{self, Frameworks};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 512;

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 1_000)]
    pub frameworks: usize,
    /// Number of requests of each.
    #[arg(long, default_value_t = 50)]
    pub runs: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files(options.frameworks as u64 * 3 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let master = Program::master(folder.path(), &[])?;
    let plan = framework::Plan {
        frameworks: options.frameworks,
        tasks: 0,
        window: usize::MAX,
        format: Format::Protobuf,
        command: "true".to_owned(),
        until: TaskState::TASK_FINISHED,
        calls: framework::CALLS,
    };
    let frameworks = Frameworks::subscribe(&master.address, plan).await?;
    let mut report =
        Report::new("metrics").setting("frameworks", options.frameworks).setting("runs", options.runs);
    for path in ["/metrics/snapshot", "/metrics"] {
        let (mut spread, mut bytes) = (Spread::default(), 0);
        for _ in 0..options.runs {
            let began = Instant::now();
            bytes = web::get(&master.address, path, false).await?;
            spread.push(began.elapsed());
        }
        let row = Row::new().with("path", path).measured("mb", bytes as f64 / 1e6);
        report.push(spread.percentiles(row));
    }
    drop(frameworks);
    Ok(report)
}
