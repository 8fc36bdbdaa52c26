//! No start after termination: once an agent reported a terminal state to the framework, the task's process does not start.
//!
//! A task launched with the same id is a new instance; late terminal updates of earlier instances do not count.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::TaskState;
use tepui_types::TaskStateExt;

use super::nested_tasks::{NestedTasks, Task};
use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct NoStartAfterTermination {
    /// Terminal states of current instances, with their update.
    ended: BTreeMap<Task, (TaskState, Vec<u8>)>,
    /// Terminal updates of earlier instances.
    past: BTreeSet<Vec<u8>>,
    nested: NestedTasks,
}

impl Check for NoStartAfterTermination {
    fn name(&self) -> &'static str {
        "no_start_after_termination"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        if let Some(task) = self.nested.started(fact) {
            self.judge(&task)?;
        }
        match fact {
            Fact::FrameworkLaunches { id, task } => {
                let task = ((*id).to_string(), (*task).to_string());
                self.past.extend(self.ended.remove(&task).map(|(_, uuid)| uuid));
                Ok(())
            }
            Fact::FrameworkSees { id, status } if status.state.is_terminal() => {
                let uuid = status.uuid.as_ref().filter(|uuid| !self.past.contains(*uuid));
                if let Some(uuid) = uuid {
                    let task = ((*id).to_string(), status.task_id.value.clone());
                    self.ended.insert(task, (status.state, uuid.clone()));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl NoStartAfterTermination {
    fn judge(&self, task: &Task) -> Result<(), String> {
        match self.ended.get(task) {
            Some((state, _)) => Err(format!("{} starts after it was {state:?}", task.1)),
            None => Ok(()),
        }
    }
}
