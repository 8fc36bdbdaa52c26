//! One request: its head, taken apart, and its body, read under limits.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tepui_authz::Subject;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::audit::{Audit, AuditNote, Deed, Witness};
use crate::connection::{Disconnect, Ends};
use crate::gzip::{self, Inflated};
use crate::principal::{Principal, subject};
use crate::query::Query;
use crate::{HttpError, path};

/// The largest form.
const FORM_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What forms are called.
const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// Larger compressed bodies are inflated on a thread that may be busy for a while.
const INFLATE_INLINE_BYTES_MAX: usize = 16 * 1024;

/// What all bodies that are being read may take together, in units of this many bytes.
const BUDGET_UNIT_BYTES: usize = 64 * 1024;

/// With more, further peers are asked to come back later.
const BODIES_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The memory for bodies, shared by all requests of one server. A cheap clone.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl Default for BodyBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_BYTES_MAX / BUDGET_UNIT_BYTES)))
    }
}

/// One request.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// As sent, with the query.
    pub target: String,
    pub components: Vec<String>,
    pub query: Query,
    pub headers: HeaderMap,
    pub peer: SocketAddr,
    /// Our end of the connection.
    pub local: SocketAddr,
    /// The authenticated principal; none in an open realm.
    pub principal: Option<Principal>,
    audit: AuditNote,
    pub(crate) disconnect: Disconnect,
    body_read_timeout: Duration,
    budget: BodyBudget,
    /// What the body took of it.
    spent: Vec<OwnedSemaphorePermit>,
    body: RequestBody,
}

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// As it comes.
    Incoming(Incoming),
    /// Read already.
    Whole(Bytes),
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            RequestBody::Incoming(body) => Pin::new(body).poll_frame(cx),
            RequestBody::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            RequestBody::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Incoming(body) => body.size_hint(),
            RequestBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

impl Request {
    pub(crate) fn new(
        request: http::Request<RequestBody>,
        ends: Ends,
        disconnect: Disconnect,
        budget: BodyBudget,
        body_read_timeout: Duration,
    ) -> Result<Self, HttpError> {
        let (head, body) = request.into_parts();
        Ok(Self {
            components: path::components(head.uri.path())?,
            query: Query::parse(head.uri.query().unwrap_or_default()),
            target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            method: head.method,
            headers: head.headers,
            peer: ends.peer,
            local: ends.local,
            principal: None,
            audit: AuditNote::default(),
            disconnect,
            body_read_timeout,
            budget,
            spent: Vec::new(),
            body,
        })
    }

    /// One header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The sender, as the subject of authorization rules.
    pub fn subject(&self) -> Subject<'_> {
        subject(self.principal.as_ref())
    }

    /// The name of the principal.
    pub fn principal_name(&self) -> Option<String> {
        self.principal.as_ref().and_then(|principal| principal.name.clone())
    }

    /// Notes for the audit log what the request does, before that is done or refused. The first note counts.
    pub fn note(&self, deed: Deed) {
        self.note_as(self.principal.clone(), deed);
    }

    /// The same for an unauthenticated sender.
    pub(crate) fn note_as(&self, principal: Option<Principal>, deed: Deed) {
        self.audit.set(deed, principal);
    }

    /// Records what is noted on it with its answer. To be taken before a handler consumes it.
    pub fn witness(&self, audit: &Audit) -> Witness {
        Witness { audit: audit.clone(), peer: self.peer, note: self.audit.clone() }
    }

    /// Notes the user of a process of this machine that sent it.
    pub fn note_uid(&self, uid: u32) {
        self.audit.set_uid(uid);
    }

    /// Refuses other methods than these, written as in `Allow`: `GET, PUT`.
    pub fn expect_method(&self, expected: &'static str) -> Result<(), HttpError> {
        match expected.split(", ").any(|one| self.method.as_str() == one) {
            true => Ok(()),
            false => Err(HttpError::wrong_method(expected, &self.method)),
        }
    }

    /// The body as a form; 415 unless its Content-Type is that of a form.
    pub async fn read_form(&mut self) -> Result<Query, HttpError> {
        let content_type = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(FORM_TYPE) {
            let message = format!("Expecting 'Content-Type' of {FORM_TYPE}");
            return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let body = self.read_body(FORM_BYTES_MAX).await?;
        Ok(Query::parse(&body))
    }

    /// The body, decompressed; 413 beyond `bytes_max`, 408 if it does not come.
    pub async fn read_body(&mut self, bytes_max: usize) -> Result<Bytes, HttpError> {
        let reading = tokio::time::timeout(self.body_read_timeout, self.read_whole(bytes_max)).await;
        let bytes = reading.unwrap_or_else(|_| {
            Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, "The body of the request did not come in time"))
        })?;
        match self.header(CONTENT_ENCODING.as_str()) {
            None => Ok(bytes),
            Some(name) if name.eq_ignore_ascii_case("identity") => Ok(bytes),
            Some(name) if name.eq_ignore_ascii_case("gzip") => inflate(bytes, bytes_max).await,
            Some(other) => Err(HttpError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("Expecting 'Content-Encoding' of gzip, not {other}"),
            )),
        }
    }

    /// The next piece of a body that is a stream; `None` at its end. Not decompressed. Safe to abandon.
    pub async fn next_piece(&mut self) -> Option<std::io::Result<Bytes>> {
        loop {
            match self.body.frame().await?.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                Ok(Err(_)) => (), // Trailers mean nothing here.
                Err(err) => return Some(Err(std::io::Error::other(err))),
            }
        }
    }

    async fn read_whole(&mut self, bytes_max: usize) -> Result<Bytes, HttpError> {
        use http_body::Body as _;
        if self.body.size_hint().lower() > bytes_max as u64 {
            return Err(too_large(bytes_max));
        }
        if let RequestBody::Whole(bytes) = &mut self.body {
            return Ok(std::mem::take(bytes));
        }
        let mut whole = BytesMut::new();
        while let Some(frame) = self.body.frame().await {
            let frame =
                frame.map_err(|err| HttpError::bad_request(format!("Failed to read the body: {err}")))?;
            if let Ok(data) = frame.into_data() {
                if whole.len() + data.len() > bytes_max {
                    return Err(too_large(bytes_max));
                }
                self.spend(whole.len() + data.len())?;
                whole.extend_from_slice(&data);
            }
        }
        Ok(whole.freeze())
    }

    /// The body is dealt with: its memory is free for others, however long the answer takes.
    pub(crate) fn release_memory(&mut self) {
        self.spent.clear();
    }

    /// Takes what a body of this size needs of the memory for all bodies.
    fn spend(&mut self, bytes: usize) -> Result<(), HttpError> {
        while self.spent.len() * BUDGET_UNIT_BYTES < bytes {
            let unit =
                self.budget.0.clone().try_acquire_owned().map_err(|_| {
                    HttpError::unavailable("Too many large requests at once; try again later")
                })?;
            self.spent.push(unit);
        }
        Ok(())
    }
}

async fn inflate(bytes: Bytes, bytes_max: usize) -> Result<Bytes, HttpError> {
    let inflated = match bytes.len() <= INFLATE_INLINE_BYTES_MAX {
        true => gzip::inflate(&bytes, bytes_max),
        false => {
            let inflating = tokio::task::spawn_blocking(move || gzip::inflate(&bytes, bytes_max));
            inflating.await.unwrap_or_else(|err| Inflated::Broken(std::io::Error::other(err)))
        }
    };
    match inflated {
        Inflated::Whole(bytes) => Ok(bytes),
        Inflated::TooLarge => Err(too_large(bytes_max)),
        Inflated::Broken(err) => Err(HttpError::bad_request(format!("Failed to decompress the body: {err}"))),
    }
}

fn too_large(bytes_max: usize) -> HttpError {
    let message = format!("The body of the request is larger than the limit of {bytes_max} bytes");
    HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}
