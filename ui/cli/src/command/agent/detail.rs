//! `tepui agent ID`: everything about one agent.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::amount;
use crate::command::agents::{AgentState, attributes};
use crate::command::{Cluster, block_on, find, task_rows};
use crate::detail::{Detail, resources};
use crate::listing::{lists, number, text};
use crate::output;
use crate::table::{Cell, Table};

/// Shows one agent.
pub fn show(cluster: &Cluster, typed: &str, json: bool) -> Result<ExitCode> {
    block_on(async {
        let agent = find::agent(cluster, typed).await?;
        if json {
            return output::json(&agent);
        }
        let tasks = cluster.get("/tasks?limit=-1").await?;
        output::line(&render(&agent, &tasks, amount::now(), output::colours()))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn render(agent: &Value, tasks: &Value, now: f64, colours: bool) -> String {
    let state = AgentState::of(agent);
    let capabilities: Vec<&str> = lists(agent, &["capabilities"]).filter_map(Value::as_str).collect();
    let mut detail = Detail::default();
    detail
        .value("agent", text(agent, "id"))
        .value("hostname", text(agent, "hostname"))
        .toned("state", state.name(), state.tone())
        .value("address", text(agent, "pid"))
        .value("version", text(agent, "version"))
        .moment("registered", number(agent, "registered_time"), now)
        .moment("unreachable", number(agent, "unreachable_time"), now)
        .moment("reregistered", number(agent, "reregistered_time"), now)
        .value("attributes", attributes(agent))
        .message("domain", &agent["domain"]["fault_domain"])
        .message("drain", &agent["drain_info"])
        .moment("disk pressure", number(&agent["disk_pressure"], "since"), now)
        .value("disk available", disk_available(agent))
        .moment("drain began", number(agent, "estimated_drain_start_time_seconds"), now)
        .value("capabilities", capabilities.join(" "))
        .table("RESOURCES", amounts(agent))
        .table("RESERVED", reserved(agent));
    let its = lists(tasks, &["tasks"]).filter(|task| task["slave_id"] == agent["id"]);
    task_rows::add(&mut detail, its, ("framework_id", "FRAMEWORK"), now);
    detail.render(colours)
}

/// Of an agent under disk pressure, as much as was left when that began.
fn disk_available(agent: &Value) -> String {
    match agent["disk_pressure"]["available_bytes"].as_f64() {
        Some(bytes) => amount::megabytes(bytes / f64::from(1 << 20)),
        None => String::new(),
    }
}

/// The amounts of each resource: total and used.
fn amounts(agent: &Value) -> Table {
    let all = ["resources", "used_resources"]
        .into_iter()
        .flat_map(|of| agent[of].as_object().into_iter().flatten());
    let names: BTreeSet<&str> = all.map(|(name, _)| name.as_str()).collect();
    let cell = |of: &str, name: &str| match &agent[of][name] {
        Value::Null => Cell::text("-"),
        Value::String(text) => Cell::text(text),
        value => {
            let value = value.as_f64().unwrap_or(0.0);
            let is_size = name.starts_with("mem") || name.starts_with("disk");
            Cell::number(if is_size { amount::megabytes(value) } else { amount::number(value) }, value)
        }
    };
    let row = |name: &str| {
        let held = ["resources", "used_resources", "offered_resources", "unreserved_resources"];
        std::iter::once(Cell::text(name)).chain(held.map(|of| cell(of, name))).collect()
    };
    let is_there =
        |name: &&str| ["resources", "used_resources"].iter().any(|of| !is_zero(&agent[*of][*name]));
    let rows = names.into_iter().filter(is_there).map(row).collect();
    Table::new(&["RESOURCE", "TOTAL", "USED", "OFFERED", "UNRESERVED"], rows)
}

fn is_zero(value: &Value) -> bool {
    value.is_null() || value.as_f64() == Some(0.0)
}

fn reserved(agent: &Value) -> Table {
    let row = |(role, held): (&String, &Value)| vec![Cell::text(role), Cell::text(resources(held))];
    let rows = agent["reserved_resources"].as_object().into_iter().flatten().map(row).collect();
    Table::new(&["ROLE", "RESOURCES"], rows)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn agent_details_list_its_tasks() {
        let agent = json!({
            "id": "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0", "hostname": "host-a", "port": 5051, "active": true,
            "pid": "slave(1)@10.0.0.2:5051", "version": "0.1.0", "registered_time": 1000.0,
            "attributes": {"rack": "r1", "level": 2.0}, "capabilities": ["MULTI_ROLE"], "deactivated": false,
            "domain": {"fault_domain": {"region": {"name": "r"}, "zone": {"name": "z"}}},
            "resources": {"cpus": 16.0, "mem": 8000.0, "gpus": 0.0, "disk": 100.0, "ports": "[31000-32000]", "cpus_revocable": 1.0},
            "used_resources": {"cpus": 0.5, "mem": 64.0, "gpus": 0.0, "disk": 0.0, "cpus_revocable": 0.75},
            "offered_resources": {"cpus": 0.0, "mem": 0.0, "gpus": 0.0, "disk": 0.0},
            "unreserved_resources": {"cpus": 15.0, "mem": 8000.0, "gpus": 0.0, "disk": 100.0, "ports": "[31000-32000]"},
            "reserved_resources": {"eng": {"cpus": 1.0, "mem": 0.0}},
        });
        let task = |id: &str, state: &str, time: f64, agent: &str| {
            json!({"id": id, "name": id, "state": state, "role": "eng", "slave_id": agent, "framework_id": "f-0",
                "resources": {"cpus": 0.5, "mem": 64.0}, "statuses": [{"state": state, "timestamp": time}]})
        };
        let here = "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0";
        let tasks = json!({"tasks": [
            task("t1", "TASK_RUNNING", 1010.0, here),
            task("t2", "TASK_FAILED", 1020.0, here),
            task("t3", "TASK_FINISHED", 1030.0, here),
            task("t4", "TASK_RUNNING", 1030.0, "elsewhere"),
        ]});
        expect![[r#"
            agent         1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0
            hostname      host-a
            state         active
            address       slave(1)@10.0.0.2:5051
            version       0.1.0
            registered    1970-01-01 00:16:40 UTC (1m30s ago)
            attributes    level:2 rack:r1
            domain        {"region":{"name":"r"},"zone":{"name":"z"}}
            capabilities  MULTI_ROLE

            RESOURCES
              RESOURCE                TOTAL  USED  OFFERED     UNRESERVED
              cpus                       16   0.5        0             15
              cpus_revocable              1  0.75        -              -
              disk                     100M     0        0           100M
              mem                      7.8G   64M        0           7.8G
              ports           [31000-32000]     -        -  [31000-32000]

            RESERVED
              ROLE  RESOURCES
              eng   cpus:1

            ACTIVE TASKS: 1
              TASK  NAME  STATE    SINCE  CPUS  MEM  ROLE  FRAMEWORK
              t1    t1    running  1m20s   0.5  64M  eng   f-0

            RECENTLY COMPLETED
              TASK  NAME  STATE     SINCE  CPUS  MEM  ROLE  FRAMEWORK
              t3    t3    finished     1m   0.5  64M  eng   f-0
              t2    t2    failed    1m10s   0.5  64M  eng   f-0"#]]
        .assert_eq(&render(&agent, &tasks, 1090.0, false));
    }
}
