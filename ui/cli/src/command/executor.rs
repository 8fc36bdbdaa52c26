//! `tepui executors ID`: one executor, with the requests and limits of each of its tasks.

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::executors::{all, key};
use super::filter::Filter;
use super::task_state::TaskState;
use super::{Cluster, block_on, tasks, usage};
use crate::amount;
use crate::detail::{Detail, resources};
use crate::listing::{age, amount_of, lists, number, revocable, text};
use crate::output;
use crate::similar::{self, Known, Short};
use crate::table::{Cell, Table};

/// Prints the executor with requests, limits and usage of its tasks; as JSON the master's answer.
pub fn show(cluster: &Cluster, filter: &Filter, typed: &str, as_json: bool) -> Result<ExitCode> {
    block_on(async {
        let answer = filter.with_names(cluster, cluster.get("/frameworks").await?).await?;
        let mut executor = choose(&answer, filter, typed)?;
        if as_json {
            return output::json(&executor);
        }
        let agent = text(&executor, "slave_id").to_string();
        usage::add(cluster, &mut executor, &[agent].into()).await;
        output::line(&render(&executor, amount::now(), output::colours()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The matching executor with its live tasks. An id may be in use on several agents and by several frameworks.
fn choose(answer: &Value, filter: &Filter, typed: &str) -> Result<Value> {
    let executors = filter.select(answer, all(answer))?;
    let known: Vec<Known> =
        executors.iter().map(|one| Known::new(text(one, "executor_id"), text(one, "name"))).collect();
    let chosen = executors[similar::one("executor", typed, &known, "tepui executors")?];
    let id = text(chosen, "executor_id");
    let same: Vec<&&Value> = executors.iter().filter(|one| text(one, "executor_id") == id).collect();
    if same.len() > 1 {
        let place = |one: &&&Value| format!("{} of {}", text(one, "slave_id"), text(one, "framework_id"));
        let places: Vec<String> = same.iter().map(place).collect();
        bail!(
            "{} executors have the id {id:?}; choose with --agent or --framework: {}",
            same.len(),
            places.join(", ")
        );
    }
    let frameworks = lists(answer, &["frameworks"]);
    let tasks = frameworks.flat_map(|framework| lists(framework, &["tasks", "unreachable_tasks"]));
    let mut executor = chosen.clone();
    executor["tasks"] = json!(tasks.filter(|task| key(task) == key(chosen)).collect::<Vec<_>>());
    Ok(executor)
}

fn render(executor: &Value, now: f64, colours: bool) -> String {
    let mut detail = Detail::default();
    detail
        .value("executor", text(executor, "executor_id"))
        .value("name", text(executor, "name"))
        .value("type", text(executor, "type").to_lowercase())
        .value("framework", text(executor, "framework_id"))
        .value("agent", text(executor, "slave_id"))
        .value("role", text(executor, "role"))
        .value("own resources", resources(&executor["resources"]))
        .table(format!("TASKS: {}", lists(executor, &["tasks"]).count()), table(executor, now));
    detail.render(colours)
}

fn table(executor: &Value, now: f64) -> Table {
    let short = Short::among(std::iter::empty(), false);
    let row = |task: &Value| {
        let held = &task["resources"];
        let since = lists(task, &["statuses"]).last().map_or(0.0, |status| number(status, "timestamp"));
        vec![
            Cell::text(text(task, "id")),
            Cell::text(short.name(text(task, "name"))),
            TaskState::of(task).cell(),
            age(since, now),
            amount_of(held, "cpus", amount::number),
            amount_of(held, "mem", amount::megabytes),
            Cell::text(tasks::limits(&task["limits"])),
            usage::cell(task),
            Cell::text(revocable(held)),
        ]
    };
    let headers = ["TASK", "NAME", "STATE", "SINCE", "CPUS", "MEM", "LIMITS", "USED", "REVOCABLE"];
    Table::new(&headers, lists(executor, &["tasks"]).map(row).collect()).without_empty_columns(7)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::sample;

    #[test]
    fn an_executor_shows_requests_and_limits_of_its_tasks() {
        let mut answer = sample::frameworks();
        answer["frameworks"][0]["tasks"][0]["limits"] = json!({"cpus": 2.0, "mem": "Infinity"});
        answer["frameworks"][0]["tasks"][2]["executor_id"] = json!("group");
        let executor = choose(&answer, &Filter::default(), "gr").unwrap();
        expect![[r#"
            executor       group
            type           default
            framework      1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-0000
            agent          1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0
            role           eng
            own resources  cpus:0.1 mem:32M

            TASKS: 2
              TASK            NAME  STATE    SINCE  CPUS   MEM  LIMITS
              web-1           web   running   1m5s   0.5  1.5G  cpus:2 mem:inf
              evil\u{1b}[31m  x     staging      -  0.25  1.5G"#]]
        .assert_eq(&render(&executor, sample::NOW, false));
    }

    #[test]
    fn executors_with_equal_ids_are_distinguished_by_agent() {
        let mut answer = sample::frameworks();
        let mut second = answer["frameworks"][0]["executors"][0].clone();
        second["slave_id"] = json!("m-S9");
        answer["frameworks"][0]["executors"].as_array_mut().unwrap().push(second);
        let choose = |typed: &str, agent: Option<&str>| {
            let filter = Filter { agent: agent.map(str::to_string), ..Filter::default() };
            choose(&answer, &filter, typed).map_err(|error| error.to_string())
        };
        let error = choose("group", None).unwrap_err();
        assert!(error.starts_with("2 executors have the id \"group\"; choose with --agent or"), "{error}");
        assert_eq!(choose("group", Some("S9")).unwrap()["tasks"], json!([]));
        assert_eq!(choose("group", Some("S0")).unwrap()["tasks"][0]["id"], "web-1");
        let error = choose("gruop", None).unwrap_err();
        assert_eq!(error, "no executor \"gruop\"; did you mean group? `tepui executors` lists all");
    }
}
