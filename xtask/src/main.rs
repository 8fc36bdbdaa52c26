//! `cargo xtask layers` checks the direction of dependencies, `cargo xtask tidy` holds the size ratchet.
//!
//! Both read the tree and nothing else; they fail with a list of what to mend.
#![forbid(unsafe_code)]

mod layers;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    match run(&task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str) -> Result<()> {
    let root = workspace_root();
    match task {
        "layers" => layers::check(&root),
        "tidy" => tidy::check(&root),
        "tidy-accept" => tidy::accept(&root),
        other => bail!("no task {other:?}; there are: layers, tidy, tidy-accept"),
    }
}

fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies one level below the workspace").to_path_buf()
}

/// Fails with every problem found, one per line.
fn report(problems: &[String], hint: &str) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{} problem(s)\n  {}\n{hint}", problems.len(), problems.join("\n  "));
}
