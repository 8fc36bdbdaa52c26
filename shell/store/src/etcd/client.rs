//! Requests to etcd: members are tried in turn, starting with the last one that answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

use super::{EtcdAddress, Login};

/// A member that does not accept a connection in this time is passed over.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The largest answer that is read: a page of records.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How long one member may take to check a password, which is slow on purpose.
const LOGIN_PATIENCE: Duration = Duration::from_secs(5);

/// The largest answer to a name and a password.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// The reason why a request to etcd failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFault {
    /// No member answered, or there is no quorum. The request may have been executed.
    #[error("etcd is not available: {0}")]
    Unavailable(String),
    /// It answered and refused.
    #[error("etcd rejected the request: {0}")]
    Refused(String),
}

/// The etcd behind an address. A cheap clone.
#[derive(Clone, Debug)]
pub struct Etcd {
    address: Arc<EtcdAddress>,
    http: Arc<Mutex<Http>>,
    /// Which member answered last.
    first: Arc<AtomicUsize>,
    /// How long one member may take.
    patience: Duration,
    /// The token of the last login.
    token: Arc<Mutex<Option<HeaderValue>>>,
}

/// Connections to members and their trust anchors.
#[derive(Debug)]
struct Http {
    client: HttpClient,
    config: Arc<ClientConfig>,
    tls: Option<EtcdTls>,
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Supplies the TLS configuration before every request, so that renewed certificates take effect. Cheap to clone.
#[derive(Clone)]
pub struct EtcdTls(Arc<dyn Fn() -> Arc<ClientConfig> + Send + Sync>);

impl EtcdTls {
    /// `config` returns the same `Arc` until the configuration changes.
    pub fn new(config: impl Fn() -> Arc<ClientConfig> + Send + Sync + 'static) -> Self {
        Self(Arc::new(config))
    }
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdTls").finish_non_exhaustive()
    }
}

impl Http {
    fn new(tls: Option<EtcdTls>) -> Self {
        let config = tls.as_ref().map_or_else(empty_trust, |tls| (tls.0)());
        Self { client: client(&config), config, tls }
    }

    /// Connections that show and trust the newest certificates.
    fn newest(&mut self) -> HttpClient {
        if let Some(tls) = &self.tls {
            let config = (tls.0)();
            if !Arc::ptr_eq(&config, &self.config) {
                (self.client, self.config) = (client(&config), config);
            }
        }
        self.client.clone()
    }
}

fn client(config: &Arc<ClientConfig>) -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    // The scheme of members, https:// or http://, is that of the address.
    connector.enforce_http(false);
    let secured = HttpsConnectorBuilder::new()
        .with_tls_config(ClientConfig::clone(config))
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Client::builder(TokioExecutor::new()).build(secured)
}

impl Etcd {
    /// Must be used inside a tokio runtime. `tls` is required for an address with TLS.
    pub fn new(address: EtcdAddress, patience: Duration, tls: Option<EtcdTls>) -> Self {
        let http = Arc::new(Mutex::new(Http::new(tls)));
        Self { address: Arc::new(address), http, first: Arc::default(), patience, token: Arc::default() }
    }

    pub fn address(&self) -> &EtcdAddress {
        &self.address
    }

    /// Tries each member once, starting with the one that answered last.
    pub(super) async fn call(&self, path: &str, body: &Value) -> Result<Value, EtcdFault> {
        let answer = self.open(path, body).await?;
        let reading = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let whole = tokio::time::timeout(self.patience, reading).await;
        let whole = whole.map_err(|_| unavailable("the answer does not come"))?.map_err(unavailable)?;
        serde_json::from_slice(&whole.to_bytes()).map_err(unavailable)
    }

    /// As `call`, for a streamed answer. Logs in and retries once if etcd requires authentication.
    pub(super) async fn open(&self, path: &str, body: &Value) -> Result<http::Response<Incoming>, EtcdFault> {
        let body = Bytes::from(body.to_string());
        match (self.open_once(path, body.clone(), self.patience).await, &self.address.login) {
            (Err(EtcdFault::Refused(words)), Some(login)) if requires_login(&words) => {
                self.log_in(login).await?;
                self.open_once(path, body, self.patience).await
            }
            (outcome, _) => outcome,
        }
    }

    /// Gets a new token.
    async fn log_in(&self, login: &Login) -> Result<(), EtcdFault> {
        self.set_token(None);
        let body = json!({"name": login.user, "password": login.password}).to_string();
        let answer = self.open_once("auth/authenticate", body.into(), LOGIN_PATIENCE).await?.into_body();
        let read = Limited::new(answer, TOKEN_BYTES_MAX).collect();
        let whole = tokio::time::timeout(LOGIN_PATIENCE, read)
            .await
            .map_err(|_| unavailable("the token is missing"))?;
        let answer: Value =
            serde_json::from_slice(&whole.map_err(unavailable)?.to_bytes()).map_err(unavailable)?;
        let token = answer["token"].as_str().and_then(|token| HeaderValue::from_str(token).ok());
        let mut token = token.ok_or_else(|| unavailable("the answer is not a token"))?;
        token.set_sensitive(true);
        self.set_token(Some(token));
        Ok(())
    }

    fn set_token(&self, token: Option<HeaderValue>) {
        *self.token.lock().expect("no code panics while it holds this lock") = token;
    }

    async fn open_once(
        &self,
        path: &str,
        body: Bytes,
        patience: Duration,
    ) -> Result<http::Response<Incoming>, EtcdFault> {
        let members = self.address.endpoints.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut last = unavailable("it has no address");
        for member in (0..members).map(|step| (first + step) % members) {
            match self.request(member, path, body.clone(), patience).await {
                Err(fault @ EtcdFault::Unavailable(_)) => last = fault,
                outcome => {
                    self.first.store(member, Ordering::Relaxed);
                    return outcome;
                }
            }
        }
        Err(last)
    }

    async fn request(
        &self,
        member: usize,
        path: &str,
        body: Bytes,
        patience: Duration,
    ) -> Result<http::Response<Incoming>, EtcdFault> {
        let endpoint = &self.address.endpoints[member];
        let scheme = if self.address.is_secure { "https" } else { "http" };
        let mut request = http::Request::post(format!("{scheme}://{endpoint}/v3/{path}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            // Without this header etcd authenticates the gateway's own certificate.
            .header(http::header::ACCEPT, "application/json");
        if let Some(token) = &*self.token.lock().expect("no code panics while it holds this lock") {
            request = request.header(http::header::AUTHORIZATION, token);
        }
        let request = request.body(Full::new(body)).map_err(|err| EtcdFault::Refused(err.to_string()))?;
        let http = self.http.lock().expect("no code panics while it holds this lock").newest();
        let answer = tokio::time::timeout(patience, http.request(request)).await;
        let answer = answer.map_err(|_| unavailable(format!("{endpoint} does not answer")))?;
        let answer = answer.map_err(|err| unavailable(format!("{endpoint}: {}", causes(&err))))?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(endpoint, answer).await),
        }
    }
}

/// For an address without TLS, whose connector verifies no certificate.
fn empty_trust() -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("the provider has all of them");
    Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Whether a rejection means that the login is missing or has expired.
fn requires_login(words: &str) -> bool {
    ["user name is empty", "invalid auth token", "revision of auth store is old"]
        .iter()
        .any(|said| words.contains(said))
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
        Err(_) => String::new(), // The status is sufficient.
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

/// The end of the key range with this prefix.
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
