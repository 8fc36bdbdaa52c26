//! What tasks use right now, asked of their agents: the task's own container, or the one it shares.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tepui_client::operator::Client;
use tepui_proto::mesos::v1::agent::call::{self, GetContainers};
use tepui_proto::mesos::v1::{ContainerID, ResourceStatistics, agent};

use super::{Cluster, sandbox};
use crate::amount;
use crate::listing::{lists, number, text};
use crate::table::Cell;

/// How long agents may take to tell what their containers use before the rest is shown without.
const PATIENCE: Duration = Duration::from_secs(2);

/// A list of tasks on more agents than this is shown without: that many answers would have to be waited for.
const AGENTS_MAX: usize = 16;

/// What the containers of an agent use, by the values of their ids, outermost first.
#[derive(Default)]
pub struct Usages(BTreeMap<Vec<String>, ResourceStatistics>);

impl Usages {
    /// Of all containers of an agent as `/slaves` has it; nothing if that does not say.
    pub async fn of_agent(cluster: &Cluster, agent: &Value) -> Self {
        match sandbox::client(cluster, agent) {
            Ok(client) => Self::ask(client).await,
            Err(_) => Self::default(),
        }
    }

    async fn ask(client: Client) -> Self {
        let get_containers = GetContainers { show_nested: Some(true), ..Default::default() };
        let call = agent::Call {
            r#type: Some(call::Type::GET_CONTAINERS),
            get_containers: get_containers.into(),
            ..Default::default()
        };
        let answer = tokio::time::timeout(PATIENCE, client.agent(&call)).await;
        let Ok(Ok(answer)) = answer else { return Self::default() };
        let containers = answer.get_containers.into_option().unwrap_or_default().containers;
        let entry = |one: agent::response::get_containers::Container| {
            let statistics = one.resource_statistics.into_option()?;
            Some((values(&one.container_status.container_id), statistics))
        };
        Self(containers.into_iter().filter_map(entry).collect())
    }

    /// Of the task's own container if it has one, else of the one it shares.
    fn of_task(&self, task: &Value) -> Option<&ResourceStatistics> {
        let last = lists(task, &["statuses"]).last()?;
        let container = values_of(&last["container_status"]["container_id"]);
        (1..=container.len()).rev().find_map(|depth| self.0.get(&container[..depth]))
    }

    /// `mem:2M cpu time:1.75s`; with whoever shares the container.
    pub fn shown(&self, task: &Value) -> Option<String> {
        let usage = self.of_task(task)?;
        let time = usage.cpus_user_time_secs.unwrap_or(0.0) + usage.cpus_system_time_secs.unwrap_or(0.0);
        Some(format!("mem:{} cpu time:{}s", amount::bytes(memory(usage)?), amount::number(time)))
    }
}

fn memory(usage: &ResourceStatistics) -> Option<f64> {
    usage.mem_total_bytes.or(usage.mem_rss_bytes).map(|bytes| bytes as f64)
}

fn values(id: &ContainerID) -> Vec<String> {
    let mut all = id.parent.as_option().map(values).unwrap_or_default();
    all.push(id.value.clone());
    all
}

fn values_of(id: &Value) -> Vec<String> {
    let mut all = if id["parent"].is_object() { values_of(&id["parent"]) } else { Vec::new() };
    all.extend(id["value"].as_str().map(str::to_owned));
    all
}

/// The key that [`add`] gives to tasks: bytes of memory.
const USED: &str = "used_mem_bytes";

/// Notes in each of these tasks of `answer` what memory it uses, where its agent says so in time.
pub async fn add(cluster: &Cluster, answer: &mut Value, wanted: &BTreeSet<String>) {
    if wanted.is_empty() || wanted.len() > AGENTS_MAX {
        return;
    }
    let Ok(agents) = cluster.get("/slaves").await else { return };
    let agents = lists(&agents, &["slaves"]).filter(|agent| wanted.contains(text(agent, "id")));
    // All at once; one that fails says nothing.
    let mut asked = Vec::new();
    for agent in agents {
        if let Ok(client) = sandbox::client(cluster, agent) {
            asked.push((text(agent, "id"), tokio::spawn(Usages::ask(client))));
        }
    }
    let mut by_agent: BTreeMap<&str, Usages> = BTreeMap::new();
    for (id, asked) in asked {
        by_agent.insert(id, asked.await.unwrap_or_default());
    }
    for task in answer["tasks"].as_array_mut().into_iter().flatten() {
        let usage = by_agent.get(text(task, "slave_id")).and_then(|usages| usages.of_task(task));
        if let Some(bytes) = usage.and_then(memory) {
            task[USED] = json!(bytes);
        }
    }
}

/// What [`add`] noted, if anything.
pub fn cell(task: &Value) -> Cell {
    match task.get(USED) {
        Some(_) => Cell::number(amount::bytes(number(task, USED)), number(task, USED)),
        None => Cell::text(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_uses_what_its_own_container_does_or_else_the_one_it_shares() {
        let used = |bytes| ResourceStatistics {
            mem_total_bytes: Some(bytes),
            cpus_user_time_secs: Some(1.5),
            cpus_system_time_secs: Some(0.25),
            ..Default::default()
        };
        let id = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let usages = Usages([(id(&["e"]), used(4 << 20)), (id(&["e", "own"]), used(2 << 20))].into());
        let task = |value: &str| {
            let container = json!({"value": value, "parent": {"value": "e"}});
            json!({"statuses": [{}, {"container_status": {"container_id": container}}]})
        };
        assert_eq!(usages.shown(&task("own")).as_deref(), Some("mem:2M cpu time:1.75s"));
        assert_eq!(usages.shown(&task("shares")).as_deref(), Some("mem:4M cpu time:1.75s"));
        assert_eq!(usages.shown(&json!({"statuses": []})), None);
    }
}
