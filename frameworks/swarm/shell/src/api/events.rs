//! `docker events`: the events of all engines as one stream, with the node of each, and the manager's own.
//!
//! Live events come from the subscriptions that the manager has anyway; a reader costs no request to an engine. Only events of
//! the past (`since`) are asked for. A reader that is too slow is cut off.

mod own;
mod selection;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tepui_swarm::{TASK_LABEL, View};
use tepui_types::AgentId;
use tokio::sync::broadcast::error::RecvError;

use self::own::OwnEvents;
use self::selection::{Selection, parse_time};
use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::targets::{fan_out, reachable_host};
use super::{query::Query, reply};
use crate::body::{self, Body, Pieces};
use crate::version::API_VERSION;

/// The parameters of a call.
#[derive(Clone, Debug)]
struct Range {
    since: Option<String>,
    /// In nanoseconds.
    until: Option<u64>,
    selection: Selection,
}

impl Range {
    fn parse(query: &Query) -> Result<Self, ApiError> {
        let selection = Selection::parse(query.filters()?)?;
        let since =
            query.get("since").map(|text| parse_time("since", text).map(|_| text.to_owned())).transpose()?;
        let until = query.get("until").map(|text| parse_time("until", text)).transpose()?;
        Ok(Self { since, until, selection })
    }
}

impl Api {
    pub async fn events(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let range = Range::parse(&call.query)?;
        let (pieces, body) = body::channel();
        let api = self.clone();
        let live = self.handle().events();
        // It ends when the client leaves, the time is over, or the client is too slow.
        tokio::spawn(async move {
            let closed = pieces.clone();
            tokio::select! {
                () = api.send_events(range, live, pieces) => (),
                () = closed.closed() => (),
            }
        });
        Ok(reply::typed(StatusCode::OK, "application/json", body))
    }

    async fn send_events(
        &self,
        range: Range,
        mut live: tokio::sync::broadcast::Receiver<std::sync::Arc<crate::engine::EngineMessage>>,
        pieces: Pieces,
    ) {
        let mut views = self.handle().views();
        let mut own = OwnEvents::new(&self.handle().view());
        let mut last: BTreeMap<AgentId, u64> = BTreeMap::new();
        for (agent, event) in self.past_events(&range).await {
            let seen = last.entry(agent.clone()).or_default();
            *seen = (*seen).max(event["timeNano"].as_u64().unwrap_or(0));
            let event = with_node(event, &agent, &self.handle().view());
            if !send(&[event], &range.selection, &pieces).await {
                return;
            }
        }
        let left = range.until.map(|until| Duration::from_nanos(until.saturating_sub(now_nanos())));
        let mut over = std::pin::pin!(async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        });
        loop {
            let more = tokio::select! {
                () = &mut over => return,
                message = live.recv() => match message {
                    Ok(message) => {
                        let nanos = message.event["timeNano"].as_u64().unwrap_or(0);
                        let was_sent = last.get(&message.agent).is_some_and(|seen| nanos <= *seen);
                        let view = self.handle().view();
                        let event = with_node(message.event.clone(), &message.agent, &view);
                        let ends = own.on_event(&event, &view);
                        was_sent || send(&[event], &range.selection, &pieces).await && send(&ends, &range.selection, &pieces).await
                    }
                    Err(RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "slow reader of events disconnected");
                        let _ = pieces.send(Err("too slow: events were missed".into())).await;
                        return;
                    }
                    Err(RecvError::Closed) => return,
                },
                Ok(()) = views.changed() => {
                    let view = views.borrow_and_update().clone();
                    send(&own.on_view(&view), &range.selection, &pieces).await
                }
            };
            if !more {
                return;
            }
        }
    }

    /// In the order of their times, as far as engines still have them.
    async fn past_events(&self, range: &Range) -> Vec<(AgentId, Value)> {
        let Some(since) = &range.since else { return Vec::new() };
        let until = range.until.map_or_else(now_nanos, |until| until.min(now_nanos()));
        let path = format!(
            "/v{}/events?since={}&until={}.{:09}",
            API_VERSION.text,
            super::route::escape(since),
            until / 1_000_000_000,
            until % 1_000_000_000
        );
        let answers = fan_out(self.engines(), |target| {
            let request =
                super::forward::request(http::Method::GET, &path, http::HeaderMap::new(), body::empty());
            async move { Ok::<_, ApiError>(target.client.call(request?).await?) }
        })
        .await;
        let mut events: Vec<(AgentId, Value)> = Vec::new();
        for (target, answer) in answers {
            match answer {
                Ok(answer) if answer.status().is_success() => {
                    let parsed = serde_json::Deserializer::from_slice(answer.body()).into_iter::<Value>();
                    events.extend(parsed.map_while(Result::ok).map(|event| (target.agent.clone(), event)));
                }
                Ok(answer) => {
                    tracing::warn!(engine = target.name, status = answer.status().as_u16(), "no past events")
                }
                Err(error) => tracing::warn!(engine = target.name, error = error.message, "no past events"),
            }
        }
        events.sort_by_key(|(_, event)| event["timeNano"].as_u64().unwrap_or(0));
        events
    }
}

/// False when the reader has left.
async fn send(events: &[Value], selection: &Selection, pieces: &Pieces) -> bool {
    for event in events {
        if selection.keeps(event) && pieces.send(Ok(line(event))).await.is_err() {
            return false;
        }
    }
    true
}

fn line(event: &Value) -> Bytes {
    let mut text = event.to_string();
    text.push('\n');
    Bytes::from(text)
}

pub fn now_nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Where the event happened, in the three places where clients of classic Swarm look for it.
fn with_node(mut event: Value, agent: &AgentId, view: &View) -> Value {
    add_node(&mut event, agent, view);
    event
}

fn add_node(event: &mut Value, agent: &AgentId, view: &View) {
    let Some(known) = view.agents.get(agent) else { return };
    let Some(object) = event.as_object_mut() else { return };
    let (name, address, host) = (known.name(), known.address.to_string(), reachable_host(known).to_owned());
    let id = known.engine().map(|engine| engine.id.clone()).unwrap_or_default();
    let from = object.get("from").and_then(Value::as_str).unwrap_or_default();
    let from = format!("{from} node:{name}");
    object.insert("from".to_owned(), Value::from(from));
    object.insert("node".to_owned(), json!({"Name": name, "Id": id, "Addr": address, "Ip": host}));
    let actor = object.entry("Actor").or_insert_with(|| json!({}));
    let Some(actor) = actor.as_object_mut() else { return };
    let attributes = actor.entry("Attributes").or_insert_with(|| json!({}));
    if attributes.is_null() {
        *attributes = json!({});
    }
    let Some(attributes) = attributes.as_object_mut() else { return };
    for (key, value) in [("node.name", name), ("node.id", id), ("node.addr", address), ("node.ip", host)] {
        attributes.insert(key.to_owned(), Value::from(value));
    }
}

/// Of a container that is not ours: other users of an engine are none of our clients' business.
fn is_foreign(event: &Value) -> bool {
    event["Type"] == "container" && event["Actor"]["Attributes"][TASK_LABEL].as_str().is_none()
}
