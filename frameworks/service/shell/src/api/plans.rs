//! `/v1/plans`: plans, and what operators do to them.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;
use tepui_http::{HttpError, Query, Request, Response};
use tepui_service::plan::Action;
use tepui_service::scheduler::{Command, View};

use super::{Verb, body, command, document, missing};
use crate::handle::Handle;

/// 200 if the plan is complete, 417 with errors, else 202.
pub(super) fn plan(view: &View, name: &str) -> Result<Response, HttpError> {
    let plan = view.plan(name).ok_or_else(|| missing("Plan", name))?;
    let status = match plan.status.as_str() {
        "COMPLETE" => StatusCode::OK,
        "ERROR" => StatusCode::EXPECTATION_FAILED,
        _ => StatusCode::ACCEPTED,
    };
    Ok(document(status, &plan))
}

pub(super) async fn act(
    handle: &Handle,
    plan: &str,
    verb: Verb,
    mut request: Request,
) -> Result<Response, HttpError> {
    let (phase, step) = (given(&request.query, "phase"), given(&request.query, "step"));
    let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "null".to_owned());
    let element = format!("plan {plan}, phase {}, step {}", shown(&phase), shown(&step));
    let (action, done) = match verb {
        Verb::Start => {
            let parameters = parameters(&mut request).await?;
            let done = format!("Received cmd: start {plan} with parameters: {parameters:?}");
            (Action::Start { parameters }, done)
        }
        Verb::Stop => (Action::Stop, "Received cmd: stop".to_owned()),
        Verb::Continue => (Action::Continue { phase }, "Received cmd: continue".to_owned()),
        Verb::Interrupt => (Action::Interrupt { phase }, "Received cmd: interrupt".to_owned()),
        Verb::ForceComplete => {
            (Action::ForceComplete { phase, step }, format!("Received cmd: forceComplete of {element}"))
        }
        Verb::Restart => (Action::Restart { phase, step }, format!("Received cmd: restart of {element}")),
    };
    command(handle, Command::Plan { plan: plan.to_owned(), action }, &done).await
}

fn given(query: &Query, name: &str) -> Option<String> {
    query.get(name).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Variables for the tasks of a plan.
async fn parameters(request: &mut Request) -> Result<BTreeMap<String, String>, HttpError> {
    let wrong = || HttpError::bad_request("The body must be a JSON object of variables and their texts");
    let mut all = BTreeMap::new();
    let Some(given) = body(request).await? else { return Ok(all) };
    for (name, value) in given.as_object().ok_or_else(wrong)? {
        let value = value.as_str().ok_or_else(wrong)?;
        if !is_variable(name) {
            let message =
                format!("{name:?} is not the name of a variable: letters, digits and `_`, no digit first");
            return Err(HttpError::bad_request(message));
        }
        all.insert(name.clone(), value.to_owned());
    }
    Ok(all)
}

fn is_variable(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// The steps of a plan that are complete, and all.
pub(super) fn counts(plan: &Value) -> (usize, usize) {
    let phases = plan["phases"].as_array().into_iter().flatten();
    let steps: Vec<&Value> =
        phases.flat_map(|phase| phase["steps"].as_array().into_iter().flatten()).collect();
    let complete = steps.iter().filter(|step| step["status"] == "COMPLETE").count();
    (complete, steps.len())
}
