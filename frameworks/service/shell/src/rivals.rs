//! Other schedulers of the same service on the same cluster.

use serde_json::Value;
use tepui_client::operator::Client;
use tracing::warn;

use crate::convert::API_LABEL;

/// Why this scheduler must not start: another one with a framework of its own is connected. A master that does not answer
/// is no reason: the session waits for it.
pub(crate) async fn find(client: &Client, service: &str, own_id: Option<&str>) -> Option<String> {
    let answer = match client.get("/frameworks").await {
        Ok(answer) => answer,
        Err(error) => {
            warn!(%error, "cannot look for other schedulers of the service");
            return None;
        }
    };
    rival(&answer, service, own_id)
}

fn rival(frameworks: &Value, service: &str, own_id: Option<&str>) -> Option<String> {
    let frameworks = frameworks["frameworks"].as_array()?.iter();
    let is_rival = |framework: &&Value| {
        framework["name"] == service
            && framework["connected"] == true
            && framework["id"].as_str() != own_id
            && api_of(framework).is_some()
    };
    let found = frameworks.into_iter().find(is_rival)?;
    let id = found["id"].as_str().unwrap_or_default();
    let api = api_of(found).unwrap_or_default();
    Some(format!(
        "service {service} is already run by another scheduler (framework {id}, API {api}); stop that one, \
         give this service another name, or let both share --store=etcd://…"
    ))
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
