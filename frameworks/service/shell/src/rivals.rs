//! Other schedulers of the same service on the same cluster.

use serde_json::Value;
use tepui_client::operator::Client;
use tracing::warn;

use crate::convert::API_LABEL;

/// The search for other schedulers of a service.
#[derive(Clone, Debug)]
pub(crate) struct Rivals {
    pub client: Client,
    pub service: String,
}

impl Rivals {
    /// Why this scheduler must not start: another one with a framework of its own is connected.
    pub async fn find(&self, own_id: Option<&str>) -> Option<String> {
        rival(&self.frameworks().await?, &self.service, own_id)
    }

    /// Why this scheduler must not go on after its first subscription: another one that started at the same time registered
    /// before it.
    pub async fn find_earlier(&self, own_id: &str) -> Option<String> {
        earlier_rival(&self.frameworks().await?, &self.service, own_id)
    }

    /// A master that does not answer is no reason to end: the session waits for it.
    async fn frameworks(&self) -> Option<Value> {
        let answer = self.client.get("/frameworks").await;
        answer.inspect_err(|error| warn!(%error, "cannot look for other schedulers of the service")).ok()
    }
}

fn rival(frameworks: &Value, service: &str, own_id: Option<&str>) -> Option<String> {
    let found = connected(frameworks, service).find(|framework| framework["id"].as_str() != own_id)?;
    Some(reason(found, service))
}

fn earlier_rival(frameworks: &Value, service: &str, own_id: &str) -> Option<String> {
    let registration = |framework: &Value| {
        (framework["registered_time"].as_f64(), framework["id"].as_str().map(str::to_owned))
    };
    let own = connected(frameworks, service).find(|framework| framework["id"] == own_id)?;
    let mut all = connected(frameworks, service);
    let earlier = all.find(|framework| registration(framework) < registration(own))?;
    Some(reason(earlier, service))
}

/// Connected schedulers of a service.
fn connected<'f>(frameworks: &'f Value, service: &str) -> impl Iterator<Item = &'f Value> {
    let all = frameworks["frameworks"].as_array().into_iter().flatten();
    all.filter(move |framework| {
        framework["name"] == service && framework["connected"] == true && api_of(framework).is_some()
    })
}

fn reason(found: &Value, service: &str) -> String {
    let id = found["id"].as_str().unwrap_or_default();
    let api = api_of(found).unwrap_or_default();
    format!(
        "service {service} is already run by another scheduler (framework {id}, API {api}); stop that one, \
         give this service another name, or let both share --store=etcd://…"
    )
}

fn api_of(framework: &Value) -> Option<&str> {
    let labels = framework["labels"].as_array()?;
    labels.iter().find(|label| label["key"] == API_LABEL)?["value"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_two_schedulers_the_one_that_registered_later_has_a_rival() {
        let framework = |id: &str, time: f64| json!({"id": id, "name": "db", "connected": true, "registered_time": time, "labels": [{"key": API_LABEL, "value": "http://h:1"}]});
        for (a, b) in [(1.0, 2.5), (1.5, 1.5)] {
            let all = json!({"frameworks": [framework("m-0002", b), framework("m-0001", a)]});
            assert_eq!(earlier_rival(&all, "db", "m-0001"), None);
            assert!(earlier_rival(&all, "db", "m-0002").expect("a rival").contains("framework m-0001"));
        }
        assert_eq!(earlier_rival(&json!({"frameworks": [framework("m-0001", 1.0)]}), "db", "m-0002"), None);
    }

    #[test]
    fn a_connected_scheduler_of_the_same_name_is_a_rival() {
        let framework = |id: &str, name: &str, connected: bool, key: &str| json!({"id": id, "name": name, "connected": connected, "labels": [{"key": key, "value": "http://h:1"}]});
        let cases = [
            (framework("a", "db", true, API_LABEL), None, true),
            (framework("a", "db", true, API_LABEL), Some("a"), false),
            (framework("a", "db", true, API_LABEL), Some("b"), true),
            (framework("a", "db", false, API_LABEL), None, false),
            (framework("a", "web", true, API_LABEL), None, false),
            (framework("a", "db", true, "other"), None, false),
        ];
        for (framework, own_id, expected) in cases {
            let found = rival(&json!({"frameworks": [framework]}), "db", own_id);
            assert_eq!(found.is_some(), expected, "{framework} {own_id:?} {found:?}");
        }
    }
}
