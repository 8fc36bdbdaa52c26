//! `docker inspect` of a container: the engine's answer with the node it is on and the reason of its end.

use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use tepui_swarm::{Agent, Container};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::reply;
use super::row::{end_reason, is_unspecified};
use super::targets::reachable_host;
use crate::body::Body;
use crate::engine::Snapshot;

impl Api {
    pub async fn container_inspect(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let path = call.matched.engine_path("containers", &found.container.occupant.id, call.raw_query());
        let mut document = found.target.client.get(&path).await?;
        // Read after the engine's answer: the reason of an end is known at the latest now.
        let view = self.handle().view();
        let task = tepui_types::TaskId::new(&*found.container.task);
        let container = view.containers.get(&task).cloned().unwrap_or(found.container);
        let snapshot = self.handle().snapshot(&found.target.agent);
        if let Some(agent) = view.agents.get(&found.target.agent) {
            add_node(&mut document, agent, snapshot.as_deref());
        }
        add_reason(&mut document, &container);
        Ok(reply::json(StatusCode::OK, &document))
    }
}

fn add_node(document: &mut Value, agent: &Agent, snapshot: Option<&Snapshot>) {
    let host = reachable_host(agent);
    replace_addresses(document, host);
    let info = snapshot.map(|snapshot| &*snapshot.info);
    let node = json!({
        "ID": agent.engine().map(|engine| engine.id.clone()).unwrap_or_default(),
        "IP": host,
        "Addr": agent.address.to_string(),
        "Name": agent.name(),
        "Cpus": info.and_then(|info| info["NCPU"].as_i64()).unwrap_or(0),
        "Memory": info.and_then(|info| info["MemTotal"].as_i64()).unwrap_or(0),
        "Labels": agent.labels(),
    });
    if let Value::Object(document) = document {
        document.insert("Node".to_owned(), node);
    }
}

/// Published ports are reached at the engine's address.
fn replace_addresses(document: &mut Value, host: &str) {
    let ports = document.pointer_mut("/NetworkSettings/Ports").and_then(Value::as_object_mut);
    let bindings = ports.into_iter().flat_map(Map::values_mut).filter_map(Value::as_array_mut).flatten();
    for binding in bindings.filter_map(Value::as_object_mut) {
        let is_open = binding.get("HostIp").and_then(Value::as_str).is_none_or(is_unspecified);
        if is_open {
            binding.insert("HostIp".to_owned(), Value::from(host));
        }
    }
}

/// An error of the engine's own stays.
fn add_reason(document: &mut Value, container: &Container) {
    let Some(reason) = end_reason(&container.phase) else { return };
    let Some(state) = document.get_mut("State").and_then(Value::as_object_mut) else { return };
    let is_running = state.get("Running").and_then(Value::as_bool).unwrap_or(false);
    let has_error = state.get("Error").and_then(Value::as_str).is_some_and(|error| !error.is_empty());
    if !is_running && !has_error {
        state.insert("Error".to_owned(), Value::from(reason));
    }
}

#[cfg(test)]
mod tests {
    use tepui_swarm::{EngineAddress, Occupant, Phase};

    use super::*;

    fn preempted() -> Container {
        Container {
            task: "t".into(),
            agent: "a".into(),
            revocable: true,
            cpus_thousandths: 0,
            memory_bytes: 0,
            phase: Phase::Ended {
                state: "TASK_KILLED".into(),
                reason: Some("REASON_CONTAINER_PREEMPTED".into()),
                message: "cpus were reclaimed".into(),
            },
            occupant: Occupant::default(),
            body: String::new(),
            created_nanos: 0,
            restarted: false,
            started: false,
        }
    }

    #[test]
    fn preempted_container_has_the_reason_in_its_state() {
        for (state, expected) in [
            (json!({"Running": false, "Error": ""}), json!("preempted: cpus were reclaimed")),
            (json!({"Running": false}), json!("preempted: cpus were reclaimed")),
            (json!({"Running": false, "Error": "no space"}), json!("no space")),
            (json!({"Running": true, "Error": ""}), json!("")),
        ] {
            let mut document = json!({"State": state});
            add_reason(&mut document, &preempted());
            assert_eq!(document["State"]["Error"], expected);
        }
        let mut hostile = json!({"State": 5});
        add_reason(&mut hostile, &preempted());
    }

    #[test]
    fn node_and_its_address_are_added() {
        let address = EngineAddress::Tcp { host: "10.0.0.7".into(), port: 2375 };
        let agent = Agent::new("host".into(), address, String::new());
        let mut document = json!({"NetworkSettings": {"Ports": {
            "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "1"}, {"HostIp": "127.0.0.1", "HostPort": "2"}], "81/tcp": null}}});
        add_node(&mut document, &agent, None);
        assert_eq!(document["NetworkSettings"]["Ports"]["80/tcp"][0]["HostIp"], "10.0.0.7");
        assert_eq!(document["NetworkSettings"]["Ports"]["80/tcp"][1]["HostIp"], "127.0.0.1");
        assert_eq!(document["Node"]["Addr"], "10.0.0.7:2375");
        let mut hostile = json!({"NetworkSettings": {"Ports": [1, {"80/tcp": "x"}]}});
        add_node(&mut hostile, &agent, None);
    }
}
