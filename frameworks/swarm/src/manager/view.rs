//! The read side: a snapshot that readers render from, without waiting for the manager.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::RedBlackTreeMapSync;
use tepui_types::{AgentId, TaskId};

use super::Container;
use crate::agent::Agent;

pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// Cheap to clone: agents and containers are shared with the manager.
#[derive(Clone, Debug)]
pub struct View {
    pub framework_id: Option<String>,
    pub connected: bool,
    pub agents: Map<AgentId, Arc<Agent>>,
    pub containers: Map<TaskId, Arc<Container>>,
    /// Creates that wait for a node.
    pub pending: usize,
}

impl View {
    /// A container by its id, its name (also as `engine/name`) or the beginning of its id, as far as that is unambiguous.
    pub fn find(&self, named: &str) -> Option<&Arc<Container>> {
        let named = named.trim_start_matches('/');
        let known = || self.containers.values().filter(|it| !it.occupant.id.is_empty());
        let is_exact =
            |it: &&Arc<Container>| it.occupant.id == named || it.occupant.id.get(..12) == Some(named);
        known().find(is_exact).or_else(|| only(known().filter(|it| self.is_named(it, named)))).or_else(|| {
            let begins = |it: &&Arc<Container>| !named.is_empty() && it.occupant.id.starts_with(named);
            only(known().filter(begins))
        })
    }

    fn is_named(&self, container: &Container, named: &str) -> bool {
        let agent = self.agents.get(&AgentId::new(&*container.agent));
        let engine = agent.and_then(|agent| agent.engine());
        let with_engine = named.split_once('/').filter(|(prefix, _)| {
            engine.is_some_and(|engine| *prefix == engine.name || *prefix == engine.id)
        });
        container.occupant.name == with_engine.map_or(named, |(_, name)| name)
    }

    pub fn agent(&self, container: &Container) -> Option<&Arc<Agent>> {
        self.agents.get(&AgentId::new(&*container.agent))
    }

    /// Containers on an agent, in the order of their tasks.
    pub fn on_agent(&self, agent: &AgentId) -> Vec<&Arc<Container>> {
        self.containers.values().filter(|it| it.agent == agent.as_str()).collect()
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
