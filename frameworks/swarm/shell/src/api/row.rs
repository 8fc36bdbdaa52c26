//! A row of `docker ps`: what an engine listed, for the whole cluster.
//!
//! Made once per list of an engine and rendered as far as it does not depend on time; a reader of thirty thousand containers
//! only copies bytes. Pure: the list, the name and the address of the engine are arguments.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tepui_swarm::{Container, Phase};

use super::status::Status;

/// What the rows of one engine have in common.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The name of the engine.
    pub engine: &'a str,
    /// Its address, in place of one that is not specified.
    pub ip: &'a str,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    /// With the engine's name: `node-0/web`.
    pub names: Vec<String>,
    pub image: String,
    pub image_id: String,
    pub created: i64,
    pub state: String,
    pub status: Status,
    pub labels: BTreeMap<String, String>,
    /// Names, sources and destinations.
    pub mounts: Vec<String>,
    /// Names and ids.
    pub networks: Vec<String>,
    /// `80/tcp`.
    pub exposed: Vec<String>,
    pub published: Vec<String>,
    /// JSON up to the text of the status.
    before: String,
    /// JSON behind it.
    after: String,
}

impl Row {
    /// From an element of an engine's answer to GET /containers/json.
    pub fn of_listed(listed: &Value, place: &Place<'_>) -> Option<Row> {
        let mut listed = listed.as_object()?.clone();
        let text = |listed: &Map<String, Value>, key: &str| {
            listed.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (id, status) = (text(&listed, "Id"), text(&listed, "Status"));
        if id.is_empty() {
            return None;
        }
        let names = with_engine(&listed, place.engine);
        listed.insert("Names".into(), names.iter().map(|name| format!("/{name}")).collect());
        let (exposed, published) = ports(&mut listed, place.ip);
        listed.remove("Status");
        let labels = listed.get("Labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        let (before, after) = render(&listed);
        Some(Row {
            id,
            names,
            image: text(&listed, "Image"),
            image_id: text(&listed, "ImageID"),
            created: listed.get("Created").and_then(Value::as_i64).unwrap_or(0),
            state: text(&listed, "State"),
            status: Status::parse(&status),
            labels: labels.collect(),
            mounts: mounts(&listed),
            networks: networks(&listed),
            exposed,
            published,
            before,
            after,
        })
    }

    /// Of a container whose engine was never reached by this manager: from the manager's own record.
    pub fn of_record(container: &Container, place: &Place<'_>) -> Option<Row> {
        let body: Value = serde_json::from_str(&container.body).unwrap_or_default();
        let listed = json!({
            "Id": container.occupant.id,
            "Names": [format!("/{}", container.occupant.name)],
            "Image": body["Image"],
            "ImageID": "",
            "Command": "",
            "Created": container.created_nanos / 1_000_000_000,
            "Ports": [],
            "Labels": container.occupant.labels,
            "State": "",
            "Status": "",
            "HostConfig": {"NetworkMode": body["HostConfig"]["NetworkMode"]},
            "NetworkSettings": {"Networks": {}},
            "Mounts": [],
        });
        Row::of_listed(&listed, place)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// Appends the row as JSON, with this status.
    pub fn write(&self, status: &str, into: &mut String) {
        into.push_str(&self.before);
        let _ = write!(into, "{}", Value::from(status)); // Writing to a string does not fail.
        into.push_str(&self.after);
    }
}

/// Why a container terminated without its own doing; none if the engine's own words tell everything.
pub fn end_reason(phase: &Phase) -> Option<String> {
    let Phase::Ended { state, reason, message } = phase else { return None };
    let what = match reason.as_deref() {
        Some("REASON_CONTAINER_PREEMPTED") => "preempted",
        Some("REASON_CONTAINER_LIMITATION_MEMORY" | "REASON_TASK_KILLED_DURING_LAUNCH") => "killed",
        Some(
            "REASON_AGENT_REMOVED"
            | "REASON_AGENT_DISCONNECTED"
            | "REASON_AGENT_RESTARTED"
            | "REASON_AGENT_REMOVED_BY_OPERATOR"
            | "REASON_EXECUTOR_TERMINATED"
            | "REASON_RECONCILIATION",
        ) => "lost",
        _ if matches!(
            state.as_str(),
            "TASK_LOST" | "TASK_GONE" | "TASK_GONE_BY_OPERATOR" | "TASK_UNREACHABLE"
        ) =>
        {
            "lost"
        }
        _ => return None,
    };
    Some(if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") })
}

/// `/web` becomes `node-0/web`; names of links (`/other/web`) are kept below the engine's too.
fn with_engine(listed: &Map<String, Value>, engine: &str) -> Vec<String> {
    let names = listed.get("Names").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(|name| format!("{engine}/{}", name.trim_start_matches('/'))).collect()
}

/// Sets the engine's address where the host's is not specified; exposed and published ports.
fn ports(listed: &mut Map<String, Value>, ip: &str) -> (Vec<String>, Vec<String>) {
    let (mut exposed, mut published) = (Vec::new(), Vec::new());
    let ports = listed.get_mut("Ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports {
        let protocol = port["Type"].as_str().unwrap_or("tcp").to_owned();
        exposed.extend(port["PrivatePort"].as_u64().map(|number| format!("{number}/{protocol}")));
        published.extend(port["PublicPort"].as_u64().map(|number| format!("{number}/{protocol}")));
        if let Some(own) = port.get_mut("IP").filter(|own| is_unspecified(own.as_str().unwrap_or_default())) {
            *own = Value::from(ip);
        }
    }
    (exposed, published)
}

pub fn is_unspecified(ip: &str) -> bool {
    matches!(ip, "" | "0.0.0.0" | "::")
}

fn mounts(listed: &Map<String, Value>) -> Vec<String> {
    let mounts = listed.get("Mounts").and_then(Value::as_array).into_iter().flatten();
    let texts = mounts.flat_map(|mount| ["Name", "Source", "Destination"].map(|key| mount[key].as_str()));
    texts.flatten().map(str::to_owned).collect()
}

fn networks(listed: &Map<String, Value>) -> Vec<String> {
    let networks =
        listed.get("NetworkSettings").and_then(|it| it["Networks"].as_object()).into_iter().flatten();
    networks
        .flat_map(|(name, network)| [Some(name.as_str()), network["NetworkID"].as_str()])
        .flatten()
        .map(str::to_owned)
        .collect()
}

fn render(listed: &Map<String, Value>) -> (String, String) {
    let mut text = Value::Object(listed.clone()).to_string();
    text.pop(); // The closing brace.
    text.push_str(",\"Status\":");
    (text, "}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_rows_contain_node_names_and_addresses() {
        let listed = json!({
            "Id": "ab12", "Names": ["/web", "/front/alias"], "Image": "busybox", "Created": 7, "State": "running",
            "Status": "Up 5 seconds", "Labels": {"res-type": "revocable"},
            "Ports": [{"IP": "0.0.0.0", "PrivatePort": 80, "PublicPort": 31000, "Type": "tcp"}, {"PrivatePort": 81, "Type": "udp"}],
            "Mounts": [{"Name": "v", "Source": "", "Destination": "/data"}],
            "NetworkSettings": {"Networks": {"bridge": {"NetworkID": "n1"}}},
        });
        let row = Row::of_listed(&listed, &Place { engine: "node-0", ip: "10.0.0.1" }).expect("a row");
        let mut text = String::new();
        row.write(&row.status.text(1), &mut text);
        let written: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(written["Names"], json!(["/node-0/web", "/node-0/front/alias"]));
        assert_eq!(written["Status"], "Up 6 seconds");
        assert_eq!(written["Ports"][0]["IP"], "10.0.0.1");
        assert_eq!(written["Ports"][1], json!({"PrivatePort": 81, "Type": "udp"}));
        assert_eq!(
            (row.exposed, row.published),
            (vec!["80/tcp".to_owned(), "81/udp".to_owned()], vec!["31000/tcp".to_owned()])
        );
        assert_eq!(
            (row.mounts, row.networks),
            (
                vec!["v".to_owned(), String::new(), "/data".to_owned()],
                vec!["bridge".to_owned(), "n1".to_owned()]
            )
        );
    }

    #[test]
    fn invalid_list_entries_are_skipped_or_reduced() {
        let place = Place { engine: "n", ip: "" };
        for listed in [json!(null), json!([]), json!({}), json!({"Id": 5}), json!({"Id": ""})] {
            assert!(Row::of_listed(&listed, &place).is_none(), "{listed}");
        }
        let listed = json!({"Id": "a", "Names": [1, null], "Ports": [null, 7, {"IP": 5}], "Labels": {"a": 1}, "Mounts": "x", "Created": "x"});
        let row = Row::of_listed(&listed, &place).expect("a row");
        let mut text = String::new();
        row.write("quote \" and \u{1}", &mut text);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON")["Status"], "quote \" and \u{1}");
    }

    #[test]
    fn only_terminations_by_the_cluster_have_a_reason() {
        for (state, reason, message, expected) in [
            ("TASK_FINISHED", None, "", None),
            ("TASK_FAILED", None, "exited with status 1", None),
            (
                "TASK_KILLED",
                Some("REASON_CONTAINER_PREEMPTED"),
                "cpus were taken back",
                Some("preempted: cpus were taken back"),
            ),
            ("TASK_FAILED", Some("REASON_CONTAINER_PREEMPTED"), "", Some("preempted")),
            ("TASK_LOST", Some("REASON_AGENT_REMOVED"), "", Some("lost")),
            ("TASK_GONE", None, "agent gone", Some("lost: agent gone")),
        ] {
            let phase = Phase::Ended {
                state: state.into(),
                reason: reason.map(str::to_owned),
                message: message.into(),
            };
            assert_eq!(end_reason(&phase).as_deref(), expected, "{state} {reason:?}");
        }
        assert_eq!(end_reason(&Phase::Created), None);
    }
}
