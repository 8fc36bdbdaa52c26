//! A request whose row in the table is known.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::Value;

use super::error::ApiError;
use super::query::Query;
use super::route::Matched;

/// The largest body that is read as a whole: the document of a container with its labels and environment.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a client may take to send it.
const BODY_READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

#[derive(Debug)]
pub struct Call {
    pub matched: Matched,
    pub method: Method,
    pub query: Query,
    pub headers: HeaderMap,
    pub request: Request<Incoming>,
}

impl Call {
    pub fn new(matched: Matched, request: Request<Incoming>) -> Self {
        Self {
            matched,
            method: request.method().clone(),
            query: Query::parse(request.uri().query()),
            headers: request.headers().clone(),
            request,
        }
    }

    /// The query as the client wrote it.
    pub fn raw_query(&self) -> &str {
        self.request.uri().query().unwrap_or_default()
    }

    pub fn is_upgrade(&self) -> bool {
        self.headers.contains_key(header::UPGRADE)
    }

    pub async fn bytes(&mut self) -> Result<Bytes, ApiError> {
        let body = Limited::new(self.request.body_mut(), DOCUMENT_BYTES_MAX).collect();
        match tokio::time::timeout(BODY_READ_TIMEOUT, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::new(
                http::StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {DOCUMENT_BYTES_MAX} bytes"),
            )),
            Ok(Err(error)) => Err(ApiError::bad(format!("the body cannot be read: {error}"))),
            Err(_) => Err(ApiError::new(
                http::StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {BODY_READ_TIMEOUT:?}"),
            )),
        }
    }

    /// The body as a JSON object; an empty body is an empty object.
    pub async fn document(&mut self) -> Result<Value, ApiError> {
        let bytes = self.bytes().await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let document: Value = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::bad(format!("the body is not valid JSON: {error}")))?;
        match document {
            Value::Object(_) => Ok(document),
            _ => Err(ApiError::bad("the body must be a JSON object")),
        }
    }
}
