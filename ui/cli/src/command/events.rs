//! `tepui events`: events of the cluster, one line each.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use tepui_proto::mesos::v1::{self, master::Event, master::event};

use super::task_state::TaskState;
use super::{Cluster, block_on};
use crate::amount;
use crate::output::{self, Tone, printable};
use crate::similar::Short;

/// Print the operator event stream: changes of tasks, agents and frameworks.
#[derive(Args)]
pub struct Events {
    #[command(flatten)]
    cluster: Cluster,
    /// Print each event as a line of JSON, as in the operator API.
    #[arg(long)]
    json: bool,
    /// Print full agent and framework IDs.
    #[arg(long)]
    full: bool,
}

impl Events {
    pub fn run(self) -> Result<ExitCode> {
        block_on(self.follow())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn follow(&self) -> Result<()> {
        let mut stream = self.cluster.subscribe().await?;
        let printer = Printer { short: Short::among([].into_iter(), self.full), colours: output::colours() };
        while let Some(event) = stream.next().await.context("the stream of events broke")? {
            if self.json {
                let text = tepui_proto::json::to_vec(&event);
                output::line(&output::escape_json(&String::from_utf8_lossy(&text)))?;
            } else if let Some(line) = printer.line(&event, amount::now()) {
                output::line(&line)?;
            }
        }
        bail!(
            "the master at {} closed the event stream: it terminated or lost leadership",
            self.cluster.master
        )
    }
}

struct Printer {
    short: Short,
    colours: bool,
}

impl Printer {
    /// The event in one line; `None` for internal events.
    fn line(&self, event: &Event, now: f64) -> Option<String> {
        use event::Type;
        let (kind, text, tone) = match event.r#type? {
            Type::SUBSCRIBED => ("connected", connected(&event.subscribed), Tone::Plain),
            Type::TASK_ADDED => ("task added", self.task(&event.task_added.task), Tone::Plain),
            Type::TASK_UPDATED => {
                let (text, tone) = self.status(&event.task_updated);
                ("task updated", text, tone)
            }
            Type::AGENT_ADDED => ("agent added", self.agent(&event.agent_added.agent), Tone::Good),
            Type::AGENT_REMOVED => {
                let id = self.short.of(&event.agent_removed.agent_id.value).to_string();
                ("agent removed", id, Tone::Bad)
            }
            Type::FRAMEWORK_ADDED => (
                "framework added",
                self.framework(&event.framework_added.framework.framework_info),
                Tone::Good,
            ),
            Type::FRAMEWORK_UPDATED => (
                "framework updated",
                self.framework(&event.framework_updated.framework.framework_info),
                Tone::Plain,
            ),
            Type::FRAMEWORK_REMOVED => {
                ("framework removed", self.framework(&event.framework_removed.framework_info), Tone::Quiet)
            }
            Type::ERROR => ("error", event.error.message.clone(), Tone::Bad),
            Type::HEARTBEAT | Type::UNKNOWN => return None,
        };
        let kind = Tone::Heading.paint(&format!("{kind:<17}"), self.colours);
        Some(format!("{}  {kind}  {}", amount::moment(now), tone.paint(&printable(&text), self.colours)))
    }

    fn task(&self, task: &v1::Task) -> String {
        let name = if task.name == task.task_id.value { String::new() } else { format!(" ({})", task.name) };
        format!(
            "{}{name} of {} on {} {}",
            task.task_id.value,
            self.short.of(&task.framework_id.value),
            self.short.of(&task.agent_id.value),
            scalars(&task.resources)
        )
    }

    fn status(&self, updated: &event::TaskUpdated) -> (String, Tone) {
        let status = &updated.status;
        let state = TaskState::new(&format!("{:?}", status.state), status.healthy == Some(false));
        let mut text = format!(
            "{} of {} {}",
            status.task_id.value,
            self.short.of(&updated.framework_id.value),
            state.shown()
        );
        if let Some(message) = status.message.as_deref().filter(|message| !message.is_empty()) {
            text += &format!(": {message}");
        }
        if let Some(reason) = status.reason {
            text += &format!(" ({})", format!("{reason:?}").trim_start_matches("REASON_").to_lowercase());
        }
        (text, state.tone())
    }

    fn agent(&self, agent: &v1::master::response::get_agents::Agent) -> String {
        let info = &agent.agent_info;
        format!("{} {} {}", self.short.of(&info.id.value), info.hostname, scalars(&agent.total_resources))
    }

    fn framework(&self, info: &v1::FrameworkInfo) -> String {
        format!("{} {:?} roles:{}", self.short.of(&info.id.value), info.name, info.roles.join(","))
    }
}

/// The initial state of the stream.
fn connected(subscribed: &event::Subscribed) -> String {
    let state = &subscribed.get_state;
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    [
        count(state.get_agents.agents.len(), "agent"),
        count(state.get_frameworks.frameworks.len(), "framework"),
        count(state.get_tasks.tasks.len(), "task"),
    ]
    .join(", ")
}

/// `cpus:0.5 mem:64M`.
fn scalars(resources: &[v1::Resource]) -> String {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for resource in resources.iter().filter(|resource| resource.scalar.is_set()) {
        match sums.iter_mut().find(|(name, _)| *name == resource.name) {
            Some((_, sum)) => *sum += resource.scalar.value,
            None => sums.push((&resource.name, resource.scalar.value)),
        }
    }
    let show = |(name, amount): &(&str, f64)| match *name {
        "mem" | "disk" => format!("{name}:{}", amount::megabytes(*amount)),
        _ => format!("{name}:{}", amount::number(*amount)),
    };
    sums.iter().map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_is_a_line() {
        const MASTER: &str = "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764";
        let id = |tail: &str| json!({"value": format!("{MASTER}-{tail}")});
        let status = |state: &str| json!({"task_id": {"value": "t1"}, "state": state});
        let mut failed = status("TASK_FAILED");
        failed["message"] = json!("Command exited\nwith status 3");
        failed["reason"] = json!("REASON_COMMAND_EXECUTOR_FAILED");
        let framework = json!({"user": "root", "name": "web", "id": id("0000"), "roles": ["eng", "ops"]});
        let cpus = json!([{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.5}}]);
        let events = [
            json!({"type": "SUBSCRIBED", "subscribed": {"get_state": {"get_agents": {"agents": [
                {"agent_info": {"hostname": "h"}, "active": true, "version": "1"}]}}}}),
            json!({"type": "HEARTBEAT"}),
            json!({"type": "TASK_ADDED", "task_added": {"task": {"name": "web", "task_id": {"value": "t1"},
                "framework_id": id("0000"), "agent_id": id("S0"), "state": "TASK_STAGING", "resources": cpus}}}),
            json!({"type": "TASK_UPDATED", "task_updated": {"framework_id": id("0000"), "state": "TASK_RUNNING",
                "status": status("TASK_RUNNING")}}),
            json!({"type": "TASK_UPDATED", "task_updated": {"framework_id": id("0000"), "state": "TASK_FAILED",
                "status": failed}}),
            json!({"type": "AGENT_ADDED", "agent_added": {"agent": {"agent_info": {"hostname": "host-a", "id": id("S0")},
                "active": true, "version": "1", "total_resources": cpus}}}),
            json!({"type": "AGENT_REMOVED", "agent_removed": {"agent_id": id("S0")}}),
            json!({"type": "FRAMEWORK_ADDED", "framework_added": {"framework": {"framework_info": framework,
                "active": true, "connected": true, "recovered": false}}}),
            json!({"type": "FRAMEWORK_REMOVED", "framework_removed": {"framework_info": framework}}),
            json!({"type": "ERROR", "error": {"message": "subscriber dropped: 9 events (99 bytes) behind"}}),
        ];
        let printer = Printer { short: Short::default(), colours: false };
        let line = |event: &serde_json::Value| {
            let event = tepui_proto::json::from_slice(event.to_string().as_bytes()).unwrap();
            printer.line(&event, 1_794_774_349.0)
        };
        let lines: Vec<String> = events.iter().filter_map(line).collect();
        expect![[r#"
            2026-11-15 20:25:49 UTC  connected          1 agent, 0 frameworks, 0 tasks
            2026-11-15 20:25:49 UTC  task added         t1 (web) of 0000 on S0 cpus:0.5
            2026-11-15 20:25:49 UTC  task updated       t1 of 0000 running
            2026-11-15 20:25:49 UTC  task updated       t1 of 0000 failed: Command exited\nwith status 3 (command_executor_failed)
            2026-11-15 20:25:49 UTC  agent added        S0 host-a cpus:0.5
            2026-11-15 20:25:49 UTC  agent removed      S0
            2026-11-15 20:25:49 UTC  framework added    0000 "web" roles:eng,ops
            2026-11-15 20:25:49 UTC  framework removed  0000 "web" roles:eng,ops
            2026-11-15 20:25:49 UTC  error              subscriber dropped: 9 events (99 bytes) behind"#]].assert_eq(&lines.join("\n"));
    }
}
