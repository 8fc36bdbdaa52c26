//! `tepui framework`: everything about one framework.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::frameworks::{FrameworkState, roles};
use super::{Cluster, block_on, find, task_rows};
use crate::amount;
use crate::detail::{Detail, labels, resources};
use crate::listing::{lists, number, text};
use crate::output;
use crate::similar::Short;
use crate::table::{Cell, Table};

/// Show a framework with its tasks, offers and executors.
#[derive(Args)]
pub struct Framework {
    #[command(flatten)]
    cluster: Cluster,
    /// Print the framework as JSON.
    #[arg(long)]
    json: bool,
    /// Framework ID, a prefix or suffix of it, or its name.
    framework: String,
}

impl Framework {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let framework = find::framework(&self.cluster, &self.framework).await?;
            match self.json {
                true => output::json(&framework),
                false => output::line(&render(&framework, amount::now(), output::colours())),
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn render(framework: &Value, now: f64, colours: bool) -> String {
    let state = FrameworkState::of(framework);
    let capabilities: Vec<&str> = lists(framework, &["capabilities"]).filter_map(Value::as_str).collect();
    let failover = number(framework, "failover_timeout");
    let checkpoint = framework["checkpoint"].as_bool().map(|is| if is { "yes" } else { "no" });
    let mut detail = Detail::default();
    detail
        .value("framework", text(framework, "id"))
        .value("name", text(framework, "name"))
        .toned("state", state.name(), state.tone())
        .value("roles", roles(framework).collect::<Vec<_>>().join(" "))
        .value("user", text(framework, "user"))
        .value("principal", text(framework, "principal"))
        .value("hostname", text(framework, "hostname"))
        .value("web", text(framework, "webui_url"))
        .moment("registered", number(framework, "registered_time"), now)
        .moment("reregistered", number(framework, "reregistered_time"), now)
        .moment("ended", number(framework, "unregistered_time"), now)
        .value(
            "failover",
            if failover > 0.0 { format!("within {}", amount::duration(failover)) } else { String::new() },
        )
        .value("checkpoint", checkpoint.unwrap_or_default())
        .value("capabilities", capabilities.join(" "))
        .value("labels", labels(&framework["labels"]))
        .message("constraints", &framework["offer_constraints"])
        .value("used", resources(&framework["used_resources"]))
        .value("offered", resources(&framework["offered_resources"]))
        .table("OFFERS", offers(framework))
        .table("EXECUTORS", executors(framework));
    let tasks = lists(framework, &["tasks", "unreachable_tasks", "completed_tasks"]);
    task_rows::add(&mut detail, tasks, ("slave_id", "AGENT"), now);
    detail.render(colours)
}

fn offers(framework: &Value) -> Table {
    let ids = lists(framework, &["offers"]).flat_map(|offer| [text(offer, "id"), text(offer, "slave_id")]);
    let short = Short::among(ids, false);
    let row = |offer: &Value| {
        vec![
            Cell::text(short.of(text(offer, "id"))),
            Cell::text(text(&offer["allocation_info"], "role")),
            Cell::text(short.of(text(offer, "slave_id"))),
            Cell::text(resources(&offer["resources"])),
        ]
    };
    let rows = lists(framework, &["offers"]).map(row).collect();
    Table::new(&["OFFER", "ROLE", "AGENT", "RESOURCES"], rows)
}

fn executors(framework: &Value) -> Table {
    let short = Short::among(lists(framework, &["executors"]).map(|one| text(one, "slave_id")), false);
    let row = |executor: &Value| {
        vec![
            Cell::text(text(executor, "executor_id")),
            Cell::text(text(executor, "type").to_lowercase()),
            Cell::text(short.of(text(executor, "slave_id"))),
            Cell::text(resources(&executor["resources"])),
        ]
    };
    let rows = lists(framework, &["executors"]).map(row).collect();
    Table::new(&["EXECUTOR", "TYPE", "AGENT", "RESOURCES"], rows)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::sample;

    #[test]
    fn framework_details_are_rendered() {
        let answer = sample::frameworks();
        expect![[r#"
            framework     1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-0000
            name          marathon
            state         active
            roles         eng eng/web
            user          root
            principal     ops
            hostname      ctl
            web           http://ctl:8080
            registered    2026-11-14 19:26:40 UTC (1d1h ago)
            failover      within 7d
            checkpoint    yes
            capabilities  MULTI_ROLE PARTITION_AWARE
            labels        team=a
            used          cpus:2.75 mem:4.5G
            offered       cpus:15.5 mem:6.5G disk:977G ports:[31000-32000]

            OFFERS
              OFFER  ROLE     AGENT  RESOURCES
              O7     eng/web  S0     cpus:15.5 mem:6.5G disk:977G ports:[31000-32000]

            EXECUTORS
              EXECUTOR  TYPE     AGENT  RESOURCES
              group     default  S0     cpus:0.1 mem:32M

            ACTIVE TASKS: 3
              TASK            NAME  STATE                SINCE  CPUS   MEM  ROLE  AGENT
              web-1           web   running               1m5s   0.5  1.5G  eng   S0
              web-2           web   running (unhealthy)     2h     2  1.5G  eng   S1
              evil\u{1b}[31m  x     staging                  -  0.25  1.5G  eng   S0"#]]
        .assert_eq(&render(&answer["frameworks"][0], sample::NOW, false));
    }
}
