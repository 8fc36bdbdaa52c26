//! `tepui executors`: the programs that run the tasks of frameworks which bring their own.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::executor;
use super::filter::Filter;
use crate::amount;
use crate::listing::{self, List, ListContext, ListFlags, held, lists, revocable, text};
use crate::table::Cell;

/// List executors, or show one with its tasks. Command tasks have no executor of their own.
#[derive(Args)]
pub struct Executors {
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    filter: Filter,
    /// Show this executor with requests, limits and usage of its tasks: its ID, a prefix of it, or its name.
    executor: Option<String>,
}

impl Executors {
    pub fn run(self) -> Result<ExitCode> {
        match &self.executor {
            Some(typed) => executor::show(&self.list.cluster, &self.filter, typed, self.list.json),
            None => listing::run(&self),
        }
    }
}

impl List for Executors {
    const COLUMNS: &'static [&'static str] =
        &["EXECUTOR", "NAME", "TYPE", "TASKS", "CPUS", "MEM", "REVOCABLE", "ROLE", "AGENT", "FRAMEWORK"];
    const COLUMNS_KEPT: usize = 6;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let answer = self.list.cluster.get("/frameworks").await?;
        self.filter.with_names(&self.list.cluster, answer).await
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        self.filter.select(answer, all(answer))
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let mut tasks: BTreeMap<Key<'_>, usize> = BTreeMap::new();
        for task in lists(seen.answer, &["frameworks"]).flat_map(|framework| lists(framework, &["tasks"])) {
            *tasks.entry(key(task)).or_default() += 1;
        }
        let count = |executor: &Value| tasks.get(&key(executor)).copied().unwrap_or(0);
        entries.iter().map(|executor| row(executor, count(executor), seen)).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        match self.filter.is_set() {
            true => "no such executors".to_string(),
            false => "no executors; tasks that are plain commands have none of their own".to_string(),
        }
    }
}

/// The executors in an answer of `/frameworks`.
pub(super) fn all(answer: &Value) -> impl Iterator<Item = &Value> {
    lists(answer, &["frameworks"]).flat_map(|framework| lists(framework, &["executors"]))
}

/// What an executor and its tasks have in common: framework, agent and executor.
pub(super) type Key<'v> = [&'v str; 3];

pub(super) fn key(of: &Value) -> Key<'_> {
    ["framework_id", "slave_id", "executor_id"].map(|key| text(of, key))
}

fn row(executor: &Value, tasks: usize, seen: &ListContext<'_>) -> Vec<Cell> {
    let used = |key: &str| held(&executor["resources"], key);
    vec![
        Cell::text(text(executor, "executor_id")),
        Cell::text(seen.short.name(text(executor, "name"))),
        Cell::text(text(executor, "type").to_lowercase()),
        Cell::number(tasks.to_string(), tasks as f64),
        Cell::number(amount::number(used("cpus")), used("cpus")),
        Cell::number(amount::megabytes(used("mem")), used("mem")),
        Cell::text(revocable(&executor["resources"])),
        Cell::text(text(executor, "role")),
        seen.id(executor, "slave_id"),
        seen.id(executor, "framework_id"),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::command::sample;
    use crate::listing::testing::check;

    #[test]
    fn executors_are_listed() {
        check::<Executors>(
            "",
            &sample::frameworks(),
            expect![[r#"
            EXECUTOR  NAME  TYPE     TASKS  CPUS  MEM  ROLE  AGENT  FRAMEWORK
            group           default      1   0.1  32M  eng   S0     0000"#]],
        );
        check::<Executors>(
            "",
            &json!({"frameworks": []}),
            expect!["no executors; tasks that are plain commands have none of their own"],
        );
    }
}
