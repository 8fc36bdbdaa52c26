//! `/weights` and `/weight`: all weights, that of one role, and new ones.

use http::{Method, StatusCode};
use tepui_authz::Action;
use tepui_core_master::State;
use tepui_http::{Encoding, HttpError, Request, Response, empty, json};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{Type, UpdateWeights};
use tepui_resources::check_role;

use crate::operator;
use crate::program::Program;

/// Limit of the quoted part of a body that is not JSON.
const ECHO_CHARS_MAX: usize = 200;

/// `below`: the components behind `/weights`, which name one role.
pub(crate) async fn weights(
    program: &Program,
    mut request: Request,
    below: Vec<String>,
) -> Result<Response, HttpError> {
    if !below.is_empty() {
        request.expect_method("GET")?;
        let role = below.join("/");
        program.documents.allowed(&request, Action::ViewRole, Some(&role))?;
        return one(&program.state(), &role, &request);
    }
    request.expect_method("GET, PUT")?;
    if request.method == Method::GET {
        return Ok(json(&request.query, list(&program.documents.visible_to(&request))));
    }
    let body = request.read_body(operator::CALL_BYTES_MAX).await?;
    let weight_infos = parse(&body).map_err(HttpError::bad_request)?;
    let update = UpdateWeights { weight_infos, ..Default::default() };
    let call =
        Call { r#type: Some(Type::UPDATE_WEIGHTS), update_weights: update.into(), ..Default::default() };
    operator::submit(program, &request, call, Encoding::Json).await
}

/// All that are not the default.
fn list(state: &State) -> Vec<u8> {
    let mut w = JsonWriter::new();
    w.array(|w| state.weights.iter().for_each(|(role, weight)| entry(w, role, *weight)));
    w.into_vec()
}

/// That of one role, whether it was ever set or not.
fn one(state: &State, role: &str, request: &Request) -> Result<Response, HttpError> {
    check_role(role).map_err(|why| HttpError::bad_request(format!("Invalid role '{role}': {why}")))?;
    if !state.allows_role(role) {
        return Ok(empty(StatusCode::NO_CONTENT));
    }
    let mut w = JsonWriter::new();
    entry(&mut w, role, state.weights.get(role).copied().unwrap_or(1.0));
    Ok(json(&request.query, w.into_vec()))
}

fn entry(w: &mut JsonWriter, role: &str, weight: f64) {
    w.object(|w| {
        w.field("role", role);
        w.field("weight", &weight);
    });
}

/// A list of roles and weights. Stricter than v1's messages: a weight is a number, and a list is a list.
fn parse(body: &[u8]) -> Result<Vec<pb::WeightInfo>, String> {
    let failed = |why: &dyn std::fmt::Display| {
        let echo: String = String::from_utf8_lossy(body).chars().take(ECHO_CHARS_MAX).collect();
        format!("Failed to parse update weights request JSON '{echo}': {why}")
    };
    let infos: Vec<pb::WeightInfo> = tepui_proto::json::list_from_slice(body).map_err(|why| failed(&why))?;
    let value: serde_json::Value = serde_json::from_slice(body).map_err(|why| failed(&why))?;
    let list = value.as_array().ok_or_else(|| failed(&"Expecting a JSON array"))?;
    for (index, entry) in list.iter().enumerate() {
        if !entry["weight"].is_number() {
            return Err(failed(&format!("[{index}].weight: Expecting a number")));
        }
        if !entry["role"].is_string() {
            return Err(failed(&format!("[{index}].role: Expecting a string")));
        }
    }
    Ok(infos)
}
