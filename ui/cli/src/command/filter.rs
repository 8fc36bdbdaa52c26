//! The filters that several lists share: of one framework, on one agent, in one role.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::Cluster;
use crate::listing::{filter_ids, lists, text};
use crate::similar::Known;

#[derive(Args, Clone, Debug, Default)]
pub struct Filter {
    /// Only of this framework: its ID, a prefix or suffix of it, or its name.
    #[arg(long)]
    pub framework: Option<String>,
    /// Only on this agent: its ID, a prefix or suffix of it, or its hostname.
    #[arg(long)]
    pub agent: Option<String>,
    /// Only in this role and its subroles.
    #[arg(long)]
    pub role: Option<String>,
}

/// Where names of frameworks and agents stand in answers.
const FRAMEWORKS: &[&str] = &["frameworks", "completed_frameworks"];
const AGENTS: &[&str] = &["slaves", "recovered_slaves"];

impl Filter {
    pub fn is_set(&self) -> bool {
        self.framework.is_some() || self.agent.is_some() || self.role.is_some()
    }

    /// The answer, and the frameworks and agents beside it if the filter may name them.
    pub async fn with_names(&self, cluster: &Cluster, mut answer: Value) -> Result<Value> {
        let wanted = [(&self.framework, FRAMEWORKS, "/frameworks"), (&self.agent, AGENTS, "/slaves")];
        for (filter, keys, path) in wanted {
            if filter.is_none() || answer.get(keys[0]).is_some() {
                continue;
            }
            let mut names = cluster.get(path).await?;
            for key in keys {
                answer[*key] = names[*key].take();
            }
        }
        Ok(answer)
    }

    /// The entries that match the filter; an error if it names nothing known.
    pub fn select<'v>(
        &self,
        answer: &Value,
        entries: impl Iterator<Item = &'v Value>,
    ) -> Result<Vec<&'v Value>> {
        let entries: Vec<&Value> = entries.collect();
        let ids = |key: &'static str| entries.iter().map(move |entry| Known::new(text(entry, key), ""));
        let frameworks = self.framework.as_deref().map(|typed| {
            let known = known(answer, FRAMEWORKS, "name").chain(ids("framework_id")).collect();
            filter_ids("framework", typed, known, "tepui frameworks --all")
        });
        let agents = self.agent.as_deref().map(|typed| {
            let known = known(answer, AGENTS, "hostname").chain(ids("slave_id")).collect();
            filter_ids("agent", typed, known, "tepui agents")
        });
        let (frameworks, agents) = (frameworks.transpose()?, agents.transpose()?);
        let is_wanted = |entry: &&Value| {
            is_among(&frameworks, text(entry, "framework_id"))
                && is_among(&agents, text(entry, "slave_id"))
                && self.is_role(entry)
        };
        Ok(entries.iter().copied().filter(is_wanted).collect())
    }

    /// Whether the entry is in the role or below it.
    fn is_role(&self, entry: &Value) -> bool {
        let Some(wanted) = self.role.as_deref() else { return true };
        let role = entry["role"].as_str().or_else(|| entry["allocation_info"]["role"].as_str());
        role.is_some_and(|role| is_below(role, wanted))
    }
}

/// Whether the role is the wanted one or stands below it.
pub fn is_below(role: &str, wanted: &str) -> bool {
    role.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn known<'v>(
    answer: &'v Value,
    keys: &'static [&str],
    name: &'static str,
) -> impl Iterator<Item = Known> + 'v {
    lists(answer, keys).map(move |entry| Known::new(text(entry, "id"), text(entry, name)))
}

fn is_among(wanted: &Option<BTreeSet<String>>, id: &str) -> bool {
    wanted.as_ref().is_none_or(|wanted| wanted.contains(id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_filtered() {
        let answer = json!({
            "frameworks": [{"id": "m-0000", "name": "web"}, {"id": "m-0001", "name": "batch"}],
            "slaves": [{"id": "m-S0", "hostname": "host-a"}],
            "tasks": [
                {"id": "t0", "framework_id": "m-0000", "slave_id": "m-S0", "role": "eng"},
                {"id": "t1", "framework_id": "m-0001", "slave_id": "m-S0", "role": "eng/web"},
                {"id": "t2", "framework_id": "m-0002", "slave_id": "m-S1", "allocation_info": {"role": "engine"}},
            ],
        });
        let filter = |framework: &str, agent: &str, role: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
            let filter = Filter { framework: some(framework), agent: some(agent), role: some(role) };
            let selected = filter.select(&answer, lists(&answer, &["tasks"]));
            selected.map(|tasks| {
                tasks.iter().map(|task| text(task, "id").to_string()).collect::<Vec<_>>().join(" ")
            })
        };
        let table = [
            (["", "", ""], "t0 t1 t2"),
            (["web", "", ""], "t0"),
            (["0002", "", ""], "t2"),
            (["m-", "", ""], "t0 t1 t2"),
            (["", "host-a", ""], "t0 t1"),
            (["", "S1", ""], "t2"),
            (["", "", "eng"], "t0 t1"),
            (["0001", "S0", "eng/web"], "t1"),
        ];
        for ([framework, agent, role], expected) in table {
            assert_eq!(filter(framework, agent, role).unwrap(), expected, "{framework} {agent} {role}");
        }
        let error = filter("wbe", "", "").unwrap_err().to_string();
        assert_eq!(error, r#"no framework "wbe"; did you mean web? `tepui frameworks --all` lists all"#);
    }
}
