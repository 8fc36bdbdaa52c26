//! Calls that every engine answers and whose answers are added up: prunes and disk usage.

use http::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::request;
use super::merge::{prefixed, unique_images};
use super::reply;
use super::route::with_query;
use super::targets::{Target, fan_out};
use crate::body::{self, Body};
use crate::version::{self, PRUNES_ANONYMOUS_VOLUMES};

impl Api {
    /// Unused images, volumes, networks or build cache of every engine.
    pub async fn prune(&self, call: Call, group: &'static str) -> Result<Response<Body>, ApiError> {
        let answers = fan_out(self.some_engines()?, |target| {
            let query = pruned(&call, group, target.client.oldest_version());
            let path = with_query(format!("{}/{group}/prune", call.matched.version), &query);
            let request = request(Method::POST, &path, http::HeaderMap::new(), body::empty());
            async move { answer(&target, request).await }
        })
        .await;
        for (target, _) in &answers {
            self.touch(&target.agent);
        }
        let answers = answers.into_iter().map(|(target, answer)| {
            let answer = answer.map(|document| below_engine(document, group, &target.name));
            (target, answer)
        });
        Ok(reply::json(StatusCode::OK, &merge(answers.collect())?))
    }

    pub async fn disk_usage(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let path = with_query(format!("{}/system/df", call.matched.version), call.raw_query());
        let answers = fan_out(self.some_engines()?, |target| {
            let path = path.clone();
            async move { target.client.get(&path).await }
        })
        .await;
        let view = self.handle().view();
        let is_ours = |container: &Value| container["Id"].as_str().is_some_and(|id| view.find(id).is_some());
        let mut merged = Usage::default();
        for (target, answer) in answers {
            merged.add(answer?, &target.name, is_ours);
        }
        Ok(reply::json(StatusCode::OK, &merged.document()))
    }
}

/// The query of a prune. An engine that does not accept the version of the call would prune fewer volumes than the call means.
fn pruned(call: &Call, group: &str, oldest: Option<version::Number>) -> String {
    let is_newer = oldest.is_some_and(|oldest| oldest >= PRUNES_ANONYMOUS_VOLUMES);
    if group != "volumes" || !is_newer {
        return call.raw_query().to_owned();
    }
    let given: Result<Map<String, Value>, _> =
        call.query.get("filters").map_or(Ok(Map::new()), serde_json::from_str);
    let Ok(mut filters) = given else { return call.raw_query().to_owned() }; // The engine rejects it.
    // Engines read sets or, as before API 1.21, lists, and not both in one call.
    let all = if filters.values().any(Value::is_array) { json!(["true"]) } else { json!({"true": true}) };
    filters.entry("all").or_insert(all);
    let filters = Value::Object(filters);
    call.query.clone().with("filters", &filters.to_string()).text()
}

pub async fn answer(target: &Target, request: Result<Request<Body>, ApiError>) -> Result<Value, ApiError> {
    let answer = target.client.call(request?).await?;
    if !answer.status().is_success() {
        let message = crate::engine::message(answer.body());
        return Err(ApiError::new(answer.status(), format!("{}: {message}", target.name)));
    }
    serde_json::from_slice(answer.body())
        .map_err(|error| ApiError::failed(format!("{}: the answer cannot be read: {error}", target.name)))
}

/// Adds up numbers and lists of all answers; an error of one engine is that of the call, after all of them were asked.
pub fn merge(answers: Vec<(Target, Result<Value, ApiError>)>) -> Result<Value, ApiError> {
    let mut merged = Map::new();
    for (_, answer) in answers {
        let Value::Object(answer) = answer? else { continue };
        for (key, value) in answer {
            let own = merged.entry(key).or_insert(Value::Null);
            *own = match (own.take(), value) {
                (Value::Number(a), Value::Number(b)) => {
                    json!(a.as_i64().unwrap_or(0).saturating_add(b.as_i64().unwrap_or(0)))
                }
                (Value::Array(mut a), Value::Array(b)) => {
                    a.extend(b);
                    Value::Array(a)
                }
                (Value::Null, value) | (value, Value::Null) => value,
                (first, _) => first,
            };
        }
    }
    Ok(Value::Object(merged))
}

/// Names of volumes and networks are those of one engine.
fn below_engine(mut document: Value, group: &str, engine: &str) -> Value {
    let field = match group {
        "volumes" => "VolumesDeleted",
        "networks" => "NetworksDeleted",
        _ => return document,
    };
    for name in document.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(own) = name.as_str() {
            *name = Value::from(prefixed(engine, own));
        }
    }
    document
}

/// The disk usage of all engines.
#[derive(Debug, Default)]
struct Usage {
    layers_size: i64,
    images: Vec<(String, Value)>,
    containers: Vec<Value>,
    volumes: Vec<Value>,
    build_cache: Vec<Value>,
}

impl Usage {
    fn add(&mut self, mut answer: Value, engine: &str, is_ours: impl Fn(&Value) -> bool) {
        let mut list = |key: &str| match answer.get_mut(key).map(Value::take) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        self.images.extend(list("Images").into_iter().map(|image| (engine.to_owned(), image)));
        self.containers.extend(list("Containers").into_iter().filter(is_ours));
        self.volumes.extend(list("Volumes").into_iter().map(|mut volume| {
            if let Some(name) = volume.get_mut("Name") {
                *name = Value::from(prefixed(engine, name.as_str().unwrap_or_default()));
            }
            volume
        }));
        self.build_cache.extend(list("BuildCache"));
        self.layers_size = self.layers_size.saturating_add(answer["LayersSize"].as_i64().unwrap_or(0));
    }

    fn document(self) -> Value {
        json!({
            "LayersSize": self.layers_size,
            "Images": unique_images(self.images),
            "Containers": self.containers,
            "Volumes": self.volumes,
            "BuildCache": self.build_cache,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prune_responses_are_summed() {
        let target = |name: &str| crate::api::targets::testing::target(name);
        let merged = merge(vec![
            (target("a"), Ok(json!({"VolumesDeleted": ["x"], "SpaceReclaimed": 5}))),
            (target("b"), Ok(json!({"VolumesDeleted": null, "SpaceReclaimed": 7}))),
            (target("c"), Ok(json!({"VolumesDeleted": ["y"], "SpaceReclaimed": i64::MAX}))),
            (target("d"), Ok(json!([]))),
        ]);
        assert_eq!(merged, Ok(json!({"VolumesDeleted": ["x", "y"], "SpaceReclaimed": i64::MAX})));
        let failed =
            merge(vec![(target("a"), Ok(json!({}))), (target("b"), Err(ApiError::conflict("busy")))]);
        assert_eq!(failed, Err(ApiError::conflict("busy")));
        let named =
            below_engine(json!({"VolumesDeleted": ["x", 5], "SpaceReclaimed": 0}), "volumes", "node-0");
        assert_eq!(named["VolumesDeleted"], json!(["node-0/x", 5]));
        for hostile in [json!([]), json!("x"), json!({"VolumesDeleted": 5})] {
            assert_eq!(below_engine(hostile.clone(), "volumes", "node-0"), hostile);
        }
    }

    fn usage_of(answer: Value) {
        let mut usage = Usage::default();
        usage.add(answer, "node-0", |_| false);
        usage.document();
    }

    #[test]
    fn disk_usage_has_only_own_containers() {
        let mut usage = Usage::default();
        let answer = json!({"LayersSize": 10, "Images": [{"Id": "i", "RepoTags": ["a:1"]}], "Containers": [{"Id": "own"}, {"Id": "other"}],
            "Volumes": [{"Name": "v"}], "BuildCache": null});
        usage.add(answer.clone(), "node-0", |it| it["Id"] == "own");
        usage.add(answer, "node-1", |_| false);
        let document = usage.document();
        assert_eq!(document["LayersSize"], 20);
        assert_eq!(document["Containers"], json!([{"Id": "own"}]));
        assert_eq!(document["Volumes"], json!([{"Name": "node-0/v"}, {"Name": "node-1/v"}]));
        assert_eq!(document["Images"].as_array().map(Vec::len), Some(1));
        for hostile in [json!(5), json!({"Volumes": [5, "x", []], "Images": [5], "BuildCache": {}})] {
            usage_of(hostile);
        }
    }
}
