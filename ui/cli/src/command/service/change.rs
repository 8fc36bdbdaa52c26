//! `tepui service update` and `uninstall`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::super::{Cluster, block_on};
use super::api::{Target, services};
use super::plan;
use super::source::Source;
use super::tree;
use crate::confirm::{Confirm, done};
use crate::listing::text;
use crate::output;

/// Between two looks at the cluster.
const POLL: Duration = Duration::from_millis(500);

#[derive(Args)]
pub struct Update {
    #[command(flatten)]
    target: Target,
    /// Service spec to send to the scheduler, with the config templates beside it [default: the scheduler reads its own
    /// files again].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Options of the service to send with FILE, a JSON file [default: those of the scheduler].
    #[arg(long, value_name = "FILE", requires = "file")]
    options: Option<PathBuf>,
    /// Wait until the service is brought to the new configuration.
    #[arg(long)]
    wait: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Update {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        block_on(async {
            let body = match &self.file {
                Some(file) => {
                    let source = Source { file: file.clone(), options: self.options.clone() };
                    serde_json::to_value(source.upload()?)?
                }
                None => json!({}),
            };
            let service = self.target.connect(cluster).await?;
            let answer = service.post("/v1/update", &body).await?;
            let sentence = match answer["changed"] == true {
                true => format!("configuration {} is the target", text(&answer, "configuration")),
                false => "the configuration has not changed".to_owned(),
            };
            done(self.json, &answer, &sentence)?;
            if !self.wait {
                return Ok(ExitCode::SUCCESS);
            }
            loop {
                let deploy = plan::fetch(&service, "deploy").await?;
                match text(&deploy, "status") {
                    "COMPLETE" => return Ok(ExitCode::SUCCESS),
                    "ERROR" => {
                        output::line(&tree::plan("deploy", &deploy, output::colours()))?;
                        return Ok(ExitCode::FAILURE);
                    }
                    _ => tokio::time::sleep(POLL).await,
                }
            }
        })
    }
}

#[derive(Args)]
#[command(rename_all = "snake_case")]
pub struct Uninstall {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    confirm: Confirm,
    /// Return at once; by default the command waits until nothing of the service is left.
    #[arg(long)]
    no_wait: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Uninstall {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let name = &self.target.name;
        block_on(async {
            let service = self.target.connect(cluster).await?;
            self.confirm.require(&format!(
                "Tasks of service {name} are killed, its reservations and persistent volumes are destroyed. External volumes stay."
            ))?;
            let answer = service.post("/v1/uninstall", &json!({})).await?;
            while !self.no_wait && services(cluster).await?.iter().any(|one| text(one, "name") == name) {
                tokio::time::sleep(POLL).await;
            }
            let sentence = match self.no_wait {
                true => format!("uninstallation of service {name} is requested"),
                false => format!("service {name} is uninstalled"),
            };
            done(self.json, &answer, &output::printable(&sentence))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
