//! The shared part of all lists: fetch, filter, sort, and print as a table, as JSON or repeatedly.
//!
//! A list supplies its request and its rows.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::command::{Cluster, block_on, summary};
use crate::output;
use crate::similar::{self, Known, Short};
use crate::table::{Cell, Table};
use crate::{amount, detail, watch};

/// The flags of every list.
#[derive(Args, Clone, Debug)]
pub struct ListFlags {
    #[command(flatten)]
    pub cluster: Cluster,
    /// Sort by this column; -COLUMN reverses the order.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Refresh every second, until Ctrl-C.
    #[arg(long, short, conflicts_with = "json")]
    pub watch: bool,
    /// Print the entries as a JSON array, as the master returns them.
    #[arg(long)]
    pub json: bool,
    /// Print full IDs and names.
    #[arg(long)]
    pub full: bool,
}

/// A list of entities of one kind.
pub trait List {
    /// The headers, which are also the names for --sort.
    const COLUMNS: &'static [&'static str];
    /// The number of leading columns that are shown even if they are empty.
    const COLUMNS_KEPT: usize;

    fn flags(&self) -> &ListFlags;

    /// The complete answer of the master.
    async fn fetch(&self) -> Result<Value>;

    /// The entries selected by the flags.
    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>>;

    /// A row for each entry, with a cell for each column.
    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>>;

    /// The message if there are no entries, with a suggestion.
    fn nothing(&self, answer: &Value) -> String;
}

/// What a row may need beside its entry.
pub struct ListContext<'v> {
    pub answer: &'v Value,
    pub now: f64,
    pub short: Short,
}

impl ListContext<'_> {
    /// The id under `key`, shortened.
    pub fn id(&self, entry: &Value, key: &str) -> Cell {
        Cell::text(self.short.of(text(entry, key)))
    }

    pub fn age(&self, moment: f64) -> Cell {
        age(moment, self.now)
    }
}

/// The time since a moment; empty for "never".
pub fn age(moment: f64, now: f64) -> Cell {
    match moment > 0.0 {
        true => Cell::number(amount::duration(now - moment), now - moment),
        false => Cell::number("-", f64::INFINITY),
    }
}

/// Runs a list command.
pub fn run(list: &impl List) -> Result<ExitCode> {
    sort_column(list)?; // Fails before any request.
    let colours = output::colours();
    block_on(async {
        if list.flags().watch {
            watch::run(async || {
                let text = render(list, &list.fetch().await?, amount::now(), colours)?;
                Ok(summary::above(&list.flags().cluster, text, colours).await)
            })
            .await
        } else {
            print(list, &list.fetch().await?, colours)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print(list: &impl List, answer: &Value, colours: bool) -> Result<()> {
    let (entries, table) = sorted(list, answer, amount::now())?;
    if list.flags().json {
        return output::json(&Value::Array(entries.into_iter().cloned().collect()));
    }
    match entries.is_empty() {
        // To standard error, so that programs that read the output do not receive it.
        true => eprintln!("{}", list.nothing(answer)),
        false => output::line(&table.render(colours))?,
    }
    Ok(())
}

/// The table, or the message for an empty list.
pub fn render(list: &impl List, answer: &Value, now: f64, colours: bool) -> Result<String> {
    let (entries, table) = sorted(list, answer, now)?;
    match entries.is_empty() {
        true => Ok(list.nothing(answer)),
        false => Ok(table.render(colours)),
    }
}

/// The selected entries and their table, both sorted.
fn sorted<'v, L: List>(list: &L, answer: &'v Value, now: f64) -> Result<(Vec<&'v Value>, Table)> {
    let entries = list.entries(answer)?;
    let ids = entries.iter().flat_map(|entry| ["id", "framework_id", "slave_id"].map(|key| text(entry, key)));
    let seen = ListContext { answer, now, short: Short::among(ids, list.flags().full) };
    let mut table = Table::new(L::COLUMNS, list.rows(&entries, &seen));
    let Some((column, descending)) = sort_column(list)? else {
        return Ok((entries, table.without_empty_columns(L::COLUMNS_KEPT)));
    };
    let order = table.order(column, descending);
    table.arrange(&order);
    let entries = order.iter().map(|index| entries[*index]).collect();
    Ok((entries, table.without_empty_columns(L::COLUMNS_KEPT)))
}

/// The column of --sort, and whether the order is descending.
fn sort_column<L: List>(list: &L) -> Result<Option<(usize, bool)>> {
    let Some(typed) = list.flags().sort.as_deref() else { return Ok(None) };
    let (name, descending) = match typed.strip_prefix('-') {
        Some(name) => (name.to_lowercase(), true),
        None => (typed.to_lowercase(), false),
    };
    let columns: Vec<String> = L::COLUMNS.iter().map(|column| column.to_lowercase()).collect();
    let known: Vec<Known> = columns.iter().map(|column| Known::new(column, "")).collect();
    match similar::matching(&name, &known)[..] {
        [one] => Ok(Some((one, descending))),
        _ => bail!("--sort={typed}: unknown column; columns: {}", columns.join(", ")),
    }
}

/// The concatenated lists at these keys.
pub fn lists<'v>(value: &'v Value, keys: &'v [&str]) -> impl Iterator<Item = &'v Value> {
    keys.iter().flat_map(|key| value[*key].as_array().into_iter().flatten())
}

/// The text at a key; empty if missing.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The number at a key; zero if missing.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

/// The amount of a resource, revocable or not.
pub fn held(resources: &Value, key: &str) -> f64 {
    number(resources, key) + number(resources, &format!("{key}{REVOCABLE}"))
}

/// Ends the names of revocable resources in classic answers.
pub const REVOCABLE: &str = "_revocable";

/// `cpus:3 mem:64M`: the revocable part of classic resources.
pub fn revocable(resources: &Value) -> String {
    let part =
        |(name, value): (&String, &Value)| Some((name.strip_suffix(REVOCABLE)?.to_string(), value.clone()));
    let parts = resources.as_object().into_iter().flatten().filter_map(part).collect();
    detail::resources(&Value::Object(parts))
}

/// The amount under a key, revocable or not; a dash for none.
pub fn amount_of(resources: &Value, key: &str, show: fn(f64) -> String) -> Cell {
    match held(resources, key) {
        0.0 => Cell::number("-", 0.0),
        some => Cell::number(show(some), some),
    }
}

/// All ids that match a filter such as --framework by id or by a name of `named`.
pub fn filter_ids(noun: &str, typed: &str, named: Vec<Known>, list: &str) -> Result<BTreeSet<String>> {
    let found = similar::matching(typed, &named);
    if found.is_empty() {
        bail!("{}", similar::nothing(noun, typed, &named, list));
    }
    Ok(found.into_iter().map(|index| named[index].id.clone()).collect())
}

#[cfg(test)]
pub mod testing {
    use clap::{ArgMatches, Args, Command};
    use expect_test::Expect;

    use super::*;
    use crate::command::sample::NOW;

    /// The command as it is typed.
    pub fn parsed<A: Args>(typed: &str) -> A {
        let command = A::augment_args(Command::new("list").no_binary_name(true));
        let matches: ArgMatches = command.try_get_matches_from(typed.split_whitespace()).unwrap();
        A::from_arg_matches(&matches).unwrap()
    }

    /// What the list shows of an answer.
    pub fn check<L: List + Args>(typed: &str, answer: &Value, expected: Expect) {
        let shown = render(&parsed::<L>(typed), answer, NOW, false);
        expected.assert_eq(&shown.unwrap_or_else(|error| format!("error: {error:#}")));
    }
}
