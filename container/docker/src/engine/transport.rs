//! HTTP over a unix socket, one connection per call.

use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use super::{ANSWER_BYTES_MAX, EngineFault};

/// One request. `doing` completes the words `cannot …`.
pub(super) struct Call {
    pub doing: &'static str,
    pub method: Method,
    pub path: String,
    /// JSON.
    pub body: Option<String>,
}

/// A whole answer that was a success.
pub(super) struct Whole {
    headers: HeaderMap,
    pub body: Bytes,
}

/// A successful answer whose body is not read yet.
#[derive(Debug)]
pub(super) struct Answer {
    pub doing: &'static str,
    body: Incoming,
}

impl Whole {
    pub fn api_version(&self) -> Option<String> {
        Some(self.headers.get("api-version")?.to_str().ok()?.to_owned())
    }
}

impl Answer {
    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self, limit: Duration) -> Result<Option<Bytes>, EngineFault> {
        let doing = self.doing;
        let next = tokio::time::timeout(limit, self.endless_chunk()).await;
        next.unwrap_or(Err(EngineFault::TimedOut { doing, limit }))
    }

    /// As before, for what comes when it comes.
    pub async fn endless_chunk(&mut self) -> Result<Option<Bytes>, EngineFault> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(err)) => return Err(broken(self.doing, &err)),
            }
        }
    }
}

/// Makes a call and reads its whole answer.
pub(super) async fn send_call(socket: &Path, call: &Call, limit: Duration) -> Result<Whole, EngineFault> {
    let asked = async {
        let response = send(socket, call, None).await?;
        let (head, body) = response.into_parts();
        let body = collect(call.doing, body).await?;
        check(call.doing, head.status, &body)?;
        Ok(Whole { headers: head.headers, body })
    };
    let asked = tokio::time::timeout(limit, asked).await;
    asked.unwrap_or(Err(EngineFault::TimedOut { doing: call.doing, limit }))
}

/// Makes a call with a streamed answer; `limit` is for its beginning.
pub(super) async fn open(
    socket: &Path,
    call: &Call,
    auth: Option<&str>,
    limit: Duration,
) -> Result<Answer, EngineFault> {
    let asked = async {
        let response = send(socket, call, auth).await?;
        if !response.status().is_success() {
            let (head, body) = response.into_parts();
            let body = collect(call.doing, body).await?;
            check(call.doing, head.status, &body)?;
            return Err(EngineFault::Garbled { doing: call.doing, why: head.status.to_string() });
        }
        Ok(Answer { doing: call.doing, body: response.into_body() })
    };
    let asked = tokio::time::timeout(limit, asked).await;
    asked.unwrap_or(Err(EngineFault::TimedOut { doing: call.doing, limit }))
}

async fn send(socket: &Path, call: &Call, auth: Option<&str>) -> Result<Response<Incoming>, EngineFault> {
    let doing = call.doing;
    let stream = UnixStream::connect(socket).await;
    let stream = stream.map_err(|err| EngineFault::Connect { doing, socket: socket.to_owned(), err })?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|err| broken(doing, &err))?;
    tokio::spawn(connection); // Its failure is also that of the request.
    let mut request = Request::builder().method(&call.method).uri(&call.path).header(header::HOST, "docker");
    if let Some(auth) = auth {
        request = request.header("X-Registry-Auth", auth);
    }
    if call.body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = Full::new(Bytes::from(call.body.clone().unwrap_or_default()));
    let request = request.body(body).map_err(|err| EngineFault::Broken { doing, why: err.to_string() })?;
    sender.send_request(request).await.map_err(|err| broken(doing, &err))
}

async fn collect(doing: &'static str, body: Incoming) -> Result<Bytes, EngineFault> {
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(err) if err.is::<http_body_util::LengthLimitError>() => {
            Err(EngineFault::TooLarge { doing, bytes_max: ANSWER_BYTES_MAX })
        }
        Err(err) => Err(EngineFault::Broken { doing, why: err.to_string() }),
    }
}

/// `304` means that there was nothing to do.
fn check(doing: &'static str, status: StatusCode, body: &[u8]) -> Result<(), EngineFault> {
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = match told["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("{status}: {}", String::from_utf8_lossy(body).trim()),
    };
    Err(EngineFault::Refused { doing, status: status.as_u16(), message })
}

fn broken(doing: &'static str, err: &hyper::Error) -> EngineFault {
    EngineFault::Broken { doing, why: err.to_string() }
}
