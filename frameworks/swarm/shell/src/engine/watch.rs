//! Follows one engine: subscribes to its events, reads it once, and reads again what an event says has changed.
//!
//! Events are subscribed before the engine is read, so that nothing in between is missed. Events that come while the engine is
//! read are answered by one more read together. A lost subscription is the end of the engine's health until it is read again.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tepui_client::backoff::Backoff;
use tepui_client::random;
use tepui_swarm::{Engine, EngineEvent, Image, Input, Occupant, RES_TYPE};
use tepui_types::AgentId;
use tokio::sync::{SemaphorePermit, mpsc, oneshot};
use tracing::{debug, info, warn};

use super::{CALL_TIMEOUT, EngineClient, EngineFault, EngineMessage, Engines, Snapshot};
use crate::body;
use crate::version::API_VERSION;

const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// The longest event; labels of a container are part of it.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) struct Watch {
    engines: Engines,
    agent: AgentId,
    client: EngineClient,
    refreshes: mpsc::Receiver<oneshot::Sender<()>>,
    backoff: Backoff,
}

/// What has to be read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stale {
    info: bool,
    containers: bool,
    images: bool,
}

impl Watch {
    pub fn new(
        engines: Engines,
        agent: AgentId,
        client: EngineClient,
        refreshes: mpsc::Receiver<oneshot::Sender<()>>,
    ) -> Self {
        Self { engines, agent, client, refreshes, backoff: Backoff::new(RETRY_FIRST, RETRY_MAX) }
    }

    pub async fn run(mut self) {
        loop {
            let Err(fault) = self.follow().await;
            warn!(agent_id = %self.agent, error = %fault, "engine lost");
            self.send(EngineEvent::Down(fault.to_string())).await;
            while self.refreshes.try_recv().is_ok() {} // Dropped: there is nothing newer.
            let pause = self.backoff.next(random::number());
            let refused = async { while self.refreshes.recv().await.is_some() {} };
            tokio::select! {
                () = tokio::time::sleep(pause) => (),
                () = refused => (),
            }
        }
    }

    async fn follow(&mut self) -> Result<std::convert::Infallible, EngineFault> {
        let version = Arc::new(self.negotiate().await?);
        let mut events = self.subscribe().await?;
        let mut snapshot = Snapshot { version, ..Snapshot::default() };
        self.read(&mut snapshot, Stale { info: true, containers: true, images: true }).await?;
        info!(agent_id = %self.agent, address = %self.client.address(), "engine connected");
        self.backoff.reset();
        loop {
            let mut waiting = Vec::new();
            let mut stale = tokio::select! {
                event = events.next() => self.on_event(event?),
                Some(done) = self.refreshes.recv() => {
                    waiting.push(done);
                    Stale { containers: true, images: true, ..Stale::default() }
                }
            };
            while let Some(event) = events.buffered()? {
                stale.add(self.on_event(event));
            }
            while let Ok(done) = self.refreshes.try_recv() {
                waiting.push(done);
                stale.add(Stale { containers: true, images: true, ..Stale::default() });
            }
            if stale != Stale::default() {
                self.read(&mut snapshot, stale).await?;
            }
            for done in waiting {
                let _ = done.send(()); // The caller may have left.
            }
        }
    }

    /// Engines beyond the limit wait, from the first request on.
    async fn permit(&self) -> SemaphorePermit<'_> {
        self.engines.shared.reading.acquire().await.expect("the semaphore is never closed")
    }

    async fn negotiate(&self) -> Result<Value, EngineFault> {
        let _permit = self.permit().await;
        self.client.negotiate().await
    }

    async fn subscribe(&self) -> Result<Events, EngineFault> {
        let _permit = self.permit().await;
        let address = || self.client.address().to_string();
        let request = Request::builder().method(Method::GET).uri(own("/events")).body(body::empty());
        let request =
            request.map_err(|err| EngineFault::Broken { address: address(), why: err.to_string() })?;
        let answer = tokio::time::timeout(CALL_TIMEOUT, self.client.send(request));
        let answer = answer
            .await
            .unwrap_or_else(|_| Err(EngineFault::TimedOut { address: address(), limit: CALL_TIMEOUT }))?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            let message = super::message(&self.client.collect(answer.into_body()).await?);
            return Err(EngineFault::Rejected { address: address(), status, message });
        }
        Ok(Events { address: address(), body: answer.into_body(), buffer: BytesMut::new() })
    }

    /// Reads what is stale, publishes the snapshot and informs the machine.
    async fn read(&self, snapshot: &mut Snapshot, stale: Stale) -> Result<(), EngineFault> {
        let _permit = self.permit().await;
        if stale.info {
            snapshot.info = Arc::new(self.client.get(&own("/info")).await?);
        }
        if stale.containers {
            snapshot.listed = Some(std::time::Instant::now());
            snapshot.containers = Arc::new(list(self.client.get(&own("/containers/json?all=1")).await?));
        }
        if stale.images {
            snapshot.images = Arc::new(list(self.client.get(&own("/images/json")).await?));
        }
        let mut engine = Engine::from_info(&snapshot.info)
            .map_err(|why| EngineFault::Garbled { address: self.client.address().to_string(), why })?;
        if stale.info && engine.labels.contains_key(RES_TYPE) {
            warn!(agent_id = %self.agent, engine = engine.name, "label res-type of the engine is replaced by the type of its resources");
        }
        engine.occupants = snapshot.containers.iter().filter_map(Occupant::from_listed).collect();
        engine.images = snapshot.images.iter().filter_map(Image::from_listed).collect();
        self.engines.publish(&self.agent, Arc::new(snapshot.clone()));
        self.send(EngineEvent::Up(Arc::new(engine))).await;
        Ok(())
    }

    fn on_event(&self, event: Value) -> Stale {
        let stale = Stale::after(&event);
        debug!(agent_id = %self.agent, action = event["Action"].as_str(), ?stale, "engine event");
        // An error means that there is no reader of engine events.
        let _ = self.engines.shared.events.send(Arc::new(EngineMessage { agent: self.agent.clone(), event }));
        stale
    }

    async fn send(&self, event: EngineEvent) {
        // A machine that has ended has nothing to be told.
        let _ = self.engines.shared.inputs.send(Input::Engine { agent: self.agent.clone(), event }).await;
    }
}

impl Stale {
    fn after(event: &Value) -> Stale {
        let action = event["Action"].as_str().unwrap_or_default();
        let none = Stale::default();
        match event["Type"].as_str() {
            Some("container") => {
                let name = action.split(':').next().unwrap_or_default();
                let is_read_only = name.starts_with("exec_")
                    || matches!(
                        name,
                        "attach" | "resize" | "top" | "export" | "copy" | "archive-path" | "extract-to-dir"
                    );
                Stale { containers: !is_read_only, images: name == "commit", ..none }
            }
            Some("image") => Stale { images: true, ..none },
            Some("daemon") => Stale { info: true, ..none },
            Some(_) | None => none,
        }
    }

    fn add(&mut self, other: Stale) {
        self.info |= other.info;
        self.containers |= other.containers;
        self.images |= other.images;
    }
}

/// Read in the version of clients: newer ones lack members of lists and events that clients read.
fn own(path: &str) -> String {
    format!("/v{}{path}", API_VERSION.text)
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        _ => Vec::new(), // Engines write `null` for an empty list.
    }
}

/// JSON objects, one after the other, with or without white space between.
struct Events {
    address: String,
    body: Incoming,
    buffer: BytesMut,
}

impl Events {
    /// Cancel safe: bytes that were read stay in the buffer.
    async fn next(&mut self) -> Result<Value, EngineFault> {
        loop {
            if let Some(event) = self.buffered()? {
                return Ok(event);
            }
            let broken = |why: String| EngineFault::Broken { address: self.address.clone(), why };
            let chunk: Bytes = match self.body.frame().await {
                None => return Err(broken("the engine closed its event stream".to_owned())),
                Some(Err(err)) => return Err(broken(err.to_string())),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if self.buffer.len() + chunk.len() > EVENT_BYTES_MAX {
                return Err(EngineFault::TooLarge {
                    address: self.address.clone(),
                    bytes_max: EVENT_BYTES_MAX,
                });
            }
            self.buffer.extend_from_slice(&chunk);
        }
    }

    fn buffered(&mut self) -> Result<Option<Value>, EngineFault> {
        let mut values = serde_json::Deserializer::from_slice(&self.buffer).into_iter::<Value>();
        match values.next() {
            None => Ok(None),
            Some(Ok(event)) => {
                let read = values.byte_offset();
                let _ = self.buffer.split_to(read);
                Ok(Some(event))
            }
            Some(Err(err)) if err.is_eof() => Ok(None),
            Some(Err(err)) => {
                Err(EngineFault::Garbled { address: self.address.clone(), why: err.to_string() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_invalidate_cached_lists() {
        for (kind, action, expected) in [
            ("container", "start", (false, true, false)),
            ("container", "destroy", (false, true, false)),
            ("container", "health_status: healthy", (false, true, false)),
            ("container", "exec_create: ls", (false, false, false)),
            ("container", "attach", (false, false, false)),
            ("container", "commit", (false, true, true)),
            ("image", "pull", (false, false, true)),
            ("daemon", "reload", (true, false, false)),
            ("network", "connect", (false, false, false)),
        ] {
            let stale = Stale::after(&json!({"Type": kind, "Action": action}));
            assert_eq!((stale.info, stale.containers, stale.images), expected, "{kind} {action}");
        }
    }
}
