//! The rows of `docker info`: offers, engines with their type of resources, what is reserved of each kind.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_placement::Kind;
use tepui_resources::{Name, Resource, Scalar, Value};
use tepui_types::AgentId;

use crate::agent::{Agent, EngineLink};
use crate::manager::{Container, Phase, View};
use crate::schedule::Scheduler;

const KIBI: f64 = 1024.0;
const BYTES_PER_MEBIBYTE: f64 = KIBI * KIBI;

/// Containers by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub running: usize,
    pub paused: usize,
    pub stopped: usize,
}

impl Counts {
    /// `state` as an engine lists it.
    pub fn add(&mut self, state: &str) {
        match state {
            "running" | "restarting" => self.running += 1,
            "paused" => self.paused += 1,
            _ => self.stopped += 1,
        }
    }

    pub fn total(&self) -> usize {
        self.running + self.paused + self.stopped
    }
}

/// Pairs of a key and a value, in the order in which the docker CLI prints them. `by_agent`: the containers of the view;
/// `counts`: their states, as far as engines have listed them.
pub fn status_rows(
    view: &View,
    scheduler: &Scheduler,
    role: &str,
    by_agent: &BTreeMap<&str, Vec<&Arc<Container>>>,
    counts: &BTreeMap<&str, Counts>,
) -> Vec<[String; 2]> {
    let row = |key: &str, value: String| [key.to_string(), value];
    let filters: Vec<&str> = scheduler.filters.iter().map(|filter| filter.as_str()).collect();
    let mut offers: Vec<_> = view.agents.values().flat_map(|agent| agent.offers.values()).collect();
    offers.sort_by(|a, b| a.id.cmp(&b.id));
    let mut rows = Vec::from([
        row("Role", role.to_string()),
        row("Strategy", scheduler.strategy.to_string()),
        row("Filters", filters.join(", ")),
        row("Offers", offers.len().to_string()),
    ]);
    for offer in offers {
        rows.push(row("  Offer", offer.id.to_string()));
        rows.extend(
            offer
                .resources
                .iter()
                .map(|resource| row(&format!("   └ {}", title(resource)), amount(resource))),
        );
    }
    rows.push(row("Nodes", view.agents.size().to_string()));
    for (id, agent) in view.agents.iter() {
        let containers = by_agent.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let counts = counts.get(id.as_str()).copied().unwrap_or_default();
        engine_rows(containers, counts, id, agent, &mut rows);
    }
    rows
}

fn engine_rows(
    containers: &[&Arc<Container>],
    counts: Counts,
    id: &AgentId,
    agent: &Agent,
    rows: &mut Vec<[String; 2]>,
) {
    let status = match &agent.engine {
        EngineLink::Connecting => "Pending",
        EngineLink::Up(_) => "Healthy",
        EngineLink::Down { .. } => "Unhealthy",
    };
    rows.push([format!(" {}", agent.name()), agent.address.to_string()]);
    let mut push = |key: &str, value: String| rows.push([format!("  └ {key}"), value]);
    push("ID", id.to_string());
    push("Status", status.to_string());
    let held: Vec<_> =
        containers.iter().filter(|it| matches!(it.phase, Phase::Launching | Phase::Created)).collect();
    let Counts { running, paused, stopped } = counts;
    let states = format!("({running} Running, {paused} Paused, {stopped} Stopped)");
    push("Containers", format!("{} {states}", counts.total()));
    for kind in Kind::ALL {
        let own = held.iter().filter(|it| it.kind() == kind);
        let (cpus, memory) =
            own.fold((0, 0), |(cpus, memory), it| (cpus + it.cpus_thousandths, memory + it.memory_bytes));
        let (cpus, (more_cpus, more_memory)) = (Scalar::from_thousandths(cpus), agent.offered(kind));
        let memory = memory as f64;
        let total = memory + more_memory.to_f64() * BYTES_PER_MEBIBYTE;
        push(&format!("Reserved CPUs ({kind})"), format!("{cpus} / {}", cpus + more_cpus));
        push(
            &format!("Reserved Memory ({kind})"),
            format!("{} / {}", amount_text(memory), amount_text(total)),
        );
    }
    let labels: Vec<String> = agent.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    push("Labels", labels.join(", "));
    if let EngineLink::Down { error, .. } = &agent.engine {
        push("Error", error.clone());
    }
}

fn title(resource: &Resource) -> String {
    match resource.is_revocable() {
        true => format!("{}(revocable)", resource.name()),
        false => resource.name().to_string(),
    }
}

/// Sizes in binary units, other amounts as whole numbers.
fn amount(resource: &Resource) -> String {
    match (resource.name(), resource.value()) {
        (Name::Mem | Name::Disk, Value::Scalar(amount)) => amount_text(amount.to_f64() * BYTES_PER_MEBIBYTE),
        (_, Value::Scalar(amount)) => (amount.thousandths() / 1000).to_string(),
        (_, Value::Ranges(ranges)) => {
            ranges.iter().map(|range| format!("{}-{}", range.begin, range.end)).collect::<Vec<_>>().join(", ")
        }
        (_, Value::Set(_)) => "?".to_string(),
    }
}

/// Bytes with four significant digits: `1006 MiB`, `34.37 GiB`.
pub fn amount_text(bytes: f64) -> String {
    let mut value = bytes;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].into_iter().peekable();
    let mut unit = units.next().unwrap_or_default();
    while value >= KIBI && units.peek().is_some() {
        value /= KIBI;
        unit = units.next().unwrap_or_default();
    }
    let decimals = match value {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_four_digits() {
        for (bytes, expected) in [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (20.0 * BYTES_PER_MEBIBYTE, "20 MiB"),
            (1006.0 * BYTES_PER_MEBIBYTE, "1006 MiB"),
            (34.37 * KIBI * BYTES_PER_MEBIBYTE, "34.37 GiB"),
            (2.1 * KIBI * BYTES_PER_MEBIBYTE, "2.1 GiB"),
        ] {
            assert_eq!(amount_text(bytes), expected);
        }
    }
}
