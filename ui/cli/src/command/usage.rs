//! The current usage of tasks as reported by their agents: of the task's own or its shared container.

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

/// Limit for the answers of agents; without an answer usage is omitted.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// A list of tasks on more agents than this is shown without: that many answers would have to be waited for.
const AGENTS_MAX: usize = 16;

/// What the containers of an agent use, by the values of their ids, outermost first.
#[derive(Default)]
pub struct Usages(BTreeMap<Vec<String>, ResourceStatistics>);

impl Usages {
    /// The usage of all containers of an agent (from `/slaves`); empty without an answer.
    pub async fn of_agent(cluster: &Cluster, agent: &Value) -> Self {
        match sandbox::client(cluster, agent) {
            Ok(client) => Self::fetch(client).await,
            Err(_) => Self::default(),
        }
    }

    async fn fetch(client: Client) -> Self {
        let get_containers = GetContainers { show_nested: Some(true), ..Default::default() };
        let call = agent::Call {
            r#type: Some(call::Type::GET_CONTAINERS),
            get_containers: get_containers.into(),
            ..Default::default()
        };
        let answer = tokio::time::timeout(USAGE_TIMEOUT, client.agent(&call)).await;
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

    /// `mem:2M cpu time:1.75s`; including all processes of the container.
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

/// The key added by [`add`]: bytes of memory.
const USED: &str = "used_mem_bytes";

/// Adds the memory usage to these tasks of `answer`, where the agent answers in time.
pub async fn add(cluster: &Cluster, answer: &mut Value, wanted: &BTreeSet<String>) {
    if wanted.is_empty() || wanted.len() > AGENTS_MAX {
        return;
    }
    let Ok(agents) = cluster.get("/slaves").await else { return };
    let agents = lists(&agents, &["slaves"]).filter(|agent| wanted.contains(text(agent, "id")));
    // Concurrently; a failed request is ignored.
    let mut requests = Vec::new();
    for agent in agents {
        if let Ok(client) = sandbox::client(cluster, agent) {
            requests.push((text(agent, "id"), tokio::spawn(Usages::fetch(client))));
        }
    }
    let mut by_agent: BTreeMap<&str, Usages> = BTreeMap::new();
    for (id, requests) in requests {
        by_agent.insert(id, requests.await.unwrap_or_default());
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
    fn usage_of_a_task_is_that_of_its_own_or_shared_container() {
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
