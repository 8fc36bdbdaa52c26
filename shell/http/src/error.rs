//! What a peer did wrong, or we could not do: a status and a plain text.

use http::{Method, StatusCode};
use tepui_types::Rejection;

/// An error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    pub status: StatusCode,
    pub message: String,
    /// The methods that would be right, for 405.
    pub(crate) allow: Option<&'static str>,
    /// The authentication schemes, for 401.
    pub(crate) challenge: Option<String>,
    /// In seconds, for 429.
    pub(crate) retry_after: Option<u64>,
}

impl HttpError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), allow: None, challenge: None, retry_after: None }
    }

    /// A status that needs no more words: `404 Not Found.`
    pub fn plain(status: StatusCode) -> Self {
        let reason = status.canonical_reason().unwrap_or("Unknown");
        Self::new(status, format!("{} {reason}.", status.as_u16()))
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// `401` with the authentication schemes.
    pub fn unauthorized(challenge: String) -> Self {
        Self { challenge: Some(challenge), ..Self::plain(StatusCode::UNAUTHORIZED) }
    }

    /// When to come back, in seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// `403`: known and not allowed.
    pub fn forbidden() -> Self {
        Self::plain(StatusCode::FORBIDDEN)
    }

    pub fn not_found() -> Self {
        Self::plain(StatusCode::NOT_FOUND)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// `expected` as it stands in `Allow`: `GET, PUT`.
    pub fn wrong_method(expected: &'static str, received: &Method) -> Self {
        let names = expected.replace(", ", "', '");
        let message =
            format!("405 Method Not Allowed. Expecting one of {{ '{names}' }}, but received '{received}'.");
        Self { allow: Some(expected), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// `501`, for what is known and cannot be done.
    pub fn not_implemented(what: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, format!("{what} is not implemented"))
    }
}

impl From<&Rejection> for HttpError {
    fn from(refusal: &Rejection) -> Self {
        let status = StatusCode::from_u16(refusal.status.code()).expect("refusals have statuses of HTTP");
        match refusal.message.is_empty() {
            true => Self::plain(status),
            false => Self::new(status, refusal.message.clone()),
        }
    }
}
