//! `tepui task`: the details and status history of one task.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::{self, master};

use super::find::{self, Candidate};
use super::task_state::TaskState;
use super::usage::Usages;
use super::{Cluster, block_on, sandbox};
use crate::amount;
use crate::detail::{Detail, labels, resources};
use crate::listing::{age, lists, number, text};
use crate::output;
use crate::similar::Known;
use crate::table::{Cell, Table};

/// Limit for the request of the sandbox path; without an answer it is omitted.
const SANDBOX_TIMEOUT: Duration = Duration::from_secs(2);

/// Show a task with its statuses.
#[derive(Args)]
pub struct Task {
    #[command(flatten)]
    cluster: Cluster,
    /// Framework of the task, if the task ID is ambiguous.
    #[arg(long)]
    framework: Option<String>,
    /// Print the task as JSON, as in the operator API.
    #[arg(long)]
    json: bool,
    /// Task ID, a prefix of it, or the task's name.
    task: String,
}

impl Task {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let task = self.fetch().await?;
            if self.json {
                return output::json(&task);
            }
            let place = self.place(&task).await;
            output::line(&render(&task, &place, amount::now(), output::colours()))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The task in its v1 form: classic answers leave messages and reasons of statuses out.
    async fn fetch(&self) -> Result<Value> {
        let call = master::Call { r#type: Some(master::call::Type::GET_TASKS), ..Default::default() };
        let answer = self.cluster.call(&call).await?.get_tasks.into_option().unwrap_or_default();
        // Of several runs with one id the last is shown.
        let ended = answer.completed_tasks.into_iter().rev();
        let tasks: Vec<v1::Task> =
            answer.tasks.into_iter().chain(answer.unreachable_tasks).chain(ended).collect();
        let candidate = |task: &v1::Task| Candidate {
            task: Known::new(&task.task_id.value, &task.name),
            framework: task.framework_id.value.clone(),
            live: TaskState::new(task.state.proto_name(), false).is_live(),
            started: task.statuses.first().and_then(|status| status.timestamp).unwrap_or(0.0),
        };
        let candidates: Vec<Candidate> = tasks.iter().map(candidate).collect();
        let place = find::choose(&candidates, &self.task, self.framework.as_deref())?;
        let text = tepui_proto::json::to_vec(&tasks[place]);
        serde_json::from_slice(&text).context("a task cannot be read")
    }

    /// Where it runs: its agent's address and its sandbox, as far as they can be found out quickly.
    async fn place(&self, task: &Value) -> Place {
        let classic = json!({
            "id": task["task_id"]["value"],
            "framework_id": task["framework_id"]["value"],
            "executor_id": task["executor_id"]["value"],
            "slave_id": task["agent_id"]["value"],
        });
        let agent = self.cluster.query("/slaves", &[("slave_id", text(&classic, "slave_id"))]).await;
        // An agent that is unreachable or gone is in no answer.
        let agent =
            agent.ok().and_then(|answer| lists(&answer, &["slaves"]).next().cloned()).unwrap_or_default();
        let usage = Usages::of_agent(&self.cluster, &agent).await.shown(task);
        let sandbox = tokio::time::timeout(SANDBOX_TIMEOUT, sandbox::of(&self.cluster, classic)).await;
        let sandbox = sandbox.ok().and_then(Result::ok).map(|sandbox| sandbox.directory);
        Place {
            hostname: text(&agent, "hostname").to_string(),
            sandbox: sandbox.unwrap_or_default(),
            usage: usage.unwrap_or_default(),
        }
    }
}

#[derive(Default)]
struct Place {
    hostname: String,
    sandbox: String,
    usage: String,
}

fn render(task: &Value, place: &Place, now: f64, colours: bool) -> String {
    let id = |key: &str| text(&task[key], "value").to_string();
    let last = lists(task, &["statuses"]).last().cloned().unwrap_or_default();
    let state = TaskState::new(text(task, "state"), last["healthy"] == false);
    let mut detail = Detail::default();
    detail
        .value("task", id("task_id"))
        .value("name", text(task, "name"))
        .toned("state", state.shown(), state.tone())
        .value("message", text(&last, "message"))
        .moment("since", number(&last, "timestamp"), now)
        .value("framework", id("framework_id"))
        .value("agent", format!("{} {}", id("agent_id"), place.hostname).trim_end())
        .value("executor", id("executor_id"))
        .value("role", text(&task["resources"][0]["allocation_info"], "role"))
        .value("user", text(task, "user"))
        .value("resources", resources(&v1_resources(&task["resources"])))
        .value("revocable", revocable(&task["resources"]))
        .value("limits", resources(&v1_limits(&task["limits"])))
        .value("usage", &place.usage)
        .value("labels", labels(&task["labels"]))
        .value("addresses", addresses(&last))
        .value("container", text(&last["container_status"]["container_id"], "value"))
        .message("container info", &task["container"])
        .message("discovery", &task["discovery"])
        .message("check", &task["check"])
        .message("health check", &task["health_check"])
        .message("kill policy", &task["kill_policy"])
        .value("sandbox", &place.sandbox)
        .table("HISTORY", history(task, now));
    detail.render(colours)
}

fn history(task: &Value, now: f64) -> Table {
    let row = |status: &Value| {
        let unhealthy = status["healthy"] == false;
        let state = TaskState::new(text(status, "state"), unhealthy);
        let at = number(status, "timestamp");
        let lower = |key: &str, prefix: &str| text(status, key).trim_start_matches(prefix).to_lowercase();
        vec![
            Cell::text(amount::moment(at)),
            age(at, now),
            state.cell(),
            Cell::text(lower("source", "SOURCE_")),
            Cell::text(lower("reason", "REASON_")),
            Cell::text(text(status, "message")),
        ]
    };
    let rows = lists(task, &["statuses"]).map(row).collect();
    Table::new(&["TIME", "AGO", "STATE", "SOURCE", "REASON", "MESSAGE"], rows).without_empty_columns(3)
}

/// v1 resources in the classic form: amounts by name, added up.
fn v1_resources(list: &Value) -> Value {
    let mut sums = serde_json::Map::new();
    for resource in list.as_array().into_iter().flatten() {
        let suffix = if resource.get("revocable").is_some() { "_revocable" } else { "" };
        let sum = sums.entry(format!("{}{suffix}", text(resource, "name"))).or_insert(Value::Null);
        *sum = match resource["scalar"]["value"].as_f64() {
            Some(amount) => json!(sum.as_f64().unwrap_or(0.0) + amount),
            None => json!(ranges(resource)),
        };
    }
    Value::Object(sums)
}

/// `cpus:3 (allocation slack)`: resources that may be reclaimed, and why they could be offered.
fn revocable(list: &Value) -> String {
    let of_kind = |kind: &str| {
        let is_kind = |one: &&Value| match one["revocable"]["type"].as_str() {
            Some(own) => own == kind,
            None => one.get("revocable").is_some() && kind.is_empty(),
        };
        let part = |one: &Value| {
            let mut one = one.clone();
            one.as_object_mut().map(|one| one.remove("revocable"));
            one
        };
        let parts = list.as_array().into_iter().flatten().filter(is_kind).map(part).collect();
        let shown = resources(&v1_resources(&Value::Array(parts)));
        match (shown.is_empty(), kind) {
            (true, _) => None,
            (false, "") => Some(shown),
            (false, kind) => Some(format!("{shown} ({})", kind.replace('_', " ").to_lowercase())),
        }
    };
    let kinds = ["ALLOCATION_SLACK", "USAGE_SLACK", ""];
    kinds.into_iter().filter_map(of_kind).collect::<Vec<_>>().join(", ")
}

/// `[31000-32000]` or `{a,b}`.
fn ranges(resource: &Value) -> String {
    let range = |range: &Value| format!("{}-{}", range["begin"], range["end"]);
    let ranges: Vec<String> = lists(&resource["ranges"], &["range"]).map(range).collect();
    let items: Vec<&str> = lists(&resource["set"], &["item"]).filter_map(Value::as_str).collect();
    match items.is_empty() {
        true => format!("[{}]", ranges.join(", ")),
        false => format!("{{{}}}", items.join(", ")),
    }
}

/// Limits, of which one may be infinite.
fn v1_limits(limits: &Value) -> Value {
    let value = |(name, limit): (&String, &Value)| (name.clone(), limit["value"].clone());
    Value::Object(limits.as_object().into_iter().flatten().map(value).collect())
}

fn addresses(status: &Value) -> String {
    let networks = lists(&status["container_status"], &["network_infos"]);
    let addresses = networks.flat_map(|network| lists(network, &["ip_addresses"]));
    addresses.map(|address| text(address, "ip_address")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn task_details_include_the_status_history() {
        let task = json!({
            "name": "web", "task_id": {"value": "web-1"}, "framework_id": {"value": "m-0000"},
            "executor_id": {"value": "group"}, "agent_id": {"value": "m-S0"}, "state": "TASK_FAILED", "user": "www",
            "resources": [
                {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.5}, "allocation_info": {"role": "eng"}},
                {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.25}, "allocation_info": {"role": "eng"}},
                {"name": "mem", "type": "SCALAR", "scalar": {"value": 64.0},
                    "revocable": {"type": "ALLOCATION_SLACK"}},
                {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 31000, "end": 31001}]}},
                {"name": "zones", "type": "SET", "set": {"item": ["a", "b"]}},
            ],
            "limits": {"cpus": {"value": 2.0}, "mem": {"value": "Infinity"}},
            "labels": {"labels": [{"key": "tier", "value": "front\u{1b}"}]},
            "discovery": {"name": "web", "visibility": "CLUSTER"},
            "statuses": [
                {"state": "TASK_RUNNING", "timestamp": 1_794_774_349.0, "source": "SOURCE_EXECUTOR", "healthy": false},
                {"state": "TASK_FAILED", "timestamp": 1_794_774_360.0, "source": "SOURCE_AGENT",
                    "reason": "REASON_CONTAINER_LIMITATION_MEMORY", "message": "Memory limit exceeded",
                    "container_status": {"container_id": {"value": "c-1"},
                        "network_infos": [{"ip_addresses": [{"ip_address": "10.0.0.2"}]}]}},
            ],
        });
        let place = Place {
            hostname: "host-a".to_string(),
            sandbox: "/var/lib/tepui/x".to_string(),
            usage: "mem:2M cpu time:1.75s".to_string(),
        };
        expect![[r#"
            task       web-1
            name       web
            state      failed
            message    Memory limit exceeded
            since      2026-11-15 20:26:00 UTC (40s ago)
            framework  m-0000
            agent      m-S0 host-a
            executor   group
            role       eng
            user       www
            resources  cpus:0.75 mem_revocable:64M ports:[31000-31001] zones:{a, b}
            revocable  mem:64M (allocation slack)
            limits     cpus:2 mem:Infinity
            usage      mem:2M cpu time:1.75s
            labels     tier=front\u{1b}
            addresses  10.0.0.2
            container  c-1
            discovery  {"name":"web","visibility":"CLUSTER"}
            sandbox    /var/lib/tepui/x

            HISTORY
              TIME                     AGO  STATE                SOURCE    REASON                       MESSAGE
              2026-11-15 20:25:49 UTC  51s  running (unhealthy)  executor
              2026-11-15 20:26:00 UTC  40s  failed               agent     container_limitation_memory  Memory limit exceeded"#]].assert_eq(&render(&task, &place, 1_794_774_400.0, false));
    }
}
