//! `tepui frameworks`: the frameworks of the cluster.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::filter::is_below;
use crate::amount;
use crate::listing::{self, List, ListContext, ListFlags, held, lists, number, revocable, text};
use crate::output::Tone;
use crate::table::Cell;

/// List active frameworks; --all includes completed ones.
#[derive(Args)]
pub struct Frameworks {
    #[command(flatten)]
    list: ListFlags,
    /// Include completed frameworks.
    #[arg(long, short)]
    all: bool,
    /// Only frameworks in this role or its subroles.
    #[arg(long)]
    role: Option<String>,
    /// Only frameworks in these states (comma-separated).
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = FrameworkState::NAMES)]
    state: Vec<String>,
}

impl Frameworks {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }

    fn is_wanted(&self, framework: &Value) -> bool {
        let state = FrameworkState::of(framework);
        let in_state = match self.state.is_empty() {
            true => self.all || state != FrameworkState::Completed,
            false => self.state.iter().any(|wanted| wanted.eq_ignore_ascii_case(state.name())),
        };
        let mut roles = roles(framework);
        in_state && self.role.as_deref().is_none_or(|wanted| roles.any(|role| is_below(role, wanted)))
    }
}

impl List for Frameworks {
    const COLUMNS: &'static [&'static str] = &[
        "FRAMEWORK",
        "NAME",
        "STATE",
        "TASKS",
        "CPUS",
        "MEM",
        "GPUS",
        "REVOCABLE",
        "OFFERS",
        "ROLES",
        "USER",
        "HOSTNAME",
        "SINCE",
    ];
    const COLUMNS_KEPT: usize = 6;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        self.list.cluster.get("/frameworks").await
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let all = lists(answer, &["frameworks", "completed_frameworks"]);
        Ok(all.filter(|framework| self.is_wanted(framework)).collect())
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        entries.iter().map(|framework| row(framework, seen)).collect()
    }

    fn nothing(&self, answer: &Value) -> String {
        let some = lists(answer, &["frameworks", "completed_frameworks"]).next().is_some();
        match (some, self.all || self.role.is_some() || !self.state.is_empty()) {
            (false, _) => "no frameworks; `tepui run -- COMMAND` is one".to_string(),
            (true, true) => "no such frameworks".to_string(),
            (true, false) => "no active frameworks; --all includes completed ones".to_string(),
        }
    }
}

fn row(framework: &Value, seen: &ListContext<'_>) -> Vec<Cell> {
    let state = FrameworkState::of(framework);
    let count = |key: &str| framework[key].as_array().map_or(0, Vec::len);
    let used = |key: &str| held(&framework["used_resources"], key);
    let some =
        |text: String, value: f64| Cell::number(if value == 0.0 { "-".to_string() } else { text }, value);
    vec![
        seen.id(framework, "id"),
        Cell::text(seen.short.name(text(framework, "name"))),
        Cell::text(state.name()).tone(state.tone()),
        Cell::number(count("tasks").to_string(), count("tasks") as f64),
        Cell::number(amount::number(used("cpus")), used("cpus")),
        Cell::number(amount::megabytes(used("mem")), used("mem")),
        some(amount::number(used("gpus")), used("gpus")),
        Cell::text(revocable(&framework["used_resources"])),
        some(count("offers").to_string(), count("offers") as f64),
        Cell::text(roles(framework).collect::<Vec<_>>().join(",")),
        Cell::text(text(framework, "user")),
        Cell::text(text(framework, "hostname")),
        seen.age(number(framework, "registered_time")),
    ]
}

/// State of a framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkState {
    Active,
    /// Connected, but not offered resources.
    Inactive,
    Disconnected,
    /// Known only from its tasks since the master's failover.
    Recovered,
    Completed,
}

impl FrameworkState {
    const NAMES: [&'static str; 5] = ["active", "inactive", "disconnected", "recovered", "completed"];

    pub fn of(framework: &Value) -> Self {
        let is = |key: &str| framework[key] == true;
        match (is("recovered"), is("connected"), is("active")) {
            _ if number(framework, "unregistered_time") > 0.0 => FrameworkState::Completed,
            (true, _, _) => FrameworkState::Recovered,
            (false, false, _) => FrameworkState::Disconnected,
            (false, true, false) => FrameworkState::Inactive,
            (false, true, true) => FrameworkState::Active,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn tone(self) -> Tone {
        match self {
            FrameworkState::Active => Tone::Good,
            FrameworkState::Inactive | FrameworkState::Recovered => Tone::Busy,
            FrameworkState::Disconnected => Tone::Bad,
            FrameworkState::Completed => Tone::Quiet,
        }
    }
}

/// Its roles; a framework without MULTI_ROLE has one.
pub fn roles(framework: &Value) -> impl Iterator<Item = &str> {
    lists(framework, &["roles"]).chain(framework.get("role")).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::command::sample;
    use crate::listing::testing::check;

    #[test]
    fn frameworks_are_listed() {
        let answer = sample::frameworks();
        check::<Frameworks>(
            "",
            &answer,
            expect![[r#"
            FRAMEWORK  NAME      STATE   TASKS  CPUS   MEM  OFFERS  ROLES        USER  HOSTNAME  SINCE
            0000       marathon  active      3  2.75  4.5G       1  eng,eng/web  root  ctl        1d1h"#]],
        );
        check::<Frameworks>(
            "--all --sort name",
            &answer,
            expect![[r#"
                FRAMEWORK  NAME      STATE      TASKS  CPUS   MEM  OFFERS  ROLES        USER  HOSTNAME  SINCE
                0001       batch     completed      0     0     0       -  ops          root            3m20s
                0000       marathon  active         3  2.75  4.5G       1  eng,eng/web  root  ctl        1d1h"#]],
        );
        check::<Frameworks>(
            "--role eng",
            &answer,
            expect![[r#"
            FRAMEWORK  NAME      STATE   TASKS  CPUS   MEM  OFFERS  ROLES        USER  HOSTNAME  SINCE
            0000       marathon  active      3  2.75  4.5G       1  eng,eng/web  root  ctl        1d1h"#]],
        );
        check::<Frameworks>(
            "",
            &json!({"frameworks": []}),
            expect!["no frameworks; `tepui run -- COMMAND` is one"],
        );
    }
}
