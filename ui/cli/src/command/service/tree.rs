//! Plans and pods as trees, and how far a plan is. Pure: from the documents of the service's API to text.

use serde_json::Value;

use crate::listing::{lists, text};
use crate::output::{Tone, printable};

/// Columns of a progress bar.
const BAR_COLUMNS: usize = 30;

/// A node of a tree: its line, notes below it, and its children.
#[derive(Debug, Default)]
struct Node {
    line: String,
    notes: Vec<String>,
    children: Vec<Node>,
}

/// A plan with its phases, steps and errors.
pub fn plan(name: &str, plan: &Value, colours: bool) -> String {
    let root = Node {
        line: with_status(&strategy(name, plan), plan, colours),
        notes: Vec::new(),
        children: lists(plan, &["phases"]).map(|one| phase(one, colours)).collect(),
    };
    let mut out = draw(&root);
    let errors: Vec<String> = lists(plan, &["errors"])
        .map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned))
        .collect();
    if !errors.is_empty() {
        out.push_str("\nErrors:\n");
        errors.iter().for_each(|error| out.push_str(&format!("- {}\n", printable(error))));
    }
    out.trim_end().to_owned()
}

/// The pods of a service with their tasks.
pub fn pods(service: &Value, colours: bool) -> String {
    let pod = |pod: &Value| Node {
        line: name(pod),
        notes: Vec::new(),
        children: lists(pod, &["instances"]).map(|one| instance(one, colours)).collect(),
    };
    let root = Node {
        line: printable(text(service, "service")),
        notes: Vec::new(),
        children: lists(service, &["pods"]).map(pod).collect(),
    };
    draw(&root)
}

/// One pod instance with its tasks.
pub fn pod(instance_document: &Value, colours: bool) -> String {
    draw(&instance(instance_document, colours))
}

/// How many steps of a plan are complete, as a bar.
pub fn progress(plan: &Value, colours: bool) -> String {
    let steps: Vec<&Value> =
        lists(plan, &["phases"]).flat_map(|phase| lists(phase, &["steps"]).collect::<Vec<_>>()).collect();
    let done = steps.iter().filter(|step| text(step, "status") == "COMPLETE").count();
    let filled = if steps.is_empty() { BAR_COLUMNS } else { done * BAR_COLUMNS / steps.len() };
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR_COLUMNS - filled));
    let status = text(plan, "status");
    format!("{} {done}/{} steps {}", bar, steps.len(), tone(status).paint(&unknown(status), colours))
}

fn phase(phase: &Value, colours: bool) -> Node {
    let step = |step: &Value| Node {
        line: with_status(&name(step), step, colours),
        notes: notes(step),
        children: Vec::new(),
    };
    Node {
        line: with_status(&strategy(&name(phase), phase), phase, colours),
        notes: Vec::new(),
        children: lists(phase, &["steps"]).map(step).collect(),
    }
}

/// What a step that is not complete does or waits for, and what is wrong with it.
fn notes(step: &Value) -> Vec<String> {
    if text(step, "status") == "COMPLETE" {
        return Vec::new();
    }
    let errors = lists(step, &["errors"]).filter_map(Value::as_str);
    std::iter::once(message(step)).chain(errors).flat_map(str::lines).map(printable).collect()
}

/// The message of a step without its name and status, which it begins with.
pub fn message(step: &Value) -> &str {
    let begin = format!("{} ({})", text(step, "name"), text(step, "status"));
    let message = text(step, "message");
    message.strip_prefix(&begin).map_or(message, |rest| rest.trim_start_matches(':').trim_start())
}

fn instance(instance: &Value, colours: bool) -> Node {
    let task = |task: &Value| Node { line: with_status(&name(task), task, colours), ..Default::default() };
    Node {
        line: name(instance),
        notes: Vec::new(),
        children: lists(instance, &["tasks"]).map(task).collect(),
    }
}

fn name(object: &Value) -> String {
    unknown(text(object, "name"))
}

fn strategy(name: &str, object: &Value) -> String {
    format!("{} ({} strategy)", printable(name), unknown(text(object, "strategy")))
}

fn with_status(line: &str, object: &Value, colours: bool) -> String {
    let status = text(object, "status");
    format!("{line} ({})", tone(status).paint(&unknown(status), colours))
}

fn unknown(text: &str) -> String {
    if text.is_empty() { "<UNKNOWN>".to_owned() } else { printable(text) }
}

fn tone(status: &str) -> Tone {
    match status {
        "COMPLETE" | "RUNNING" | "FINISHED" => Tone::Good,
        "ERROR" | "FAILED" | "LOST" | "GONE" | "GONE_BY_OPERATOR" | "DROPPED" | "UNREACHABLE" | "DELAYED" => {
            Tone::Bad
        }
        "WAITING" | "PAUSED" => Tone::Quiet,
        _ => Tone::Busy,
    }
}

fn draw(root: &Node) -> String {
    let mut out = format!("{}\n", root.line);
    draw_children(root, "", &mut out);
    out.trim_end().to_owned()
}

fn draw_children(node: &Node, indent: &str, out: &mut String) {
    for (place, child) in node.children.iter().enumerate() {
        let is_last = place + 1 == node.children.len();
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        out.push_str(&format!("{indent}{branch}{}\n", child.line));
        let indent = format!("{indent}{below}");
        child.notes.iter().for_each(|note| out.push_str(&format!("{indent}  {note}\n")));
        draw_children(child, &indent, out);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn plans_are_trees_with_reasons_and_errors() {
        let document = json!({
            "strategy": "serial", "status": "IN_PROGRESS", "errors": ["count cannot shrink"],
            "phases": [
                {"name": "hello", "strategy": "serial", "status": "COMPLETE",
                 "steps": [{"name": "hello-0:[server]", "status": "COMPLETE", "message": "done"}]},
                {"name": "world", "strategy": "parallel", "status": "PENDING", "steps": [
                    {"name": "world-0:[server]", "status": "PREPARED", "message": "world-0:[server] (PREPARED): 3 agents: 2 lack mem 4096, 1 excluded by hostname:UNIQUE"},
                    {"name": "world-1:[server]"}]},
            ],
        });
        expect![[r#"
            deploy (serial strategy) (IN_PROGRESS)
            ├─ hello (serial strategy) (COMPLETE)
            │  └─ hello-0:[server] (COMPLETE)
            └─ world (parallel strategy) (PENDING)
               ├─ world-0:[server] (PREPARED)
               │    3 agents: 2 lack mem 4096, 1 excluded by hostname:UNIQUE
               └─ world-1:[server] (<UNKNOWN>)
            Errors:
            - count cannot shrink"#]]
        .assert_eq(&plan("deploy", &document, false));
        expect!["███████████████░░░░░░░░░░░░░░░ 1/2 steps IN_PROGRESS"].assert_eq(&progress(
            &json!({"status": "IN_PROGRESS", "phases": [{"steps": [{"status": "COMPLETE"}, {"status": "PENDING"}]}]}),
            false,
        ));
        expect!["██████████████████████████████ 0/0 steps COMPLETE"]
            .assert_eq(&progress(&json!({"status": "COMPLETE", "phases": []}), false));
    }

    #[test]
    fn pods_are_trees_and_control_characters_are_shown() {
        let document = json!({"service": "db\u{1b}[2J", "pods": [{"name": "node", "instances": [
            {"name": "node-0", "tasks": [{"name": "node-0-server", "status": "RUNNING"}, {"name": "node-0-backup"}]},
        ]}]});
        expect![[r#"
            db\u{1b}[2J
            └─ node
               └─ node-0
                  ├─ node-0-server (RUNNING)
                  └─ node-0-backup (<UNKNOWN>)"#]]
        .assert_eq(&pods(&document, false));
        expect![[r#"
            node-0
            ├─ node-0-server (RUNNING)
            └─ node-0-backup (<UNKNOWN>)"#]]
        .assert_eq(&pod(&document["pods"][0]["instances"][0], false));
    }
}
