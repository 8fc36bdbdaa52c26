//! What the master decided, as lines and as what the players learn from it.

use alloc::format;
use alloc::string::{String, ToString};

use tepui_fsm::{Item, Outbox};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::Operation as Record;
use tepui_types::{ConnId, TaskStateExt};

use super::{Framework, Script};
use crate::{Effect, Master};

/// What the master decided, as lines and as what the players learn from it.
impl Script {
    pub(super) fn hear(&mut self, mut out: Outbox<Master>) {
        for item in out.take() {
            match item {
                Item::Record(record) => {
                    self.registry.apply(&record);
                    self.learn_agent(&record);
                    self.say(&format!("record {record}"));
                }
                Item::Effect(effect) => self.see(effect),
            }
        }
    }

    pub(super) fn see(&mut self, effect: Effect) {
        match &effect {
            Effect::OpenScheduler { conn, stream_id } => {
                let stream_id = stream_id.clone();
                self.framework_on(*conn).stream_id = stream_id;
                return;
            }
            Effect::Publish { state } => {
                self.published = Some(state.clone());
                return;
            }
            Effect::OpenAgent { .. } | Effect::Transition(_) => return,
            Effect::Scheduler { conn, event } => {
                self.last.insert(self.conns[&conn.0].clone(), json(&**event));
                if event.subscribed.is_set() {
                    let id = event.subscribed.framework_id.value.clone();
                    let name = self.conns[&conn.0].clone();
                    self.names.insert(id.clone(), name);
                    self.framework_on(*conn).info.id =
                        pb::FrameworkID { value: id, ..Default::default() }.into();
                }
                self.note_update(*conn, event);
            }
            Effect::Agent { conn, event } | Effect::Kill { conn, event } => {
                self.last.insert(self.conns[&conn.0].clone(), json(&**event));
                self.play_agent(*conn, event);
            }
            Effect::Operator { event } => {
                if let Some(added) = event.framework_added.as_option() {
                    let info = &added.framework.framework_info;
                    self.names.insert(info.id.value.clone(), info.name.clone());
                }
            }
            Effect::CloseAgent { .. }
            | Effect::CloseScheduler { .. }
            | Effect::Answer { .. }
            | Effect::OpenOperator { .. }
            | Effect::CloseOperator { .. }
            | Effect::SlackTakenBack { .. }
            | Effect::Halt { .. }
            | Effect::Explained { .. } => (),
        }
        self.say(&effect.to_string());
    }

    pub(super) fn learn_agent(&mut self, record: &Record) {
        if let Record::AdmitAgent(info) = record {
            self.names.insert(info.id.value.clone(), info.hostname.clone());
        }
    }

    pub(super) fn note_update(&mut self, conn: ConnId, event: &tepui_proto::mesos::v1::scheduler::Event) {
        let framework = self.framework_on(conn);
        if let Some(status) = event.update.as_option().map(|update| &update.status)
            && let Some(uuid) = &status.uuid
        {
            let update = (status.agent_id.value.clone(), uuid.clone());
            let task = &status.task_id.value;
            if let Some(earlier) = framework.updates.insert(task.clone(), update) {
                framework.earlier.insert(task.clone(), earlier);
            }
        }
        if let Some(update) = event.update_operation_status.as_option() {
            let id = update.status.operation_id.value.clone();
            framework.operations.insert(id, (*update.status).clone());
        }
    }

    pub(super) fn play_agent(&mut self, conn: ConnId, event: &link::Event) {
        let name = self.conns[&conn.0].clone();
        let agent = self.agents.get_mut(&name).expect("an agent");
        if event.subscribed.is_set() {
            agent.id = event.subscribed.agent_id.value.clone();
            agent.subscribe.agent_info.get_or_insert_default().id =
                (*event.subscribed.agent_id).clone().into();
            self.names.insert(agent.id.clone(), name);
            return;
        }
        if agent.deaf {
            return;
        }
        let groups = event.launch_group.task_group.tasks.iter();
        for task in event.launch.as_option().map(|launch| &*launch.task).into_iter().chain(groups) {
            let framework =
                event.launch.framework_info.as_option().unwrap_or(&event.launch_group.framework_info);
            agent.take_task(task, framework);
        }
        if event.acknowledge.is_set() {
            let id = &event.acknowledge.task_id.value;
            let reported = agent.tasks.get(id).and_then(|task| task.status_update_state);
            if reported.is_some_and(|state| state.is_terminal()) {
                agent.tasks.remove(id);
            }
        }
    }

    pub(super) fn framework_on(&mut self, conn: ConnId) -> &mut Framework {
        let name = &self.conns[&conn.0];
        self.frameworks.get_mut(name).expect("a framework")
    }

    /// Ids and connections become names, amounts lose what is the same everywhere.
    pub(super) fn say(&mut self, line: &str) {
        let mut line = line.to_string();
        for (id, name) in self.names.iter().rev() {
            line = replace_word(&line, id, name);
        }
        for (conn, name) in self.conns.iter().rev() {
            for what in ["scheduler", "agent", "operator"] {
                if let Some(rest) = line.strip_prefix(&format!("{what} {conn} ")) {
                    line = format!("{name} {rest}");
                }
            }
            if let Some(rest) = line.strip_prefix(&format!("{conn} <- ")) {
                line = format!("{name} <- {rest}");
            }
        }
        line = line.replace("m-O", "#").replace("m1-O", "#1.");
        while let (Some(begin), Some(_)) = (line.find("(allocated: "), line.find(')')) {
            let end = begin + line[begin..].find(')').expect("it closes");
            line.replace_range(begin..=end, "");
        }
        while let Some(begin) = line.find("(reservations: [") {
            let end = begin + line[begin..].find("])").expect("it closes");
            let roles =
                line[begin..end].replace("(reservations: [", "").replace("(DYNAMIC,", "").replace(')', "");
            line.replace_range(begin..end + 2, &format!("({roles})"));
        }
        self.said.push_str(&line);
        self.said.push('\n');
    }
}

/// Replaces an id where it stands for itself, not as the beginning of another.
pub(super) fn replace_word(line: &str, id: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(id) {
        let after = &rest[at + id.len()..];
        let whole = !after.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(&rest[..at]);
        out.push_str(if whole { name } else { id });
        rest = after;
    }
    out + rest
}

pub(super) fn json(event: &impl tepui_proto::json::ToJson) -> String {
    String::from_utf8(tepui_proto::json::to_vec(event)).expect("JSON is text")
}
