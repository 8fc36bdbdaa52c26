//! `cargo xtask layers` checks the dependencies between crates and modules, `cargo xtask tidy` sizes and names.
//!
//! Both only read the tree; they fail with a list of violations.
#![forbid(unsafe_code)]

mod declared;
mod layers;
mod modules;
mod rust;
mod tidy;
mod words;

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
        "modules" => modules::print(&root, &std::env::args().nth(2).unwrap_or_default()),
        "tidy" => tidy::check(&root),
        "tidy-accept" => tidy::accept(&root),
        other => {
            bail!("unknown task {other:?}; tasks: layers, modules CRATE, tidy, tidy-accept")
        }
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
