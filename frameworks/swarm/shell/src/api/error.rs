//! Answers to a client that is not served: Docker's JSON error and its status.

use http::{Response, StatusCode};
use serde_json::json;
use tepui_swarm::Rejection;

use super::reply;
use crate::body::Body;
use crate::engine::EngineFault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    pub message: String,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// A call that has no meaning for a cluster, with the reason.
    pub fn unsupported(reason: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, format!("Not supported in clustering mode: {reason}"))
    }

    pub fn response(&self) -> Response<Body> {
        reply::json(self.status, &json!({"message": self.message}))
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, rejection.message())
    }
}

impl From<EngineFault> for ApiError {
    fn from(fault: EngineFault) -> Self {
        match fault {
            EngineFault::Rejected { status, message, .. } => {
                Self::new(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
            }
            fault => Self::failed(fault.to_string()),
        }
    }
}
