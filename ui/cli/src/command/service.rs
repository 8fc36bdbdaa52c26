//! `tepui service`: stateful services from a YAML spec.

mod api;
mod change;
mod describe;
mod list;
mod plan;
mod pod;
mod progress;
mod read;
mod run;
mod settings;
mod source;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use tepui_service::spec::ServiceSpec;

use self::source::Source;
use super::Cluster;
use crate::output;

/// Run, inspect and change stateful services.
#[derive(Args)]
pub struct Service {
    #[command(flatten)]
    cluster: Cluster,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run the scheduler of a service in the foreground; the same command again continues its plans.
    Run(Box<run::RunCommand>),
    /// Validate a spec and print all its problems; exit with 1 if there are errors.
    Validate(Validate),
    /// Show what a spec declares and the options it can be run with.
    Describe(describe::Describe),
    /// List the services of the cluster.
    List(list::ServiceList),
    /// Show plans, or start, pause, restart and complete them.
    #[command(alias = "plans")]
    Plan(plan::PlanCommand),
    /// Show pods, or restart, replace, pause and resume them.
    #[command(alias = "pods")]
    Pod(pod::PodCommand),
    /// Print the addresses of a service.
    #[command(alias = "endpoint")]
    Endpoints(read::Endpoints),
    /// Print the configurations of a service.
    #[command(alias = "configs")]
    Config(read::Config),
    /// Print the scheduler's plans, offers and reservations, with the reasons for its decisions.
    Debug(read::Debug),
    /// Send a new spec to a running service, or have it read its files again, and roll out what changed.
    Update(change::Update),
    /// Kill the tasks of a service and destroy its reservations and persistent volumes.
    Uninstall(change::Uninstall),
}

#[derive(Args)]
struct Validate {
    #[command(flatten)]
    source: Source,
}

impl Service {
    pub fn run(self) -> Result<ExitCode> {
        let cluster = self.cluster;
        match self.action {
            Action::Run(run) => run.run(&cluster),
            Action::Validate(validate) => validate.run(),
            Action::Describe(describe) => describe.run(),
            Action::List(list) => list.run(&cluster),
            Action::Plan(plan) => plan.run(&cluster),
            Action::Pod(pod) => pod.run(&cluster),
            Action::Endpoints(endpoints) => endpoints.run(&cluster),
            Action::Config(config) => config.run(&cluster),
            Action::Debug(debug) => debug.run(&cluster),
            Action::Update(update) => update.run(&cluster),
            Action::Uninstall(uninstall) => uninstall.run(&cluster),
        }
    }
}

impl Validate {
    fn run(self) -> Result<ExitCode> {
        let Some(spec) = self.source.read()? else { return Ok(ExitCode::FAILURE) };
        output::line(&output::printable(&summary(&self.source.file.display().to_string(), &spec)))?;
        Ok(ExitCode::SUCCESS)
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
