//! Terminal is final: after the update that ended a task, its framework hears nothing else of its life.
//!
//! Only updates from an agent count as its end: what the master says by itself (TASK_LOST when an agent is away) may
//! turn out otherwise. Afterwards the same update may come again, and the master may say that it does not know the task.
//! A task that is launched under the same id has a life of its own; the end of the one before may still come again.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::mesos::v1::{TaskState, TaskStatus};
use tepui_types::TaskStateExt;

use super::{Check, Fact, short};

#[derive(Debug, Default)]
pub(super) struct TerminalIsFinal {
    ended: BTreeMap<(String, String), (TaskState, Vec<u8>)>,
    /// Updates that ended lives before the present ones.
    past: BTreeSet<Vec<u8>>,
}

impl Check for TerminalIsFinal {
    fn name(&self) -> &'static str {
        "terminal_is_final"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        if let Fact::FrameworkLaunches { id, task } = fact {
            let ended = self.ended.remove(&((*id).to_string(), (*task).to_string()));
            self.past.extend(ended.map(|(_, uuid)| uuid));
        }
        let Fact::FrameworkSees { id, status } = fact else { return Ok(()) };
        if status.uuid.as_ref().is_some_and(|uuid| self.past.contains(uuid)) {
            return Ok(());
        }
        let key = ((*id).to_string(), status.task_id.value.clone());
        if let Some((state, uuid)) = self.ended.get(&key) {
            return after_the_end(*state, uuid, status);
        }
        if let Some(uuid) = status.uuid.as_ref().filter(|_| status.state.is_terminal()) {
            self.ended.insert(key, (status.state, uuid.clone()));
        }
        Ok(())
    }
}

fn after_the_end(state: TaskState, ended_by: &[u8], status: &TaskStatus) -> Result<(), String> {
    let wrong = |why: &str| {
        let uuid = status.uuid.as_deref().map_or_else(|| "-".into(), short);
        Err(format!(
            "{} was {state:?} ({}), now {:?} ({uuid}): {why}",
            status.task_id.value,
            short(ended_by),
            status.state
        ))
    };
    match &status.uuid {
        Some(uuid) if uuid == ended_by && status.state == state => Ok(()),
        Some(uuid) if uuid == ended_by => wrong("the same update with another state"),
        // The agent never had the task, and forgot in a crash that it said so.
        Some(_) if status.state == state && status.reason == Some(Reason::REASON_RECONCILIATION) => Ok(()),
        Some(_) => wrong("another update"),
        None if status.state.is_terminal() => Ok(()),
        None => match status.state {
            // The agent is away, so the master cannot know.
            TaskState::TASK_UNREACHABLE | TaskState::TASK_UNKNOWN => Ok(()),
            _ => wrong("it lives again"),
        },
    }
}
