//! `/v1/debug/plans`: all plans at once, with what the scheduler is busy with.

use serde_json::{Value, json};
use tepui_http::Query;
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
    })
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
