//! Documents of a versioned state: rendered once for all that share them, not at all for readers that have them.

use std::sync::Arc;

use tepui_http::{EntityTag, HttpError, Rendition, Request, Response, accepts_gzip, json};

/// Whether a document for this request is compressed while it is rendered.
pub fn is_compressed(request: &Request) -> bool {
    accepts_gzip(&request.headers) && !is_script(request)
}

/// A JSON document with the tag of its version; 304 if the sender of the request has `version`. Versions are counted from
/// the start of the program, at `epoch`.
pub async fn tagged(
    request: &Request,
    epoch: u64,
    version: u64,
    render: impl FnOnce() -> Arc<Rendition>,
) -> Result<Response, HttpError> {
    let tag = |version| EntityTag::new(epoch, version);
    if tag(version).is_known(&request.headers) {
        return Ok(tag(version).not_modified());
    }
    let rendition = render();
    let response = respond(&rendition, "application/json", request).await?;
    Ok(tag(rendition.version()).on(response))
}

/// A rendition as it is, or as the call of a function in a page.
pub async fn respond(
    rendition: &Arc<Rendition>,
    content_type: &'static str,
    request: &Request,
) -> Result<Response, HttpError> {
    match is_script(request) {
        true => Ok(json(&request.query, rendition.whole().await?)),
        false => rendition.clone().response(content_type).await,
    }
}

fn is_script(request: &Request) -> bool {
    request.query.get("jsonp").is_some()
}
