//! `tepui service plan`: plans as trees, and what operators do to them.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::super::{Cluster, block_on};
use super::api::{Service, Target, part, query};
use super::tree;
use crate::{output, watch};

/// Status of a plan with errors.
const PLAN_IN_ERROR: u16 = 417;

#[derive(Args)]
pub struct PlanCommand {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    action: Option<Action>,
    /// Draw the plans anew every second, until Ctrl-C.
    #[arg(long, short, conflicts_with = "json")]
    watch: bool,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the names of the plans.
    List,
    /// Show one plan.
    #[command(alias = "status")]
    Show {
        plan: String,
        /// Draw it anew every second, until Ctrl-C.
        #[arg(long, short)]
        watch: bool,
    },
    /// Start a plan, with variables for its tasks.
    Start {
        plan: String,
        /// Variable for the tasks of the plan, `NAME=VALUE`; may be repeated.
        #[arg(long = "parameter", short, value_parser = parameter)]
        parameters: Vec<(String, String)>,
    },
    /// Stop a plan; its steps are pending again.
    Stop { plan: String },
    /// Start no further steps of a plan or phase.
    #[command(alias = "interrupt")]
    Pause { plan: String, phase: Option<String> },
    /// Continue a plan or phase that is paused or waits as a canary.
    #[command(alias = "continue")]
    Resume { plan: String, phase: Option<String> },
    /// Run a plan, phase or step again.
    #[command(alias = "restart")]
    ForceRestart { plan: String, phase: Option<String>, step: Option<String> },
    /// Mark a plan, phase or step as complete, whatever its state.
    #[command(alias = "force")]
    ForceComplete { plan: String, phase: Option<String>, step: Option<String> },
}

impl PlanCommand {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        block_on(async {
            let service = self.target.connect(cluster).await?;
            match &self.action {
                None => self.show_all(&service).await,
                Some(action) => self.act(&service, action).await,
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }

    async fn show_all(&self, service: &Service) -> Result<()> {
        if self.json {
            let mut all = Map::new();
            for name in names(service).await? {
                all.insert(name.clone(), fetch(service, &name).await?);
            }
            return output::json(&Value::Object(all));
        }
        let colours = output::colours();
        let draw = async || {
            let mut parts = Vec::new();
            for name in names(service).await? {
                let plan = fetch(service, &name).await?;
                parts.push(format!(
                    "{}\n{}",
                    tree::plan(&name, &plan, colours),
                    tree::progress(&plan, colours)
                ));
            }
            Ok(parts.join("\n\n"))
        };
        match self.watch {
            true => watch::run(draw).await,
            false => output::line(&draw().await?),
        }
    }

    async fn act(&self, service: &Service, action: &Action) -> Result<()> {
        let (plan, verb, query, body, done) = match action {
            Action::List => return output::json(&json!(names(service).await?)),
            Action::Show { plan, watch } => return self.show(service, plan, *watch).await,
            Action::Start { plan, parameters } => {
                let body: Map<String, Value> =
                    parameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                (plan, "start", String::new(), Value::Object(body), "has been started")
            }
            Action::Stop { plan } => (plan, "stop", String::new(), json!({}), "has been stopped"),
            Action::Pause { plan, phase } => {
                (plan, "interrupt", query(&[("phase", phase.as_deref())]), json!({}), "has been paused")
            }
            Action::Resume { plan, phase } => {
                (plan, "continue", query(&[("phase", phase.as_deref())]), json!({}), "has been resumed")
            }
            Action::ForceRestart { plan, phase, step } => {
                (plan, "restart", element(phase, step), json!({}), "has been restarted")
            }
            Action::ForceComplete { plan, phase, step } => {
                (plan, "forceComplete", element(phase, step), json!({}), "has been forced to complete")
            }
        };
        let answer = service.post(&format!("/v1/plans/{}/{verb}{query}", part(plan)), &body).await?;
        match self.json {
            true => output::json(&answer),
            false => output::line(&output::printable(&format!("\"{plan}\" plan {done}"))),
        }
    }

    async fn show(&self, service: &Service, plan: &str, watch: bool) -> Result<()> {
        if self.json {
            return output::json(&fetch(service, plan).await?);
        }
        let colours = output::colours();
        let draw = async || Ok(tree::plan(plan, &fetch(service, plan).await?, colours));
        match watch {
            true => watch::run(draw).await,
            false => output::line(&draw().await?),
        }
    }
}

fn element(phase: &Option<String>, step: &Option<String>) -> String {
    query(&[("phase", phase.as_deref()), ("step", step.as_deref())])
}

pub async fn names(service: &Service) -> Result<Vec<String>> {
    let names = service.get("/v1/plans", &[]).await?;
    Ok(names.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

pub async fn fetch(service: &Service, plan: &str) -> Result<Value> {
    service.get(&format!("/v1/plans/{}", part(plan)), &[PLAN_IN_ERROR]).await
}

fn parameter(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').ok_or_else(|| anyhow!("NAME=VALUE is expected"))?;
    Ok((name.to_owned(), value.to_owned()))
}
