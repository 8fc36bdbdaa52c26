//! `tepui offers`: outstanding offers.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::filter::Filter;
use crate::amount;
use crate::listing::{self, List, ListContext, ListFlags, amount_of, lists, revocable, text};
use crate::table::Cell;

/// List outstanding offers.
#[derive(Args)]
pub struct Offers {
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    filter: Filter,
}

impl Offers {
    pub fn run(self) -> Result<ExitCode> {
        listing::run(&self)
    }
}

impl List for Offers {
    const COLUMNS: &'static [&'static str] =
        &["OFFER", "FRAMEWORK", "NAME", "ROLE", "AGENT", "CPUS", "MEM", "DISK", "GPUS", "REVOCABLE", "PORTS"];
    const COLUMNS_KEPT: usize = 7;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let answer = self.list.cluster.get("/frameworks").await?;
        self.filter.with_names(&self.list.cluster, answer).await
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let offers = lists(answer, &["frameworks"]).flat_map(|framework| lists(framework, &["offers"]));
        self.filter.select(answer, offers)
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let frameworks = lists(seen.answer, &["frameworks"]);
        let names: BTreeMap<&str, &str> =
            frameworks.map(|one| (text(one, "id"), text(one, "name"))).collect();
        let name = |offer: &Value| names.get(text(offer, "framework_id")).copied().unwrap_or_default();
        entries.iter().map(|offer| row(offer, name(offer), seen)).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        match self.filter.is_set() {
            true => "no such offers".to_string(),
            false => "no outstanding offers".to_string(),
        }
    }
}

fn row(offer: &Value, framework: &str, seen: &ListContext<'_>) -> Vec<Cell> {
    let held = &offer["resources"];
    vec![
        seen.id(offer, "id"),
        seen.id(offer, "framework_id"),
        Cell::text(framework),
        Cell::text(text(&offer["allocation_info"], "role")),
        seen.id(offer, "slave_id"),
        amount_of(held, "cpus", amount::number),
        amount_of(held, "mem", amount::megabytes),
        amount_of(held, "disk", amount::megabytes),
        amount_of(held, "gpus", amount::number),
        Cell::text(revocable(held)),
        Cell::text(text(&offer["resources"], "ports")),
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
    fn offers_are_listed() {
        let answer = sample::frameworks();
        check::<Offers>(
            "",
            &answer,
            expect![[r#"
            OFFER  FRAMEWORK  NAME      ROLE     AGENT  CPUS   MEM  DISK  PORTS
            O7     0000       marathon  eng/web  S0     15.5  6.5G  977G  [31000-32000]"#]],
        );
        check::<Offers>("--framework batch", &answer, expect!["no such offers"]);
        check::<Offers>("", &json!({"frameworks": []}), expect!["no outstanding offers"]);
    }
}
