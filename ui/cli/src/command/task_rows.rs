//! The tasks of one agent or framework: live and recently completed.

use serde_json::Value;

use super::task_state::TaskState;
use crate::amount;
use crate::detail::Detail;
use crate::listing::{age, held, lists, number, revocable, text};
use crate::similar::Short;
use crate::table::{Cell, Table};

/// The number of completed tasks shown.
const ENDED_MAX: usize = 10;

/// Adds both tables. `owner` is the key and header of the column that differs between the tasks.
pub fn add<'v>(
    detail: &mut Detail,
    tasks: impl Iterator<Item = &'v Value>,
    owner: (&'static str, &'static str),
    now: f64,
) {
    let (live, mut ended): (Vec<&Value>, Vec<&Value>) = tasks.partition(|task| TaskState::of(task).is_live());
    ended.sort_by(|one, other| last_time(other).total_cmp(&last_time(one)));
    let hidden = ended.len().saturating_sub(ENDED_MAX);
    let more = if hidden > 0 {
        format!(" (and {hidden} before; `tepui tasks --all` shows them)")
    } else {
        String::new()
    };
    ended.truncate(ENDED_MAX);
    detail.table(format!("ACTIVE TASKS: {}", live.len()), table(&live, owner, now));
    detail.table(format!("RECENTLY COMPLETED{more}"), table(&ended, owner, now));
}

fn table(tasks: &[&Value], (key, header): (&'static str, &'static str), now: f64) -> Table {
    let short = Short::among(tasks.iter().map(|task| text(task, key)), false);
    let row = |task: &&Value| {
        let used = |name: &str| held(&task["resources"], name);
        vec![
            Cell::text(text(task, "id")),
            Cell::text(short.name(text(task, "name"))),
            TaskState::of(task).cell(),
            age(last_time(task), now),
            Cell::number(amount::number(used("cpus")), used("cpus")),
            Cell::number(amount::megabytes(used("mem")), used("mem")),
            Cell::text(text(task, "role")),
            Cell::text(short.of(text(task, key))),
            Cell::text(revocable(&task["resources"])),
        ]
    };
    Table::new(
        &["TASK", "NAME", "STATE", "SINCE", "CPUS", "MEM", "ROLE", header, "REVOCABLE"],
        tasks.iter().map(row).collect(),
    )
    .without_empty_columns(8)
}

fn last_time(task: &Value) -> f64 {
    lists(task, &["statuses"]).last().map_or(0.0, |status| number(status, "timestamp"))
}
