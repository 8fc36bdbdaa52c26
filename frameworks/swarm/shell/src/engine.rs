//! Engines: one client and one event subscription per agent whose engine the manager connects to.
//!
//! An engine is read once when it is connected and then followed by its events; an idle engine gets no requests.
//! Readers get the last [`Snapshot`]; what an engine is for placement goes to the machine as [`Input::Engine`].
//! Never here: a decision about a container.

mod client;
mod connect;
mod fault;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tepui_swarm::{EngineAddress, Input};
use tepui_types::AgentId;
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot};
use tokio::task::AbortHandle;

pub use client::{ANSWER_BYTES_MAX, CALL_TIMEOUT, EngineClient, message};
pub use fault::EngineFault;

use crate::tls::Tls;

/// Events of engines that a reader may be behind before it is cut off.
const EVENTS_QUEUE_MAX: usize = 10_000;
/// Readers that wait for a fresh list of one engine.
const REFRESH_QUEUE_MAX: usize = 1024;
/// Engines that are read at the same time: when the manager starts, all of them are to be read.
const READING_ENGINES_MAX: usize = 32;

/// An event as an engine sent it.
#[derive(Clone, Debug)]
pub struct EngineMessage {
    pub agent: AgentId,
    pub event: Value,
}

/// What an engine answered last to `GET /info`, `/version`, `/containers/json?all=1` and `/images/json`.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub info: Arc<Value>,
    pub version: Arc<Value>,
    /// As listed, of all states, also those that are not ours.
    pub containers: Arc<Vec<Value>>,
    /// When they were listed: the engine writes how long they run.
    pub listed: Option<std::time::Instant>,
    pub images: Arc<Vec<Value>>,
}

/// All engines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engines {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tls: Option<Tls>,
    inputs: tepui_runtime::Handle<Input>,
    events: broadcast::Sender<Arc<EngineMessage>>,
    reading: Semaphore,
    members: Mutex<BTreeMap<AgentId, Member>>,
}

#[derive(Debug)]
struct Member {
    client: EngineClient,
    snapshot: Option<Arc<Snapshot>>,
    refresh: mpsc::Sender<oneshot::Sender<()>>,
    watch: AbortHandle,
}

impl Engines {
    pub(crate) fn new(inputs: tepui_runtime::Handle<Input>, tls: Option<Tls>) -> Self {
        let (events, _) = broadcast::channel(EVENTS_QUEUE_MAX);
        let reading = Semaphore::new(READING_ENGINES_MAX);
        Self { shared: Arc::new(Shared { tls, inputs, events, reading, members: Mutex::default() }) }
    }

    pub fn client(&self, agent: &AgentId) -> Option<EngineClient> {
        self.members().get(agent).map(|member| member.client.clone())
    }

    /// The last snapshot of an engine, also if it is down now. None if it was never reached.
    pub fn snapshot(&self, agent: &AgentId) -> Option<Arc<Snapshot>> {
        self.members().get(agent)?.snapshot.clone()
    }

    /// Events of all engines from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<EngineMessage>> {
        self.shared.events.subscribe()
    }

    /// Returns when the snapshot of the engine is newer than this call, or the engine is down.
    pub async fn refresh(&self, agent: &AgentId) {
        let refresh = self.members().get(agent).map(|member| member.refresh.clone());
        let Some(refresh) = refresh else { return };
        let (done, is_done) = oneshot::channel();
        if refresh.send(done).await.is_ok() {
            let _ = is_done.await; // An error means that the engine is disconnected: there is nothing newer.
        }
    }

    /// Begins to follow the engine of an agent; the former connection, if any, is dropped.
    pub(crate) fn connect(&self, agent: AgentId, address: EngineAddress) {
        let client = EngineClient::new(address, self.shared.tls.clone());
        let (refresh, refreshes) = mpsc::channel(REFRESH_QUEUE_MAX);
        let watch = watch::Watch::new(self.clone(), agent.clone(), client.clone(), refreshes);
        let watch = tokio::spawn(watch.run()).abort_handle(); // It ends only by being aborted.
        let former = self.members().insert(agent, Member { client, snapshot: None, refresh, watch });
        if let Some(former) = former {
            former.watch.abort();
        }
    }

    pub(crate) fn disconnect(&self, agent: &AgentId) {
        if let Some(member) = self.members().remove(agent) {
            member.watch.abort();
        }
    }

    pub(crate) fn disconnect_all(&self) {
        for member in std::mem::take(&mut *self.members()).into_values() {
            member.watch.abort();
        }
    }

    fn publish(&self, agent: &AgentId, snapshot: Arc<Snapshot>) {
        if let Some(member) = self.members().get_mut(agent) {
            member.snapshot = Some(snapshot);
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentId, Member>> {
        self.shared.members.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests;
