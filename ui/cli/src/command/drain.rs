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
struct AgentArgument {
    #[command(flatten)]
    cluster: Cluster,
    /// Agent ID, a suffix of it, or its hostname.
    agent: String,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Drain an agent: kill its tasks and stop offering it.
#[derive(Args)]
pub struct Drain {
    #[command(flatten)]
    target: AgentArgument,
    #[command(flatten)]
    confirm: Confirm,
    /// Upper bound of the grace period of tasks.
    #[arg(long = "max_grace_period", value_parser = value::duration)]
    max_grace_period: Option<Duration>,
    /// Mark the agent as gone when it is drained.
    #[arg(long = "mark_gone")]
    mark_gone: bool,
    /// Show the number of remaining tasks until the agent is drained.
    #[arg(long)]
    wait: bool,
}

/// Stop offering an agent; its tasks keep running.
#[derive(Args)]
pub struct Deactivate {
    #[command(flatten)]
    target: AgentArgument,
}

/// Offer a deactivated or drained agent again.
#[derive(Args)]
pub struct Reactivate {
    #[command(flatten)]
    target: AgentArgument,
}

/// Mark an agent as permanently gone: its tasks are TASK_GONE_BY_OPERATOR, and its ID can never register
/// again.
#[derive(Args)]
pub struct Gone {
    #[command(flatten)]
    target: AgentArgument,
    #[command(flatten)]
    confirm: Confirm,
}

impl Drain {
    pub fn run(self) -> Result<ExitCode> {
        let cluster = &self.target.cluster;
        block_on(async {
            let agent = find::agent(cluster, &self.target.agent).await?;
            let id = text(&agent, "id");
            let tasks = tasks_on(cluster, id).await?;
            let then = if self.mark_gone { " It can never register again." } else { "" };
            self.confirm
                .require(&format!("{tasks} tasks on agent {} will be killed.{then}", named(&agent)))?;
            cluster.change(&self.call(id)).await?;
            if self.wait {
                wait(cluster, id).await?;
            }
            let state = if self.wait { "drained" } else { "draining" };
            done(self.target.json, &json!({"agent_id": id, "done": state}), &format!("{state} agent {id}"))
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

/// The number of live tasks on the agent.
async fn tasks_on(cluster: &Cluster, id: &str) -> Result<usize> {
    let summary = cluster.get("/state-summary").await?;
    let states = ["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"];
    let count = |agent: &Value| states.iter().map(|state| number(agent, state)).sum::<f64>() as usize;
    Ok(lists(&summary, &["slaves"]).find(|agent| text(agent, "id") == id).map_or(0, count))
}

/// Prints the number of remaining tasks whenever it changes, until the drain completes.
async fn wait(cluster: &Cluster, id: &str) -> Result<()> {
    let mut printed = None;
    loop {
        let agents = cluster.get("/slaves").await?;
        let agent = lists(&agents, &["slaves"]).find(|agent| text(agent, "id") == id);
        match agent.map(|agent| text(&agent["drain_info"], "state")) {
            Some("DRAINING") => (),
            Some("DRAINED") | None => return Ok(()),
            Some(_) => bail!("agent {id} was reactivated while draining"),
        }
        let left = tasks_on(cluster, id).await?;
        if printed.replace(left) != Some(left) {
            output::notice(&format!("{left} tasks left on agent {id}"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl AgentArgument {
    /// Finds the agent, asks for confirmation if required, sends the call, and prints the result.
    fn run(
        &self,
        verb: &str,
        ask: Option<(&Confirm, &str)>,
        call: impl FnOnce(&str) -> Call,
    ) -> Result<ExitCode> {
        block_on(async {
            let agent = find::agent(&self.cluster, &self.agent).await?;
            let id = text(&agent, "id");
            if let Some((confirm, consequence)) = ask {
                confirm.require(&format!("Agent {}: {consequence}", named(&agent)))?;
            }
            self.cluster.change(&call(id)).await?;
            done(self.json, &json!({"agent_id": id, "done": verb}), &format!("{verb} agent {id}"))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Deactivate {
    pub fn run(self) -> Result<ExitCode> {
        self.target.run("deactivated", None, |id| {
            let call = DeactivateAgent { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::DEACTIVATE_AGENT), deactivate_agent: call.into(), ..Default::default() }
        })
    }
}

impl Reactivate {
    pub fn run(self) -> Result<ExitCode> {
        self.target.run("reactivated", None, |id| {
            let call = ReactivateAgent { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::REACTIVATE_AGENT), reactivate_agent: call.into(), ..Default::default() }
        })
    }
}

impl Gone {
    pub fn run(self) -> Result<ExitCode> {
        let consequence = "all its tasks become TASK_GONE_BY_OPERATOR, and it can never register again.";
        self.target.run("marked gone", Some((&self.confirm, consequence)), |id| {
            let call = MarkAgentGone { agent_id: agent_id(id).into(), ..Default::default() };
            Call { r#type: Some(Type::MARK_AGENT_GONE), mark_agent_gone: call.into(), ..Default::default() }
        })
    }
}
