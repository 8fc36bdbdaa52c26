//! Which events a reader gets. Pure.

use serde_json::Value;

use crate::api::error::ApiError;
use crate::api::query::Filters;

const FILTERS: [&str; 17] = [
    "config",
    "container",
    "daemon",
    "event",
    "image",
    "label",
    "label!",
    "network",
    "node",
    "plugin",
    "scope",
    "secret",
    "service",
    "type",
    "volume",
    "action",
    "task",
];

#[derive(Clone, Debug, Default)]
pub struct Selection {
    filters: Filters,
}

impl Selection {
    pub fn parse(filters: Filters) -> Result<Self, ApiError> {
        filters.check(&FILTERS)?;
        Ok(Self { filters })
    }

    /// `event` with the node that it happened on.
    pub fn keeps(&self, event: &Value) -> bool {
        if super::is_foreign(event) {
            return false;
        }
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, action) = (text(&event["Type"]), text(&event["Action"]));
        let attributes = &event["Actor"]["Attributes"];
        let filters = &self.filters;
        let is_action = |wanted: &str| {
            // `exec_create: ls` and `health_status: healthy` have details behind their names.
            action == wanted || action.split_once(": ").is_some_and(|(name, _)| name == wanted)
        };
        let is_actor = |of: &str, wanted: &str| {
            let id = event["Actor"]["ID"].as_str().unwrap_or_default();
            let name = attributes["name"].as_str().unwrap_or_default();
            kind == of
                && !wanted.is_empty()
                && (id.starts_with(wanted) || name == wanted.trim_start_matches('/'))
        };
        let is_image = |wanted: &str| {
            let image =
                if kind == "image" { event["Actor"]["ID"].as_str() } else { attributes["image"].as_str() };
            let image = image.unwrap_or_default();
            image == wanted
                || image.rsplit_once(':').is_some_and(|(name, _)| name == wanted)
                || is_actor("image", wanted)
        };
        let is_container = |wanted: &str| {
            let named = wanted.split_once('/').filter(|(node, _)| *node == attributes["node.name"]);
            is_actor("container", named.map_or(wanted, |(_, name)| name))
                || attributes["container"]
                    .as_str()
                    .is_some_and(|id| !wanted.is_empty() && id.starts_with(wanted))
        };
        filters.exactly("type", &kind)
            && filters.any("event", is_action)
            && filters.any("action", is_action)
            && filters.any("container", is_container)
            && filters.any("image", is_image)
            && filters.any("volume", |wanted| is_actor("volume", wanted))
            && filters.any("network", |wanted| is_actor("network", wanted))
            && filters.any("daemon", |wanted| is_actor("daemon", wanted))
            && filters.any("scope", |wanted| event["scope"] == wanted)
            && filters
                .any("node", |wanted| attributes["node.name"] == wanted || attributes["node.id"] == wanted)
            && ["config", "plugin", "secret", "service", "task"].iter().all(|other| !filters.has(other))
            && filters.labels(|key| attributes[key].as_str())
    }
}

/// Seconds since the epoch with up to nine decimals, in nanoseconds.
pub fn parse_time(name: &str, text: &str) -> Result<u64, ApiError> {
    let wrong = || {
        ApiError::bad(format!(
            "parameter {name} must be seconds since the epoch, such as 1700000000.5, not {text:?}"
        ))
    };
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let nanos: u64 = format!("{decimals:0<9}").parse().map_err(|_| wrong())?;
    seconds.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(nanos)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_choose_events() {
        let attributes = json!({"name": "web", "image": "busybox:latest", "app": "x", "node.name": "node-0", "node.id": "E0", tepui_swarm::TASK_LABEL: "t"});
        let events = [
            json!({"Type": "container", "Action": "start", "Actor": {"ID": "ab12", "Attributes": attributes}, "scope": "local"}),
            json!({"Type": "container", "Action": "exec_create: ls", "Actor": {"ID": "ab12", "Attributes": attributes}}),
            json!({"Type": "image", "Action": "pull", "Actor": {"ID": "busybox:latest", "Attributes": {"name": "busybox", "node.name": "node-1"}}}),
            json!({"Type": "network", "Action": "connect", "Actor": {"ID": "n1", "Attributes": {"name": "bridge", "container": "ab12", "node.name": "node-0"}}}),
            // Not ours.
            json!({"Type": "container", "Action": "start", "Actor": {"ID": "ff", "Attributes": {"name": "other"}}}),
        ];
        for (filters, expected) in [
            (json!({}), "0 1 2 3"),
            (json!({"type": ["container"]}), "0 1"),
            (json!({"event": ["start"]}), "0"),
            (json!({"event": ["exec_create"]}), "1"),
            (json!({"container": ["web"]}), "0 1"),
            (json!({"container": ["ab"]}), "0 1 3"),
            (json!({"container": ["node-0/web"]}), "0 1"),
            (json!({"container": ["node-1/web"]}), ""),
            (json!({"container": ["ff"]}), ""),
            (json!({"image": ["busybox"]}), "0 1 2"),
            (json!({"label": ["app=x"]}), "0 1"),
            (json!({"network": ["bridge"]}), "3"),
            (json!({"node": ["node-1"]}), "2"),
            (json!({"scope": ["local"]}), "0"),
            (json!({"volume": ["v"]}), ""),
            (json!({"type": ["container"], "event": ["start", "die"]}), "0"),
        ] {
            let selection =
                Selection::parse(Filters::parse(&filters.to_string()).expect("filters")).expect("filters");
            let kept: Vec<String> = events
                .iter()
                .enumerate()
                .filter(|(_, it)| selection.keeps(it))
                .map(|(place, _)| place.to_string())
                .collect();
            assert_eq!(kept.join(" "), expected, "{filters}");
        }
        let hostile = [
            json!(null),
            json!({"Type": "container", "Actor": 5}),
            json!({"Type": [], "Actor": {"Attributes": 7}}),
        ];
        let selection = Selection::default();
        assert_eq!(hostile.iter().filter(|event| selection.keeps(event)).count(), 2);
    }

    #[test]
    fn times_are_seconds_with_decimals() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1700000000", Some(1_700_000_000_000_000_000)),
            ("1700000000.5", Some(1_700_000_000_500_000_000)),
            ("1.000000001", Some(1_000_000_001)),
            ("1.0000000001", None),
            ("-1", None),
            ("1.-5", None),
            ("now", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(parse_time("since", text).ok(), expected, "{text}");
        }
    }
}
