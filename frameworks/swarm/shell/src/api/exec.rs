//! Commands in running containers: which engine has which.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use http::{Method, Response, StatusCode};
use tepui_types::AgentId;

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::request;
use super::targets::{Target, fan_out};
use crate::body::{self, Body};

/// Commands whose engine is stored. An older one is looked up at every engine.
const EXECS_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub struct Execs {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    agents: HashMap<String, AgentId>,
    /// Oldest first.
    order: VecDeque<String>,
}

impl Execs {
    pub fn insert(&self, id: String, agent: AgentId) {
        let mut known = self.known.lock().expect("no code panics while it holds this lock");
        if known.agents.insert(id.clone(), agent).is_none() {
            known.order.push_back(id);
        }
        while known.order.len() > EXECS_MAX {
            if let Some(oldest) = known.order.pop_front() {
                known.agents.remove(&oldest);
            }
        }
    }

    fn agent(&self, id: &str) -> Option<AgentId> {
        self.known.lock().expect("no code panics while it holds this lock").agents.get(id).cloned()
    }
}

impl Api {
    pub async fn exec_start(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let target = self.exec_target(&call).await?;
        let path = call.matched.engine_path("exec", &call.matched.name, call.raw_query());
        self.tunnel(call, &target, &path, || ()).await
    }

    pub async fn exec_read(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let target = self.exec_target(&call).await?;
        let path = call.matched.engine_path("exec", &call.matched.name, call.raw_query());
        self.forward(call, &target, &path).await
    }

    /// Remembered from its creation; otherwise, for instance after a restart of the manager, the engine that has it.
    async fn exec_target(&self, call: &Call) -> Result<Target, ApiError> {
        let id = &call.matched.name;
        let engines = self.engines();
        if let Some(agent) = self.shared.execs.agent(id) {
            let target = engines.into_iter().find(|target| target.agent == agent);
            return target.ok_or_else(|| ApiError::failed(format!("Exec {id} is on an unhealthy node")));
        }
        let path = format!("{}/exec/{}/json", call.matched.version, super::route::escape(id));
        let answers = fan_out(engines, |target| {
            let request = request(Method::GET, &path, http::HeaderMap::new(), body::empty());
            async move { Ok::<_, ApiError>(target.client.call(request?).await?.status()) }
        })
        .await;
        let found = answers.into_iter().find(|(_, status)| status.as_ref().is_ok_and(StatusCode::is_success));
        let (target, _) = found.ok_or_else(|| ApiError::not_found(format!("No such exec instance: {id}")))?;
        self.shared.execs.insert(id.clone(), target.agent.clone());
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_exec_ids_are_evicted() {
        let execs = Execs::default();
        for number in 0..=EXECS_MAX {
            execs.insert(number.to_string(), AgentId::new("a"));
        }
        execs.insert("1".to_owned(), AgentId::new("b"));
        assert_eq!(execs.agent("0"), None);
        assert_eq!(execs.agent("1"), Some(AgentId::new("b")));
        assert_eq!(execs.agent(&EXECS_MAX.to_string()), Some(AgentId::new("a")));
    }
}
