//! `/v1/debug`: all plans at once, with what the scheduler is busy with; states of tasks by step; threads.

use std::fmt::Write as _;
use std::fs;

use http::StatusCode;
use serde_json::{Value, json};
use tepui_http::{HttpError, Query, Response, text};
use tepui_service::scheduler::{PlanView, View};

use super::plans::counts;

/// Plans, or those parts of them that the query names.
pub(super) fn plans(view: &View, query: &Query) -> Value {
    let all: Vec<PlanView> = view.plan_names().iter().filter_map(|name| view.plan(name)).collect();
    let filtered = match filter(&all, query) {
        Ok(plans) => plans,
        Err(message) => return json!({"invalid-input": message}),
    };
    let active: Vec<&str> =
        all.iter().filter(|plan| plan.status != "COMPLETE").map(|plan| plan.name.as_str()).collect();
    json!({
        "schedulerState": state(&active),
        "activePlans": active,
        "plans": filtered,
        "serviceTopology": topology(view),
    })
}

/// Pod types, their instances, and the tasks of these.
fn topology(view: &View) -> Vec<Value> {
    let node = |name: &str, kind: &str, children: Vec<Value>| json!({"name": name, "type": kind, "children": children});
    let mut all = Vec::new();
    for pod in view.pods() {
        let instances = pod.instances.iter().map(|instance| {
            let tasks = instance.tasks.iter().map(|task| node(&task.name, "task", Vec::new()));
            node(&instance.name, "pod-instance", tasks.collect())
        });
        all.push(node(&pod.name, "pod", instances.collect()));
    }
    all
}

/// States of tasks by plan, phase and step, or those that the query names.
pub(super) fn task_statuses(view: &View, query: &Query) -> Value {
    let (plan, phase, step) = (query.get("plan"), query.get("phase"), query.get("step"));
    let is_it = |filter: Option<&str>, name: &str| filter.is_none_or(|own| own == name);
    let mut plans = view.task_statuses();
    plans.retain(|own| is_it(plan, &own.name));
    for plan in &mut plans {
        plan.phases.retain(|own| is_it(phase, &own.name));
        plan.phases.iter_mut().for_each(|phase| phase.steps.retain(|own| is_it(step, &own.name)));
    }
    json!(plans)
}

/// Name, state and processor time in ticks of each thread. Stacks are not shown.
pub(super) fn threads() -> Result<Response, HttpError> {
    let unreadable =
        |error: std::io::Error| HttpError::unavailable(format!("Threads cannot be read: {error}"));
    let mut lines = String::new();
    for entry in fs::read_dir("/proc/self/task").map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // A thread may exit meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((name, state, ticks)) = thread(&stat) {
            let id = entry.file_name();
            let _ = writeln!(lines, "{} {name} {state} ticks={ticks}", id.to_string_lossy());
        }
    }
    Ok(text(StatusCode::OK, lines))
}

/// Name, state, and ticks in user and kernel mode, of `/proc/PID/task/TID/stat`.
fn thread(stat: &str) -> Option<(&str, &str, u64)> {
    // The name is in parentheses and may contain any character.
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(end + 1..)?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|own| own.parse::<u64>().ok());
    Some((stat.get(start + 1..end)?, fields.first()?, ticks(11)? + ticks(12)?))
}

fn state(active: &[&str]) -> &'static str {
    match active.first() {
        None => "DEPLOYED",
        Some(&"deploy") => "DEPLOYING",
        Some(&"recovery") => "RECOVERING",
        Some(&"decommission") => "DECOMMISSIONING",
        Some(_) => "RUNNING",
    }
}

fn filter(all: &[PlanView], query: &Query) -> Result<Vec<Value>, String> {
    let (plan, phase, step) = (query.get("plan"), query.get("phase"), query.get("step"));
    if phase.is_some() && plan.is_none() || step.is_some() && phase.is_none() {
        return Err("a phase needs its plan, and a step its phase".to_owned());
    }
    let chosen: Vec<&PlanView> = all.iter().filter(|one| plan.is_none_or(|name| one.name == name)).collect();
    if chosen.is_empty() && plan.is_some() {
        return Err(format!("there is no plan {:?}", plan.unwrap_or_default()));
    }
    Ok(chosen.into_iter().map(|plan| shape(plan, phase, step)).collect())
}

fn shape(plan: &PlanView, phase: Option<&str>, step: Option<&str>) -> Value {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    let (completed, total) = counts(&value);
    if let Some(phases) = value["phases"].as_array_mut() {
        phases.retain(|one| phase.is_none_or(|name| one["name"] == name));
        for one in phases {
            if let Some(steps) = one["steps"].as_array_mut() {
                steps.retain(|one| step.is_none_or(|name| one["name"] == name));
            }
        }
    }
    value["name"] = json!(plan.name);
    value["totalSteps"] = json!(total);
    value["completedSteps"] = json!(completed);
    value
}

#[cfg(test)]
mod tests {
    use super::thread;

    #[test]
    fn thread_stat_with_parentheses_in_the_name_is_parsed() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 10 0 0 0 25 17 0 0 20 0 3 0";
        assert_eq!(thread(stat), Some(("a) b (c)", "S", 42)));
        assert_eq!(thread("7 (a"), None);
    }
}
