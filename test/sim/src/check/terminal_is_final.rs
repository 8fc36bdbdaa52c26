//! Terminal is final: after the terminal update of a task, its framework receives no other state of that instance.
//!
//! Only updates of an agent are final: those of the master (TASK_LOST of an unreachable agent) may be revised. Afterwards
//! the same update may be resent, and the master may report the task as unknown. A task launched with the same id is a new
//! instance; the terminal update of the previous one may still be resent.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::mesos::v1::{TaskState, TaskStatus};
use tepui_types::TaskStateExt;

use super::{Check, Fact, short};

#[derive(Debug, Default)]
pub(super) struct TerminalIsFinal {
    ended: BTreeMap<(String, String), (TaskState, Vec<u8>)>,
    /// Terminal updates of earlier instances.
    past: BTreeSet<Vec<u8>>,
}

impl Check for TerminalIsFinal {
    fn name(&self) -> &'static str {
        "terminal_is_final"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
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
    let wrong = |reason: &str| {
        let uuid = status.uuid.as_deref().map_or_else(|| "-".into(), short);
        Err(format!(
            "{} was {state:?} ({}), now {:?} ({uuid}): {reason}",
            status.task_id.value,
            short(ended_by),
            status.state
        ))
    };
    match &status.uuid {
        Some(uuid) if uuid == ended_by && status.state == state => Ok(()),
        Some(uuid) if uuid == ended_by => wrong("the same update with another state"),
        // The agent never had the task, and lost its answer in a crash.
        Some(_) if status.state == state && status.reason == Some(Reason::REASON_RECONCILIATION) => Ok(()),
        Some(_) => wrong("another update"),
        None if status.state.is_terminal() => Ok(()),
        None => match status.state {
            // The agent is unreachable, so the state is unknown.
            TaskState::TASK_UNREACHABLE | TaskState::TASK_UNKNOWN => Ok(()),
            _ => wrong("it lives again"),
        },
    }
}
