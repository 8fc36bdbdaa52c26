//! Rows of `docker ps`, kept per list of an engine, and which lists a client's own calls have made old.
//!
//! Lists are followed by events of the engines. A call that changed something returns before its event arrives, so the next
//! reader waits for a newer list of that engine: a client always sees what its own calls did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use serde_json::Value;
use tepui_swarm::{Agent, View};
use tepui_types::AgentId;

use super::Api;
use super::row::{Place, Row};
use super::targets::reachable_host;

#[derive(Debug, Default)]
pub struct Rows {
    touched: Mutex<BTreeSet<AgentId>>,
    made: Mutex<BTreeMap<AgentId, EngineRows>>,
}

/// The rows of one list of an engine, by the id of the container.
#[derive(Clone, Debug)]
pub struct EngineRows {
    list: Arc<Vec<Value>>,
    name: String,
    host: String,
    pub rows: Arc<BTreeMap<String, Row>>,
    pub listed: Instant,
}

impl Rows {
    /// Something on the engine has changed by a call of a client.
    pub fn touch(&self, agent: &AgentId) {
        lock(&self.touched).insert(agent.clone());
    }

    fn take_touched(&self) -> BTreeSet<AgentId> {
        std::mem::take(&mut *lock(&self.touched))
    }
}

impl Api {
    pub fn touch(&self, agent: &AgentId) {
        self.shared.rows.touch(agent);
    }

    /// Waits until the lists show what calls of clients have done.
    pub async fn settle(&self) {
        let mut refreshes = tokio::task::JoinSet::new();
        let mut pending = Retouch { api: self, agents: self.shared.rows.take_touched() };
        for agent in pending.agents.clone() {
            let handle = self.handle().clone();
            refreshes.spawn(async move { handle.refresh(&agent).await });
        }
        while refreshes.join_next().await.is_some() {}
        pending.agents.clear();
    }

    /// The rows of the engine's last list; none if it was never reached.
    pub fn rows_of(&self, id: &AgentId, agent: &Agent) -> Option<EngineRows> {
        let snapshot = self.handle().snapshot(id)?;
        let (name, host) = (agent.name(), reachable_host(agent).to_owned());
        let known = lock(&self.shared.rows.made).get(id).cloned();
        let is_current = |it: &EngineRows| {
            Arc::ptr_eq(&it.list, &snapshot.containers) && it.name == name && it.host == host
        };
        if let Some(known) = known.filter(is_current) {
            return Some(known);
        }
        let place = Place { engine: &name, ip: &host };
        let rows = snapshot.containers.iter().filter_map(|listed| Row::of_listed(listed, &place));
        let rows = rows.filter(|row| row.labels.contains_key(tepui_swarm::TASK_LABEL));
        let rows = Arc::new(rows.map(|row| (row.id.clone(), row)).collect());
        let listed = snapshot.listed.unwrap_or_else(Instant::now);
        let made = EngineRows { list: snapshot.containers.clone(), name, host, rows, listed };
        lock(&self.shared.rows.made).insert(id.clone(), made.clone());
        Some(made)
    }

    /// Forgets rows of engines that left.
    pub fn forget_rows(&self, view: &View) {
        lock(&self.shared.rows.made).retain(|agent, _| view.agents.contains_key(agent));
    }
}

/// A reader that leaves before the lists are new must not make others believe that they are.
struct Retouch<'a> {
    api: &'a Api,
    agents: BTreeSet<AgentId>,
}

impl Drop for Retouch<'_> {
    fn drop(&mut self) {
        for agent in &self.agents {
            self.api.touch(agent);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}
