//! Volumes: those of the driver `local` belong to one engine and are named `engine/volume`; others are the same everywhere.

use std::collections::BTreeSet;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::{document_request, request};
use super::images::engine_error;
use super::merge::{label, prefixed};
use super::query::Filters;
use super::reply;
use super::targets::{Target, fan_out};
use crate::body::{self, Body};
use crate::version::API_VERSION;

const FILTERS: [&str; 6] = ["dangling", "driver", "label", "label!", "name", "node"];

impl Api {
    pub async fn volume_list(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let filters = call.query.filters()?;
        filters.check(&FILTERS)?;
        // Whether a volume is used is known to its engine only.
        let asked = match filters.truth("dangling")? {
            Some(dangling) => format!(
                "?filters={}",
                super::route::escape(&json!({"dangling": [dangling.to_string()]}).to_string())
            ),
            None => String::new(),
        };
        let volumes = self.volumes(&asked).await?;
        let list =
            volume_list(volumes.iter().map(|(target, volume)| (target.name.as_str(), volume)), &filters);
        Ok(reply::json(StatusCode::OK, &json!({"Volumes": list, "Warnings": []})))
    }

    async fn volumes(&self, query: &str) -> Result<Vec<(Target, Value)>, ApiError> {
        let path = format!("/v{}/volumes{query}", API_VERSION.text);
        let answers = fan_out(self.engines(), |target| {
            let path = path.clone();
            async move { target.client.get(&path).await }
        })
        .await;
        let mut volumes = Vec::new();
        for (target, answer) in answers {
            if let Some(Value::Array(own)) = answer?.get_mut("Volumes").map(Value::take) {
                volumes.extend(own.into_iter().map(|volume| (target.clone(), volume)));
            }
        }
        Ok(volumes)
    }

    /// The volumes that a name means: one of an engine, or that of each engine that has it.
    async fn named_volumes(&self, named: &str) -> Result<Vec<(Target, Value)>, ApiError> {
        let volumes = self.volumes("").await?;
        let is_meant = |target: &Target, volume: &Value| {
            let own = volume["Name"].as_str().unwrap_or_default();
            own == named || target.own_part(named) == Some(own)
        };
        let found: Vec<_> = volumes.into_iter().filter(|(target, volume)| is_meant(target, volume)).collect();
        match found.is_empty() {
            true => Err(ApiError::not_found(format!("No such volume: {named}"))),
            false => Ok(found),
        }
    }

    pub async fn volume_inspect(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let named = &call.matched.name;
        let found = self.named_volumes(named).await?;
        let volume = one_of(found.iter().map(|(target, volume)| (target.name.as_str(), volume)), named)?;
        Ok(reply::json(StatusCode::OK, &volume))
    }

    /// On all engines, or on one as `engine/volume`.
    pub async fn volume_create(&self, mut call: Call) -> Result<Response<Body>, ApiError> {
        let mut document = call.document().await?;
        let named = document["Name"].as_str().unwrap_or_default().to_owned();
        let engines = self.some_engines()?;
        let pinned =
            engines.iter().find_map(|target| Some((target.clone(), target.own_part(&named)?.to_owned())));
        let (engines, name) = match pinned {
            Some((target, name)) => (vec![target], name),
            None if named.contains('/') => {
                return Err(ApiError::not_found(format!("No healthy node is named as in {named}")));
            }
            // All engines get the same name.
            None if named.is_empty() => (engines, format!("{:032x}", u128::from(super::events::now_nanos()))),
            None => (engines, named),
        };
        document["Name"] = Value::from(name);
        let path = format!("{}/volumes/create", call.matched.version);
        let answers = fan_out(engines, |target| {
            let request = document_request(Method::POST, &path, &document);
            async move { Ok::<_, ApiError>(target.client.call(request?).await?) }
        })
        .await;
        let mut created = None;
        for (target, answer) in answers {
            let answer = answer?;
            let volume: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
            if !answer.status().is_success() {
                return Err(engine_error(&target, answer.status(), &volume));
            }
            created = created.or(Some(volume));
        }
        Ok(reply::json(StatusCode::CREATED, &created.unwrap_or_default()))
    }

    pub async fn volume_remove(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.named_volumes(&call.matched.name).await?;
        let is_forced = call.query.is_true("force");
        let targets: Vec<Target> = found.iter().map(|(target, _)| target.clone()).collect();
        let name = found.first().and_then(|(_, volume)| volume["Name"].as_str()).unwrap_or_default();
        let path = call.matched.engine_path("volumes", name, if is_forced { "force=1" } else { "" });
        let answers = fan_out(targets, |target| {
            let request = request(Method::DELETE, &path, http::HeaderMap::new(), body::empty());
            async move { Ok::<_, ApiError>(target.client.call(request?).await?) }
        })
        .await;
        for (target, answer) in answers {
            let answer = answer?;
            if !answer.status().is_success() {
                let document = serde_json::from_slice(answer.body()).unwrap_or_default();
                return Err(engine_error(&target, answer.status(), &document));
            }
        }
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}

/// What a name means, shown as one volume: several that were created together are equal and keep the name that was given.
fn one_of<'v>(found: impl Iterator<Item = (&'v str, &'v Value)>, named: &str) -> Result<Value, ApiError> {
    let found: Vec<(&str, &Value)> = found.collect();
    let is_equal = |a: &Value, b: &Value| ["Driver", "Options", "Labels"].iter().all(|key| a[key] == b[key]);
    match found.as_slice() {
        [(engine, volume)] => Ok(shown(engine, volume)),
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| is_equal(first, other)) => {
            Ok((*first).clone())
        }
        several => {
            let engines: Vec<&str> = several.iter().map(|(engine, _)| *engine).collect();
            Err(ApiError::bad(format!(
                "volume {named} is ambiguous: it is on {}; name one as engine/volume",
                engines.join(", ")
            )))
        }
    }
}

fn shown(engine: &str, volume: &Value) -> Value {
    let mut volume = volume.clone();
    if volume["Driver"] == "local" {
        let name = prefixed(engine, volume["Name"].as_str().unwrap_or_default());
        volume["Name"] = Value::from(name);
    }
    volume
}

fn volume_list<'v>(volumes: impl Iterator<Item = (&'v str, &'v Value)>, filters: &Filters) -> Vec<Value> {
    let mut global = BTreeSet::new();
    let keeps = |(engine, volume): &(&str, &Value)| {
        let name = volume["Name"].as_str().unwrap_or_default();
        volume.is_object()
            && filters.any("name", |part| name.contains(part) || prefixed(engine, name).contains(part))
            && filters.exactly("driver", volume["Driver"].as_str().unwrap_or_default())
            && filters.exactly("node", engine)
            && filters.labels(|key| label(volume, key))
    };
    let mut is_first = |volume: &Value| {
        let name = volume["Name"].as_str().unwrap_or_default().to_owned();
        volume["Driver"] == "local" || global.insert(name)
    };
    volumes
        .filter(keeps)
        .filter(|(_, volume)| is_first(volume))
        .map(|(engine, volume)| shown(engine, volume))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_volumes_of_several_engines_are_one() {
        let volume =
            |driver: &str, labels: Value| json!({"Name": "data", "Driver": driver, "Labels": labels});
        let (plain, labelled) = (volume("local", Value::Null), volume("local", json!({"a": "b"})));
        let shared = volume("nfs", Value::Null);
        for (volumes, expected) in [
            (vec![&plain], Some("node-0/data")),
            (vec![&plain, &plain], Some("data")),
            (vec![&labelled, &labelled], Some("data")),
            (vec![&plain, &labelled], None),
            (vec![&plain, &shared], None),
            (vec![&shared], Some("data")),
            (vec![&shared, &shared], Some("data")),
        ] {
            let engines = ["node-0", "node-1"];
            let one = one_of(engines.into_iter().zip(volumes.iter().copied()), "data").ok();
            assert_eq!(one.as_ref().and_then(|it| it["Name"].as_str()), expected, "{volumes:?}");
        }
    }

    #[test]
    fn local_volumes_are_named_after_their_engine() {
        let volumes = [
            ("node-0", json!({"Name": "data", "Driver": "local", "Labels": {"a": "b"}})),
            ("node-1", json!({"Name": "data", "Driver": "local", "Labels": null})),
            ("node-0", json!({"Name": "shared", "Driver": "nfs"})),
            ("node-1", json!({"Name": "shared", "Driver": "nfs"})),
            ("node-1", json!(5)),
        ];
        for (filters, expected) in [
            (json!({}), "node-0/data node-1/data shared"),
            (json!({"name": ["dat"]}), "node-0/data node-1/data"),
            (json!({"name": ["node-1/dat"]}), "node-1/data"),
            (json!({"node": ["node-0"]}), "node-0/data shared"),
            (json!({"driver": ["nfs"]}), "shared"),
            (json!({"label": ["a=b"]}), "node-0/data"),
        ] {
            let parsed = Filters::parse(&filters.to_string()).expect("filters");
            let list = volume_list(volumes.iter().map(|(engine, volume)| (*engine, volume)), &parsed);
            let names: Vec<&str> = list.iter().filter_map(|volume| volume["Name"].as_str()).collect();
            assert_eq!(names.join(" "), expected, "{filters}");
        }
    }
}
