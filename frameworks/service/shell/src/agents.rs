//! Facts about the agents of the cluster that offers do not carry: totals, isolators, volume drivers.
//!
//! Asked of the master, and of agents if the service has external volumes, while there is work. Optional knowledge: an agent
//! that does not answer is not excluded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tepui_client::operator::Client;
use tepui_client::{Credential, Endpoint};
use tepui_proto::mesos::v1::{self as pb, master};
use tepui_resources::Resources;
use tepui_service::scheduler::{AgentFacts, Input, View};
use tepui_types::AgentId;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tracing::debug;

/// Between two reads while there is work.
const READ_INTERVAL: Duration = Duration::from_secs(10);
/// How long what an agent said of its isolators and drivers counts.
const DRIVERS_AGE_MAX: Duration = Duration::from_secs(20);
/// Agents that are asked at the same time.
const QUERIES_MAX: usize = 16;
const FEEDBACK: pb::agent_info::capability::Type = pb::agent_info::capability::Type::AGENT_OPERATION_FEEDBACK;
const COMPLETE: &str = "COMPLETE";

/// Isolators and volume drivers of an agent, as far as it reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drivers {
    isolators: Option<Vec<String>>,
    volume_plugins: Option<Vec<String>>,
}

/// How long agents are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For one agent. One that takes longer counts as unknown until it is asked again.
    query: Duration,
    /// For all that new offers need; events behind the offers wait as long.
    prepare: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { query: Duration::from_secs(3), prepare: Duration::from_secs(5) }
    }
}

/// What is known of agents, and since when. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Agents {
    pub client: Client,
    pub credential: Option<Credential>,
    pub inputs: tepui_runtime::Handle<Input>,
    pub views: watch::Receiver<Arc<View>>,
    pub known: Arc<Mutex<Known>>,
    pub timeouts: Timeouts,
}

type DriversOf = HashMap<AgentId, (Instant, Drivers)>;

#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Agents that the scheduler was told of.
    listed: HashSet<AgentId>,
    listed_at: Option<Instant>,
    drivers: DriversOf,
}

impl Known {
    /// Whether a list of the agents may tell something new about these.
    fn is_list_due(&self, agents: &[AgentId]) -> bool {
        let is_old = self.listed_at.is_none_or(|at| at.elapsed() >= READ_INTERVAL);
        is_old && !agents.iter().all(|id| self.listed.contains(id))
    }
}

impl Agents {
    /// Runs until the machine is gone.
    pub async fn watch(mut self) {
        loop {
            if self.views.wait_for(has_work).await.is_err() {
                return;
            }
            if self.refresh().await.is_err() {
                return;
            }
            tokio::time::sleep(READ_INTERVAL).await;
        }
    }

    /// Learns of agents before their first offers are used: capabilities, and drivers if the service has external volumes.
    pub async fn prepare(&self, offers: &[pb::Offer]) {
        let agents: Vec<AgentId> =
            offers.iter().map(|offer| AgentId::new(offer.agent_id.value.clone())).collect();
        // Without an answer in time the agents count as unknown, which excludes none.
        if tokio::time::timeout(self.timeouts.prepare, self.refresh_if_due(&agents)).await.is_err() {
            debug!("agents did not tell their capabilities in time");
        }
    }

    async fn refresh_if_due(&self, agents: &[AgentId]) {
        let needs_drivers = uses_external_volumes(&self.views.borrow());
        let is_due = {
            let known = self.known.lock().await;
            let lacks_drivers = agents.iter().any(|id| !known.drivers.contains_key(id));
            known.is_list_due(agents) || needs_drivers && lacks_drivers
        };
        if is_due {
            let _ = self.refresh().await; // A machine that has ended needs no facts.
        }
    }

    async fn refresh(&self) -> Result<(), tepui_runtime::Closed> {
        match self.read().await {
            Some(agents) => self.inputs.send(Input::Agents(agents)).await,
            None => Ok(()),
        }
    }

    async fn read(&self) -> Option<Vec<AgentFacts>> {
        self.known.lock().await.listed_at = Some(Instant::now());
        let call = master::Call { r#type: Some(master::call::Type::GET_AGENTS), ..Default::default() };
        let answer = match self.client.master(&call).await {
            Ok(answer) => answer,
            Err(error) => {
                debug!(%error, "cannot list the agents");
                return None;
            }
        };
        let agents = answer.get_agents.into_option()?.agents;
        let uses_drivers = uses_external_volumes(&self.views.borrow());
        let mut known = self.known.lock().await;
        if uses_drivers {
            self.ask_agents(&agents, &mut known.drivers).await;
        }
        known.listed = agents.iter().filter_map(id_of).collect();
        Some(agents.iter().filter_map(|agent| facts(agent, &known.drivers)).collect())
    }

    async fn ask_agents(&self, agents: &[master::response::get_agents::Agent], known: &mut DriversOf) {
        let is_fresh = |id: &AgentId, known: &DriversOf| {
            known.get(id).is_some_and(|(at, _)| at.elapsed() < DRIVERS_AGE_MAX)
        };
        let mut queries = JoinSet::new();
        let ids: Vec<AgentId> = agents.iter().filter_map(id_of).collect();
        known.retain(|id, _| ids.contains(id));
        for agent in agents {
            let (Some(id), Some(pid)) = (id_of(agent), agent.pid.as_deref()) else { continue };
            let Ok(endpoint) = Endpoint::from_pid(pid) else { continue };
            if is_fresh(&id, known) {
                continue;
            }
            if queries.len() >= QUERIES_MAX
                && let Some(Ok((id, drivers))) = queries.join_next().await
            {
                known.insert(id, (Instant::now(), drivers));
            }
            let client = Client::at(endpoint).with_credential(self.credential.clone());
            let limit = self.timeouts.query;
            queries.spawn(async move {
                let drivers = tokio::time::timeout(limit, drivers_of(&client)).await;
                (id, drivers.unwrap_or_default())
            });
        }
        while let Some(done) = queries.join_next().await {
            if let Ok((id, drivers)) = done {
                known.insert(id, (Instant::now(), drivers));
            }
        }
    }
}

fn has_work(view: &Arc<View>) -> bool {
    let is_open = |name: &String| view.plan(name).is_some_and(|plan| plan.status != COMPLETE);
    view.connected && view.plan_names().iter().any(is_open)
}

fn uses_external_volumes(view: &View) -> bool {
    let target = view.target.as_ref().and_then(|id| view.configurations.get(id));
    target.is_some_and(|spec| spec.pods.iter().any(|pod| !pod.external_volumes.is_empty()))
}

fn id_of(agent: &master::response::get_agents::Agent) -> Option<AgentId> {
    let id = agent.agent_info.as_option()?.id.as_option()?;
    Some(AgentId::new(id.value.clone()))
}

/// Isolators and drivers reported by an agent.
async fn drivers_of(client: &Client) -> Drivers {
    let isolators = client.get("/flags").await.ok().and_then(|flags| isolators(&flags));
    let plugins = client.get("/volume_drivers").await.ok().and_then(|document| plugins(&document));
    Drivers { isolators, volume_plugins: plugins }
}

fn isolators(flags: &Value) -> Option<Vec<String>> {
    let text = flags["flags"]["isolation"].as_str()?;
    Some(text.split(',').map(|name| name.trim().to_owned()).collect())
}

fn plugins(document: &Value) -> Option<Vec<String>> {
    let drivers = document["drivers"].as_array()?.iter();
    Some(drivers.filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

fn facts(agent: &master::response::get_agents::Agent, known: &DriversOf) -> Option<AgentFacts> {
    let (id, info) = (id_of(agent)?, agent.agent_info.as_option()?);
    let drivers = known.get(&id).map(|(_, drivers)| drivers.clone()).unwrap_or_default();
    let domain = info.domain.as_option().and_then(|domain| domain.fault_domain.as_option());
    Some(AgentFacts {
        id,
        hostname: info.hostname.clone(),
        region: domain.and_then(|domain| domain.region.as_option()).map(|region| region.name.clone()),
        zone: domain.and_then(|domain| domain.zone.as_option()).map(|zone| zone.name.clone()),
        attributes: info.attributes.iter().map(attribute).collect(),
        total: Resources::from_proto(&agent.total_resources).ok()?,
        is_draining: agent.drain_info.is_set(),
        is_deactivated: !agent.active || agent.deactivated == Some(true) || agent.drain_info.is_set(),
        isolators: drivers.isolators,
        volume_plugins: drivers.volume_plugins,
        lacks_operation_feedback: !agent.capabilities.iter().any(|own| own.r#type == Some(FEEDBACK)),
    })
}

fn attribute(attribute: &pb::Attribute) -> (String, String) {
    let scalar = attribute.scalar.as_option().map(|scalar| format!("{:.3}", scalar.value));
    let text = attribute.text.as_option().map(|text| text.value.clone());
    (attribute.name.clone(), text.or(scalar).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tepui_fsm::Rng;
    use tepui_service::scheduler::{Config, Scheduler};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// An agent that begins an answer and never ends it: its pid.
    async fn hanging_agent() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{";
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(head).await;
                    let _ = stream.read(&mut [0; 1]).await;
                });
            }
        });
        format!("slave(1)@{address}")
    }

    fn agent(id: &str, pid: String) -> master::response::get_agents::Agent {
        let id = pb::AgentID { value: id.to_owned(), ..Default::default() };
        let agent_info = pb::AgentInfo { id: id.into(), ..Default::default() };
        master::response::get_agents::Agent {
            agent_info: agent_info.into(),
            pid: Some(pid),
            ..Default::default()
        }
    }

    fn agents() -> Agents {
        let machine = Scheduler::recover(Config::new("svc"), Vec::new(), Rng::seeded(1)).expect("no records");
        let client = Client::new("127.0.0.1:1").expect("an address");
        let (inputs, views) = (tepui_runtime::mailbox(1).0, watch::channel(machine.view()).1);
        let timeouts = Timeouts { query: Duration::from_millis(1), prepare: Duration::from_millis(1) };
        Agents { client, credential: None, inputs, views, known: Arc::default(), timeouts }
    }

    #[tokio::test]
    async fn agent_that_does_not_finish_its_answer_counts_as_unknown() {
        let (agents, mut known) = (agents(), DriversOf::new());
        let listed = [agent("a", hanging_agent().await)];
        agents.ask_agents(&listed, &mut known).await;
        assert_eq!(known.remove(&AgentId::new("a")).expect("asked").1, Drivers::default());
    }

    #[tokio::test]
    async fn offers_do_not_wait_for_a_query_under_way() {
        let agents = agents();
        let _under_way = agents.known.lock().await;
        agents.prepare(&[pb::Offer::default()]).await;
    }

    #[test]
    fn isolators_and_drivers_are_read_from_agent_endpoints() {
        let flags = json!({"flags": {"isolation": "filesystem/linux, docker/volume"}});
        assert_eq!(isolators(&flags).expect("told"), ["filesystem/linux", "docker/volume"]);
        assert_eq!(isolators(&json!({"flags": {}})), None);
        assert_eq!(plugins(&json!({"drivers": ["btrfs"]})).expect("told"), ["btrfs"]);
        assert_eq!(plugins(&json!([])), None);
    }
}
