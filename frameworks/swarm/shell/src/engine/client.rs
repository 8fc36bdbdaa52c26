//! A client of one engine, with a pool of idle connections.
//!
//! A connection goes back to the pool when the body of its answer was read to its end; one that streams or that was upgraded
//! never does. Dropping a response closes its connection, which cancels the call at the engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use serde_json::Value;
use tepui_swarm::EngineAddress;

use super::connect;
use super::fault::EngineFault;
use crate::body::{self, Body};
use crate::tls::Tls;
use crate::version::{self, API_VERSION};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the whole answer of a unary call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer of a unary call. One entry of a list of containers takes one or two kilobytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections kept open to an idle engine.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// Cheap to clone; clones share the pool.
#[derive(Clone, Debug)]
pub struct EngineClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: EngineAddress,
    tls: Option<Tls>,
    idle: Mutex<Vec<SendRequest<Body>>>,
    /// The oldest version of the API that the engine accepts; none if it is not known.
    oldest: Mutex<Option<version::Number>>,
}

impl EngineClient {
    pub fn new(address: EngineAddress, tls: Option<Tls>) -> Self {
        // A Unix socket is reached by this machine only.
        let tls = tls.filter(|_| matches!(address, EngineAddress::Tcp { .. }));
        Self { shared: Arc::new(Shared { address, tls, idle: Mutex::default(), oldest: Mutex::default() }) }
    }

    pub fn address(&self) -> &EngineAddress {
        &self.shared.address
    }

    /// The oldest version of the API that the engine accepts, once it was asked.
    pub fn oldest_version(&self) -> Option<version::Number> {
        *self.shared.oldest.lock().expect("no code panics while it holds this lock")
    }

    /// Asks the engine for its versions. From now on requests in older ones are sent in the oldest that it accepts.
    pub async fn negotiate(&self) -> Result<Value, EngineFault> {
        let answer = self.get("/version").await?;
        let number = |name: &str| answer[name].as_str().and_then(version::parse);
        let (oldest, newest) = (number("MinAPIVersion"), number("ApiVersion"));
        if let Some(newest) = newest.filter(|newest| *newest < API_VERSION.number()) {
            return Err(EngineFault::TooOld {
                address: self.address().to_string(),
                newest: format!("{}.{}", newest.0, newest.1),
                required: API_VERSION.text,
            });
        }
        *self.shared.oldest.lock().expect("no code panics while it holds this lock") = oldest;
        Ok(answer)
    }

    /// Sends a request whose URI is a path with its query; returns as soon as the head of the answer is there. For streams in
    /// either direction, without a limit of time. If the answer is `101 Switching Protocols`, `hyper::upgrade::on` makes the
    /// stream of bytes of it; shutting that down for writing closes this half only.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, EngineFault> {
        if let Some(raised) = self.oldest_version().and_then(|oldest| version::raise(request.uri(), oldest)) {
            *request.uri_mut() = raised;
        }
        request.headers_mut().entry(header::HOST).or_insert(http::HeaderValue::from_static("docker"));
        loop {
            let idle = self.idle_connection();
            let is_fresh = idle.is_none();
            let mut sender = match idle {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(sender);
                    return Ok(response);
                }
                // The engine closed an idle connection before it got the request.
                Err(mut error) if !is_fresh && error.message().is_some() => {
                    request = error.take_message().expect("the message is there");
                }
                Err(error) => return Err(self.broken(error.error())),
            }
        }
    }

    /// Sends a request and reads its whole answer, whatever its status.
    pub async fn call(&self, request: Request<Body>) -> Result<Response<Bytes>, EngineFault> {
        let whole = async {
            let (head, body) = self.send(request).await?.into_parts();
            let body = self.collect(body).await?;
            Ok(Response::from_parts(head, body))
        };
        let limit = CALL_TIMEOUT;
        let timed_out = || EngineFault::TimedOut { address: self.address().to_string(), limit };
        tokio::time::timeout(limit, whole).await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// The JSON answer of a successful GET.
    pub async fn get(&self, path: &str) -> Result<Value, EngineFault> {
        let answer = self.succeed(Method::GET, path).await?;
        let garbled = |err: serde_json::Error| EngineFault::Garbled {
            address: self.address().to_string(),
            why: err.to_string(),
        };
        serde_json::from_slice(answer.body()).map_err(garbled)
    }

    /// A call without a body that must succeed.
    pub async fn succeed(&self, method: Method, path: &str) -> Result<Response<Bytes>, EngineFault> {
        let request = Request::builder().method(method).uri(path).body(body::empty());
        let request = request.map_err(|err| self.broken(&err))?;
        let answer = self.call(request).await?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        let message = message(answer.body());
        Err(EngineFault::Rejected { address: self.address().to_string(), status: status.as_u16(), message })
    }

    /// The whole body of an answer.
    pub async fn collect(&self, body: Incoming) -> Result<Bytes, EngineFault> {
        let address = || self.address().to_string();
        match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(err) if err.is::<http_body_util::LengthLimitError>() => {
                Err(EngineFault::TooLarge { address: address(), bytes_max: ANSWER_BYTES_MAX })
            }
            Err(err) => Err(EngineFault::Broken { address: address(), why: err.to_string() }),
        }
    }

    fn idle_connection(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.shared.idle.lock().expect("no code panics while it holds this lock");
        idle.retain(SendRequest::is_ready);
        idle.pop()
    }

    async fn connect(&self) -> Result<SendRequest<Body>, EngineFault> {
        let address = || self.address().to_string();
        let opened = connect::open(self.address(), self.shared.tls.as_ref().map(Tls::client));
        match tokio::time::timeout(CONNECT_TIMEOUT, opened).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(why)) => Err(EngineFault::Connect { address: address(), why }),
            Err(_) => Err(EngineFault::TimedOut { address: address(), limit: CONNECT_TIMEOUT }),
        }
    }

    /// Puts the connection back when the answer on it is over. The pool is not kept alive by that.
    fn keep(&self, mut sender: SendRequest<Body>) {
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            let is_reusable = sender.ready().await.is_ok();
            let Some(shared) = shared.upgrade().filter(|_| is_reusable) else { return };
            let mut idle = shared.idle.lock().expect("no code panics while it holds this lock");
            if idle.len() < IDLE_CONNECTIONS_MAX {
                idle.push(sender);
            }
        });
    }

    fn broken(&self, why: &dyn std::error::Error) -> EngineFault {
        let cause = why.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        EngineFault::Broken { address: self.address().to_string(), why: format!("{why}{cause}") }
    }
}

/// The text of an error answer: Docker's JSON or plain text.
pub fn message(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    match answer["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;

    /// An engine that answers so many requests on each connection and then closes it. Counts connections.
    fn engine(directory: &std::path::Path, requests_max: usize) -> (EngineClient, Arc<AtomicUsize>) {
        let path = directory.join(format!("{requests_max}.sock"));
        let listener = UnixListener::bind(&path).expect("a socket");
        let opened = Arc::new(AtomicUsize::new(0));
        let count = opened.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    for _ in 0..requests_max {
                        if stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.ok();
                        }
                    }
                });
            }
        });
        (EngineClient::new(EngineAddress::Unix(path.display().to_string()), None), opened)
    }

    #[tokio::test]
    async fn connections_are_reused_until_the_engine_closes_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let (keeping, opened) = engine(directory.path(), 100);
        for _ in 0..20 {
            keeping.get("/info").await.expect("an answer");
            // Back in the pool as soon as the connection is ready, which is right after the body.
            while keeping.shared.idle.lock().expect("no panic").is_empty() {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(opened.load(Ordering::SeqCst), 1);
        let (closing, opened) = engine(directory.path(), 1);
        for _ in 0..20 {
            closing.get("/info").await.expect("an answer");
        }
        assert_eq!(opened.load(Ordering::SeqCst), 20);
        let absent = EngineClient::new(EngineAddress::Unix("/nowhere.sock".to_owned()), None);
        let fault = absent.get("/info").await.expect_err("nobody listens");
        assert!(
            fault.to_string().starts_with("cannot connect to the engine at unix:///nowhere.sock"),
            "{fault}"
        );
    }
}
