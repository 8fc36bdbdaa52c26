//! The HTTP API of a service. The table is the list of everything that it answers.
//!
//! Reads render from the published view and never wait for the scheduler; commands wait for its answer.

mod debug;
mod metrics;
mod multipart;
mod plans;
mod pods;
mod state;
pub(crate) mod update;

use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tepui_http::{HttpError, MetricsForm, Request, Response, text, typed};
use tepui_service::scheduler::{Answer, Command};

use crate::handle::{Handle, Stopped};

/// Limit of a request's body.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The plan of the deprecated paths without a plan.
const DEPLOY: &str = "deploy";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Plans,
    Plan,
    PlanAction(Verb),
    DeployPlan,
    DeployAction(Verb),
    Pods,
    PodsStatus,
    PodStatus,
    PodInfo,
    PodAction(PodVerb),
    Endpoints,
    Endpoint,
    Configurations,
    TargetId,
    Target,
    Configuration,
    Template,
    Bootstrap,
    FrameworkId,
    Properties,
    Property,
    Files,
    File,
    PutFile,
    ZoneTasks,
    ZoneTask,
    ZoneAddress,
    Refresh,
    Health,
    DebugOffers,
    DebugPlans,
    DebugTaskStatuses,
    DebugReservations,
    DebugThreads,
    Metrics,
    MetricsText,
    Update,
    Uninstall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Start,
    Stop,
    Continue,
    Interrupt,
    ForceComplete,
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodVerb {
    Restart,
    Replace,
    Pause,
    Resume,
}

/// Method, path with `{}` for a name, and the answer.
const ROUTES: &[(&str, &str, Route)] = &[
    ("GET", "/v1/plans", Route::Plans),
    ("GET", "/v1/plans/{}", Route::Plan),
    ("POST", "/v1/plans/{}/start", Route::PlanAction(Verb::Start)),
    ("POST", "/v1/plans/{}/stop", Route::PlanAction(Verb::Stop)),
    ("POST", "/v1/plans/{}/continue", Route::PlanAction(Verb::Continue)),
    ("POST", "/v1/plans/{}/interrupt", Route::PlanAction(Verb::Interrupt)),
    ("POST", "/v1/plans/{}/forceComplete", Route::PlanAction(Verb::ForceComplete)),
    ("POST", "/v1/plans/{}/restart", Route::PlanAction(Verb::Restart)),
    ("GET", "/v1/plan", Route::DeployPlan),
    ("POST", "/v1/plan/continue", Route::DeployAction(Verb::Continue)),
    ("POST", "/v1/plan/interrupt", Route::DeployAction(Verb::Interrupt)),
    ("POST", "/v1/plan/forceComplete", Route::DeployAction(Verb::ForceComplete)),
    ("POST", "/v1/plan/restart", Route::DeployAction(Verb::Restart)),
    ("GET", "/v1/pod", Route::Pods),
    ("GET", "/v1/pod/status", Route::PodsStatus),
    ("GET", "/v1/pod/{}/status", Route::PodStatus),
    ("GET", "/v1/pod/{}/info", Route::PodInfo),
    ("POST", "/v1/pod/{}/restart", Route::PodAction(PodVerb::Restart)),
    ("POST", "/v1/pod/{}/replace", Route::PodAction(PodVerb::Replace)),
    ("POST", "/v1/pod/{}/pause", Route::PodAction(PodVerb::Pause)),
    ("POST", "/v1/pod/{}/resume", Route::PodAction(PodVerb::Resume)),
    ("GET", "/v1/endpoints", Route::Endpoints),
    ("GET", "/v1/endpoints/{}", Route::Endpoint),
    ("GET", "/v1/configurations", Route::Configurations),
    ("GET", "/v1/configurations/targetId", Route::TargetId),
    ("GET", "/v1/configurations/target", Route::Target),
    ("GET", "/v1/configurations/{}", Route::Configuration),
    ("GET", "/v1/artifacts/template/{}/{}/{}/{}", Route::Template),
    ("GET", "/v1/artifacts/bootstrap", Route::Bootstrap),
    ("GET", "/v1/state/frameworkId", Route::FrameworkId),
    ("GET", "/v1/state/properties", Route::Properties),
    ("GET", "/v1/state/properties/{}", Route::Property),
    ("GET", "/v1/state/files", Route::Files),
    ("GET", "/v1/state/files/{}", Route::File),
    ("PUT", "/v1/state/files/{}", Route::PutFile),
    ("GET", "/v1/state/zone/tasks", Route::ZoneTasks),
    ("GET", "/v1/state/zone/tasks/{}", Route::ZoneTask),
    ("GET", "/v1/state/zone/{}/{}", Route::ZoneAddress),
    ("PUT", "/v1/state/refresh", Route::Refresh),
    ("GET", "/v1/health", Route::Health),
    ("GET", "/v1/debug/offers", Route::DebugOffers),
    ("GET", "/v2/debug/offers", Route::DebugOffers),
    ("GET", "/v1/debug/plans", Route::DebugPlans),
    ("GET", "/v1/debug/taskStatuses", Route::DebugTaskStatuses),
    ("GET", "/v1/debug/reservations", Route::DebugReservations),
    ("GET", "/v1/debug/threads", Route::DebugThreads),
    ("GET", "/v1/metrics", Route::Metrics),
    ("GET", "/v1/metrics/prometheus", Route::MetricsText),
    ("POST", "/v1/update", Route::Update),
    ("POST", "/v1/uninstall", Route::Uninstall),
];

/// The route of a request and the names in its path.
pub(crate) fn find(method: &str, components: &[String]) -> Result<(Route, Vec<String>), HttpError> {
    let names = |pattern: &str| -> Option<Vec<String>> {
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        let is_match = parts.len() == components.len()
            && parts.iter().zip(components).all(|(part, given)| *part == "{}" || part == given);
        let named = parts.iter().zip(components).filter(|(part, _)| **part == "{}");
        is_match.then(|| named.map(|(_, given)| given.clone()).collect())
    };
    // A word of the table comes before a name: the table lists it first.
    let mut allowed = None;
    for (expected, pattern, route) in ROUTES {
        match names(pattern) {
            Some(names) if *expected == method => return Ok((*route, names)),
            Some(_) => allowed = allowed.or(Some(*expected)),
            None => (),
        }
    }
    match allowed {
        Some(expected) => {
            let received = method.parse().unwrap_or_default();
            Err(HttpError::wrong_method(expected, &received))
        }
        None => Err(HttpError::not_found()),
    }
}

pub(crate) async fn respond(
    handle: &Handle,
    route: Route,
    names: Vec<String>,
    request: Request,
) -> Result<Response, HttpError> {
    let view = handle.view();
    let name = |place: usize| names.get(place).map(String::as_str).unwrap_or_default();
    match route {
        Route::Plans => Ok(document(StatusCode::OK, &view.plan_names())),
        Route::Plan => plans::plan(&view, name(0)),
        Route::PlanAction(verb) => plans::act(handle, name(0), verb, request).await,
        Route::DeployPlan => plans::plan(&view, DEPLOY),
        Route::DeployAction(verb) => plans::act(handle, DEPLOY, verb, request).await,
        Route::Pods => Ok(document(StatusCode::OK, &view.pod_names())),
        Route::PodsStatus => {
            Ok(document(StatusCode::OK, &json!({"service": view.service, "pods": view.pods()})))
        }
        Route::PodStatus => {
            let pod = view.pod(name(0)).ok_or_else(|| missing("Pod", name(0)))?;
            Ok(document(StatusCode::OK, &pod))
        }
        Route::PodInfo => pods::info(&view, name(0)),
        Route::PodAction(verb) => pods::act(handle, name(0), verb, request).await,
        Route::Endpoints => Ok(document(StatusCode::OK, &view.endpoint_names())),
        Route::Endpoint => match view.endpoint(name(0)) {
            Some(endpoint) => Ok(document(StatusCode::OK, &endpoint)),
            None => Err(HttpError::new(StatusCode::NOT_FOUND, "")),
        },
        Route::Configurations | Route::TargetId | Route::Target | Route::Configuration | Route::Template => {
            state::configuration(&view, route, &names)
        }
        Route::Bootstrap => state::bootstrap(),
        Route::FrameworkId | Route::Properties | Route::Property | Route::Files | Route::File => {
            state::read(&view, route, name(0))
        }
        Route::ZoneTasks => Ok(document(StatusCode::OK, &view.task_zones())),
        Route::ZoneTask => {
            let zone = view.task_zones().remove(name(0));
            Ok(text(StatusCode::OK, zone.ok_or_else(|| missing("Zone of task", name(0)))?))
        }
        Route::ZoneAddress => {
            let zone = view.address_zone(name(0), name(1));
            Ok(text(StatusCode::OK, zone.ok_or_else(|| missing("Zone of address", name(1)))?))
        }
        Route::PutFile => state::put_file(handle, name(0), request).await,
        Route::Refresh => Ok(message("Received cmd: refresh")),
        Route::Health => state::health(&view, &request),
        Route::DebugOffers => Ok(document(StatusCode::OK, &view.offers())),
        Route::DebugPlans => Ok(document(StatusCode::OK, &debug::plans(&view, &request.query))),
        Route::DebugTaskStatuses => {
            Ok(document(StatusCode::OK, &debug::task_statuses(&view, &request.query)))
        }
        Route::DebugReservations => Ok(document(StatusCode::OK, &view.reservations())),
        Route::DebugThreads => debug::threads(),
        Route::Metrics => Ok(document(StatusCode::OK, &metrics::document(&view))),
        Route::MetricsText => {
            Ok(typed(MetricsForm::Text.content_type(), metrics::prometheus(&view).into_bytes()))
        }
        Route::Update => Err(HttpError::not_found()),
        Route::Uninstall => command(handle, Command::Uninstall, "Received cmd: uninstall").await,
    }
}

/// Sends a command to the scheduler; `done` is the message of its success.
async fn command(handle: &Handle, command: Command, done: &str) -> Result<Response, HttpError> {
    let answer = handle.command(command).await;
    match answer.map_err(|Stopped| HttpError::unavailable("The scheduler is stopping"))? {
        Answer::Done => Ok(message(done)),
        Answer::AlreadyDone => {
            Ok(text(StatusCode::ALREADY_REPORTED, "Command has already been reported or completed"))
        }
        Answer::NotFound(what) => Err(HttpError::new(StatusCode::NOT_FOUND, format!("{what} not found"))),
        Answer::Invalid(why) => Err(HttpError::bad_request(why)),
        Answer::Pod { pod, tasks } => Ok(document(StatusCode::OK, &json!({"pod": pod, "tasks": tasks}))),
        Answer::Target { configuration, changed } => {
            Ok(document(StatusCode::OK, &json!({"configuration": configuration, "changed": changed})))
        }
        Answer::Rejected(errors) => Err(HttpError::bad_request(errors.join("\n"))),
    }
}

fn message(words: &str) -> Response {
    document(StatusCode::OK, &json!({"message": words}))
}

fn missing(what: &str, name: &str) -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, format!("{what} {name} not found"))
}

/// Pretty-printed JSON.
fn document(status: StatusCode, value: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec_pretty(value).expect("documents are plain data");
    let mut response = typed("application/json", bytes);
    *response.status_mut() = status;
    response
}

/// The JSON of a request; none if it has no body.
async fn body(request: &mut Request) -> Result<Option<serde_json::Value>, HttpError> {
    let bytes = request.read_body(BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| HttpError::bad_request(format!("The body is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(path: &str) -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn paths_lead_to_routes_with_their_names() {
        let cases: [(&str, &str, Result<(Route, &[&str]), u16>); 13] = [
            ("GET", "/v1/plans", Ok((Route::Plans, &[]))),
            ("GET", "/v1/plans/deploy", Ok((Route::Plan, &["deploy"]))),
            ("POST", "/v1/plans/deploy/start", Ok((Route::PlanAction(Verb::Start), &["deploy"]))),
            ("GET", "/v1/pod/status", Ok((Route::PodsStatus, &[]))),
            ("GET", "/v1/pod/a-0/status", Ok((Route::PodStatus, &["a-0"]))),
            ("GET", "/v1/configurations/target", Ok((Route::Target, &[]))),
            ("GET", "/v1/configurations/x", Ok((Route::Configuration, &["x"]))),
            ("GET", "/v1/artifacts/template/a/b/c/d", Ok((Route::Template, &["a", "b", "c", "d"]))),
            ("GET", "/v1/state/zone/tasks", Ok((Route::ZoneTasks, &[]))),
            ("GET", "/v1/state/zone/tasks/a-0-b", Ok((Route::ZoneTask, &["a-0-b"]))),
            ("GET", "/v1/state/zone/a/10.0.0.1", Ok((Route::ZoneAddress, &["a", "10.0.0.1"]))),
            ("GET", "/v1/pod/a-0/restart", Err(405)),
            ("GET", "/v1/nothing", Err(404)),
        ];
        for (method, path, expected) in cases {
            let found = find(method, &components(path)).map_err(|error| error.status.as_u16());
            let expected =
                expected.map(|(route, names)| (route, names.iter().map(|it| (*it).to_owned()).collect()));
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}
