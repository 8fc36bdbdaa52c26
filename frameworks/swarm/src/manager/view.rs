//! The read side: a snapshot that readers render from, without waiting for the manager.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use rpds::RedBlackTreeMapSync;
use tepui_types::{AgentId, TaskId};

use super::Container;
use crate::agent::Agent;

pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// Characters of a short id.
const SHORT_ID: usize = 12;

/// Cheap to clone: agents and containers are shared with the manager.
#[derive(Clone, Debug)]
pub struct View {
    pub framework_id: Option<String>,
    pub connected: bool,
    pub agents: Map<AgentId, Arc<Agent>>,
    pub containers: Map<TaskId, Arc<Container>>,
    pub(super) by_name: Map<String, TaskId>,
    /// Of those that their engine has created.
    pub(super) by_id: Map<String, TaskId>,
    /// Creates that wait for a node.
    pub pending: usize,
}

impl View {
    /// A container by its id, its name (also as `engine/name`) or the beginning of its id, as far as that is unambiguous.
    pub fn find(&self, named: &str) -> Option<&Arc<Container>> {
        let named = named.trim_start_matches('/');
        if named.is_empty() {
            return None;
        }
        let from = (Bound::Included(named), Bound::Unbounded);
        let mut begins = self.by_id.range::<str, _>(from).take_while(|(id, _)| id.starts_with(named));
        let (first, is_only) = (begins.next(), begins.next().is_none());
        let exact = first.filter(|(id, _)| id.len() == named.len() || named.len() == SHORT_ID);
        let found = |task: &TaskId| self.containers.get(task);
        exact
            .and_then(|(_, task)| found(task))
            .or_else(|| self.find_named(named))
            .or_else(|| first.filter(|_| is_only).and_then(|(_, task)| found(task)))
    }

    fn find_named(&self, named: &str) -> Option<&Arc<Container>> {
        let by_name = |name: &str| {
            let container = self.containers.get(self.by_name.get(name)?)?;
            Some(container).filter(|it| !it.occupant.id.is_empty())
        };
        by_name(named).or_else(|| {
            let (prefix, name) = named.split_once('/')?;
            let container = by_name(name)?;
            let engine = self.agent(container)?.engine()?;
            Some(container).filter(|_| prefix == engine.name || prefix == engine.id)
        })
    }

    pub fn agent(&self, container: &Container) -> Option<&Arc<Agent>> {
        self.agents.get(&AgentId::new(&*container.agent))
    }

    /// The containers of each agent, in the order of their tasks.
    pub fn by_agent(&self) -> BTreeMap<&str, Vec<&Arc<Container>>> {
        let mut all: BTreeMap<&str, Vec<&Arc<Container>>> = BTreeMap::new();
        for container in self.containers.values() {
            all.entry(&container.agent).or_default().push(container);
        }
        all
    }

    /// Containers on an agent, in the order of their tasks.
    pub fn on_agent(&self, agent: &AgentId) -> Vec<&Arc<Container>> {
        self.containers.values().filter(|it| it.agent == agent.as_str()).collect()
    }
}
