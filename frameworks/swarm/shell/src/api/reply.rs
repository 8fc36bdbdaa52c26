//! The forms of answers, with the headers that every answer has.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::body::{self, Body};
use crate::version::API_VERSION;

pub fn json(status: StatusCode, document: &Value) -> Response<Body> {
    let mut text = document.to_string();
    text.push('\n');
    json_bytes(status, text.into_bytes())
}

/// A document that is rendered already.
pub fn json_bytes(status: StatusCode, document: Vec<u8>) -> Response<Body> {
    typed(status, "application/json", body::full(document))
}

pub fn text(text: &'static str) -> Response<Body> {
    typed(StatusCode::OK, "text/plain; charset=utf-8", body::full(text))
}

pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(body::empty());
    *response.status_mut() = status;
    response
}

pub fn typed(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Clients choose their version of the API by the first of these. No builder is named: that of BuildKit is not served.
pub fn add_common_headers(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert("api-version", HeaderValue::from_static(API_VERSION.text));
    headers.insert("docker-experimental", HeaderValue::from_static("false"));
    headers.insert("ostype", HeaderValue::from_static("linux"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers
        .insert("server", HeaderValue::from_static(concat!("Tepui/", env!("CARGO_PKG_VERSION"), " (linux)")));
}

/// An answer that proxies must not keep.
pub fn uncached(mut response: Response<Body>) -> Response<Body> {
    let value = HeaderValue::from_static("no-cache, no-store, must-revalidate");
    response.headers_mut().insert(CACHE_CONTROL, value);
    response.headers_mut().insert("pragma", HeaderValue::from_static("no-cache"));
    response
}
