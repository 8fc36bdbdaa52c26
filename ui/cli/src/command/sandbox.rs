//! Where a task's files are: from the task to its agent, from the agent to the sandbox.

use anyhow::{Context, Result};
use serde_json::Value;
use tepui_client::Endpoint;
use tepui_client::operator::Client;

use super::{Cluster, find};
use crate::listing::{lists, text};

/// The agent that has a task's sandbox, and the sandbox's path on it.
pub struct Sandbox {
    pub task: Value,
    pub agent: Client,
    pub directory: String,
}

/// Finds the sandbox of a task.
pub async fn find(cluster: &Cluster, task: &str, framework: Option<&str>) -> Result<Sandbox> {
    of(cluster, find::task(cluster, task, framework).await?).await
}

/// Finds the sandbox of a task as `/tasks` has it.
pub async fn of(cluster: &Cluster, task: Value) -> Result<Sandbox> {
    let agent = agent_of(cluster, &task).await?;
    let state = agent.get("/state").await.context("the task's agent does not answer")?;
    let directory = directory(&state, &task)
        .with_context(|| format!("the agent no longer has the sandbox of task {}", text(&task, "id")))?;
    Ok(Sandbox { task, agent, directory })
}

/// A client of the agent of a task as `/tasks` has it.
pub async fn agent_of(cluster: &Cluster, task: &Value) -> Result<Client> {
    let id = text(task, "slave_id");
    let answer = cluster.query("/slaves", &[("slave_id", id)]).await?;
    client(cluster, &answer["slaves"][0])
        .with_context(|| format!("agent {id} of the task is not registered now"))
}

/// A client of an agent as `/slaves` has it.
pub fn client(cluster: &Cluster, agent: &Value) -> Result<Client> {
    let endpoint = Endpoint::from_pid(text(agent, "pid")).context("the agent's address cannot be read")?;
    // The prefix is the agent's own; /files is beside it.
    let client = Client::at(Endpoint { prefix: String::new(), ..endpoint });
    Ok(client.with_credential(cluster.credential()?))
}

/// The task's directory in an agent's `/state`: its executor's, or a folder in it for tasks of a default executor.
fn directory(state: &Value, task: &Value) -> Option<String> {
    let id = task["id"].as_str()?;
    let executor_id = task["executor_id"].as_str().filter(|id| !id.is_empty()).unwrap_or(id);
    let executor = lists(state, &["frameworks", "completed_frameworks"])
        .filter(|framework| framework["id"] == task["framework_id"])
        .flat_map(|framework| lists(framework, &["executors", "completed_executors"]))
        .find(|executor| executor["id"] == executor_id)?;
    let directory = executor["directory"].as_str()?;
    Some(match executor["type"].as_str() {
        Some("DEFAULT") => format!("{directory}/tasks/{id}"),
        _ => directory.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sandbox_is_found_by_executor() {
        let state = json!({
            "frameworks": [{"id": "f", "executors": [
                {"id": "t1", "directory": "/w/t1"},
                {"id": "group", "type": "DEFAULT", "directory": "/w/group"}]}],
            "completed_frameworks": [{"id": "old", "completed_executors": [{"id": "t1", "directory": "/w/old"}]}]
        });
        let table = [
            (json!({"id": "t1", "framework_id": "f", "executor_id": ""}), Some("/w/t1")),
            (json!({"id": "t2", "framework_id": "f", "executor_id": "group"}), Some("/w/group/tasks/t2")),
            (json!({"id": "t1", "framework_id": "old", "executor_id": ""}), Some("/w/old")),
            (json!({"id": "t3", "framework_id": "f", "executor_id": ""}), None),
        ];
        for (task, expected) in table {
            assert_eq!(directory(&state, &task).as_deref(), expected, "{task}");
        }
    }
}
