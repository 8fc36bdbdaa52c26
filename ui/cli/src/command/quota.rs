//! `tepui quota`: guarantees and limits of roles.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{Type, UpdateQuota};
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::mesos::v1::value::Scalar;

use super::block_on;
use crate::confirm::done;
use crate::detail::resources;
use crate::flags::value;
use crate::listing::{self, List, ListContext, ListFlags, lists, text};
use crate::table::Cell;

/// List quotas, or change them: `quota set ROLE --guarantee cpus:4 --limit cpus:8,mem:1024`, `quota remove
/// ROLE`.
#[derive(Args)]
pub struct Quota {
    #[command(flatten)]
    list: ListFlags,
    /// `set ROLE` or `remove ROLE`. Lists if omitted.
    #[arg(value_name = "set|remove ROLE", num_args = 0..)]
    words: Vec<String>,
    /// Guaranteed resources, as in `cpus:4,mem:1024`; mem and disk in megabytes.
    #[arg(long, value_parser = value::amounts)]
    guarantee: Option<value::Amounts>,
    /// Maximum resources; those not named are unlimited.
    #[arg(long, value_parser = value::amounts)]
    limit: Option<value::Amounts>,
    /// Skip the check against the capacity of the cluster and the usage of the role.
    #[arg(long)]
    force: bool,
}

impl Quota {
    pub fn run(self) -> Result<ExitCode> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => listing::run(&self),
            ["set", role] if self.guarantee.is_some() || self.limit.is_some() => {
                self.set(role, amounts(self.guarantee.as_ref()), amounts(self.limit.as_ref()))
            }
            ["set", _] => {
                bail!("--guarantee or --limit is missing, as in --guarantee cpus:4 --limit cpus:8,mem:1024")
            }
            ["remove", role] => self.set(role, Amounts::new(), Amounts::new()),
            _ => bail!(
                "usage: tepui quota set ROLE --guarantee cpus:4 --limit cpus:8 | tepui quota remove ROLE"
            ),
        }
    }

    /// A quota without anything is none.
    fn set(&self, role: &str, guarantees: Amounts, limits: Amounts) -> Result<ExitCode> {
        let removed = guarantees.is_empty() && limits.is_empty();
        let config = QuotaConfig { role: role.to_string(), guarantees, limits, ..Default::default() };
        let update =
            UpdateQuota { force: Some(self.force), quota_configs: vec![config], ..Default::default() };
        let call =
            Call { r#type: Some(Type::UPDATE_QUOTA), update_quota: update.into(), ..Default::default() };
        block_on(self.list.cluster.change(&call))?;
        let verb = if removed { "removed" } else { "set" };
        done(self.list.json, &json!({"role": role, "done": verb}), &format!("{verb} the quota of {role}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

type Amounts = std::collections::BTreeMap<String, Scalar>;

fn amounts(typed: Option<&value::Amounts>) -> Amounts {
    let scalar = |value: f64| Scalar { value, ..Default::default() };
    typed.into_iter().flat_map(|typed| &typed.0).map(|(name, value)| (name.clone(), scalar(*value))).collect()
}

impl List for Quota {
    const COLUMNS: &'static [&'static str] = &["ROLE", "GUARANTEE", "LIMIT", "CONSUMED"];
    const COLUMNS_KEPT: usize = 4;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        self.list.cluster.get("/roles").await
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let some = |of: &Value| of.as_object().is_some_and(|amounts| !amounts.is_empty());
        let has_quota = |role: &&Value| some(&role["quota"]["guarantee"]) || some(&role["quota"]["limit"]);
        Ok(lists(answer, &["roles"]).filter(has_quota).collect())
    }

    fn rows(&self, entries: &[&Value], _: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let row = |role: &&Value| {
            let quota = |key: &str| Cell::text(resources(&role["quota"][key]));
            vec![Cell::text(text(role, "name")), quota("guarantee"), quota("limit"), quota("consumed")]
        };
        entries.iter().map(row).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        "no quotas; set one with `tepui quota set ROLE --guarantee cpus:4 --limit cpus:8`".to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::command::sample;
    use crate::listing::testing::{check, parsed};

    #[test]
    fn quotas_are_listed() {
        check::<Quota>(
            "",
            &sample::roles(),
            expect![[r#"
            ROLE     GUARANTEE  LIMIT   CONSUMED
            eng/web             cpus:4"#]],
        );
        let nothing = "no quotas; set one with `tepui quota set ROLE --guarantee cpus:4 --limit cpus:8`";
        assert_eq!(parsed::<Quota>("").nothing(&json!({})), nothing);
    }

    #[test]
    fn invalid_arguments_are_rejected_before_confirmation() {
        for (typed, expected) in [
            ("set r", "--guarantee or --limit is missing, as in --guarantee cpus:4 --limit cpus:8,mem:1024"),
            (
                "remove",
                "usage: tepui quota set ROLE --guarantee cpus:4 --limit cpus:8 | tepui quota remove ROLE",
            ),
        ] {
            let error = parsed::<Quota>(typed).run().unwrap_err();
            assert_eq!(format!("{error:#}"), expected, "{typed}");
        }
    }
}
