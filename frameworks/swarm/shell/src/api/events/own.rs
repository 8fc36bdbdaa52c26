//! Events that no engine sends: an engine is connected or lost, a container was preempted. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tepui_swarm::{Agent, Phase, View};
use tepui_types::AgentId;

use super::now_nanos;
use crate::api::row::end_reason;

/// Containers that terminated and whose reason is not known yet. If there are more, some have no event with a reason.
const DIED_MAX: usize = 4096;

/// What a reader of events has been sent.
#[derive(Debug)]
pub struct OwnEvents {
    /// Whether each engine is healthy.
    engines: BTreeMap<AgentId, bool>,
    /// The event of its end, by the id of the container: its task is another one after it was started again.
    died: BTreeMap<String, Value>,
}

impl OwnEvents {
    pub fn new(view: &View) -> Self {
        Self { engines: health(view), died: BTreeMap::new() }
    }

    /// The end of a container comes from its engine, the reason from the cluster: before it or after it.
    pub fn on_event(&mut self, event: &Value, view: &View) -> Vec<Value> {
        let is_end = event["Type"] == "container" && event["Action"] == "die";
        let Some(id) = event["Actor"]["ID"].as_str().filter(|_| is_end) else { return Vec::new() };
        if self.died.len() >= DIED_MAX {
            self.died.pop_first();
        }
        self.died.insert(id.to_owned(), event.clone());
        self.ended(view)
    }

    pub fn on_view(&mut self, view: &View) -> Vec<Value> {
        let mut events = self.ended(view);
        let now = health(view);
        for (id, is_healthy) in &now {
            let action = match (self.engines.get(id), is_healthy) {
                (None, true) => "engine_connect",
                (Some(false), true) => "engine_reconnect",
                (Some(true), false) => "engine_disconnect",
                (Some(true), true) | (Some(false) | None, false) => continue,
            };
            events.extend(view.agents.get(id).map(|agent| engine_event(action, agent)));
        }
        self.engines = now;
        events
    }

    fn ended(&mut self, view: &View) -> Vec<Value> {
        if self.died.is_empty() {
            return Vec::new();
        }
        let (mut events, mut pending) = (Vec::new(), BTreeMap::new());
        for container in view.containers.values() {
            let Some(died) = self.died.remove(&container.occupant.id) else { continue };
            match &container.phase {
                phase @ Phase::Ended { .. } => {
                    events.extend(end_reason(phase).map(|reason| end_event(&died, &reason)));
                }
                Phase::Launching | Phase::Created => {
                    pending.insert(container.occupant.id.clone(), died);
                }
                Phase::Rescheduling => (),
            }
        }
        self.died = pending; // Others are not ours, or removed.
        events
    }
}

fn health(view: &View) -> BTreeMap<AgentId, bool> {
    view.agents.iter().map(|(id, agent)| (id.clone(), agent.is_healthy())).collect()
}

fn stamped(mut event: Value) -> Value {
    let nanos = now_nanos();
    event["time"] = json!(nanos / 1_000_000_000);
    event["timeNano"] = json!(nanos);
    event
}

/// The event of the end again, with the reason: `preempted` or `lost`.
fn end_event(died: &Value, reason: &str) -> Value {
    let action = reason.split(':').next().unwrap_or(reason);
    let mut event = died.clone();
    event["Action"] = json!(action);
    event["status"] = json!(action);
    if let Some(attributes) = event.pointer_mut("/Actor/Attributes").and_then(Value::as_object_mut) {
        attributes.insert("reason".to_owned(), json!(reason));
    }
    stamped(event)
}

fn engine_event(action: &str, agent: &Agent) -> Value {
    let (name, id) = (agent.name(), agent.engine().map(|engine| engine.id.clone()).unwrap_or_default());
    let address = agent.address.to_string();
    stamped(json!({
        "status": action,
        "id": id,
        "from": format!("swarm node:{name}"),
        "Type": "swarm",
        "Action": action,
        "Actor": {"ID": id, "Attributes": {"node.name": name, "node.id": id, "node.addr": address}},
        "scope": "swarm",
        "node": {"Name": name, "Id": id, "Addr": address, "Ip": ""},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_added_to_the_event_of_an_end() {
        let died =
            |attributes: Value| json!({"Action": "die", "Actor": {"ID": "ab", "Attributes": attributes}});
        let event = end_event(&died(json!({"name": "web"})), "preempted: cpus were reclaimed");
        assert_eq!((&event["Action"], &event["status"]), (&json!("preempted"), &json!("preempted")));
        assert_eq!(event["Actor"]["Attributes"]["reason"], "preempted: cpus were reclaimed");
        for hostile in [json!("x"), json!([1]), json!(null)] {
            assert_eq!(end_event(&died(hostile), "lost")["Action"], "lost");
        }
    }
}
