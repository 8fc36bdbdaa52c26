//! Keys of the agent's records; only this module builds or parses them.
//!
//! Ids contain no `/` (see [`check_id`](tepui_types::check_id)), so parts cannot run into each other. Numbers are
//! padded: the order of keys is the order of events.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_types::{ExecutorId, FrameworkId, TaskId};

/// The kind of record of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Agent,
    BootId,
    Resources,
    Drain,
    Framework(FrameworkId),
    Executor(FrameworkId, ExecutorId),
    Task(FrameworkId, ExecutorId, TaskId),
    Update(FrameworkId, TaskId, u64),
    /// In hexadecimal.
    Operation([u8; 16]),
    /// As written by `ContainerId`'s Display.
    Container(String),
    /// Something that is over, in the order in which things ended.
    History(u64),
    /// A directory to be removed.
    Path(String),
}

impl Key {
    pub(crate) fn text(&self) -> String {
        match self {
            Key::Agent => "agent".into(),
            Key::BootId => "boot_id".into(),
            Key::Resources => "resources".into(),
            Key::Drain => "drain".into(),
            Key::Framework(framework) => format!("framework/{framework}"),
            Key::Executor(framework, executor) => format!("executor/{framework}/{executor}"),
            Key::Task(framework, executor, task) => format!("task/{framework}/{executor}/{task}"),
            Key::Update(framework, task, seq) => format!("update/{framework}/{task}/{seq:020}"),
            Key::Operation(uuid) => format!("operation/{:032x}", u128::from_be_bytes(*uuid)),
            Key::Container(id) => format!("container/{id}"),
            Key::History(number) => format!("history/{number:020}"),
            Key::Path(path) => format!("path/{path}"),
        }
    }

    /// `None` for an unknown key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("path/") {
            return Some(Key::Path(path.into()));
        }
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            ["agent"] => Some(Key::Agent),
            ["boot_id"] => Some(Key::BootId),
            ["resources"] => Some(Key::Resources),
            ["drain"] => Some(Key::Drain),
            ["framework", framework] => Some(Key::Framework(FrameworkId::new(*framework))),
            ["executor", framework, executor] => {
                Some(Key::Executor(FrameworkId::new(*framework), ExecutorId::new(*executor)))
            }
            ["task", framework, executor, task] => {
                Some(Key::Task(FrameworkId::new(*framework), ExecutorId::new(*executor), TaskId::new(*task)))
            }
            ["update", framework, task, seq] => {
                Some(Key::Update(FrameworkId::new(*framework), TaskId::new(*task), seq.parse().ok()?))
            }
            ["operation", uuid] => Some(Key::Operation(u128::from_str_radix(uuid, 16).ok()?.to_be_bytes())),
            ["history", number] => Some(Key::History(number.parse().ok()?)),
            ["container", id] => Some(Key::Container((*id).into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_through_text() {
        let (framework, executor, task) = (FrameworkId::new("f"), ExecutorId::new("e x"), TaskId::new("t.1"));
        for key in [
            Key::Agent,
            Key::BootId,
            Key::Resources,
            Key::Drain,
            Key::Framework(framework.clone()),
            Key::Executor(framework.clone(), executor.clone()),
            Key::Task(framework.clone(), executor, task.clone()),
            Key::Update(framework, task, 7),
            Key::Operation([0xab; 16]),
            Key::Container("a.b".into()),
            Key::History(12),
            Key::Path("/w/slaves/S0".into()),
        ] {
            assert_eq!(Key::parse(&key.text()), Some(key));
        }
        for unknown in ["", "agents", "framework", "framework/a/b", "update/f/t/x", "operation/zz"] {
            assert_eq!(Key::parse(unknown), None, "{unknown}");
        }
    }
}
