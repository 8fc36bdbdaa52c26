//! `tepui bench`: hands over to `tepui-bench`, which is built apart so that this binary carries no benchmarks.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow};
use clap::Args;

const PROGRAM: &str = "tepui-bench";

/// Run the benchmarks of SPECIFICATION.md, as in `tepui bench allocator --shape cluster`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Bench {
    /// Arguments of `tepui-bench`; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Bench {
    /// Returns only if the program is missing.
    pub fn run(self) -> Result<ExitCode> {
        let installed = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
        let program = installed.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let error = Command::new(&program).args(&self.arguments).exec();
        Err(anyhow!(
            "{} cannot be started: {error}\ninstall it next to this program or on PATH; build it with \
             `cargo build --profile dist -p tepui-bench`",
            program.display()
        ))
    }
}
