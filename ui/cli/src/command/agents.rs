//! `tepui agents`: the machines of a cluster.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::Cluster;
use crate::amount;
use crate::listing::{self, List, ListContext, ListFlags, REVOCABLE, lists, number, text};
use crate::output::Tone;
use crate::table::Cell;

/// List agents with their resources and usage.
#[derive(Args)]
pub struct Agents {
    #[command(flatten)]
    list: ListFlags,
    /// Only agents in these states (comma-separated).
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = AgentState::NAMES)]
    state: Vec<String>,
}

impl Agents {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }
}

impl List for Agents {
    const COLUMNS: &'static [&'static str] =
        &["AGENT", "HOSTNAME", "STATE", "CPUS", "MEM", "DISK", "GPUS", "REVOCABLE", "ATTRIBUTES", "SINCE"];
    const COLUMNS_KEPT: usize = 6;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        match self.list.json {
            true => self.list.cluster.get("/slaves").await,
            false => all(&self.list.cluster).await,
        }
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let is_wanted = |agent: &&Value| {
            let state = AgentState::of(agent).name();
            self.state.is_empty() || self.state.iter().any(|wanted| wanted.eq_ignore_ascii_case(state))
        };
        Ok(lists(answer, &LISTS).filter(is_wanted).collect())
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        entries.iter().map(|agent| row(agent, seen)).collect()
    }

    fn nothing(&self, answer: &Value) -> String {
        match lists(answer, &LISTS).next() {
            Some(_) => "no such agents".to_string(),
            None => "no agents; start one with `tepui agent --master=HOST:PORT --work_dir=DIR`".to_string(),
        }
    }
}

/// Where agents are in the answer of [`all`].
pub const LISTS: [&str; 3] = ["slaves", "recovered_slaves", "unreachable_slaves"];

/// The answer of `/slaves`, and agents that are unreachable.
pub async fn all(cluster: &Cluster) -> Result<Value> {
    let mut answer = cluster.get("/slaves").await?;
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("unreachable_slaves".to_string(), unreachable(cluster).await);
    }
    Ok(answer)
}

/// Agents that are unreachable, of which the registry alone has the ids; the registry is large, so it is read only if there
/// are some. Nothing if it may not be read.
async fn unreachable(cluster: &Cluster) -> Value {
    let metrics = cluster.get("/metrics/snapshot").await.unwrap_or_default();
    if number(&metrics, "master/slaves_unreachable") == 0.0 {
        return Value::Null;
    }
    let registry = cluster.get("/registrar(1)/registry").await.unwrap_or_default();
    absent(&registry)
}

/// `{id, unreachable_time}` of each agent that is unreachable.
fn absent(registry: &Value) -> Value {
    let entry = |one: &Value| {
        let since = number(&one["timestamp"], "nanoseconds") / 1e9;
        json!({"id": text(&one["id"], "value"), "unreachable_time": since})
    };
    lists(&registry["unreachable"], &["slaves"]).map(entry).collect()
}

fn row(agent: &Value, seen: &ListContext<'_>) -> Vec<Cell> {
    let state = AgentState::of(agent);
    vec![
        seen.id(agent, "id"),
        Cell::text(text(agent, "hostname")),
        Cell::text(state.name()).tone(state.tone()),
        share(agent, "cpus", amount::number),
        share(agent, "mem", amount::megabytes),
        share(agent, "disk", amount::megabytes),
        share(agent, "gpus", amount::number),
        Cell::text(revocable_shares(agent)),
        Cell::text(attributes(agent)),
        seen.age(number(
            agent,
            if state == AgentState::Unreachable { "unreachable_time" } else { "registered_time" },
        )),
    ]
}

/// State of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    Active,
    /// Disconnected.
    Inactive,
    /// Deactivated by an operator.
    Deactivated,
    Draining,
    Drained,
    /// Short of disk space; not offered.
    DiskPressure,
    /// Known from before the master's failover and not yet re-registered.
    Recovered,
    Unreachable,
}

impl AgentState {
    const NAMES: [&'static str; 8] = [
        "active",
        "inactive",
        "deactivated",
        "draining",
        "drained",
        "disk-pressure",
        "recovered",
        "unreachable",
    ];

    pub fn of(agent: &Value) -> Self {
        match (agent["drain_info"]["state"].as_str(), agent["active"].as_bool()) {
            (_, None) if agent.get("unreachable_time").is_some() => AgentState::Unreachable,
            (_, None) => AgentState::Recovered,
            (Some("DRAINING"), Some(_)) => AgentState::Draining,
            (Some("DRAINED"), Some(_)) => AgentState::Drained,
            (_, Some(_)) if agent["deactivated"] == true => AgentState::Deactivated,
            (_, Some(true)) if agent["disk_pressure"].is_object() => AgentState::DiskPressure,
            (_, Some(true)) => AgentState::Active,
            (_, Some(false)) => AgentState::Inactive,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn tone(self) -> Tone {
        match self {
            AgentState::Active => Tone::Good,
            AgentState::DiskPressure
            | AgentState::Inactive
            | AgentState::Recovered
            | AgentState::Unreachable => Tone::Bad,
            AgentState::Deactivated | AgentState::Draining | AgentState::Drained => Tone::Busy,
        }
    }
}

/// Used of total; sorted by the part that is used.
fn share(agent: &Value, key: &str, show: fn(f64) -> String) -> Cell {
    let (used, total) = (number(&agent["used_resources"], key), number(&agent["resources"], key));
    if total == 0.0 {
        return Cell::number("-", -1.0);
    }
    Cell::number(format!("{}/{}", show(used), show(total)), used / total)
}

/// `cpus:3/8 mem:64M/1G`: revocable scalars, used of total.
fn revocable_shares(agent: &Value) -> String {
    let (used, total) = (&agent["used_resources"], &agent["resources"]);
    let names = [used, total].into_iter().flat_map(|of| of.as_object().into_iter().flatten());
    let names: BTreeSet<&str> = names.filter_map(|(name, _)| name.strip_suffix(REVOCABLE)).collect();
    let share = |name: &&str| {
        let key = format!("{name}{REVOCABLE}");
        let (used, total) = (number(used, &key), number(total, &key));
        let show = if matches!(*name, "mem" | "disk") { amount::megabytes } else { amount::number };
        (used > 0.0 || total > 0.0).then(|| format!("{name}:{}/{}", show(used), show(total)))
    };
    names.iter().filter_map(share).collect::<Vec<_>>().join(" ")
}

/// `rack:r1 zone:a`.
pub fn attributes(agent: &Value) -> String {
    let show = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}:{text}"),
        Value::Number(number) => format!("{name}:{}", amount::number(number.as_f64().unwrap_or(0.0))),
        other => format!("{name}:{other}"),
    };
    agent["attributes"].as_object().into_iter().flatten().map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::sample;
    use crate::listing::testing::check;

    #[test]
    fn agents_are_listed() {
        let answer = sample::agents();
        check::<Agents>(
            "",
            &answer,
            expect![[r#"
                AGENT                                    HOSTNAME  STATE        CPUS      MEM    DISK  ATTRIBUTES       SINCE
                1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0  host-a    active     0.5/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m
                S1                                       host-b    inactive     2/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m
                S2                                       host-c    draining    10/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m
                0a11c9de-da1d-4633-95a3-9f4a9a6a0764-S0  host-a    recovered       -        -       -                       -"#]],
        );
        check::<Agents>(
            "--sort=-cpus --state active,draining --full",
            &answer,
            expect![[r#"
                AGENT                                    HOSTNAME  STATE       CPUS      MEM    DISK  ATTRIBUTES       SINCE
                1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S2  host-c    draining   10/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m
                1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0  host-a    active    0.5/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m"#]],
        );
        let mut lends = json!({"slaves": [answer["slaves"][0], answer["slaves"][1]]});
        lends["slaves"][0]["resources"]["cpus_revocable"] = json!(8.0);
        lends["slaves"][0]["resources"]["mem_revocable"] = json!(1024.0);
        lends["slaves"][0]["used_resources"]["cpus_revocable"] = json!(3.0);
        check::<Agents>(
            "",
            &lends,
            expect![[r#"
            AGENT  HOSTNAME  STATE       CPUS      MEM    DISK  REVOCABLE          ATTRIBUTES       SINCE
            S0     host-a    active    0.5/16  1.5G/8G  0/977G  cpus:3/8 mem:0/1G  level:2 rack:r1   1h1m
            S1     host-b    inactive    2/16  1.5G/8G  0/977G                     level:2 rack:r1   1h1m"#]],
        );
        let registry = json!({"unreachable": {"slaves": [
            {"id": {"value": "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S9"},
                "timestamp": {"nanoseconds": (sample::NOW - 65.0) * 1e9}},
        ]}});
        let unreachable = json!({"slaves": [answer["slaves"][0]], "unreachable_slaves": absent(&registry)});
        check::<Agents>(
            "",
            &unreachable,
            expect![[r#"
                AGENT  HOSTNAME  STATE          CPUS      MEM    DISK  ATTRIBUTES       SINCE
                S0     host-a    active       0.5/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m
                S9               unreachable       -        -       -                    1m5s"#]],
        );
        let mut pressed = json!({"slaves": [answer["slaves"][0]]});
        pressed["slaves"][0]["disk_pressure"] = json!({"since": 1.0, "available_bytes": 3 << 20});
        check::<Agents>(
            "--state disk-pressure",
            &pressed,
            expect![[r#"
                AGENT  HOSTNAME  STATE            CPUS      MEM    DISK  ATTRIBUTES       SINCE
                S0     host-a    disk-pressure  0.5/16  1.5G/8G  0/977G  level:2 rack:r1   1h1m"#]],
        );
        check::<Agents>("--state drained", &answer, expect!["no such agents"]);
        check::<Agents>(
            "",
            &json!({"slaves": [], "recovered_slaves": []}),
            expect!["no agents; start one with `tepui agent --master=HOST:PORT --work_dir=DIR`"],
        );
    }
}
