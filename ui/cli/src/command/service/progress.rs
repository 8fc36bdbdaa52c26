//! The plans of a running scheduler, as they proceed: drawn anew on a terminal, a line for each change elsewhere.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tepui_service_shell::View;
use tokio::sync::watch;

use super::tree;
use crate::listing::{lists, text};
use crate::output::{self, printable};
use crate::watch::Screen;

/// Least time between two pictures.
const PICTURE_INTERVAL: Duration = Duration::from_millis(200);

type Published = Arc<watch::Receiver<Option<watch::Receiver<Arc<View>>>>>;

/// Shows plans as long as the scheduler runs.
pub async fn show(published: Published, is_drawn: bool) {
    let mut published = (*published).clone();
    let screen = if is_drawn { Screen::new(true).ok() } else { None };
    let mut shown = BTreeMap::new();
    loop {
        let views = published.borrow_and_update().clone();
        let Some(mut views) = views else {
            output::notice("standing by; another scheduler is active, or none yet");
            if published.changed().await.is_err() {
                return std::future::pending().await;
            }
            continue;
        };
        loop {
            let view = views.borrow_and_update().clone();
            match &screen {
                Some(screen) => drop(screen.show(&picture(&view))),
                None => print_changes(&view, &mut shown),
            }
            tokio::time::sleep(PICTURE_INTERVAL).await;
            tokio::select! {
                changed = views.changed() => if changed.is_err() { break },
                changed = published.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return std::future::pending().await,
                },
            }
        }
        if published.borrow().as_ref().is_some_and(|other| other.same_channel(&views)) {
            // The machine has terminated; its waiter cancels this.
            return std::future::pending().await;
        }
    }
}

/// Every plan that is not complete, and the deployment with its progress.
fn picture(view: &View) -> String {
    let colours = output::colours();
    let mut parts = Vec::new();
    for (name, plan) in plans(view) {
        if name == "deploy" || text(&plan, "status") != "COMPLETE" {
            parts.push(format!("{}\n{}", tree::plan(&name, &plan, colours), tree::progress(&plan, colours)));
        }
    }
    parts.join("\n\n")
}

fn plans(view: &View) -> Vec<(String, Value)> {
    let plan = |name: String| {
        let plan = serde_json::to_value(view.plan(&name)?).unwrap_or_default();
        Some((name, plan))
    };
    view.plan_names().into_iter().filter_map(plan).collect()
}

/// A line for each plan and step whose status or message is not the one shown last.
fn print_changes(view: &View, shown: &mut BTreeMap<String, String>) {
    let all = plans(view);
    for line in changes(&all, shown) {
        let mut out = std::io::stdout().lock();
        // A scheduler keeps running if its output has no reader.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

fn changes(plans: &[(String, Value)], shown: &mut BTreeMap<String, String>) -> Vec<String> {
    let mut now = BTreeMap::new();
    for (name, plan) in plans {
        for step in lists(plan, &["phases"]).flat_map(|phase| lists(phase, &["steps"])) {
            let (status, message) = (text(step, "status"), tree::message(step));
            let words = if status == "COMPLETE" || message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            let key = format!("{name} {}", text(step, "name"));
            now.insert(format!("{key} {}", text(step, "id")), printable(&format!("{key} {status}{words}")));
        }
        let errors: Vec<String> = lists(plan, &["errors"]).map(|error| format!("; {error}")).collect();
        now.insert(name.clone(), printable(&format!("{name} {}{}", text(plan, "status"), errors.concat())));
    }
    let changed = now.iter().filter(|(key, line)| shown.get(*key) != Some(*line));
    let lines = changed.map(|(_, line)| line.clone()).collect();
    *shown = now;
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_printed_for_each_change() {
        let plan = |status: &str, message: &str| {
            let step = json!({"id": "1", "name": "a-0:[t]", "status": status, "message": message});
            vec![(
                "deploy".to_owned(),
                json!({"status": "IN_PROGRESS", "errors": [], "phases": [{"steps": [step]}]}),
            )]
        };
        let mut shown = BTreeMap::new();
        let cases = [
            (plan("PENDING", "no offers"), vec!["deploy IN_PROGRESS", "deploy a-0:[t] PENDING: no offers"]),
            (plan("PENDING", "no offers"), vec![]),
            (plan("COMPLETE", "no offers"), vec!["deploy a-0:[t] COMPLETE"]),
        ];
        for (plans, expected) in cases {
            assert_eq!(changes(&plans, &mut shown), expected);
        }
    }
}
