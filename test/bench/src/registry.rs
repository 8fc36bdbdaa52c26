//! `registry`: how many changes of the registry a master makes durable per second, and how long each waits.
//!
//! Operators mark agents gone, each call a record of its own; concurrent calls share a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tepui_client::operator::Client;
use tepui_client::v1::AgentID;
use tepui_client::v1::master::{Call, call};
use tokio::task::JoinSet;

use crate::agent::Life;
use crate::etcd::Etcd;
use crate::fleet::{self, Fleet};
use crate::program::{Program, raise_open_files};
use crate::report::{Report, Row};

/// Files that a process opens besides its connections.
const OTHER_FILES: u64 = 1024;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Changes to make.
    #[arg(long, default_value_t = 2000)]
    pub operations: usize,
    /// Operators that call at the same time.
    #[arg(long, default_value_t = 200)]
    pub clients: usize,
    /// Where the registry is: 0 is the file of a single master, else so many members of etcd. One after the other.
    #[arg(long, value_delimiter = ',', default_value = "0,3")]
    pub members: Vec<usize>,
}

pub fn run(options: &Options) -> Result<Report> {
    raise_open_files((options.operations + options.clients) as u64 + OTHER_FILES)?;
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let mut report =
        Report::new("registry").setting("operations", options.operations).setting("clients", options.clients);
    for members in &options.members {
        report.push(one(options, *members).await?);
    }
    Ok(report)
}

/// One registry and one master, made for this alone.
async fn one(options: &Options, members: usize) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let etcd = match members {
        0 => None,
        members => Some(Etcd::start(folder.path(), members).await?),
    };
    let flags: Vec<String> = etcd.iter().map(|etcd| format!("--registry={}", etcd.address())).collect();
    let master = Program::master(folder.path(), &flags)?;
    let agents = admitted(&master, options.operations).await?;
    let row = Row::new()
        .with("store", if etcd.is_some() { "etcd" } else { "embedded" })
        .with("etcd_members", members);
    let row = changes(row, &master.address, agents, options.clients).await?;
    master.stop()?;
    Ok(row)
}

/// The ids of so many agents, all admitted.
async fn admitted(master: &Program, count: usize) -> Result<Vec<AgentID>> {
    let plan = fleet::Plan {
        agents: count,
        life: Life::Long,
        slots: 1,
        backoff: Duration::from_millis(50),
        backoff_max: fleet::BACKOFF_MAX,
    };
    let fleet = Fleet::start(&master.address, 0, plan);
    fleet.subscribed(count).await?;
    let ask = Call { r#type: Some(call::Type::GET_AGENTS), ..Default::default() };
    let answer = Client::new(&master.address)?.master(&ask).await?;
    let ids: Vec<AgentID> =
        answer.get_agents.agents.iter().map(|agent| (*agent.agent_info.id).clone()).collect();
    ensure!(ids.len() == count, "{} agents are there", ids.len());
    Ok(ids)
}

async fn changes(row: Row, master: &str, agents: Vec<AgentID>, clients: usize) -> Result<Row> {
    let agents = Arc::new(agents);
    let next = Arc::new(AtomicUsize::new(0));
    let mut operators = JoinSet::new();
    let began = Instant::now();
    for _ in 0..clients {
        let (agents, next, client) = (agents.clone(), next.clone(), Client::new(master)?);
        operators.spawn(async move {
            let mut waits = Vec::new();
            while let Some(id) = agents.get(next.fetch_add(1, Ordering::Relaxed)) {
                let asked = Instant::now();
                client.master(&mark_gone(id)).await?;
                waits.push(asked.elapsed());
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits = Vec::new();
    while let Some(done) = operators.join_next().await {
        waits.extend(done.context("an operator panicked")??);
    }
    let took = began.elapsed();
    waits.sort();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    Ok(row
        .measured("operations_per_s", waits.len() as f64 / took.as_secs_f64())
        .measured("p50_ms", at(0.5))
        .measured("p99_ms", at(0.99)))
}

fn mark_gone(id: &AgentID) -> Call {
    let mark = call::MarkAgentGone { agent_id: id.clone().into(), ..Default::default() };
    Call { r#type: Some(call::Type::MARK_AGENT_GONE), mark_agent_gone: mark.into(), ..Default::default() }
}
