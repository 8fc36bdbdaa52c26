//! `/v1/pod`: pods, and what operators do to them.

use http::StatusCode;
use serde_json::{Value, json};
use tepui_http::{HttpError, Request, Response};
use tepui_proto::{Wire, json as wire_json};
use tepui_service::scheduler::{Command, TaskDescription, View};

use super::{PodVerb, body, command, document, missing};
use crate::handle::Handle;

/// TaskInfo and TaskStatus of each task, in the JSON form of the v1 API.
pub(super) fn info(view: &View, pod: &str) -> Result<Response, HttpError> {
    let tasks = view.pod_tasks(pod).ok_or_else(|| missing("Pod", pod))?;
    let task = |task: &TaskDescription| json!({"info": v1(&task.info), "status": task.status.as_ref().map_or(Value::Null, v1)});
    let tasks: Vec<Value> = tasks.iter().map(task).collect();
    Ok(document(StatusCode::OK, &tasks))
}

fn v1(message: &impl Wire) -> Value {
    serde_json::from_slice(&wire_json::to_vec(message)).unwrap_or_default()
}

pub(super) async fn act(
    handle: &Handle,
    pod: &str,
    verb: PodVerb,
    mut request: Request,
) -> Result<Response, HttpError> {
    let pod = pod.to_owned();
    let (name, asked) = match verb {
        PodVerb::Restart => ("restart", Command::RestartPod { pod }),
        PodVerb::Replace => ("replace", Command::ReplacePod { pod }),
        PodVerb::Pause => ("pause", Command::PausePod { pod, tasks: tasks(&mut request).await? }),
        PodVerb::Resume => ("resume", Command::ResumePod { pod, tasks: tasks(&mut request).await? }),
    };
    command(handle, asked, &format!("Received cmd: {name}")).await
}

/// Names of tasks; none for all.
async fn tasks(request: &mut Request) -> Result<Vec<String>, HttpError> {
    let wrong = || HttpError::bad_request("The body must be a JSON array of the names of tasks");
    let Some(given) = body(request).await? else { return Ok(Vec::new()) };
    let names = given.as_array().ok_or_else(wrong)?.iter();
    names.map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}
