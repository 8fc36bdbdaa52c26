//! Networks: those of local scope belong to one engine and are named `engine/network`.
//!
//! A network that is created without an engine's name is created on every healthy engine, with one label that makes them one:
//! containers of an application find it wherever they are placed. Containers on different engines do not reach each other by it.

use std::collections::BTreeSet;

use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::{document_request, request};
use super::images::engine_error;
use super::merge::{label, prefixed};
use super::query::Filters;
use super::reply;
use super::route::escape_path;
use super::targets::{Target, fan_out};
use crate::body::{self, Body};
use crate::version::API_VERSION;

/// Label of networks that were created together, of one value per creation.
const GROUP_LABEL: &str = "com.docker.swarm.network.group";

const FILTERS: [&str; 9] = ["dangling", "driver", "id", "label", "label!", "name", "node", "scope", "type"];
const PREDEFINED: [&str; 3] = ["bridge", "host", "none"];

impl Api {
    pub async fn network_list(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let filters = call.query.filters()?;
        filters.check(&FILTERS)?;
        let dangling = filters.truth("dangling")?;
        let networks = self.networks().await?;
        let list = network_list(networks.iter().map(|(target, it)| (target.name.as_str(), it)), &filters);
        let is_unused = |it: &Value| it["Containers"].as_object().is_none_or(Map::is_empty);
        let list = list.into_iter().filter(|it| dangling.is_none_or(|wanted| is_unused(it) == wanted));
        Ok(reply::json(StatusCode::OK, &Value::Array(list.collect())))
    }

    async fn networks(&self) -> Result<Vec<(Target, Value)>, ApiError> {
        let path = format!("/v{}/networks", API_VERSION.text);
        let answers = fan_out(self.engines(), |target| {
            let path = path.clone();
            async move { target.client.get(&path).await }
        })
        .await;
        let mut networks = Vec::new();
        for (target, answer) in answers {
            if let Value::Array(own) = answer? {
                networks.extend(own.into_iter().map(|network| (target.clone(), network)));
            }
        }
        Ok(networks)
    }

    /// The networks that a name means: one, or all of one creation.
    async fn named_networks(&self, named: &str) -> Result<Vec<(Target, Value)>, ApiError> {
        let networks = self.networks().await?;
        let places = meant(networks.iter().map(|(target, it)| (target, it)), named)?;
        Ok(networks
            .into_iter()
            .enumerate()
            .filter(|(place, _)| places.contains(place))
            .map(|(_, it)| it)
            .collect())
    }

    /// Containers of all its engines.
    pub async fn network_inspect(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.named_networks(&call.matched.name).await?;
        let answers = fan_out(found.iter().map(|(target, _)| target.clone()).collect(), |target| {
            let own = found.iter().find(|(other, _)| other.agent == target.agent);
            let id = own.and_then(|(_, network)| network["Id"].as_str()).unwrap_or_default();
            let path = call.matched.engine_path("networks", id, call.raw_query());
            async move { target.client.get(&path).await }
        })
        .await;
        let mut merged: Option<Value> = None;
        let is_one = answers.len() == 1;
        for (target, answer) in answers {
            let network = if is_one { shown(&target.name, &answer?) } else { answer? };
            match &mut merged {
                None => merged = Some(network),
                Some(merged) => add_containers(merged, &network),
            }
        }
        Ok(reply::json(StatusCode::OK, &merged.unwrap_or_default()))
    }

    pub async fn network_create(&self, mut call: Call) -> Result<Response<Body>, ApiError> {
        let mut document = call.document().await?;
        let named = document["Name"].as_str().unwrap_or_default().to_owned();
        let engines = self.some_engines()?;
        let pinned =
            engines.iter().find_map(|target| Some((target.clone(), target.own_part(&named)?.to_owned())));
        let engines = match pinned {
            Some((target, name)) => {
                document["Name"] = Value::from(name);
                vec![target]
            }
            None if named.contains('/') => {
                return Err(ApiError::failed("cannot find node to create network"));
            }
            None => {
                add_group(&mut document)?;
                engines
            }
        };
        let path = format!("{}/networks/create", call.matched.version);
        let answers = fan_out(engines, |target| {
            let request = document_request(Method::POST, &path, &document);
            async move { Ok::<_, ApiError>(target.client.call(request?).await?) }
        })
        .await;
        let (mut created, mut failed) = (Vec::new(), None);
        for (target, answer) in answers {
            let outcome = answer.and_then(|answer| {
                let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
                match answer.status().is_success() {
                    true => Ok(body),
                    false => Err(engine_error(&target, answer.status(), &body)),
                }
            });
            match outcome {
                Ok(body) => created.push((target, body)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            None => Ok(reply::json(StatusCode::CREATED, &created.swap_remove(0).1)),
            Some(error) => {
                self.remove_networks(created.into_iter()).await;
                Err(error)
            }
        }
    }

    /// What was created before another engine failed.
    async fn remove_networks(&self, networks: impl Iterator<Item = (Target, Value)>) {
        for (target, network) in networks {
            let id = network["Id"].as_str().unwrap_or_default();
            let path = format!("/v{}/networks/{}", API_VERSION.text, escape_path(id));
            if let Err(fault) = target.client.succeed(Method::DELETE, &path).await {
                tracing::warn!(engine = target.name, error = %fault, "cannot remove a network that is not on all engines");
            }
        }
    }

    /// Connects or disconnects a container, at its own engine.
    pub async fn network_membership(&self, mut call: Call) -> Result<Response<Body>, ApiError> {
        let mut document = call.document().await?;
        let named = document["Container"].as_str().unwrap_or_default().to_owned();
        let found = self.find(&named)?;
        document["Container"] = Value::from(found.container.occupant.id.clone());
        let networks = self.named_networks(&call.matched.name).await?;
        let own = networks.iter().find(|(target, _)| target.agent == found.target.agent);
        let network = own.and_then(|(_, network)| network["Id"].as_str()).ok_or_else(|| {
            let node = &found.target.name;
            ApiError::not_found(format!(
                "network {} is not on node {node} of container {named}",
                call.matched.name
            ))
        })?;
        let path = call.matched.engine_path("networks", network, call.raw_query());
        let response = self.forward_bytes(&call, &found.target, &path, document.to_string()).await?;
        self.touch(&found.target.agent);
        Ok(response)
    }

    pub async fn network_remove(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.named_networks(&call.matched.name).await?;
        let answers = fan_out(found.iter().map(|(target, _)| target.clone()).collect(), |target| {
            let own = found.iter().find(|(other, _)| other.agent == target.agent);
            let id = own.and_then(|(_, network)| network["Id"].as_str()).unwrap_or_default();
            let request = request(
                Method::DELETE,
                &call.matched.engine_path("networks", id, ""),
                http::HeaderMap::new(),
                body::empty(),
            );
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

fn add_group(document: &mut Value) -> Result<(), ApiError> {
    let labels = document.as_object_mut().map(|it| it.entry("Labels").or_insert(Value::Null));
    let Some(labels) = labels else { return Ok(()) };
    if labels.is_null() {
        *labels = json!({});
    }
    let group = format!("{:016x}", super::events::now_nanos());
    let Some(labels) = labels.as_object_mut() else {
        return Err(ApiError::bad("Labels must be an object of strings"));
    };
    labels.insert(GROUP_LABEL.to_owned(), Value::from(group));
    Ok(())
}

fn is_local(network: &Value) -> bool {
    network["Scope"].as_str().is_none_or(|scope| scope == "local")
}

fn shown(engine: &str, network: &Value) -> Value {
    let mut network = network.clone();
    if is_local(&network) && label(&network, GROUP_LABEL).is_none() && network.is_object() {
        let name = prefixed(engine, network["Name"].as_str().unwrap_or_default());
        network["Name"] = Value::from(name);
    }
    network
}

fn add_containers(merged: &mut Value, network: &Value) {
    let more = network["Containers"].as_object().cloned().unwrap_or_default();
    let Some(merged) = merged.as_object_mut() else { return };
    let own = merged.entry("Containers").or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.extend(more);
    }
}

/// The places of the networks that a name means: by id, `engine/name`, name of a group, name that only one engine has, or
/// the beginning of an id.
fn meant<'n>(
    networks: impl Iterator<Item = (&'n Target, &'n Value)>,
    named: &str,
) -> Result<Vec<usize>, ApiError> {
    let networks: Vec<(&Target, &Value)> = networks.collect();
    let text = |place: usize, field: &str| networks[place].1[field].as_str().unwrap_or_default().to_owned();
    let places = |holds: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..networks.len()).filter(|it| holds(*it)).collect()
    };
    let group_of = |place: usize| label(networks[place].1, GROUP_LABEL);
    let with_group = |found: &[usize]| match found.first().and_then(|first| group_of(*first)) {
        Some(group) => places(&|place| group_of(place) == Some(group)),
        None => found[..1].to_vec(),
    };
    let by_id = places(&|place| text(place, "Id") == named);
    if !by_id.is_empty() {
        // A network of global scope has one id on all engines.
        return Ok(with_group(&by_id));
    }
    let by_engine =
        places(&|place| networks[place].0.own_part(named).is_some_and(|own| own == text(place, "Name")));
    if !by_engine.is_empty() {
        return Ok(by_engine[..1].to_vec());
    }
    let by_name = places(&|place| text(place, "Name") == named);
    let groups: BTreeSet<Option<&str>> = by_name.iter().map(|place| group_of(*place)).collect();
    let ids: BTreeSet<String> = by_name.iter().map(|place| text(*place, "Id")).collect();
    if !by_name.is_empty()
        && (ids.len() == 1 || groups.len() == 1 && groups.first().is_some_and(Option::is_some))
    {
        return Ok(with_group(&by_name));
    }
    let by_prefix = places(&|place| !named.is_empty() && text(place, "Id").starts_with(named));
    match (by_name.len(), by_prefix.len()) {
        (0, 1) => Ok(with_group(&by_prefix)),
        (0, 0) => Err(ApiError::not_found(format!("No such network: {named}"))),
        (0, _) => Err(ApiError::bad(format!("Multiple IDs found with provided prefix: {named}"))),
        _ => Err(ApiError::not_found(format!(
            "No such network: {named}: several engines have one of that name; name one as engine/network"
        ))),
    }
}

fn network_list<'n>(networks: impl Iterator<Item = (&'n str, &'n Value)>, filters: &Filters) -> Vec<Value> {
    let mut listed = BTreeSet::new();
    let keeps = |(engine, network): &(&str, &Value)| {
        let name = network["Name"].as_str().unwrap_or_default();
        let kind = if PREDEFINED.contains(&name) { "builtin" } else { "custom" };
        network.is_object()
            && filters.any("name", |part| name.contains(part) || prefixed(engine, name).contains(part))
            && filters.any("id", |id| network["Id"].as_str().is_some_and(|own| own.starts_with(id)))
            && filters.exactly("driver", network["Driver"].as_str().unwrap_or_default())
            && filters.exactly("scope", network["Scope"].as_str().unwrap_or_default())
            && filters.exactly("type", kind)
            && filters.exactly("node", engine)
            && filters.labels(|key| label(network, key))
    };
    // One of each creation, and one of each id.
    let mut is_first = |network: &Value| {
        let id = network["Id"].as_str().unwrap_or_default();
        listed.insert(label(network, GROUP_LABEL).unwrap_or(id).to_owned())
    };
    networks.filter(keeps).filter(|(_, it)| is_first(it)).map(|(engine, it)| shown(engine, it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::targets::testing::target;

    fn networks() -> Vec<(Target, Value)> {
        let group = json!({GROUP_LABEL: "g1"});
        vec![
            (target("node-0"), json!({"Name": "bridge", "Id": "b0", "Scope": "local", "Driver": "bridge"})),
            (target("node-1"), json!({"Name": "bridge", "Id": "b1", "Scope": "local", "Driver": "bridge"})),
            (
                target("node-0"),
                json!({"Name": "app", "Id": "a0", "Scope": "local", "Driver": "bridge", "Labels": group}),
            ),
            (
                target("node-1"),
                json!({"Name": "app", "Id": "a1", "Scope": "local", "Driver": "bridge", "Labels": group}),
            ),
            (
                target("node-1"),
                json!({"Name": "lone", "Id": "c7", "Scope": "local", "Driver": "bridge", "Labels": {}}),
            ),
            (target("node-0"), json!({"Name": "wide", "Id": "w9", "Scope": "global", "Driver": "overlay"})),
            (target("node-1"), json!({"Name": "wide", "Id": "w9", "Scope": "global", "Driver": "overlay"})),
        ]
    }

    #[test]
    fn networks_are_found_by_name_node_and_id() {
        let networks = networks();
        for (named, expected) in [
            ("app", Ok(vec![2, 3])),
            ("a1", Ok(vec![2, 3])),
            ("node-1/app", Ok(vec![3])),
            ("node-0/bridge", Ok(vec![0])),
            ("id-node-1/bridge", Ok(vec![1])),
            ("bridge", Err(404)),
            ("lone", Ok(vec![4])),
            ("c", Ok(vec![4])),
            ("b", Err(400)),
            ("wide", Ok(vec![5])),
            ("w9", Ok(vec![5])),
            ("node-9/app", Err(404)),
            ("", Err(404)),
        ] {
            let found = meant(networks.iter().map(|(target, it)| (target, it)), named);
            assert_eq!(found.map_err(|error| error.status.as_u16()), expected, "{named}");
        }
    }

    #[test]
    fn lists_show_each_network_once() {
        let networks = networks();
        for (filters, expected) in [
            (json!({}), "node-0/bridge node-1/bridge app node-1/lone wide"),
            (json!({"node": ["node-1"]}), "node-1/bridge app node-1/lone wide"),
            (json!({"name": ["node-1/"]}), "node-1/bridge app node-1/lone wide"),
            (json!({"type": ["custom"]}), "app node-1/lone wide"),
            (json!({"driver": ["overlay"]}), "wide"),
            (json!({"scope": ["global"]}), "wide"),
            (json!({"id": ["b1"]}), "node-1/bridge"),
        ] {
            let parsed = Filters::parse(&filters.to_string()).expect("filters");
            let list = network_list(networks.iter().map(|(target, it)| (target.name.as_str(), it)), &parsed);
            let names: Vec<&str> = list.iter().filter_map(|network| network["Name"].as_str()).collect();
            assert_eq!(names.join(" "), expected, "{filters}");
        }
    }

    #[test]
    fn containers_of_all_engines_are_shown() {
        let mut merged = json!({"Containers": {"x": {}}});
        add_containers(&mut merged, &json!({"Containers": {"y": {}}}));
        add_containers(&mut merged, &json!(null));
        assert_eq!(merged, json!({"Containers": {"x": {}, "y": {}}}));
        assert!(add_group(&mut json!({"Labels": 5})).is_err());
    }
}
