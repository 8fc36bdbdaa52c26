//! Passing a call on to one engine: the same method, query, headers and body, the path rebuilt; the answer as it comes.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Response};
use serde_json::Value;

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::route::with_query;
use super::targets::Target;
use crate::body::{self, Body};

/// Headers that belong to one connection.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

pub fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in &HOP_BY_HOP {
        kept.remove(name);
    }
    kept.remove(header::HOST);
    kept.remove(header::EXPECT); // Answered by us when the body is first read.
    kept
}

/// A request to an engine.
pub fn request(
    method: Method,
    path: &str,
    headers: HeaderMap,
    body: Body,
) -> Result<Request<Body>, ApiError> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .map_err(|error| ApiError::bad(format!("the path cannot be passed on: {error}")))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// A request to an engine with a JSON document.
pub fn document_request(method: Method, path: &str, document: &Value) -> Result<Request<Body>, ApiError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    request(method, path, headers, body::full(document.to_string()))
}

impl Api {
    /// Passes the call on; `path` is that of the engine.
    pub async fn forward(&self, call: Call, target: &Target, path: &str) -> Result<Response<Body>, ApiError> {
        let headers = end_to_end(&call.headers);
        let request = request(call.method, path, headers, body::incoming(call.request.into_body()))?;
        self.send(target, request).await
    }

    /// The same with another body.
    pub async fn forward_bytes(
        &self,
        call: &Call,
        target: &Target,
        path: &str,
        bytes: impl Into<bytes::Bytes>,
    ) -> Result<Response<Body>, ApiError> {
        let mut headers = end_to_end(&call.headers);
        headers.remove(header::CONTENT_LENGTH);
        let request = request(call.method.clone(), path, headers, body::full(bytes))?;
        self.send(target, request).await
    }

    pub async fn send(&self, target: &Target, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let (mut head, body) = target.client.send(request).await?.into_parts();
        head.headers = end_to_end(&head.headers);
        Ok(Response::from_parts(head, body::incoming(body)))
    }

    /// To any healthy engine: searches, logins and manifests of registries are the same from each.
    pub async fn any_engine(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let target = self.some_engines()?.swap_remove(0);
        let path = call.request.uri().path().trim_start_matches('/');
        // Without a version the engine would answer in its newest.
        let path = match path.starts_with('v') {
            true => format!("/{path}"),
            false => format!("{}/{path}", call.matched.version),
        };
        let path = with_query(path, call.raw_query());
        self.forward(call, &target, &path).await
    }
}
