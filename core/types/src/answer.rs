//! The answer to one HTTP request, before it is bytes.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// What a machine answers to a call; `T` is the response message of its API.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// 202, no body: the call is accepted; its outcome is sent as events.
    Accepted,
    /// 200, no body.
    Ok,
    /// 204: no content.
    NoContent,
    /// 200 with a message.
    Body(Box<T>),
    Refused(Rejection),
}

/// Why a call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub status: Status,
    pub message: String,
}

/// The statuses with which a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    Internal,
    NotImplemented,
    Unavailable,
    InsufficientStorage,
}

impl Status {
    pub fn code(self) -> u16 {
        match self {
            Status::BadRequest => 400,
            Status::Unauthorized => 401,
            Status::Forbidden => 403,
            Status::NotFound => 404,
            Status::Conflict => 409,
            Status::Internal => 500,
            Status::NotImplemented => 501,
            Status::Unavailable => 503,
            Status::InsufficientStorage => 507,
        }
    }
}

impl Rejection {
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Status::BadRequest, message)
    }
}

impl<T> Answer<T> {
    /// Whether a call was refused because the disk has no room for it.
    pub fn is_insufficient_storage(&self) -> bool {
        matches!(self, Answer::Refused(refusal) if refusal.status == Status::InsufficientStorage)
    }

    pub fn refused(status: Status, message: impl Into<String>) -> Self {
        Answer::Refused(Rejection::new(status, message))
    }
}

impl<T> From<Rejection> for Answer<T> {
    fn from(refusal: Rejection) -> Self {
        Answer::Refused(refusal)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.code(), self.message)
    }
}
