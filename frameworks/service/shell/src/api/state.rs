//! `/v1/configurations`, `/v1/artifacts`, `/v1/state` and `/v1/health`.

use http::StatusCode;
use serde_json::json;
use tepui_http::{HttpError, Request, Response, empty, stream_file, text, typed};
use tepui_service::scheduler::{Command, View};

use super::{BODY_BYTES_MAX, Route, command, document, missing, multipart};
use crate::handle::Handle;

/// Limit of a stored file.
const FILE_BYTES_MAX: usize = 1024;
/// Before the name of a file among the properties.
const FILE_PREFIX: &str = "file-";

pub(super) fn configuration(view: &View, route: Route, names: &[String]) -> Result<Response, HttpError> {
    let none = || HttpError::new(StatusCode::NOT_FOUND, "Target configuration not found");
    match (route, names) {
        (Route::Configurations, _) => {
            let ids: Vec<&String> = view.configurations.keys().collect();
            Ok(document(StatusCode::OK, &ids))
        }
        (Route::TargetId, _) => Ok(document(StatusCode::OK, &[view.target.as_ref().ok_or_else(none)?])),
        (Route::Target, _) => {
            let target = view.target.as_deref().ok_or_else(none)?;
            let spec = view.configuration(target).ok_or_else(|| missing("Configuration", target))?;
            Ok(document(StatusCode::OK, &spec))
        }
        (Route::Template, [id, pod, task, config]) => {
            check_id(id)?;
            let found = view.template(id, pod, task, config);
            let content = found.ok_or_else(|| missing("Template", config))?;
            Ok(text(StatusCode::OK, content.to_owned()))
        }
        (_, [id, ..]) => {
            check_id(id)?;
            let spec = view.configuration(id).ok_or_else(|| missing("Configuration", id))?;
            Ok(document(StatusCode::OK, &spec))
        }
        (_, []) => Err(HttpError::not_found()),
    }
}

/// This binary, which renders config templates in tasks. Read as it was started, even if the file was replaced since.
pub(super) fn bootstrap() -> Result<Response, HttpError> {
    let own =
        std::fs::File::open("/proc/self/exe").and_then(|file| stream_file(file, "application/octet-stream"));
    own.map_err(|error| HttpError::unavailable(format!("The bootstrap cannot be read: {error}")))
}

fn check_id(id: &str) -> Result<(), HttpError> {
    let parts: Vec<usize> = id.split('-').map(str::len).collect();
    let is_uuid = parts == [8, 4, 4, 4, 12] && id.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    match is_uuid {
        true => Ok(()),
        false => Err(HttpError::bad_request(format!("{id:?} is not the id of a configuration, a UUID"))),
    }
}

pub(super) fn read(view: &View, route: Route, name: &str) -> Result<Response, HttpError> {
    match route {
        Route::FrameworkId => match &view.framework_id {
            Some(id) => Ok(document(StatusCode::OK, &[id])),
            None => Err(HttpError::new(StatusCode::NOT_FOUND, "Framework id not found")),
        },
        Route::Properties => {
            let keys: Vec<&String> = view.properties.keys().collect();
            Ok(document(StatusCode::OK, &keys))
        }
        Route::Property => {
            let value = view.properties.get(name).ok_or_else(|| missing("Property", name))?;
            Ok(typed("application/json", value.to_vec()))
        }
        Route::Files => {
            let names: Vec<&str> =
                view.properties.keys().filter_map(|key| key.strip_prefix(FILE_PREFIX)).collect();
            Ok(text(StatusCode::OK, format!("[{}]", names.join(", "))))
        }
        _ => {
            let value = view.properties.get(&format!("{FILE_PREFIX}{name}"));
            Ok(text(StatusCode::OK, value.ok_or_else(|| missing("File", name))?.to_vec()))
        }
    }
}

/// A file of a form becomes a property.
pub(super) async fn put_file(
    handle: &Handle,
    name: &str,
    mut request: Request,
) -> Result<Response, HttpError> {
    let content_type = request.header("content-type").unwrap_or_default().to_owned();
    let bytes = request.read_body(BODY_BYTES_MAX).await?;
    let value = multipart::field(&content_type, &bytes, "file").map_err(HttpError::bad_request)?;
    if value.len() > FILE_BYTES_MAX {
        let message = format!("The file has {} bytes; the limit is {FILE_BYTES_MAX}", value.len());
        return Err(HttpError::bad_request(message));
    }
    let property = Command::PutProperty { key: format!("{FILE_PREFIX}{name}"), value };
    command(handle, property, "Received cmd: put file").await
}

/// The code of the health is the status of the answer, too. A status 204 has no body: reasons come with 202 instead.
pub(super) fn health(view: &View, request: &Request) -> Result<Response, HttpError> {
    let health = view.health();
    let status = StatusCode::from_u16(health.value).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let verbose = request.query.get("verbose").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    Ok(match (status, verbose) {
        (StatusCode::NO_CONTENT, true) => document(StatusCode::ACCEPTED, &health),
        (StatusCode::NO_CONTENT, false) => empty(status),
        (_, true) => document(status, &health),
        (_, false) => document(status, &json!({"value": health.value})),
    })
}
