//! Requests to etcd: one after the other member is tried, the one that answered stays the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::EtcdAddress;

/// A member that does not accept a connection in this time is passed over.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The largest answer that is read: a page of records.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why etcd did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFault {
    /// Nobody answered, or who answered has no quorum. Whether the request was carried out is not known.
    #[error("etcd is not available: {0}")]
    Unavailable(String),
    /// It answered and refused.
    #[error("etcd refuses: {0}")]
    Refused(String),
}

/// The etcd behind an address. A cheap clone.
#[derive(Clone, Debug)]
pub struct Etcd {
    address: Arc<EtcdAddress>,
    http: Client<HttpConnector, Full<Bytes>>,
    /// Which member answered last.
    first: Arc<AtomicUsize>,
    /// How long one member may take.
    patience: Duration,
}

impl Etcd {
    /// Must be used inside a tokio runtime.
    pub fn new(address: EtcdAddress, patience: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Self { address: Arc::new(address), http, first: Arc::default(), patience }
    }

    pub fn address(&self) -> &EtcdAddress {
        &self.address
    }

    /// Asks each member once, beginning with the one that answered last.
    pub(super) async fn call(&self, path: &str, body: &Value) -> Result<Value, EtcdFault> {
        let answer = self.open(path, body).await?;
        let reading = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let whole = tokio::time::timeout(self.patience, reading).await;
        let whole = whole.map_err(|_| unavailable("the answer does not come"))?.map_err(unavailable)?;
        serde_json::from_slice(&whole.to_bytes()).map_err(unavailable)
    }

    /// As `call`, for an answer that is a stream.
    pub(super) async fn open(&self, path: &str, body: &Value) -> Result<http::Response<Incoming>, EtcdFault> {
        let body = Bytes::from(body.to_string());
        let members = self.address.endpoints.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut last = unavailable("it has no address");
        for member in (0..members).map(|step| (first + step) % members) {
            match self.ask(member, path, body.clone()).await {
                Err(fault @ EtcdFault::Unavailable(_)) => last = fault,
                outcome => {
                    self.first.store(member, Ordering::Relaxed);
                    return outcome;
                }
            }
        }
        Err(last)
    }

    async fn ask(
        &self,
        member: usize,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>, EtcdFault> {
        let endpoint = &self.address.endpoints[member];
        let request = http::Request::post(format!("http://{endpoint}/v3/{path}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|err| EtcdFault::Refused(err.to_string()))?;
        let answer = tokio::time::timeout(self.patience, self.http.request(request)).await;
        let answer = answer.map_err(|_| unavailable(format!("{endpoint} does not answer")))?;
        let answer = answer.map_err(|err| unavailable(format!("{endpoint}: {}", causes(&err))))?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(endpoint, answer).await),
        }
    }
}

/// Statuses of the gateway that mean "not now": no leader, no quorum, too busy, out of space.
fn is_passing(status: u16, words: &str) -> bool {
    matches!(status, 408 | 429 | 502 | 503 | 504)
        || words.contains("timed out")
        || words.contains("no leader")
}

async fn refusal(endpoint: &str, answer: http::Response<Incoming>) -> EtcdFault {
    let status = answer.status().as_u16();
    let words = match Limited::new(answer.into_body(), 64 * 1024).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(), // The status says enough.
    };
    match is_passing(status, &words) {
        true => unavailable(format!("{endpoint}: {status} {words}")),
        false => EtcdFault::Refused(format!("{endpoint}: {status} {words}")),
    }
}

pub(super) fn unavailable(why: impl ToString) -> EtcdFault {
    EtcdFault::Unavailable(why.to_string())
}

fn causes(err: &dyn std::error::Error) -> String {
    let rest = std::iter::successors(err.source(), |err| err.source());
    rest.fold(err.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Bytes as the gateway writes them.
pub(super) fn bytes(value: &[u8]) -> Value {
    json!(BASE64_STANDARD.encode(value))
}

/// Bytes of an answer; absent ones are empty.
pub(super) fn read_bytes(value: &Value) -> Result<Vec<u8>, EtcdFault> {
    BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).map_err(unavailable)
}

/// A number of an answer, which the gateway writes as text; an absent one is 0.
pub(super) fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_i64()).unwrap_or(0)
}

/// The end of the keys that begin with `prefix`.
pub(super) fn range_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}
