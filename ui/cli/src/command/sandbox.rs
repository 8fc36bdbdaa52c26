//! Where a task's files are: from the task to its agent, from the agent to the sandbox.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tepui_client::Endpoint;
use tepui_client::operator::Client;

/// The agent that has a task's sandbox, and the sandbox's path on it.
pub struct Sandbox {
    pub agent: Client,
    pub directory: String,
}

/// How many tasks a prefix may fit before it is called ambiguous without listing them all.
const SUGGESTIONS_MAX: usize = 5;

/// Finds the sandbox of the task with this id, or whose id begins so.
pub async fn find(master: &Client, task: &str) -> Result<Sandbox> {
    let task = find_task(master, task).await?;
    let agent = agent_of(master, &task).await?;
    let state = agent.get("/state").await.context("the task's agent does not answer")?;
    let directory = directory(&state, &task).with_context(|| {
        format!("the agent no longer has the sandbox of task {}", task["id"].as_str().unwrap_or_default())
    })?;
    Ok(Sandbox { agent, directory })
}

async fn find_task(master: &Client, id: &str) -> Result<Value> {
    let answer = master.get("/tasks?limit=-1").await?;
    let tasks = answer["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(task) = tasks.iter().find(|task| task["id"] == id) {
        return Ok(task.clone());
    }
    let near: Vec<&Value> =
        tasks.iter().filter(|task| task["id"].as_str().is_some_and(|known| known.starts_with(id))).collect();
    match near.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!("no task {id:?}; `tepui tasks --all` lists them"),
        many => {
            let names: Vec<&str> =
                many.iter().take(SUGGESTIONS_MAX).filter_map(|task| task["id"].as_str()).collect();
            bail!("{id:?} fits {} tasks: {}", many.len(), names.join(", "))
        }
    }
}

async fn agent_of(master: &Client, task: &Value) -> Result<Client> {
    let id = task["slave_id"].as_str().unwrap_or_default();
    let answer = master.get(&format!("/slaves?slave_id={id}")).await?;
    let agent = &answer["slaves"][0];
    let pid =
        agent["pid"].as_str().with_context(|| format!("agent {id} of the task is not registered now"))?;
    let endpoint = Endpoint::from_pid(pid).context("the agent's address cannot be read")?;
    // The prefix is the agent's own; /files is beside it.
    Ok(Client::at(Endpoint { prefix: String::new(), ..endpoint }))
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

fn lists<'v>(value: &'v Value, keys: &'v [&str]) -> impl Iterator<Item = &'v Value> {
    keys.iter().flat_map(|key| value[*key].as_array().into_iter().flatten())
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
