//! `POST /v1/update`: a new spec, of the scheduler's files or uploaded.

use http::StatusCode;
use tepui_http::{HttpError, Request, Response};
use tepui_service::scheduler::{Command, Origin};
use tracing::info;

use super::command;
use crate::handle::Handle;
use crate::options::{Reload, Upload};

/// Limit of an uploaded spec with its templates.
const UPLOAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest name of an uploaded file.
const NAME_CHARACTERS_MAX: usize = 255;

/// Without a body the files of the scheduler are read again. The old target stays if the spec has errors.
pub(crate) async fn update(
    handle: &Handle,
    reload: &Reload,
    may_upload: bool,
    mut request: Request,
) -> Result<Response, HttpError> {
    let upload = upload(&mut request).await?;
    let origin = if upload.is_some() { Origin::Upload } else { Origin::Files };
    if let Some(upload) = &upload {
        let principal = request.principal.as_ref().and_then(|principal| principal.name.as_deref());
        info!(principal, file = upload.file, templates = upload.templates.len(), "spec uploaded");
        if !may_upload {
            let message = "A spec runs commands in the cluster: uploading one requires authentication; start the scheduler with \
                           --api_credentials, or with --allow_insecure if everybody who reaches this address may upload";
            return Err(HttpError::new(StatusCode::FORBIDDEN, message));
        }
    }
    let reload = reload.clone();
    let reading = tokio::task::spawn_blocking(move || reload.read(upload.as_ref())).await;
    let spec = reading.map_err(|err| HttpError::unavailable(err.to_string()))?;
    let spec = Box::new(spec.map_err(HttpError::bad_request)?);
    command(handle, Command::SetTarget { spec, origin }, "Received cmd: update").await
}

async fn upload(request: &mut Request) -> Result<Option<Upload>, HttpError> {
    let bytes = request.read_body(UPLOAD_BYTES_MAX).await?;
    if bytes.is_empty() || bytes.trim_ascii() == b"{}" {
        return Ok(None);
    }
    let content_type = request.header("content-type").unwrap_or_default();
    if !content_type.split(';').next().is_some_and(|own| own.trim().eq_ignore_ascii_case("application/json"))
    {
        let message = "Expecting 'Content-Type' of application/json";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let wrong = |error: String| HttpError::bad_request(format!("The body is no upload of a spec: {error}"));
    let upload: Upload = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let is_name =
        upload.file.chars().count() <= NAME_CHARACTERS_MAX && !upload.file.contains(char::is_control);
    match is_name {
        true => Ok(Some(upload)),
        false => Err(wrong(format!("`file` must have at most {NAME_CHARACTERS_MAX} printable characters"))),
    }
}
