//! `tepui explain`: the reasons for the offers of a framework or role.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::find::{self, Subject};
use super::{Cluster, block_on};
use crate::amount;
use crate::detail::{Detail, resources};
use crate::listing::{lists, number, text};
use crate::output::{self, Tone};
use crate::table::{Cell, Table};

/// Explain the offers of a framework or a role.
#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    cluster: Cluster,
    /// Print the answer of the master as JSON.
    #[arg(long)]
    json: bool,
    /// Role, or framework: its ID, a prefix or suffix of it, or its name.
    subject: String,
}

impl Explain {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let answer = self.fetch().await?;
            match self.json {
                true => output::json(&answer),
                false => output::line(&render(&answer, output::colours())),
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }

    async fn fetch(&self) -> Result<Value> {
        match find::role_or_framework(&self.cluster, &self.subject).await? {
            Subject::Role(name) => self.cluster.get(&format!("/explain/role/{name}")).await,
            Subject::Framework(id) => self.cluster.get(&format!("/explain/framework/{id}")).await,
        }
    }
}

fn render(answer: &Value, colours: bool) -> String {
    match answer.get("framework_id") {
        Some(_) => framework(answer, colours),
        None => role(answer, colours),
    }
}

fn framework(answer: &Value, colours: bool) -> String {
    let mut detail = Detail::default();
    detail.value("framework", text(answer, "framework_id")).value("name", text(answer, "name"));
    if answer["active"] == false {
        detail.toned("state", "not connected: no offers", Tone::Bad);
    }
    let agents = &answer["agents"];
    let away = [("unreachable", "unreachable"), ("recovering", "not reregistered since the master started")]
        .into_iter()
        .filter(|(key, _)| number(agents, key) > 0.0)
        .map(|(key, words)| format!(", {} {words}", number(agents, key)));
    detail.value("agents", format!("{}{}", number(agents, "registered"), away.collect::<String>()));
    let mut text = detail.render(colours);
    for client_report in lists(answer, &["roles"]) {
        text += &format!("\n\n{}", self::client_report(client_report, colours));
    }
    text
}

fn client_report(client_report: &Value, colours: bool) -> String {
    let mut detail = Detail::default();
    detail.value("role", text(client_report, "role")).value("place", text(client_report, "place_text"));
    detail.value("share", percent(client_report)).value("holds", resources(&client_report["held"]));
    detail.value("offered last", text(client_report, "last_offered_text"));
    let row = |reason: &Value| vec![Cell::text(text(reason, "text"))];
    let rows = lists(client_report, &["reasons"]).map(row).collect();
    detail.table("AGENTS", Table::new(&["WHY"], rows));
    let slack = &client_report["slack"];
    borrowing(&mut detail, slack);
    let rows = lists(slack, &["reasons"]).map(row).collect();
    detail.table("SLACK", Table::new(&["WHY"], rows));
    detail.render(colours)
}

fn role(answer: &Value, colours: bool) -> String {
    let mut detail = Detail::default();
    detail.value("role", text(answer, "role")).value("place", text(answer, "place_text"));
    detail.value("share", percent(answer)).value("weight", amount::number(number(answer, "weight")));
    detail.value("holds", resources(&answer["held"])).value("consumes", resources(&answer["consumed"]));
    detail.value("guarantee", resources(&answer["quota"]["guarantees"]));
    detail.value("limit", resources(&answer["quota"]["limits"]));
    detail.value("kept for it", resources(&answer["required"]));
    detail.value("for any role", resources(&answer["surplus"]));
    borrowing(&mut detail, &answer["slack"]);
    let row = |client_report: &Value| {
        vec![
            Cell::text(text(client_report, "framework_id")),
            Cell::text(text(client_report, "place_text")),
            Cell::text(percent(client_report)),
            Cell::text(resources(&client_report["held"])),
            Cell::text(resources(&client_report["slack"]["borrowed"])),
            Cell::text(text(&client_report["slack"], "place_text")),
            Cell::text(text(client_report, "last_offered_text")),
        ]
    };
    let rows = lists(answer, &["frameworks"]).map(row).collect();
    let columns = ["FRAMEWORK", "PLACE", "SHARE", "HOLDS", "BORROWS", "AS BORROWER", "OFFERED LAST"];
    detail.table("FRAMEWORKS", Table::new(&columns, rows));
    detail.render(colours)
}

/// The place in the order in which slack is lent.
fn borrowing(detail: &mut Detail, slack: &Value) {
    detail.value("borrows", resources(&slack["borrowed"]));
    if slack.get("place").is_some() {
        detail.value("as borrower", format!("{}, share {}", text(slack, "place_text"), percent(slack)));
    }
}

fn percent(client_report: &Value) -> String {
    format!("{} %", amount::number((number(client_report, "share") * 1000.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn framework_explanation_is_rendered() {
        let answer = json!({
            "framework_id": "m-0001", "name": "web", "active": true,
            "agents": {"registered": 12, "unreachable": 1, "recovering": 0},
            "roles": [{
                "role": "eng", "place_text": "2nd of 5", "share": 0.25, "held": {"cpus": 2.0, "mem": 64.0},
                "last_offered_text": "3 s ago",
                "reasons": [
                    {"agents": 9, "text": "9 agents: all that is fit for it is in use"},
                    {"agents": 3, "text": "3 agents: filtered for another 42 s after it declined cpus:1"},
                ],
                "slack": {"borrowed": {"cpus": 1.0}, "share": 0.125, "place": 3, "of": 4, "place_text": "3rd of 4", "reasons": [{"agents": 1, "text": "1 agent: lent to it and in use"}]},
            }],
        });
        expect![[r#"
            framework  m-0001
            name       web
            agents     12, 1 unreachable

            role          eng
            place         2nd of 5
            share         25 %
            holds         cpus:2 mem:64M
            offered last  3 s ago
            borrows       cpus:1
            as borrower   3rd of 4, share 12.5 %

            AGENTS
              WHY
              9 agents: all that is fit for it is in use
              3 agents: filtered for another 42 s after it declined cpus:1

            SLACK
              WHY
              1 agent: lent to it and in use"#]]
        .assert_eq(&render(&answer, false));
    }

    #[test]
    fn role_explanation_is_rendered() {
        let answer = json!({
            "role": "eng", "place_text": "1st of 2", "share": 0.5, "weight": 2.0, "held": {"cpus": 4.0},
            "consumed": {"cpus": 4.0}, "required": {"cpus": 2.0}, "surplus": {"mem": 64.0},
            "quota": {"guarantees": {"cpus": 6.0}, "limits": {"cpus": 8.0}},
            "slack": {"borrowed": {"cpus": 1.0}, "share": 0.25, "place": 2, "of": 2, "place_text": "2nd of 2"},
            "frameworks": [{"framework_id": "m-0001", "place_text": "suppressed", "share": 0.5, "held": {"cpus": 4.0},
                "slack": {"borrowed": {"cpus": 1.0}, "place_text": "nothing can be lent to it"}, "last_offered_text": "never"}],
        });
        expect![[r#"
            role          eng
            place         1st of 2
            share         50 %
            weight        2
            holds         cpus:4
            consumes      cpus:4
            guarantee     cpus:6
            limit         cpus:8
            kept for it   cpus:2
            for any role  mem:64M
            borrows       cpus:1
            as borrower   2nd of 2, share 25 %

            FRAMEWORKS
              FRAMEWORK  PLACE       SHARE  HOLDS   BORROWS  AS BORROWER                OFFERED LAST
              m-0001     suppressed  50 %   cpus:4  cpus:1   nothing can be lent to it  never"#]]
        .assert_eq(&render(&answer, false));
    }
}
