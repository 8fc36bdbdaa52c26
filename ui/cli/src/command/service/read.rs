//! `tepui service endpoints`, `config` and `debug`: documents of the service's API.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::super::{Cluster, block_on};
use super::api::{Target, part, query};
use crate::output;

#[derive(Args)]
pub struct Endpoints {
    #[command(flatten)]
    target: Target,
    /// One endpoint; without it, the names of all.
    endpoint: Option<String>,
}

impl Endpoints {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let path = match &self.endpoint {
            Some(name) => format!("/v1/endpoints/{}", part(name)),
            None => "/v1/endpoints".to_owned(),
        };
        print(cluster, &self.target, &path)
    }
}

#[derive(Args)]
pub struct Config {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Subcommand)]
enum ConfigAction {
    /// List the ids of stored configurations.
    List,
    /// Print a configuration.
    Show { id: String },
    /// Print the configuration that the service is brought to.
    Target,
    /// Print the id of the configuration that the service is brought to.
    #[command(name = "target_id")]
    TargetId,
}

impl Config {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let path = match &self.action {
            ConfigAction::List => "/v1/configurations".to_owned(),
            ConfigAction::Show { id } => format!("/v1/configurations/{}", part(id)),
            ConfigAction::Target => "/v1/configurations/target".to_owned(),
            ConfigAction::TargetId => "/v1/configurations/targetId".to_owned(),
        };
        print(cluster, &self.target, &path)
    }
}

#[derive(Args)]
pub struct Debug {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    action: DebugAction,
}

#[derive(Subcommand)]
enum DebugAction {
    /// Print the last evaluated offers: which stage rejected which, and why.
    Offers,
    /// Print plans with their errors; of one plan, phase or step.
    Plans { plan: Option<String>, phase: Option<String>, step: Option<String> },
    /// Print the states of tasks by plan.
    TaskStatuses,
    /// Print the reserved resources by agent.
    Reservations,
    /// Print the framework id.
    FrameworkId,
    /// Print the names of stored properties.
    Properties,
    /// Print one stored property.
    Property { name: String },
    /// Print the health of the service as a code with its reasons.
    Health,
}

impl Debug {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let path = match &self.action {
            DebugAction::Offers => "/v1/debug/offers".to_owned(),
            DebugAction::Plans { plan, phase, step } => {
                let pairs = [("plan", plan), ("phase", phase), ("step", step)];
                format!("/v1/debug/plans{}", query(&pairs.map(|(key, value)| (key, value.as_deref()))))
            }
            DebugAction::TaskStatuses => "/v1/debug/taskStatuses".to_owned(),
            DebugAction::Reservations => "/v1/debug/reservations".to_owned(),
            DebugAction::FrameworkId => "/v1/state/frameworkId".to_owned(),
            DebugAction::Properties => "/v1/state/properties".to_owned(),
            DebugAction::Property { name } => format!("/v1/state/properties/{}", part(name)),
            DebugAction::Health => "/v1/health?verbose=true".to_owned(),
        };
        print(cluster, &self.target, &path)
    }
}

/// States of `/v1/health` by status.
const HEALTH_STATUSES: [u16; 6] = [318, 320, 321, 326, 500, 503];

fn print(cluster: &Cluster, target: &Target, path: &str) -> Result<ExitCode> {
    block_on(async {
        let service = target.connect(cluster).await?;
        let accepts: &[u16] = if path.starts_with("/v1/health") { &HEALTH_STATUSES } else { &[] };
        output::json(&service.get(path, accepts).await?)
    })?;
    Ok(ExitCode::SUCCESS)
}
