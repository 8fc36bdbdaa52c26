//! Finds a task, agent, framework or role by an id or name typed by the user.

use anyhow::{Result, bail};
use serde_json::Value;

use super::task_state::TaskState;
use super::{Cluster, agents};
use crate::listing::{lists, number, text};
use crate::similar::{self, Known};

/// A candidate task; task ids are unique within their framework only.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub task: Known,
    pub framework: String,
    /// Not terminated.
    pub live: bool,
    /// When its first status was made, in seconds since the epoch.
    pub started: f64,
}

/// The index of the matching task: of several matches, the only live one; of several terminated ones with the same name,
/// the newest; of several runs with one id, the first.
pub fn choose(candidates: &[Candidate], typed: &str, framework: Option<&str>) -> Result<usize> {
    let frameworks: Vec<Known> = candidates.iter().map(|one| Known::new(&one.framework, "")).collect();
    let places: Vec<usize> = match framework {
        Some(framework) => similar::matching(framework, &frameworks),
        None => (0..candidates.len()).collect(),
    };
    if let (Some(framework), true) = (framework, places.is_empty()) {
        bail!("{}", similar::nothing("framework", framework, &frameworks, "tepui frameworks --all"));
    }
    let known: Vec<Known> = places.iter().map(|place| candidates[*place].task.clone()).collect();
    let fitting: Vec<usize> = similar::matching(typed, &known).into_iter().map(|one| places[one]).collect();
    let live: Vec<usize> = fitting.iter().copied().filter(|place| candidates[*place].live).collect();
    let is_named =
        |place: &usize| candidates[*place].task.id != typed && candidates[*place].task.name == typed;
    let by_age =
        |one: &&usize, other: &&usize| candidates[**one].started.total_cmp(&candidates[**other].started);
    match (&live[..], fitting.iter().rev().max_by(by_age)) {
        ([only], _) => return Ok(*only),
        ([], Some(newest)) if fitting.iter().all(is_named) => return Ok(*newest),
        (_, Some(_) | None) => {}
    }
    let first = places[similar::one("task", typed, &known, "tepui tasks --all")?];
    let chosen = &candidates[first];
    let mut owners: Vec<&str> = places
        .iter()
        .map(|place| &candidates[*place])
        .filter(|one| one.task.id == chosen.task.id)
        .map(|one| one.framework.as_str())
        .collect();
    owners.sort();
    owners.dedup();
    if owners.len() > 1 {
        bail!(
            "{} frameworks have a task {:?}; choose with --framework: {}",
            owners.len(),
            chosen.task.id,
            owners.join(", ")
        );
    }
    Ok(first)
}

/// The task as in `/tasks`: by its id in a small answer, else by similarity in the complete list.
pub async fn task(cluster: &Cluster, typed: &str, framework: Option<&str>) -> Result<Value> {
    let mut answer = cluster.query("/tasks", &[("task_id", typed), ("limit", "-1")]).await?;
    if lists(&answer, &["tasks"]).next().is_none() {
        answer = cluster.get("/tasks?limit=-1").await?;
    }
    let candidate = |task: &Value| Candidate {
        task: Known::new(text(task, "id"), text(task, "name")),
        framework: text(task, "framework_id").to_string(),
        live: TaskState::of(task).is_live(),
        started: lists(task, &["statuses"]).next().map_or(0.0, |first| number(first, "timestamp")),
    };
    let candidates: Vec<Candidate> = lists(&answer, &["tasks"]).map(candidate).collect();
    let place = choose(&candidates, typed, framework)?;
    Ok(answer["tasks"][place].take())
}

/// The agent as in `/slaves`, or the id of an unreachable one.
pub async fn agent(cluster: &Cluster, typed: &str) -> Result<Value> {
    let answer = agents::all(cluster).await?;
    named(&answer, &agents::LISTS, "hostname", ("agent", typed, "tepui agents"))
}

/// The framework as `/frameworks` has it.
pub async fn framework(cluster: &Cluster, typed: &str) -> Result<Value> {
    let mut answer = cluster.query("/frameworks", &[("framework_id", typed)]).await?;
    let keys = ["frameworks", "completed_frameworks"];
    if lists(&answer, &keys).next().is_none() {
        answer = cluster.get("/frameworks").await?;
    }
    named(&answer, &keys, "name", ("framework", typed, "tepui frameworks --all"))
}

/// The name of a role or the id of a framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Role(String),
    Framework(String),
}

/// Finds a role or framework.
pub async fn role_or_framework(cluster: &Cluster, typed: &str) -> Result<Subject> {
    let roles = cluster.get("/roles").await?;
    let frameworks = cluster.get("/frameworks").await?;
    let roles: Vec<Known> =
        lists(&roles, &["roles"]).map(|role| Known::new(text(role, "name"), "")).collect();
    let frameworks: Vec<Known> = lists(&frameworks, &["frameworks", "completed_frameworks"])
        .map(|framework| Known::new(text(framework, "id"), text(framework, "name")))
        .collect();
    choose_subject(typed, roles, frameworks)
}

/// A role of exactly that name takes precedence, then frameworks. Suggestions come from both.
fn choose_subject(typed: &str, roles: Vec<Known>, mut frameworks: Vec<Known>) -> Result<Subject> {
    if roles.iter().any(|role| role.id == typed) {
        return Ok(Subject::Role(typed.to_string()));
    }
    if similar::matching(typed, &frameworks).is_empty() {
        frameworks.extend(roles);
        bail!("{}", similar::nothing("framework or role", typed, &frameworks, "tepui roles"));
    }
    let place = similar::one("framework", typed, &frameworks, "tepui frameworks --all")?;
    Ok(Subject::Framework(frameworks.swap_remove(place).id))
}

/// The one matching entry; `(noun, typed, list)` as in [`similar::one`].
fn named(
    answer: &Value,
    keys: &[&str],
    name: &str,
    (noun, typed, list): (&str, &str, &str),
) -> Result<Value> {
    let entries: Vec<&Value> = lists(answer, keys).collect();
    let known: Vec<Known> =
        entries.iter().map(|entry| Known::new(text(entry, "id"), text(entry, name))).collect();
    Ok(entries[similar::one(noun, typed, &known, list)?].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_before_frameworks_and_both_are_suggested() {
        let roles = vec![Known::new("web", ""), Known::new("web/eu", "")];
        let frameworks = vec![Known::new("m-0000", "web"), Known::new("m-0001", "batch")];
        let role = |name: &str| Ok(Subject::Role(name.to_string()));
        let framework = |id: &str| Ok(Subject::Framework(id.to_string()));
        let table: &[(&str, Result<Subject, &str>)] = &[
            ("web", role("web")),
            ("web/eu", role("web/eu")),
            ("batch", framework("m-0001")),
            ("0000", framework("m-0000")),
            ("m", Err("\"m\" fits 2 frameworks: m-0000, m-0001")),
            ("web/eq", Err("no framework or role \"web/eq\"; did you mean web/eu? `tepui roles` lists all")),
            ("bacth", Err("no framework or role \"bacth\"; did you mean batch? `tepui roles` lists all")),
        ];
        for (typed, expected) in table {
            let chosen =
                choose_subject(typed, roles.clone(), frameworks.clone()).map_err(|error| error.to_string());
            assert_eq!(chosen, expected.clone().map_err(str::to_string), "{typed}");
        }
    }

    #[test]
    fn tasks_with_equal_ids_are_distinguished_by_framework() {
        let candidate = |id: &str, name: &str, framework: &str| Candidate {
            task: Known::new(id, name),
            framework: framework.to_string(),
            live: id == "t4",
            started: if id == "t7" { 2.0 } else { 1.0 },
        };
        let candidates = [
            candidate("t1", "web", "m-0000"),
            candidate("t1", "web", "m-0001"),
            candidate("t2", "batch", "m-0001"),
            candidate("t2", "batch", "m-0001"),
            candidate("t3", "job", "m-0001"),
            candidate("t4", "job", "m-0001"),
            candidate("t5", "job", "m-0000"),
            candidate("t6", "again", "m-0002"),
            candidate("t7", "again", "m-0003"),
            candidate("t8", "again", "m-0004"),
        ];
        let table: &[(&str, Option<&str>, Result<usize, &str>)] = &[
            ("t2", None, Ok(2)),
            ("batch", None, Ok(2)),
            ("t1", Some("0001"), Ok(1)),
            ("job", None, Ok(5)),
            ("job", Some("0000"), Ok(6)),
            ("again", None, Ok(8)),
            ("again", Some("0004"), Ok(9)),
            ("t1", None, Err("2 frameworks have a task \"t1\"; choose with --framework: m-0000, m-0001")),
            ("t2", Some("0000"), Err("no task \"t2\"; did you mean t1 or t5? `tepui tasks --all` lists all")),
            (
                "t1",
                Some("0009"),
                Err(
                    "no framework \"0009\"; did you mean m-0000, m-0001, m-0002, m-0003 or m-0004? `tepui frameworks --all` lists all",
                ),
            ),
            ("t", None, Ok(5)),
            ("t", Some("0000"), Err("\"t\" fits 2 tasks: t1, t5")),
        ];
        for (typed, framework, expected) in table {
            let chosen = choose(&candidates, typed, *framework).map_err(|error| error.to_string());
            assert_eq!(chosen, expected.map_err(str::to_string), "{typed} {framework:?}");
        }
    }
}
