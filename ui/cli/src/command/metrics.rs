//! `tepui metrics`: the numbers that a master or an agent counts.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use super::{find, sandbox};
use crate::listing::{self, List, ListContext, ListFlags, lists, number, text};
use crate::similar::{self, Known};
use crate::table::Cell;

/// Show metrics of the master, or of an agent with --agent.
#[derive(Args)]
pub struct Metrics {
    #[command(flatten)]
    list: ListFlags,
    /// Show metrics of this agent: its ID, a prefix or suffix of it, or its hostname.
    #[arg(long)]
    agent: Option<String>,
    /// Only metrics whose name contains this; with * or ? a pattern for the whole name.
    pattern: Option<String>,
}

impl Metrics {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }

    async fn snapshot(&self) -> Result<Value> {
        const PATH: &str = "/metrics/snapshot";
        let Some(typed) = &self.agent else { return self.list.cluster.get(PATH).await };
        let agent = find::agent(&self.list.cluster, typed).await?;
        sandbox::client(&self.list.cluster, &agent)?.get(PATH).await.context("the agent does not answer")
    }
}

impl List for Metrics {
    const COLUMNS: &'static [&'static str] = &["METRIC", "VALUE"];
    const COLUMNS_KEPT: usize = 2;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let snapshot = self.snapshot().await?;
        let metric = |(name, value): (&String, &Value)| json!({"name": name, "value": value});
        let metrics: Vec<Value> = snapshot.as_object().into_iter().flatten().map(metric).collect();
        Ok(json!({"metrics": metrics}))
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        Ok(lists(answer, &["metrics"]).filter(|metric| fits(pattern, text(metric, "name"))).collect())
    }

    fn rows(&self, entries: &[&Value], _: &ListContext<'_>) -> Vec<Vec<Cell>> {
        entries.iter().map(|metric| row(metric)).collect()
    }

    fn nothing(&self, answer: &Value) -> String {
        let known: Vec<Known> = lists(answer, &["metrics"])
            .map(|metric| Known::new(text(metric, "name"), last(text(metric, "name"))))
            .collect();
        match &self.pattern {
            Some(pattern) => similar::nothing("metric", pattern, &known, "tepui metrics"),
            None => "no metrics".to_string(),
        }
    }
}

fn row(metric: &Value) -> Vec<Cell> {
    let value = number(metric, "value");
    vec![Cell::text(text(metric, "name")), Cell::number(value.to_string(), value)]
}

/// What a metric is called in its group.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether the name contains the pattern, or fits it if it has wildcards.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    if !pattern.contains(['*', '?']) {
        return name.contains(&pattern);
    }
    glob(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

/// `*` stands for any characters, also none; `?` for one. Goes back to the last `*` only, so it never takes long.
fn glob(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[read] => {
                at += 1;
                read += 1;
            }
            Some(_) | None => {
                let Some((star_at, star_read)) = star else { return false };
                star = Some((star_at, star_read + 1));
                at = star_at + 1;
                read = star_read + 1;
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::listing::testing::check;

    #[test]
    fn metrics_are_selected_by_name() {
        let answer = json!({"metrics": [
            {"name": "master/cpus_percent", "value": 0.03125},
            {"name": "master/tasks_running", "value": 12.0},
            {"name": "registrar/state_store_ms", "value": 0.000125},
        ]});
        check::<Metrics>(
            "master",
            &answer,
            expect![[r#"
            METRIC                  VALUE
            master/cpus_percent   0.03125
            master/tasks_running       12"#]],
        );
        check::<Metrics>(
            "*/state* --sort value",
            &answer,
            expect![[r#"
            METRIC                       VALUE
            registrar/state_store_ms  0.000125"#]],
        );
        check::<Metrics>(
            "tasks_runing",
            &answer,
            expect![[r#"no metric "tasks_runing"; did you mean tasks_running? `tepui metrics` lists all"#]],
        );
    }

    #[test]
    fn patterns_match_whole_names() {
        let table = [
            ("", "master/tasks_running", true),
            ("tasks", "master/tasks_running", true),
            ("TASKS", "master/tasks_running", true),
            ("task?", "master/tasks_running", false),
            ("*task?_*", "master/tasks_running", true),
            ("master/*", "master/tasks_running", true),
            ("master/*_total", "master/cpus_total", true),
            ("master/*_total", "master/cpus_total_x", false),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("**", "", true),
            ("?", "", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
