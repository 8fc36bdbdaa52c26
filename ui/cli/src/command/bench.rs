//! `tepui bench`: hands over to `tepui-bench`, which is built apart so that this binary carries no benchmarks.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow};
use clap::Args;

const PROGRAM: &str = "tepui-bench";

/// Measure the numbers of SPECIFICATION.md, as in `tepui bench allocator --shape cluster`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Bench {
    /// What `tepui-bench` is to do; --help tells what it can.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Bench {
    /// Returns only if there is no such program.
    pub fn run(self) -> Result<ExitCode> {
        let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
        let program = beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let why = Command::new(&program).args(&self.arguments).exec();
        Err(anyhow!(
            "{} cannot be started: {why}\nit must lie beside this program or on PATH; build it with \
             `cargo build --profile dist -p tepui-bench`",
            program.display()
        ))
    }
}
