//! The HTTP API of a running service: where it is, and requests to it.
//!
//! A service announces the address of its API in a label of its framework. Credentials of the cluster are never sent there,
//! because any framework could announce itself under a service's name: a service that asks for authentication is named by
//! `--api`.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::Value;
use tepui_client::endpoint::Endpoint;
use tepui_client::operator::Client;

use super::super::Cluster;
use crate::listing::{lists, text};
use crate::similar::{self, Known};

/// The label of a framework that names the address of its API.
pub const API_LABEL: &str = "tepui.service.api";

const JSON: &str = "application/json";

/// Which service.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// Name of the service; `tepui service list` lists them.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Address of the service's API, `http://host:port`; credentials are sent there [default: as the service announces]
    #[arg(long, value_name = "URL")]
    api: Option<String>,
}

/// An answer of the API.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Target {
    /// A client of the service's API.
    pub async fn connect(&self, cluster: &Cluster) -> Result<Service> {
        let (address, credential) = match &self.api {
            Some(given) => (given.clone(), cluster.credential()?),
            None => (announced(&services(cluster).await?, &self.name)?, None),
        };
        let endpoint = Endpoint::parse(&address, 0)
            .with_context(|| format!("the address of the service's API cannot be used: {address}"))?;
        let client = Client::at(endpoint).with_credential(credential);
        Ok(Service { client, name: self.name.clone(), address })
    }
}

/// Frameworks that are services, with or without a scheduler that is connected.
pub async fn services(cluster: &Cluster) -> Result<Vec<Value>> {
    let answer = cluster.get("/frameworks").await?;
    Ok(lists(&answer, &["frameworks"]).filter(|one| api_of(one).is_some()).cloned().collect())
}

/// The address that a framework announces.
pub fn api_of(framework: &Value) -> Option<&str> {
    lists(framework, &["labels"]).find(|label| text(label, "key") == API_LABEL)?["value"].as_str()
}

fn announced(services: &[Value], name: &str) -> Result<String> {
    let known: Vec<Known> =
        services.iter().map(|one| Known::new(text(one, "id"), text(one, "name"))).collect();
    let found = &services[similar::one("service", name, &known, "tepui service list")?];
    if found["connected"] != true {
        bail!(
            "the scheduler of service {name} is not connected to the master; start it with `tepui service run`"
        );
    }
    api_of(found).map(str::to_owned).ok_or_else(|| anyhow!("service {name} announces no API"))
}

/// A running service.
pub struct Service {
    client: Client,
    name: String,
    address: String,
}

impl Service {
    /// A document; `accepts` are statuses besides 2xx that carry one.
    pub async fn get(&self, path: &str, accepts: &[u16]) -> Result<Value> {
        let answer = self.send("GET", path, None).await?;
        let is_fine = (200..300).contains(&answer.status) || accepts.contains(&answer.status);
        if !is_fine {
            return Err(self.refused(&answer));
        }
        serde_json::from_str(&answer.body).map_err(|error| self.unreadable(&error.to_string()))
    }

    /// A command; the document of its answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.send("POST", path, Some((JSON, body.to_string().into_bytes()))).await?;
        match answer.status {
            208 => bail!("nothing to do: the command has already been issued or is complete"),
            200..300 => {
                serde_json::from_str(&answer.body).map_err(|error| self.unreadable(&error.to_string()))
            }
            _ => Err(self.refused(&answer)),
        }
    }

    async fn send(&self, method: &str, path: &str, body: Option<(&str, Vec<u8>)>) -> Result<Answer> {
        let method = method.parse().context("a method of HTTP")?;
        let (status, body) = self.client.request(method, path, body).await.with_context(|| {
            format!("the API of service {} at {} does not answer", self.name, self.address)
        })?;
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn refused(&self, answer: &Answer) -> anyhow::Error {
        let Answer { status, body } = answer;
        match status {
            401 => anyhow!(
                "the API of service {} requires authentication; give --api={} with --principal and TEPUI_SECRET",
                self.name,
                self.address
            ),
            404 => anyhow!("{}", body.trim()),
            503 => anyhow!("the scheduler of service {} is not ready: {}", self.name, body.trim()),
            _ => anyhow!("service {} rejects the request ({status}): {}", self.name, body.trim()),
        }
    }

    fn unreadable(&self, why: &str) -> anyhow::Error {
        anyhow!("unexpected answer from {}, which may not be a service: {why}", self.address)
    }
}

/// A component of a path, escaped.
pub fn part(text: &str) -> String {
    tepui_client::operator::files::escape(text).to_string()
}

/// A query of what is given, with its question mark; empty without any.
pub fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let given = pairs.iter().filter_map(|(key, value)| Some(format!("{key}={}", part((*value)?))));
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_is_found_by_its_name_and_its_label() {
        let label = json!([{"key": API_LABEL, "value": "http://127.0.0.1:7"}]);
        let services = [
            json!({"id": "f-1", "name": "db", "connected": true, "labels": label}),
            json!({"id": "f-2", "name": "web", "connected": false, "labels": label}),
        ];
        assert_eq!(announced(&services, "db").expect("found"), "http://127.0.0.1:7");
        for (name, message) in [("web", "is not connected"), ("da", "tepui service list")] {
            let error = announced(&services, name).expect_err(name).to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(api_of(&json!({"labels": [{"key": "other", "value": "x"}]})), None);
    }

    #[test]
    fn queries_hold_only_set_values() {
        assert_eq!(query(&[("phase", None), ("step", None)]), "");
        assert_eq!(
            query(&[("phase", Some("a b")), ("step", Some("x-0:[t]"))]),
            "?phase=a%20b&step=x-0%3A%5Bt%5D"
        );
    }
}
