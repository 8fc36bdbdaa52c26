//! Which rows `docker ps` shows: its filters, its order and its limit. Pure.

use regex::{Regex, RegexBuilder};
use tepui_swarm::Container;

use super::error::ApiError;
use super::query::{Filters, Query};
use super::row::Row;

/// The most memory that the pattern of a filter may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

const FILTERS: [&str; 17] = [
    "ancestor",
    "before",
    "expose",
    "exited",
    "health",
    "id",
    "is-task",
    "isolation",
    "label",
    "label!",
    "name",
    "network",
    "node",
    "publish",
    "since",
    "status",
    "volume",
];
const STATES: [&str; 7] = ["created", "restarting", "running", "removing", "paused", "exited", "dead"];
const HEALTH: [&str; 4] = ["starting", "healthy", "unhealthy", "none"];

/// A container as `docker ps` looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub container: &'a Container,
    pub row: &'a Row,
    /// The name of the engine, and its id.
    pub engine: [&'a str; 2],
    pub is_healthy: bool,
}

/// The parameters of GET /containers/json, checked.
#[derive(Debug)]
pub struct Ps {
    all: bool,
    limit: usize,
    pub size: bool,
    filters: Filters,
    ids: Vec<Regex>,
    names: Vec<Regex>,
    exited: Vec<i64>,
    before: Option<String>,
    since: Option<String>,
}

impl Ps {
    pub fn parse(query: &Query) -> Result<Self, ApiError> {
        let filters = query.filters()?;
        filters.check(&FILTERS)?;
        for (name, known) in [("status", &STATES[..]), ("health", &HEALTH[..])] {
            let wrong = filters.get(name).iter().find(|value| !known.contains(&value.as_str()));
            if let Some(value) = wrong {
                return Err(ApiError::bad(format!(
                    "Invalid filter '{name}={value}'; there are: {}",
                    known.join(", ")
                )));
            }
        }
        let code = |value: &String| {
            value
                .parse()
                .map_err(|_| ApiError::bad(format!("Invalid filter 'exited={value}': must be a number")))
        };
        let exited: Vec<i64> = filters.get("exited").iter().map(code).collect::<Result<_, _>>()?;
        let limit = query.number("limit")?.filter(|limit| *limit > 0);
        let reference =
            |name: &str| filters.get(name).first().cloned().or_else(|| query.get(name).map(str::to_owned));
        let (before, since) = (reference("before"), reference("since"));
        let all = query.is_true("all") || limit.is_some() || before.is_some() || since.is_some();
        Ok(Self {
            all: all || filters.has("status") || !exited.is_empty(),
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
            size: query.is_true("size"),
            ids: patterns("id", &filters)?,
            names: patterns("name", &filters)?,
            filters,
            exited,
            before,
            since,
        })
    }

    /// Containers that the parameters name; they must be known.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.before.iter().chain(&self.since).map(String::as_str)
    }

    /// The entries to show, newest first. `created`: when a container that the parameters name was created.
    pub fn select<'a>(
        &self,
        entries: impl Iterator<Item = Entry<'a>>,
        created: impl Fn(&str) -> Option<u64>,
    ) -> Vec<Entry<'a>> {
        let before = self.before.as_deref().and_then(&created);
        let since = self.since.as_deref().and_then(&created);
        let in_time = |entry: &Entry<'_>| {
            let own = entry.container.created_nanos;
            before.is_none_or(|limit| own < limit) && since.is_none_or(|limit| own > limit)
        };
        let mut shown: Vec<Entry<'a>> = entries.filter(|entry| self.keeps(entry) && in_time(entry)).collect();
        shown.sort_by(|a, b| {
            let key = |it: &Entry<'a>| (it.row.created, it.container.created_nanos);
            key(b).cmp(&key(a)).then_with(|| a.row.id.cmp(&b.row.id))
        });
        shown.truncate(self.limit);
        shown
    }

    fn keeps(&self, entry: &Entry<'_>) -> bool {
        let (row, filters) = (entry.row, &self.filters);
        let is_running = matches!(row.state.as_str(), "running" | "paused" | "restarting");
        let is_shown = self.all || is_running && entry.is_healthy;
        // The labels of the record are the newest: the type of resources is among them.
        let label = |key: &str| {
            row.label(key).or_else(|| entry.container.occupant.labels.get(key).map(String::as_str))
        };
        is_shown
            && filters.exactly("status", &row.state)
            && filters.exactly("health", row.status.health())
            && filters.any("node", |node| entry.engine.contains(&node))
            && filters.labels(label)
            && (self.ids.is_empty() || self.ids.iter().any(|id| id.is_match(&row.id)))
            && (self.names.is_empty() || self.names.iter().any(|name| is_named(name, row, entry)))
            && (self.exited.is_empty()
                || row.status.exit_code().is_some_and(|code| self.exited.contains(&code)))
            && filters.any("ancestor", |image| is_ancestor(image, row))
            && filters.any("volume", |volume| row.mounts.iter().any(|own| is_below(volume, own, entry)))
            && filters.any("network", |network| row.networks.iter().any(|own| is_below(network, own, entry)))
            && filters.any("expose", |port| row.exposed.iter().any(|own| is_port(port, own)))
            && filters.any("publish", |port| row.published.iter().any(|own| is_port(port, own)))
            && filters.any("is-task", |value| matches!(value, "false" | "0"))
            && filters.any("isolation", |value| value == "default")
    }
}

fn patterns(name: &str, filters: &Filters) -> Result<Vec<Regex>, ApiError> {
    let compile = |text: &String| {
        RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().map_err(|_| {
            ApiError::bad(format!("Invalid filter '{name}={text}': must be a regular expression"))
        })
    };
    filters.get(name).iter().map(compile).collect()
}

/// With and without the engine's name and the leading slash: patterns may be anchored.
fn is_named(pattern: &Regex, row: &Row, entry: &Entry<'_>) -> bool {
    let own = &entry.container.occupant.name;
    let matches = |name: &str| pattern.is_match(name) || pattern.is_match(&format!("/{name}"));
    matches(own) || row.names.iter().any(|name| matches(name))
}

fn is_ancestor(image: &str, row: &Row) -> bool {
    let id = row.image_id.strip_prefix("sha256:").unwrap_or(&row.image_id);
    let wanted = image.strip_prefix("sha256:").unwrap_or(image);
    let with_tag = |name: &str| {
        let has_tag = name.rsplit_once(':').is_some_and(|(_, tag)| !tag.contains('/')) || name.contains('@');
        if has_tag { name.to_owned() } else { format!("{name}:latest") }
    };
    row.image_id == image
        || with_tag(&row.image) == with_tag(image)
        || wanted.len() >= 12 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.starts_with(wanted)
}

/// `name` or `engine/name`.
fn is_below(wanted: &str, own: &str, entry: &Entry<'_>) -> bool {
    let below = wanted.split_once('/').filter(|(engine, _)| entry.engine.contains(engine));
    wanted == own || below.is_some_and(|(_, name)| name == own)
}

/// `80`, `80/tcp` or `80-90/tcp`.
fn is_port(wanted: &str, own: &str) -> bool {
    let (ports, protocol) = wanted.split_once('/').unwrap_or((wanted, "tcp"));
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let Some((number, own_protocol)) = own.split_once('/') else { return false };
    match (first.parse::<u32>(), last.parse::<u32>(), number.parse::<u32>()) {
        (Ok(first), Ok(last), Ok(number)) => protocol == own_protocol && (first..=last).contains(&number),
        _ => false,
    }
}

#[cfg(test)]
#[path = "ps/tests.rs"]
mod tests;
