//! `tepui roles`: the tree of roles with weight, quota and share.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::filter::is_below;
use crate::amount;
use crate::detail::resources;
use crate::listing::{self, List, ListContext, ListFlags, lists, number, text};
use crate::similar::Known;
use crate::table::Cell;

/// List roles with their weights, quotas and resources.
#[derive(Args)]
pub struct Roles {
    #[command(flatten)]
    list: ListFlags,
    /// Only this role and its subroles.
    #[arg(long)]
    role: Option<String>,
    /// Only roles of this framework: its ID, or a prefix or suffix of it.
    #[arg(long)]
    framework: Option<String>,
}

impl Roles {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }
}

impl List for Roles {
    const COLUMNS: &'static [&'static str] = &[
        "ROLE",
        "WEIGHT",
        "SHARE",
        "FRAMEWORKS",
        "CPUS",
        "MEM",
        "GPUS",
        "BORROWED",
        "OFFERED",
        "RESERVED",
        "GUARANTEE",
        "LIMIT",
    ];
    const COLUMNS_KEPT: usize = 6;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let mut answer = self.list.cluster.get("/roles").await?;
        // The total for the shares; without authorization to read it no shares are shown.
        if let Some(answer) = answer.as_object_mut() {
            let metrics = self.list.cluster.get("/metrics/snapshot").await.unwrap_or_default();
            answer.insert("metrics".to_string(), metrics);
        }
        Ok(answer)
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let ids = |role: &'v Value| lists(role, &["frameworks"]).filter_map(Value::as_str);
        let wanted = match self.framework.as_deref() {
            Some(typed) => {
                let known = lists(answer, &["roles"]).flat_map(ids).map(|id| Known::new(id, "")).collect();
                Some(listing::filter_ids("framework", typed, known, "tepui frameworks")?)
            }
            None => None,
        };
        let is_wanted = |role: &&'v Value| {
            let by_role = self.role.as_deref().is_none_or(|wanted| is_below(text(role, "name"), wanted));
            by_role && wanted.as_ref().is_none_or(|wanted| ids(role).any(|id| wanted.contains(id)))
        };
        let mut roles: Vec<&Value> = lists(answer, &["roles"]).filter(is_wanted).collect();
        roles.sort_by_key(|role| text(role, "name").split('/').collect::<Vec<_>>());
        Ok(roles)
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let tree = self.list.sort.is_none();
        entries.iter().map(|role| row(role, &seen.answer["metrics"], tree)).collect()
    }

    fn nothing(&self, answer: &Value) -> String {
        match lists(answer, &["roles"]).next() {
            Some(_) => "no such roles".to_string(),
            None => {
                "no roles; a role is there while a framework, a weight, a quota or a reservation names it"
                    .to_string()
            }
        }
    }
}

/// The greatest part that the role has of any resource, with all roles below it.
fn share(role: &Value, metrics: &Value) -> Option<f64> {
    let part = |name: &&str| {
        let total = number(metrics, &format!("master/{name}_total"));
        let held = number(&role["allocated"], name) + number(&role["offered"], name);
        (total > 0.0).then(|| held / total)
    };
    ["cpus", "mem", "disk", "gpus"].iter().filter_map(part).max_by(f64::total_cmp)
}

/// In a tree a role is named by its last part, below its parent.
fn name(role: &Value, tree: bool) -> String {
    let name = text(role, "name");
    match name.rsplit_once('/') {
        Some((above, own)) if tree => format!("{}{own}", "  ".repeat(above.split('/').count())),
        Some(_) | None => name.to_string(),
    }
}

fn row(role: &Value, metrics: &Value, tree: bool) -> Vec<Cell> {
    let held = |key: &str| number(&role["allocated"], key);
    let frameworks = lists(role, &["frameworks"]).count();
    let gpus = if held("gpus") == 0.0 { "-".to_string() } else { amount::number(held("gpus")) };
    vec![
        Cell::text(name(role, tree)),
        Cell::number(amount::number(number(role, "weight")), number(role, "weight")),
        match share(role, metrics) {
            Some(share) => Cell::number(format!("{:.1}%", share * 100.0), share),
            None => Cell::number("-", 0.0),
        },
        Cell::number(frameworks.to_string(), frameworks as f64),
        Cell::number(amount::number(held("cpus")), held("cpus")),
        Cell::number(amount::megabytes(held("mem")), held("mem")),
        Cell::number(gpus, held("gpus")),
        Cell::text(resources(&role["borrowed"])),
        Cell::text(resources(&role["offered"])),
        Cell::text(resources(&role["reserved"])),
        Cell::text(resources(&role["quota"]["guarantee"])),
        Cell::text(resources(&role["quota"]["limit"])),
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
    fn roles_are_listed() {
        let mut answer = sample::roles();
        answer["metrics"] = json!({"master/cpus_total": 32.0, "master/mem_total": 16384.0});
        check::<Roles>(
            "",
            &answer,
            expect![[r#"
                ROLE    WEIGHT  SHARE  FRAMEWORKS  CPUS  MEM  OFFERED                        LIMIT
                *            1   0.0%           0     0    0
                eng          1  50.0%           1   0.5  64M  cpus:15.5 mem:7.8G ports:1001
                  web      2.5   0.0%           1     0    0                                 cpus:4
                engine       1   0.0%           0     0    0"#]],
        );
        check::<Roles>(
            "--sort weight",
            &answer,
            expect![[r#"
                ROLE     WEIGHT  SHARE  FRAMEWORKS  CPUS  MEM  OFFERED                        LIMIT
                *             1   0.0%           0     0    0
                eng           1  50.0%           1   0.5  64M  cpus:15.5 mem:7.8G ports:1001
                engine        1   0.0%           0     0    0
                eng/web     2.5   0.0%           1     0    0                                 cpus:4"#]],
        );
        check::<Roles>(
            "--role eng",
            &answer,
            expect![[r#"
                ROLE   WEIGHT  SHARE  FRAMEWORKS  CPUS  MEM  OFFERED                        LIMIT
                eng         1  50.0%           1   0.5  64M  cpus:15.5 mem:7.8G ports:1001
                  web     2.5   0.0%           1     0    0                                 cpus:4"#]],
        );
        check::<Roles>(
            "--framework 0000",
            &answer,
            expect![[r#"
                ROLE   WEIGHT  SHARE  FRAMEWORKS  CPUS  MEM  OFFERED                        LIMIT
                eng         1  50.0%           1   0.5  64M  cpus:15.5 mem:7.8G ports:1001
                  web     2.5   0.0%           1     0    0                                 cpus:4"#]],
        );
        check::<Roles>(
            "",
            &json!({"roles": []}),
            expect![
                "no roles; a role is there while a framework, a weight, a quota or a reservation names it"
            ],
        );
    }
}
