//! Calls that arrive on one connection without waiting for each other's answers, handled together.
//!
//! The ordinary server answers a request before it looks at the next. Here everything that was read is one batch for the
//! handler and its answers are one write, for requests that [`Handler::is_call`] accepts and that are small and whole. Any
//! other request hands the connection over to the ordinary server, with the bytes read so far and for good: syntax errors,
//! large and slow requests, chunked bodies and streams are dealt with there only.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use httparse::Status;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::rewind::Rewind;
use super::{HEAD_BYTES_MAX, HEADERS_MAX, Handler, PRESSURE_PAUSE, Shared, Signals};
use crate::body::Body;
use crate::connection::{Disconnect, Ends};
use crate::gzip::compress;
use crate::request::{Request, RequestBody};
use crate::respond::Response;

/// Requests handled together.
const BATCH_REQUESTS_MAX: usize = 256;

/// A request of this path, head and body, and what is read ahead of it.
const BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// Room made for the first read of an idle connection, which holds no more than that.
const IDLE_READ_BYTES: usize = 512;

/// How the connection goes on.
pub(super) enum Served<S> {
    Closed,
    /// Served by the ordinary server from here on.
    HandedOver(Rewind<S>),
}

/// Serves calls until the connection ends or carries something else.
pub(super) async fn serve<H: Handler, S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    ends: Ends,
    shared: &Shared<H>,
    signals: &mut Signals,
) -> Served<S> {
    let mut connection = Connection {
        stream,
        buffer: BytesMut::new(),
        known: None,
        ends,
        shared,
        disconnect: Disconnect::default(),
        active: Instant::now(),
    };
    loop {
        match connection.turn(signals).await {
            Turn::Continue => (),
            Turn::Closed => return Served::Closed,
            Turn::Other => {
                return Served::HandedOver(Rewind::new(connection.buffer.freeze(), connection.stream));
            }
        }
    }
}

enum Turn {
    Continue,
    Closed,
    Other,
}

struct Connection<'s, H, S> {
    stream: S,
    buffer: BytesMut,
    /// The head of the last call: a client repeats it, but for the length of the body.
    known: Option<Arc<Head>>,
    ends: Ends,
    shared: &'s Shared<H>,
    disconnect: Disconnect,
    /// When a call was last answered or begun.
    active: Instant,
}

impl<H: Handler, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, H, S> {
    /// Handles what was read, or reads more.
    async fn turn(&mut self, signals: &mut Signals) -> Turn {
        let mut calls = Vec::new();
        let next = loop {
            match self.next_call() {
                Next::Call(head, body) => calls.push((head, body)),
                other => break other,
            }
            if calls.len() == BATCH_REQUESTS_MAX {
                break Next::Partial;
            }
        };
        if !calls.is_empty() {
            return match self.handle(calls).await {
                Ok(()) => Turn::Continue,
                Err(why) => {
                    tracing::debug!(peer = %self.ends.peer, why, "connection broke");
                    Turn::Closed
                }
            };
        }
        match next {
            Next::Partial => self.read(signals).await,
            Next::Call(..) | Next::Other => Turn::Other,
        }
    }

    fn next_call(&mut self) -> Next {
        let known = self.known.as_ref().and_then(|head| Some((head.clone(), head.sizes(&self.buffer)?)));
        let (head, (head_bytes, body_bytes)) = match known {
            Some(known) => known,
            None => match parse(&self.buffer) {
                Ok(Some(parsed)) if self.is_call(&parsed.0.parts) => parsed,
                Ok(Some(_)) | Err(()) => return Next::Other,
                Ok(None) if self.buffer.len() >= BUFFER_BYTES_MAX => return Next::Other,
                Ok(None) => return Next::Partial,
            },
        };
        if head_bytes + body_bytes > BUFFER_BYTES_MAX {
            return Next::Other;
        }
        self.known = Some(head.clone());
        if self.buffer.len() < head_bytes + body_bytes {
            return Next::Partial;
        }
        self.buffer.advance(head_bytes);
        Next::Call(head, self.buffer.split_to(body_bytes).freeze())
    }

    fn is_call(&self, parts: &http::request::Parts) -> bool {
        let request = http::Request::from_parts(parts.clone(), ());
        self.shared.handler.is_call(parts) && self.shared.browsers.check(&request, self.ends.local).is_ok()
    }

    /// Waits for more. What has begun has as long as a head may take; then the ordinary server decides what to answer.
    async fn read(&mut self, signals: &mut Signals) -> Turn {
        let limits = &self.shared.limits;
        let is_idle = self.buffer.is_empty();
        let patience = if is_idle { limits.idle_timeout } else { limits.head_read_timeout };
        match is_idle {
            true => self.buffer = BytesMut::with_capacity(IDLE_READ_BYTES),
            false => self.buffer.reserve(BUFFER_BYTES_MAX.saturating_sub(self.buffer.len())),
        }
        let late = tokio::time::sleep_until((self.active + patience).into());
        tokio::select! {
            read = self.stream.read_buf(&mut self.buffer) => match read {
                Ok(0) | Err(_) => return Turn::Closed,
                Ok(_) if is_idle => self.active = Instant::now(),
                Ok(_) => return Turn::Continue,
            },
            () = late => return if is_idle { Turn::Closed } else { Turn::Other },
            () = self.disconnect.notified() => return Turn::Closed,
            _ = signals.stop.changed() => return Turn::Closed,
            Ok(()) = signals.pressure.changed() => {
                return match is_idle && self.active.elapsed() >= PRESSURE_PAUSE {
                    true => Turn::Closed,
                    false => Turn::Continue,
                };
            }
        }
        self.read_ahead().await;
        Turn::Continue
    }

    /// Takes what else is there after the first bytes, without waiting.
    async fn read_ahead(&mut self) {
        if self.buffer.len() < IDLE_READ_BYTES {
            return;
        }
        self.buffer.reserve(BUFFER_BYTES_MAX.saturating_sub(self.buffer.len()));
        tokio::select! {
            biased;
            // The end of the stream is not the end of the calls before it: the next read sees it again.
            _ = self.stream.read_buf(&mut self.buffer) => (),
            () = std::future::ready(()) => (),
        }
    }

    async fn handle(&mut self, calls: Vec<(Arc<Head>, Bytes)>) -> Result<(), String> {
        let (shared, ends) = (self.shared, self.ends);
        let (mut requests, mut heads) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
        for (head, body) in calls {
            let request = http::Request::from_parts(head.parts.clone(), RequestBody::Whole(body));
            let (disconnect, budget) = (self.disconnect.clone(), shared.budget.clone());
            let request = Request::new(request, ends, disconnect, budget, shared.limits.body_read_timeout);
            // The same head passed when it was first seen.
            requests.push(request.map_err(|error| error.message)?);
            heads.push(head);
        }
        let responses = tokio::select! {
            // Boxed: an idle connection does not keep memory for it.
            responses = Box::pin(shared.handler.clone().handle_all(requests)) => responses,
            () = self.disconnect.notified() => return Err("it was disconnected".to_owned()),
        };
        let (mut out, date) = (Vec::new(), date());
        for (head, response) in heads.iter().zip(responses) {
            let response = compress(response, &head.parts.headers).await;
            write(response, &date, &mut out)?;
        }
        self.write_all(&out).await?;
        self.active = Instant::now();
        Ok(())
    }

    /// Writes; fails if the peer takes nothing for too long.
    async fn write_all(&mut self, mut out: &[u8]) -> Result<(), String> {
        let patience = self.shared.limits.write_timeout;
        let late = |_| "the peer does not read its answer".to_owned();
        while !out.is_empty() {
            let written = tokio::time::timeout(patience, self.stream.write(out)).await;
            let written = written.map_err(late)?.map_err(|err| err.to_string())?;
            if written == 0 {
                return Err("the peer closed the connection".to_owned());
            }
            out = &out[written..];
        }
        let flushed = tokio::time::timeout(patience, self.stream.flush()).await;
        flushed.map_err(late)?.map_err(|err| err.to_string())
    }
}

enum Next {
    Call(Arc<Head>, Bytes),
    /// More has to be read.
    Partial,
    /// Something that is not served here.
    Other,
}

/// The head of a call, and its bytes around the digits of the body's length.
struct Head {
    parts: http::request::Parts,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Head {
    /// If `bytes` begin with this very head: its size and the body's.
    fn sizes(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let rest = bytes.strip_prefix(&*self.before)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest[digits..].starts_with(&self.after).then_some(())?;
        Some((self.before.len() + digits + self.after.len(), length(&rest[..digits])?))
    }
}

/// A length that is worth looking at; none if it is no number or too large.
fn length(digits: &[u8]) -> Option<usize> {
    let is_small = (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_small.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
}

/// The head at the beginning of `bytes` with its size and the body's; none if it is not whole, an error if it is not one of
/// a plain request with a body of known length.
fn parse(bytes: &[u8]) -> Result<Option<(Arc<Head>, (usize, usize))>, ()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let size = match request.parse(bytes) {
        Ok(Status::Complete(size)) => size,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(()),
    };
    if (request.version, request.method) != (Some(1), Some(Method::POST.as_str())) {
        return Err(());
    }
    let mut parts = http::Request::new(()).into_parts().0;
    parts.method = Method::POST;
    parts.uri = request.path.and_then(|path| path.parse().ok()).ok_or(())?;
    let (mut map, mut body) = (HeaderMap::with_capacity(request.headers.len()), None);
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| ())?;
        let is_plain = match name {
            TRANSFER_ENCODING | EXPECT | UPGRADE => false,
            CONNECTION => header.value.eq_ignore_ascii_case(b"keep-alive"),
            CONTENT_LENGTH => body.replace(header.value).is_none(),
            _ => true,
        };
        if !is_plain {
            return Err(());
        }
        // The length is that of one body; the head is for all that differ in nothing else.
        if name != CONTENT_LENGTH {
            map.append(name, HeaderValue::from_bytes(header.value).map_err(|_| ())?);
        }
    }
    parts.headers = map;
    let digits = body.ok_or(())?;
    let body_bytes = length(digits).ok_or(())?;
    // The value is a part of `bytes`.
    let at = digits.as_ptr() as usize - bytes.as_ptr() as usize;
    let (before, after) = (bytes[..at].to_vec(), bytes[at + digits.len()..size].to_vec());
    Ok(Some((Arc::new(Head { parts, before, after }), (size, body_bytes))))
}

fn date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

fn write(response: Response, date: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let (head, body) = response.into_parts();
    let body = match body {
        Body::Empty => Bytes::new(),
        Body::Bytes(bytes) => bytes,
        Body::Stream(_) | Body::Chunks(_) | Body::Along(_) | Body::Link(_) => {
            return Err("a call was answered with a stream".to_owned());
        }
    };
    let reason = head.status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(reason.as_bytes());
    for (name, value) in &head.headers {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"\r\nx-content-type-options: nosniff\r\ndate: ");
    out.extend_from_slice(date.as_bytes());
    if head.status != StatusCode::NO_CONTENT {
        out.extend_from_slice(b"\r\ncontent-length: ");
        out.extend_from_slice(body.len().to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&body);
    Ok(())
}
