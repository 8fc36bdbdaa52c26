//! The link to the master: a POST with SUBSCRIBE, answered with `101`; then a stream of calls up and one of events down.
//!
//! The machine requests a link by its number and receives `LinkUp` once calls can be sent, then events, then one
//! `LinkDown` with the reason. There is one link at a time: a new request closes the old one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, LOCATION, UPGRADE};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tepui_core_agent::{Input, LinkId};
use tepui_http::auth::Credential;
use tepui_http::{
    Body, CALL_BYTES_MAX, Encoding, Outgoing, Receive, Receiving, StreamBody, StreamLimits, Tls, keep_alive,
};
use tepui_program::{AGENT_LINK_PROTOCOL, ProcessOptions};
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::{recordio, wire};
use tepui_runtime::Handle;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::AbortHandle;

use crate::target::{Targets, authority};

/// How long a master may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a master may be silent before others are asked whether it still leads. Pings come more often, by default.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Limit of a master's answer about the leader.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// What is read of a refusal, for the reason.
const REFUSAL_BYTES_MAX: usize = 1024;

/// Opens links and sends on the newest. Used by the effects only.
pub(crate) struct Links {
    handle: Handle<Input>,
    targets: Arc<Mutex<Targets>>,
    credential: Option<Credential>,
    tls: Option<Tls>,
    limits: StreamLimits,
    silence_max: Duration,
    runtime: runtime::Handle,
    current: Option<Current>,
}

struct Current {
    id: LinkId,
    outgoing: Outgoing,
    task: AbortHandle,
}

impl Links {
    pub fn new(
        handle: Handle<Input>,
        targets: Targets,
        credential: Option<Credential>,
        process: &ProcessOptions,
    ) -> Self {
        let (tls, limits) = (process.tls.clone(), process.streams);
        let (targets, runtime) = (Arc::new(Mutex::new(targets)), runtime::Handle::current());
        Self { handle, targets, credential, tls, limits, silence_max: SILENCE_MAX, runtime, current: None }
    }

    /// Opens a link; the one before is cut off.
    pub fn connect(&mut self, id: LinkId) {
        self.current = None;
        let (outgoing, calls) = Outgoing::new(self.limits);
        let (credential, tls) = (self.credential.clone(), self.tls.clone());
        let (handle, targets) = (self.handle.clone(), self.targets.clone());
        let (received_at, silence_max) = (Arc::new(Mutex::new(Instant::now())), self.silence_max);
        let link = Link { id, handle, targets, credential, tls, received_at, silence_max };
        // Every end is reported as LinkDown; nothing in it can panic.
        let task = self.runtime.spawn(link.run(calls)).abort_handle();
        self.current = Some(Current { id, outgoing, task });
    }

    /// Sends a call; dropped if the link is not the newest.
    pub fn send(&mut self, id: LinkId, call: &link::Call) {
        let Some(current) = self.current.as_ref().filter(|current| current.id == id) else { return };
        if !current.outgoing.push(call) {
            tracing::warn!("the master reads too slowly, dropping the link");
            self.current = None;
            let (handle, reason) = (self.handle.clone(), "the master reads too slowly".to_owned());
            // Fails only if the state machine has terminated, which needs no link.
            self.runtime.spawn(async move { handle.send(Input::LinkDown { link: id, reason }).await });
        }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Link {
    id: LinkId,
    handle: Handle<Input>,
    targets: Arc<Mutex<Targets>>,
    credential: Option<Credential>,
    tls: Option<Tls>,
    /// When something came last.
    received_at: Arc<Mutex<Instant>>,
    silence_max: Duration,
}

/// A connection, secured or not.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

impl Link {
    async fn run(self, calls: StreamBody) {
        let next = self.targets().take();
        let reason = match next.resolve().await {
            Ok(target) => {
                let reason = tokio::select! {
                    held = self.hold(&target.address, calls) => match held {
                        Ok(never) => match never {},
                        Err(reason) => reason,
                    },
                    () = target.replaced() => "another master leads".to_owned(),
                    () = self.deserted(&target.address) => "it is silent, and another master leads".to_owned(),
                };
                format!("{}: {reason}", target.address)
            }
            Err(reason) => reason,
        };
        tracing::info!(reason, "link with the master is down");
        // Fails only if the state machine has terminated.
        let _ = self.handle.send(Input::LinkDown { link: self.id, reason }).await;
    }

    /// Opens the link and passes events on until it ends, for the reason returned.
    async fn hold(&self, target: &str, calls: StreamBody) -> Result<std::convert::Infallible, String> {
        let stream = self.dial(target).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
        // Ends with the connection, whose errors come out of the request and the body as well.
        let _driver = AbortOnDrop(tokio::spawn(connection.with_upgrades()).abort_handle());
        let mut request = http::Request::post("/api/v1/agent")
            .header(HOST, target)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, AGENT_LINK_PROTOCOL)
            .header(CONTENT_TYPE, Encoding::Protobuf.name());
        if let Some(credential) = &self.credential {
            request = request.header(AUTHORIZATION, credential.header());
        }
        self.handle.send(Input::LinkUp { link: self.id }).await.map_err(text)?;
        let subscribe = calls.next().await.ok_or("the link was replaced")?.map_err(text)?;
        let request = request.body(Body::Bytes(subscribe)).map_err(text)?;
        let response = sender.send_request(request).await.map_err(text)?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => (),
            StatusCode::TEMPORARY_REDIRECT => return Err(self.redirected(&response)),
            status => return Err(format!("{status}: {}", refusal(response.into_body()).await)),
        }
        self.targets().keep(target);
        let stream = TokioIo::new(hyper::upgrade::on(response).await.map_err(text)?);
        tepui_http::Link { outgoing: calls, receiver: Box::new(self.events()) }.run(stream).await?;
        Err("the master closed the link".to_owned())
    }

    fn events(&self) -> Events {
        let (handle, received_at) = (self.handle.clone(), self.received_at.clone());
        Events { id: self.id, handle, received_at, decoder: recordio::Decoder::new(CALL_BYTES_MAX) }
    }

    async fn dial(&self, target: &str) -> Result<Box<dyn Wire>, String> {
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await;
        let stream = connecting.map_err(|_| "no answer")?.map_err(text)?;
        keep_alive(&stream).map_err(text)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
        let secured = tokio::time::timeout(CONNECT_TIMEOUT, tls.connect(host, stream)).await;
        Ok(Box::new(secured.map_err(|_| "TLS handshake timed out")?.map_err(text)?))
    }

    /// Ends when this master does not answer any more and another configured one knows a leader that does.
    async fn deserted(&self, target: &str) {
        let named = self.targets().named().to_vec();
        let others: Vec<String> = named.into_iter().filter(|other| other != target).collect();
        if others.is_empty() {
            return std::future::pending().await;
        }
        loop {
            let silent_at =
                *self.received_at.lock().expect("no code panics while it holds this lock") + self.silence_max;
            if silent_at > Instant::now() {
                tokio::time::sleep_until(silent_at.into()).await;
                continue;
            }
            if self.find_leader(target).await.is_err() {
                for other in &others {
                    if let Ok(Some(leader)) = self.find_leader(other).await
                        && leader != target
                        && self.find_leader(&leader).await.is_ok()
                    {
                        return self.targets().lead(leader);
                    }
                }
            }
            tokio::time::sleep(self.silence_max).await;
        }
    }

    /// The leader named by a master; an error if it does not answer at all.
    async fn find_leader(&self, master: &str) -> Result<Option<String>, String> {
        let asking = async {
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(self.dial(master).await?)).await.map_err(text)?;
            let _driver = AbortOnDrop(tokio::spawn(connection).abort_handle());
            let request = http::Request::get("/redirect").header(HOST, master).body(Body::Empty);
            let response = sender.send_request(request.map_err(text)?).await.map_err(text)?;
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            Ok(location.and_then(authority).map(str::to_owned))
        };
        tokio::time::timeout(ASK_TIMEOUT, asking).await.map_err(text)?
    }

    fn redirected(&self, response: &http::Response<Incoming>) -> String {
        let location =
            response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match self.targets().redirect(location) {
            true => format!("the leading master is at {location}"),
            false => format!("redirected to {location:?}, which is not a valid address"),
        }
    }

    fn targets(&self) -> std::sync::MutexGuard<'_, Targets> {
        self.targets.lock().expect("no code panics while it holds this lock")
    }
}

/// Passes on what a master sends.
#[derive(Debug)]
struct Events {
    id: LinkId,
    handle: Handle<Input>,
    received_at: Arc<Mutex<Instant>>,
    decoder: recordio::Decoder,
}

impl Receive for Events {
    fn receive(&mut self, chunk: Bytes) -> Receiving<'_> {
        Box::pin(self.take(chunk))
    }
}

impl Events {
    async fn take(&mut self, chunk: Bytes) -> Result<(), String> {
        *self.received_at.lock().expect("no code panics while it holds this lock") = Instant::now();
        self.decoder.push(&chunk);
        let mut inputs = Vec::new();
        let outcome = self.decode(&mut inputs);
        // Also those before a record that is no event.
        self.handle.send_all(inputs).await.map_err(text)?;
        outcome
    }

    fn decode(&mut self, inputs: &mut Vec<Input>) -> Result<(), String> {
        for record in self.decoder.by_ref() {
            let record = record.map_err(text)?;
            let event: link::Event = wire::decode(&record, CALL_BYTES_MAX).map_err(text)?;
            inputs.push(Input::LinkEvent { link: self.id, event: Box::new(event) });
        }
        Ok(())
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The beginning of a refusal's text.
async fn refusal(mut body: Incoming) -> String {
    let mut words: Vec<u8> = Vec::new();
    while words.len() < REFUSAL_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        words.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
    }
    words.truncate(REFUSAL_BYTES_MAX);
    String::from_utf8_lossy(&words).into_owned()
}

fn text(err: impl std::fmt::Display) -> String {
    err.to_string()
}

#[cfg(test)]
mod tests;
