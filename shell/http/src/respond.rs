//! Answers, before compression.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    UPGRADE, VARY, WWW_AUTHENTICATE,
};
use tepui_proto::Wire;

use crate::HttpError;
use crate::body::Body;
use crate::link::{Link, Receive};
use crate::negotiate::Encoding;
use crate::query::Query;
use crate::rendition::{Begun, Rendition};

pub type Response = http::Response<Body>;

/// No body and no Content-Type: `200` or `202`.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response
}

/// `202`: taken in.
pub fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

/// Errors and other words.
pub fn text(status: StatusCode, words: impl Into<Bytes>) -> Response {
    with_status(status, "text/plain; charset=utf-8", words)
}

/// A document of the classic endpoints: JSON, or a call of the function that `jsonp` names.
pub fn json(query: &Query, document: impl Into<Bytes>) -> Response {
    match query.get("jsonp") {
        Some(callback) if !is_function(callback) => {
            HttpError::bad_request("Expecting 'jsonp' to name a function: letters, digits and any of $._[]")
                .into()
        }
        Some(callback) => {
            let script = [callback.as_bytes(), b"(", &document.into(), b")"].concat();
            typed("text/javascript", script)
        }
        None => typed("application/json", document),
    }
}

/// Whether a text names a function, and can be nothing else in a script.
fn is_function(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '$' | '.' | '_' | '[' | ']');
    !text.is_empty() && text.chars().all(is_part)
}

/// One message in the requested encoding.
pub fn message<M: Wire>(encoding: Encoding, message: &M) -> Response {
    encoded(encoding, encoding.encode(message))
}

/// A message that is bytes already.
pub fn encoded(encoding: Encoding, bytes: impl Into<Bytes>) -> Response {
    typed(encoding.name(), bytes)
}

/// `307` to `location`.
pub fn redirect(location: &str) -> Response {
    let mut response = empty(StatusCode::TEMPORARY_REDIRECT);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Turns an answer with a stream into `101`: the stream and `receiver` become the directions of a link. Any other answer is a
/// rejection and stays what it is.
pub fn switch_protocol(response: Response, protocol: &'static str, receiver: Box<dyn Receive>) -> Response {
    let (mut head, body) = response.into_parts();
    let Body::Stream(outgoing) = body else { return Response::from_parts(head, body) };
    head.status = StatusCode::SWITCHING_PROTOCOLS;
    head.headers.remove(CONTENT_TYPE);
    head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    head.headers.insert(UPGRADE, HeaderValue::from_static(protocol));
    Response::from_parts(head, Body::Link(Box::new(Link { outgoing, receiver })))
}

pub fn with_header(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}

/// `200` of another kind.
pub fn typed(content_type: &'static str, bytes: impl Into<Bytes>) -> Response {
    with_status(StatusCode::OK, content_type, bytes)
}

fn with_status(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::Bytes(bytes.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

impl Rendition {
    /// As an answer that is sent while it grows.
    pub async fn response(self: Arc<Self>, content_type: &'static str) -> Result<Response, HttpError> {
        let mut response = Response::new(match self.begun().await? {
            Begun::Empty => Body::Empty,
            Begun::Whole(bytes) => Body::Bytes(bytes),
            Begun::Growing(reader) => Body::Along(reader),
        });
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if self.is_compressed() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Ok(response)
    }
}

impl From<HttpError> for Response {
    fn from(error: HttpError) -> Self {
        let mut response = text(error.status, Bytes::from(error.message));
        if let Some(allow) = error.allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(challenge) = error.challenge.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
