//! `tepui weights`: how much roles count beside each other, and new weights.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tepui_proto::mesos::v1::WeightInfo;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{Type, UpdateWeights};

use super::block_on;
use crate::flags::value;
use crate::listing::{self, List, ListContext, ListFlags, number, text};
use crate::table::Cell;
use crate::{amount, output};

/// List the weights of roles, or set them: `tepui weights set ROLE=WEIGHT...`.
#[derive(Args)]
pub struct Weights {
    #[command(flatten)]
    list: ListFlags,
    /// `set` followed by weights, as in `set eng=2 eng/web=3.5`; the default weight is 1. Lists if omitted.
    #[arg(value_name = "set ROLE=WEIGHT", num_args = 0..)]
    words: Vec<String>,
}

impl Weights {
    pub fn run(self) -> Result<ExitCode> {
        match self.words.split_first() {
            None => listing::run(&self),
            Some((set, weights)) if set == "set" && !weights.is_empty() => self.set(weights),
            Some(_) => bail!("usage: tepui weights set ROLE=WEIGHT [ROLE=WEIGHT...]"),
        }
    }

    /// All of them, or none.
    fn set(&self, typed: &[String]) -> Result<ExitCode> {
        let weights = value::weights(&typed.join(",")).map_err(anyhow::Error::msg)?;
        let info = |(role, weight): (&String, &f64)| WeightInfo {
            role: Some(role.clone()),
            weight: *weight,
            ..Default::default()
        };
        let update = UpdateWeights { weight_infos: weights.iter().map(info).collect(), ..Default::default() };
        let call =
            Call { r#type: Some(Type::UPDATE_WEIGHTS), update_weights: update.into(), ..Default::default() };
        if block_on(self.list.cluster.change(&call))? == 204 {
            bail!(
                "nothing is changed: the master was started with --roles, and not all of these are among them"
            );
        }
        match self.list.json {
            true => output::json(
                &weights.iter().map(|(role, weight)| json!({"role": role, "weight": weight})).collect(),
            )?,
            false => {
                output::notice(&format!("set the weight of {}", amount::count(weights.len() as u64, "role")))
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List for Weights {
    const COLUMNS: &'static [&'static str] = &["ROLE", "WEIGHT"];
    const COLUMNS_KEPT: usize = 2;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        self.list.cluster.get("/weights").await
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        Ok(answer.as_array().into_iter().flatten().collect())
    }

    fn rows(&self, entries: &[&Value], _: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let row = |entry: &&Value| {
            let weight = number(entry, "weight");
            vec![Cell::text(text(entry, "role")), Cell::number(amount::number(weight), weight)]
        };
        entries.iter().map(row).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        "all roles have weight 1; change one with `tepui weights set ROLE=WEIGHT`".to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::listing::testing::{check, parsed};

    #[test]
    fn weights_are_listed() {
        let answer = json!([{"role": "eng", "weight": 2.0}, {"role": "eng/web", "weight": 3.5}]);
        check::<Weights>(
            "",
            &answer,
            expect![[r#"
                ROLE     WEIGHT
                eng           2
                eng/web     3.5"#]],
        );
        check::<Weights>(
            "",
            &json!([]),
            expect!["all roles have weight 1; change one with `tepui weights set ROLE=WEIGHT`"],
        );
    }

    #[test]
    fn invalid_arguments_are_rejected_before_confirmation() {
        for (typed, expected) in [
            ("set", "usage: tepui weights set ROLE=WEIGHT [ROLE=WEIGHT...]"),
            ("a=2", "usage: tepui weights set ROLE=WEIGHT [ROLE=WEIGHT...]"),
            ("set a", "\"a\" is not role=weight"),
            ("set a=0", "the weight \"0\" of role \"a\" must be positive"),
            ("set a=x", "the weight \"x\" is not a number"),
        ] {
            let error = parsed::<Weights>(typed).run().unwrap_err();
            assert_eq!(format!("{error:#}"), expected, "{typed}");
        }
    }
}
