//! `tepui tasks`: live and terminated tasks.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::filter::Filter;
use super::task_state::{self, TaskState};
use super::usage;
use crate::amount;
use crate::listing::{self, List, ListContext, ListFlags, amount_of, lists, number, revocable, text};
use crate::table::Cell;

/// List active tasks, newest first; --all includes terminated ones.
#[derive(Args)]
pub struct Tasks {
    #[command(flatten)]
    list: ListFlags,
    /// Include terminated tasks.
    #[arg(long, short)]
    all: bool,
    #[command(flatten)]
    filter: Filter,
    /// Only tasks in these states, terminal ones included: running, failed, … (comma-separated).
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = task_state::parser())]
    state: Vec<String>,
}

impl Tasks {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }

    fn is_wanted(&self, task: &Value) -> bool {
        let state = TaskState::of(task);
        match self.state.is_empty() {
            true => self.all || state.is_live(),
            false => self.state.iter().any(|wanted| state.is(wanted)),
        }
    }
}

impl List for Tasks {
    const COLUMNS: &'static [&'static str] = &[
        "TASK",
        "NAME",
        "STATE",
        "SINCE",
        "CPUS",
        "MEM",
        "LIMITS",
        "USED",
        "DISK",
        "GPUS",
        "REVOCABLE",
        "ROLE",
        "AGENT",
        "FRAMEWORK",
    ];
    const COLUMNS_KEPT: usize = 6;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let answer = self.list.cluster.get("/tasks?limit=-1").await?;
        let mut answer = self.filter.with_names(&self.list.cluster, answer).await?;
        if !self.list.json {
            let live = self.entries(&answer)?.into_iter().filter(|task| TaskState::of(task).is_live());
            let agents = live.map(|task| text(task, "slave_id").to_string()).collect();
            usage::add(&self.list.cluster, &mut answer, &agents).await;
        }
        Ok(answer)
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let wanted = self.filter.select(answer, lists(answer, &["tasks"]))?;
        Ok(wanted.into_iter().filter(|task| self.is_wanted(task)).collect())
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        entries.iter().map(|task| row(task, seen)).collect()
    }

    fn nothing(&self, answer: &Value) -> String {
        let some = lists(answer, &["tasks"]).next().is_some();
        match (some, self.all || !self.state.is_empty() || self.filter.is_set()) {
            (false, _) => "no tasks; run one with `tepui run -- COMMAND`".to_string(),
            (true, true) => "no such tasks".to_string(),
            (true, false) => "no active tasks; --all includes terminated ones".to_string(),
        }
    }
}

fn row(task: &Value, seen: &ListContext<'_>) -> Vec<Cell> {
    let state = TaskState::of(task);
    let since =
        task["statuses"].as_array().and_then(|all| all.last()).map_or(0.0, |last| number(last, "timestamp"));
    let held = &task["resources"];
    vec![
        Cell::text(text(task, "id")),
        Cell::text(seen.short.name(text(task, "name"))),
        state.cell(),
        seen.age(since),
        amount_of(held, "cpus", amount::number),
        amount_of(held, "mem", amount::megabytes),
        Cell::text(limits(&task["limits"])),
        usage::cell(task),
        amount_of(held, "disk", amount::megabytes),
        amount_of(held, "gpus", amount::number),
        Cell::text(revocable(held)),
        Cell::text(text(task, "role")),
        seen.id(task, "slave_id"),
        seen.id(task, "framework_id"),
    ]
}

/// `cpus:2 mem:inf`; empty if the limits equal the requests.
pub(super) fn limits(limits: &Value) -> String {
    let show = |(name, limit): (&String, &Value)| {
        let amount = match (limit.as_f64(), name.as_str()) {
            (Some(limit), "mem") => amount::megabytes(limit),
            (Some(limit), _) => amount::number(limit),
            (None, _) => "inf".to_string(),
        };
        format!("{name}:{amount}")
    };
    limits.as_object().into_iter().flatten().map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::command::sample;
    use crate::listing::testing::check;

    #[test]
    fn tasks_are_listed_filtered_and_sorted() {
        let answer = sample::tasks();
        check::<Tasks>(
            "",
            &answer,
            expect![[r#"
            TASK            NAME  STATE                SINCE  CPUS   MEM  ROLE  AGENT  FRAMEWORK
            web-1           web   running               1m5s   0.5  1.5G  eng   S0     0000
            web-2           web   running (unhealthy)     2h     2  1.5G  eng   S1     0000
            evil\u{1b}[31m  x     staging                  -  0.25  1.5G  eng   S0     0000"#]],
        );
        check::<Tasks>(
            "--all --sort -cpus",
            &answer,
            expect![[r#"
            TASK            NAME  STATE                SINCE  CPUS   MEM  ROLE  AGENT  FRAMEWORK
            job-1           job   failed                1d3h    10  1.5G  eng   S0     0001
            web-2           web   running (unhealthy)     2h     2  1.5G  eng   S1     0000
            job-2           job   finished               30s     1  1.5G  eng   S1     0001
            web-1           web   running               1m5s   0.5  1.5G  eng   S0     0000
            evil\u{1b}[31m  x     staging                  -  0.25  1.5G  eng   S0     0000"#]],
        );
        check::<Tasks>(
            "--state TASK_FAILED,finished",
            &answer,
            expect![[r#"
                TASK   NAME  STATE     SINCE  CPUS   MEM  ROLE  AGENT  FRAMEWORK
                job-1  job   failed     1d3h    10  1.5G  eng   S0     0001
                job-2  job   finished    30s     1  1.5G  eng   S1     0001"#]],
        );
        check::<Tasks>(
            "--all --framework batch --role eng",
            &answer,
            expect![[r#"
            TASK   NAME  STATE     SINCE  CPUS   MEM  ROLE  AGENT  FRAMEWORK
            job-1  job   failed     1d3h    10  1.5G  eng   S0     0001
            job-2  job   finished    30s     1  1.5G  eng   S1     0001"#]],
        );
        let mut bursting = json!({"tasks": [answer["tasks"][0]]});
        bursting["tasks"][0]["limits"] = json!({"cpus": 2.0, "mem": "Infinity"});
        bursting["tasks"][0]["used_mem_bytes"] = json!(3_145_728);
        check::<Tasks>(
            "--all",
            &bursting,
            expect![[r#"
            TASK   NAME  STATE    SINCE  CPUS   MEM  LIMITS          USED  ROLE  AGENT  FRAMEWORK
            web-1  web   running   1m5s   0.5  1.5G  cpus:2 mem:inf    3M  eng   S0     0000"#]],
        );
        let mut lent = json!({"tasks": [answer["tasks"][0], answer["tasks"][1]]});
        lent["tasks"][0]["resources"] = json!({"cpus": 0.0, "mem": 64.0, "cpus_revocable": 3.0});
        check::<Tasks>(
            "--all --sort -cpus",
            &lent,
            expect![[r#"
            TASK   NAME  STATE                SINCE  CPUS   MEM  REVOCABLE  ROLE  AGENT  FRAMEWORK
            web-1  web   running               1m5s     3   64M  cpus:3     eng   S0     0000
            web-2  web   running (unhealthy)     2h     2  1.5G             eng   S1     0000"#]],
        );
        let mut long = json!({"tasks": [answer["tasks"][0]]});
        long["tasks"][0]["name"] = json!("任务".repeat(30));
        check::<Tasks>(
            "--all",
            &long,
            expect![[r#"
            TASK   NAME                                     STATE    SINCE  CPUS   MEM  ROLE  AGENT  FRAMEWORK
            web-1  任务任务任务任务任务任务任务任务任务任…  running   1m5s   0.5  1.5G  eng   S0     0000"#]],
        );
        check::<Tasks>("--agent host-c", &answer, expect!["no such tasks"]);
        check::<Tasks>(
            "--sort nothing",
            &answer,
            expect![
                "error: --sort=nothing: unknown column; columns: task, name, state, since, cpus, mem, limits, used, disk, gpus, revocable, role, agent, framework"
            ],
        );
        check::<Tasks>("", &json!({"tasks": []}), expect!["no tasks; run one with `tepui run -- COMMAND`"]);
        check::<Tasks>("--state lost", &answer, expect!["no such tasks"]);
    }
}
