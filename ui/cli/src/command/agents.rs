//! `tepui agents`: the machines of a cluster.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use super::{Cluster, block_on};
use crate::table::table;

/// Show the agents with what they have and what is used.
#[derive(Args)]
pub struct Agents {
    #[command(flatten)]
    cluster: Cluster,
    /// Print what the master answers, as JSON.
    #[arg(long)]
    json: bool,
}

impl Agents {
    pub fn run(self) -> Result<ExitCode> {
        let answer = block_on(async {
            self.cluster.client()?.get("/slaves").await.with_context(|| self.cluster.hint())
        })?;
        if self.json {
            println!("{answer}");
        } else {
            println!("{}", render(&answer));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn render(answer: &Value) -> String {
    let agents = answer["slaves"].as_array().map(Vec::as_slice).unwrap_or_default();
    if agents.is_empty() {
        return "no agents; start one with `tepui agent --master=HOST:PORT --work_dir=DIR`".to_string();
    }
    table(&["AGENT", "HOSTNAME", "STATE", "CPUS", "MEM", "DISK"], agents.iter().map(row).collect())
}

fn row(agent: &Value) -> Vec<String> {
    let text = |key: &str| agent[key].as_str().unwrap_or_default().to_string();
    let state = if agent["active"] == true { "active" } else { "inactive" };
    let share = |key: &str| format!("{}/{}", agent["used_resources"][key], agent["resources"][key]);
    vec![text("id"), text("hostname"), state.to_string(), share("cpus"), share("mem"), share("disk")]
}
