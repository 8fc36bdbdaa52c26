//! `tepui service`: stateful services from a YAML spec.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use tepui_service::mustache::RENDERED_BYTES_MAX;
use tepui_service::spec::ServiceSpec;
use tepui_service::{Input, Report, parse};

use crate::output;

/// Check the specs of stateful services.
#[derive(Args)]
pub struct Service {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check a spec and print all its problems; exits with 1 if there are errors.
    Validate(Validate),
}

#[derive(Args)]
struct Validate {
    /// Service spec in YAML; variables of the environment are rendered into it, and config templates are read beside it.
    file: PathBuf,
}

impl Service {
    pub fn run(self) -> Result<ExitCode> {
        match self.action {
            Action::Validate(validate) => validate.run(),
        }
    }
}

impl Validate {
    fn run(self) -> Result<ExitCode> {
        let file = self.file.display().to_string();
        let text = read_limited(&self.file).with_context(|| format!("cannot read {file}"))?;
        let directory = self.file.parent().unwrap_or(Path::new(""));
        let template = |path: &str| read_limited(&directory.join(path)).map_err(|error| format!("{error:#}"));
        let env = environment();
        match parse(Input { file: &file, text: &text, env: &env, template: &template }) {
            Ok((spec, report)) => {
                print_problems(&report);
                output::line(&output::printable(&summary(&file, &spec)))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(report) => {
                print_problems(&report);
                let count = counted(report.errors(), "error");
                eprintln!("{}", output::printable(&format!("{file} is not valid: {count}")));
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

/// A file within the limit of templates.
fn read_limited(path: &Path) -> Result<String> {
    let mut text = String::new();
    let limit = RENDERED_BYTES_MAX as u64;
    File::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    anyhow::ensure!(text.len() as u64 <= limit, "the file exceeds {limit} bytes");
    Ok(text)
}

/// Variables whose names and values are texts.
fn environment() -> BTreeMap<String, String> {
    let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(texts).collect()
}

fn print_problems(report: &Report) {
    for line in report.to_string().lines() {
        eprintln!("{}", output::printable(line));
    }
}

fn summary(file: &str, spec: &ServiceSpec) -> String {
    let instances: u64 = spec.pods.iter().map(|pod| u64::from(pod.count)).sum();
    let tasks: u64 = spec.pods.iter().map(|pod| u64::from(pod.count) * pod.tasks.len() as u64).sum();
    format!(
        "{file} is valid: service {} with {} and {}",
        spec.name,
        counted(usize::try_from(instances).unwrap_or(usize::MAX), "pod"),
        counted(usize::try_from(tasks).unwrap_or(usize::MAX), "task"),
    )
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
