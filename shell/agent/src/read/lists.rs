//! The JSON of answers whose lists v1 writes also when they are empty.

use tepui_proto::Enumeration;
use tepui_proto::json::{JsonWriter, ToJson};
use tepui_proto::mesos::v1::agent::{Response, response};

pub(super) fn state(answer: &Response, parts: &response::GetState) -> Vec<u8> {
    whole(answer, |w| {
        w.object_field("get_state", |w| {
            tasks_member(w, &parts.get_tasks);
            executors_member(w, &parts.get_executors);
            frameworks_member(w, &parts.get_frameworks);
        });
    })
}

pub(super) fn tasks(answer: &Response) -> Vec<u8> {
    whole(answer, |w| tasks_member(w, &answer.get_tasks))
}

pub(super) fn executors(answer: &Response) -> Vec<u8> {
    whole(answer, |w| executors_member(w, &answer.get_executors))
}

pub(super) fn frameworks(answer: &Response) -> Vec<u8> {
    whole(answer, |w| frameworks_member(w, &answer.get_frameworks))
}

fn whole(answer: &Response, member: impl FnOnce(&mut JsonWriter)) -> Vec<u8> {
    let mut w = JsonWriter::new();
    w.object(|w| {
        w.optional_field("type", answer.r#type.map(|kind| kind.proto_name()));
        member(w);
    });
    w.into_vec()
}

fn tasks_member(w: &mut JsonWriter, tasks: &response::GetTasks) {
    w.object_field("get_tasks", |w| {
        list(w, "pending_tasks", &tasks.pending_tasks);
        list(w, "queued_tasks", &tasks.queued_tasks);
        list(w, "launched_tasks", &tasks.launched_tasks);
        list(w, "terminated_tasks", &tasks.terminated_tasks);
        list(w, "completed_tasks", &tasks.completed_tasks);
    });
}

fn executors_member(w: &mut JsonWriter, executors: &response::GetExecutors) {
    w.object_field("get_executors", |w| {
        list(w, "executors", &executors.executors);
        list(w, "completed_executors", &executors.completed_executors);
    });
}

fn frameworks_member(w: &mut JsonWriter, frameworks: &response::GetFrameworks) {
    w.object_field("get_frameworks", |w| {
        list(w, "frameworks", &frameworks.frameworks);
        list(w, "completed_frameworks", &frameworks.completed_frameworks);
    });
}

fn list<T: ToJson>(w: &mut JsonWriter, name: &str, entries: &[T]) {
    w.field(name, entries);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lists_are_written() {
        let answer = Response {
            r#type: Some(response::Type::GET_STATE),
            get_state: response::GetState::default().into(),
            ..Default::default()
        };
        let text = String::from_utf8(state(&answer, &answer.get_state)).unwrap();
        assert_eq!(
            text,
            r#"{"type":"GET_STATE","get_state":{"get_tasks":{"pending_tasks":[],"queued_tasks":[],"launched_tasks":[],"terminated_tasks":[],"completed_tasks":[]},"get_executors":{"executors":[],"completed_executors":[]},"get_frameworks":{"frameworks":[],"completed_frameworks":[]}}}"#
        );
    }
}
