//! Engines that a call goes to: that of a container, those that a name belongs to, or all that are healthy.

use std::future::Future;
use std::sync::Arc;

use tepui_swarm::{Agent, Container, EngineAddress, View};
use tepui_types::AgentId;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Api;
use super::error::ApiError;
use crate::engine::EngineClient;

/// Engines that one call asks at the same time.
const FAN_OUT_MAX: usize = 32;

/// An engine that can be asked.
#[derive(Clone, Debug)]
pub struct Target {
    pub agent: AgentId,
    pub client: EngineClient,
    /// The name of the engine.
    pub name: String,
    /// The id that the engine has for itself.
    pub engine_id: String,
}

impl Target {
    /// `node-0/x`: the part behind the name of this engine.
    pub fn own_part<'n>(&self, named: &'n str) -> Option<&'n str> {
        let (engine, name) = named.split_once('/')?;
        (engine == self.name || engine == self.engine_id).then_some(name)
    }
}

/// A container of ours and where it is.
#[derive(Clone, Debug)]
pub struct Found {
    pub container: Arc<Container>,
    pub target: Target,
}

impl Api {
    /// The container that a path names, on an engine that is healthy.
    pub fn find(&self, named: &str) -> Result<Found, ApiError> {
        let view = self.handle().view();
        let container = find_container(&view, named)?;
        let (agent, id) = (view.agent(&container), AgentId::new(&*container.agent));
        let target = agent.filter(|agent| agent.is_healthy()).and_then(|agent| self.target(&id, agent));
        let target = target.ok_or_else(|| {
            let node = agent.map_or_else(|| container.agent.clone(), |agent| agent.name());
            ApiError::failed(format!("Container {named} running on unhealthy node {node}"))
        })?;
        Ok(Found { container, target })
    }

    /// All healthy engines, by name.
    pub fn engines(&self) -> Vec<Target> {
        let view = self.handle().view();
        let healthy = view.agents.iter().filter(|(_, agent)| agent.is_healthy());
        let mut targets: Vec<Target> = healthy.filter_map(|(id, agent)| self.target(id, agent)).collect();
        targets.sort_by(|a, b| (&a.name, &a.agent).cmp(&(&b.name, &b.agent)));
        targets
    }

    /// All healthy engines; an error if there is none.
    pub fn some_engines(&self) -> Result<Vec<Target>, ApiError> {
        let targets = self.engines();
        match targets.is_empty() {
            true => Err(ApiError::failed("No healthy node available in the cluster")),
            false => Ok(targets),
        }
    }

    fn target(&self, id: &AgentId, agent: &Agent) -> Option<Target> {
        let engine = agent.engine()?;
        let client = self.handle().engine(id)?;
        Some(Target { agent: id.clone(), client, name: engine.name.clone(), engine_id: engine.id.clone() })
    }
}

/// Asks engines at the same time, a limited number of them; answers in the order of the engines. Dropping the future cancels.
pub async fn fan_out<T, F>(targets: Vec<Target>, request: impl Fn(Target) -> F) -> Vec<(Target, T)>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(FAN_OUT_MAX));
    let mut asked = JoinSet::new();
    for (place, target) in targets.into_iter().enumerate() {
        let (room, answer) = (room.clone(), request(target.clone()));
        asked.spawn(async move {
            let _permit = room.acquire().await.expect("the semaphore is never closed");
            (place, target, answer.await)
        });
    }
    let mut answers: Vec<(usize, Target, T)> = Vec::with_capacity(asked.len());
    while let Some(answer) = asked.join_next().await {
        match answer {
            Ok(answer) => answers.push(answer),
            Err(error) => tracing::error!(%error, "request to an engine panicked"),
        }
    }
    answers.sort_by_key(|(place, ..)| *place);
    answers.into_iter().map(|(_, target, answer)| (target, answer)).collect()
}

/// By id, name, `engine/name` or the beginning of an id.
pub fn find_container(view: &View, named: &str) -> Result<Arc<Container>, ApiError> {
    if let Some(found) = view.find(named) {
        return Ok(found.clone());
    }
    let begins = |it: &&Arc<Container>| !named.is_empty() && it.occupant.id.starts_with(named);
    match view.containers.values().filter(begins).nth(1) {
        Some(_) => Err(ApiError::bad(format!("Multiple IDs found with provided prefix: {named}"))),
        None => Err(ApiError::not_found(format!("No such container: {named}"))),
    }
}

/// Where the ports of an engine's containers are reached.
pub fn reachable_host(agent: &Agent) -> &str {
    match &agent.address {
        EngineAddress::Tcp { host, .. } => host,
        EngineAddress::Unix(_) => &agent.hostname,
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// An engine that is not there.
    pub fn target(name: &str) -> Target {
        let address = EngineAddress::Unix("/nonexistent".to_owned());
        let client = EngineClient::new(address, None);
        Target { agent: AgentId::new(name), client, name: name.to_owned(), engine_id: format!("id-{name}") }
    }
}
