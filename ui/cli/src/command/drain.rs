//! `tepui drain`, `deactivate`, `reactivate`, `gone`: agents taken out of use, and back.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tepui_client::shorthand::agent_id;
use tepui_proto::google::protobuf;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{
    DeactivateAgent, DrainAgent, MarkAgentGone, ReactivateAgent, Type,
};

use super::{Cluster, block_on, find};
use crate::confirm::{Confirm, done};
use crate::flags::value;
use crate::listing::{lists, number, text};
use crate::output;

/// How often a drain that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Which agent.
#[derive(Args, Clone, Debug)]
struct Which {
    #[command(flatten)]
    cluster: Cluster,
    /// The agent: its id, the end of it, or its hostname.
    agent: String,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

/// Empty an agent: nothing more is offered of it, and its tasks are killed.
#[derive(Args)]
pub struct Drain {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    confirm: Confirm,
    /// Tasks that ask for more time to end get so much.
    #[arg(long = "max_grace_period", value_parser = value::duration)]
    max_grace_period: Option<Duration>,
    /// When it is empty, it never comes back.
    #[arg(long = "mark_gone")]
    mark_gone: bool,
    /// Show how many tasks are left, until it is empty.
    #[arg(long)]
    wait: bool,
}

/// Offer nothing more of an agent; what runs there keeps running.
#[derive(Args)]
pub struct Deactivate {
    #[command(flatten)]
    which: Which,
}

/// Use an agent again that was deactivated or drained.
#[derive(Args)]
pub struct Reactivate {
    #[command(flatten)]
    which: Which,
}

/// Say that an agent never comes back: its tasks are gone, and its id is spent.
#[derive(Args)]
pub struct Gone {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    confirm: Confirm,
}

impl Drain {
    pub fn run(self) -> Result<ExitCode> {
        let cluster = &self.which.cluster;
        block_on(async {
            let agent = find::agent(cluster, &self.which.agent).await?;
            let id = text(&agent, "id");
            let tasks = tasks_on(cluster, id).await?;
            let then = if self.mark_gone { " It will never come back." } else { "" };
            self.confirm.ask(&format!("{tasks} tasks on agent {} will be killed.{then}", named(&agent)))?;
            cluster.change(&self.call(id)).await?;
            if self.wait {
                wait(cluster, id).await?;
            }
            let state = if self.wait { "drained" } else { "draining" };
            done(self.which.json, &json!({"agent_id": id, "done": state}), &format!("{state} agent {id}"))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn call(&self, id: &str) -> Call {
        let period = self.max_grace_period.map(|period| protobuf::Duration {
            seconds: Some(i64::try_from(period.as_secs()).unwrap_or(i64::MAX)),
            nanos: Some(period.subsec_nanos() as i32),
            ..Default::default()
        });
        let drain = DrainAgent {
            agent_id: agent_id(id).into(),
            max_grace_period: period.into(),
            mark_gone: Some(self.mark_gone),
            ..Default::default()
        };
        Call { r#type: Some(Type::DRAIN_AGENT), drain_agent: drain.into(), ..Default::default() }
    }
}

/// `id (hostname)`; of an unreachable agent the host is not known.
fn named(agent: &Value) -> String {
    match (text(agent, "id"), text(agent, "hostname")) {
        (id, "") => id.to_string(),
        (id, hostname) => format!("{id} ({hostname})"),
    }
}

/// How many tasks have not ended there.
async fn tasks_on(cluster: &Cluster, id: &str) -> Result<usize> {
    let summary = cluster.get("/state-summary").await?;
    let states = ["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"];
    let count = |agent: &Value| states.iter().map(|state| number(agent, state)).sum::<f64>() as usize;
    Ok(lists(&summary, &["slaves"]).find(|agent| text(agent, "id") == id).map_or(0, count))
}

/// Tells how many tasks are left whenever that changes, until the drain has ended.
async fn wait(cluster: &Cluster, id: &str) -> Result<()> {
    let mut told = None;
    loop {
        let agents = cluster.get("/slaves").await?;
        let agent = lists(&agents, &["slaves"]).find(|agent| text(agent, "id") == id);
        match agent.map(|agent| text(&agent["drain_info"], "state")) {
            Some("DRAINING") => (),
            Some("DRAINED") | None => return Ok(()),
            Some(_) => bail!("somebody used agent {id} again while it was drained"),
        }
        let left = tasks_on(cluster, id).await?;
        if told.replace(left) != Some(left) {
            output::notice(&format!("{left} tasks left on agent {id}"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Which {
    /// Finds the agent, asks if need be, calls, and tells.
    fn run(
        &self,
        verb: &str,
        ask: Option<(&Confirm, &str)>,
        call: impl FnOnce(&str) -> Call,
    ) -> Result<ExitCode> {
        block_on(async {
            let agent = find::agent(&self.cluster, &self.agent).await?;
            let id = text(&agent, "id");
            if let Some((confirm, what)) = ask {
                confirm.ask(&format!("Agent {}: {what}", named(&agent)))?;
            }
            self.cluster.change(&call(id)).await?;
            done(self.json, &json!({"agent_id": id, "done": verb}), &format!("{verb} agent {id}"))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Deactivate {
    pub fn run(self) -> Result<ExitCode> {
        self.which.run("deactivated", None, |id| {
            let call = DeactivateAgent { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::DEACTIVATE_AGENT), deactivate_agent: call.into(), ..Default::default() }
        })
    }
}

impl Reactivate {
    pub fn run(self) -> Result<ExitCode> {
        self.which.run("reactivated", None, |id| {
            let call = ReactivateAgent { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::REACTIVATE_AGENT), reactivate_agent: call.into(), ..Default::default() }
        })
    }
}

impl Gone {
    pub fn run(self) -> Result<ExitCode> {
        let what = "all its tasks are declared gone, and it can never come back.";
        self.which.run("marked gone", Some((&self.confirm, what)), |id| {
            let call = MarkAgentGone { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::MARK_AGENT_GONE), mark_agent_gone: call.into(), ..Default::default() }
        })
    }
}
