//! `tepui service pod`: pods as trees, and what operators do to them.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::super::{Cluster, block_on};
use super::api::{Service, Target, part};
use super::tree;
use crate::{output, watch};

#[derive(Args)]
pub struct PodCommand {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    action: Option<Action>,
    /// Draw the pods anew every second, until Ctrl-C.
    #[arg(long, short, conflicts_with = "json")]
    watch: bool,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the names of the pods.
    List,
    /// Show one pod.
    #[command(alias = "show")]
    Status { pod: String },
    /// Print the TaskInfo and TaskStatus of the tasks of a pod.
    Info { pod: String },
    /// Kill the tasks of a pod; they are launched again on the same agent with the same reservations.
    Restart { pod: String },
    /// Kill the tasks of a pod, unreserve its resources and launch it anew, on any agent.
    Replace { pod: String },
    /// Launch tasks of a pod with a command that only waits, so that an operator can look around.
    Pause {
        pod: String,
        /// Only this task; may be repeated.
        #[arg(long = "task", short)]
        tasks: Vec<String>,
    },
    /// Launch paused tasks with their own command again.
    Resume {
        pod: String,
        /// Only this task; may be repeated.
        #[arg(long = "task", short)]
        tasks: Vec<String>,
    },
}

impl PodCommand {
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
            return output::json(&service.get("/v1/pod/status", &[]).await?);
        }
        let colours = output::colours();
        let draw = async || Ok(tree::pods(&service.get("/v1/pod/status", &[]).await?, colours));
        match self.watch {
            true => watch::run(draw).await,
            false => output::line(&draw().await?),
        }
    }

    async fn act(&self, service: &Service, action: &Action) -> Result<()> {
        let (pod, verb, tasks) = match action {
            Action::List => return output::json(&service.get("/v1/pod", &[]).await?),
            Action::Status { pod } => {
                let status = service.get(&format!("/v1/pod/{}/status", part(pod)), &[]).await?;
                return match self.json {
                    true => output::json(&status),
                    false => output::line(&tree::pod(&status, output::colours())),
                };
            }
            Action::Info { pod } => {
                return output::json(&service.get(&format!("/v1/pod/{}/info", part(pod)), &[]).await?);
            }
            Action::Restart { pod } => (pod, "restart", None),
            Action::Replace { pod } => (pod, "replace", None),
            Action::Pause { pod, tasks } => (pod, "pause", Some(tasks)),
            Action::Resume { pod, tasks } => (pod, "resume", Some(tasks)),
        };
        let body = tasks.filter(|tasks| !tasks.is_empty()).map_or(json!([]), |tasks| json!(tasks));
        let answer = service.post(&format!("/v1/pod/{}/{verb}", part(pod)), &body).await?;
        match self.json {
            true => output::json(&answer),
            false => output::line(&sentence(pod, verb, &answer)),
        }
    }
}

fn sentence(pod: &str, verb: &str, answer: &Value) -> String {
    let tasks = answer["tasks"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let tasks: Vec<&str> = tasks.collect();
    output::printable(&format!("{verb} of pod {pod} is requested: {}", tasks.join(", ")))
}
