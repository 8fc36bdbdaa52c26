//! `tepui tasks`: what runs and what ran.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use super::{Cluster, block_on};
use crate::table::table;

/// Show live tasks, newest first; --all shows ended ones too.
#[derive(Args)]
pub struct Tasks {
    #[command(flatten)]
    cluster: Cluster,
    /// Also tasks that ended.
    #[arg(long, short)]
    all: bool,
    /// Print what the master answers, as JSON.
    #[arg(long)]
    json: bool,
}

impl Tasks {
    pub fn run(self) -> Result<ExitCode> {
        let answer = block_on(async {
            self.cluster.client()?.get("/tasks?limit=-1").await.with_context(|| self.cluster.hint())
        })?;
        if self.json {
            println!("{answer}");
        } else {
            println!("{}", self.render(&answer));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn render(&self, answer: &Value) -> String {
        let tasks = answer["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown = tasks.iter().filter(|task| self.all || is_live(&task["state"]));
        let rows: Vec<Vec<String>> = shown.map(row).collect();
        if rows.is_empty() {
            let hint = if self.all || tasks.is_empty() { "" } else { "; --all shows those that ended" };
            return format!("no tasks{hint}");
        }
        table(&["TASK", "NAME", "STATE", "CPUS", "MEM", "ROLE", "AGENT", "FRAMEWORK"], rows)
    }
}

fn row(task: &Value) -> Vec<String> {
    let text = |key: &str| task[key].as_str().unwrap_or_default().to_string();
    let number = |key: &str| task["resources"][key].to_string();
    vec![
        text("id"),
        text("name"),
        text("state"),
        number("cpus"),
        number("mem"),
        text("role"),
        text("slave_id"),
        text("framework_id"),
    ]
}

fn is_live(state: &Value) -> bool {
    const LIVE: [&str; 5] =
        ["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING", "TASK_UNREACHABLE"];
    state.as_str().is_some_and(|state| LIVE.contains(&state))
}
