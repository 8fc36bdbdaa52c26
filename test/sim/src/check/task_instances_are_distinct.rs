//! Task instances are distinct: once a master has sent a task to an agent, it does not forward updates of an earlier task
//! with that id as updates of this one.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_master::Effect;
use tepui_proto::mesos::v1::{TaskStatus, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::TaskStateExt;

use super::{Check, Fact, short};

/// Framework and task.
type Task = (String, String);

#[derive(Debug, Default)]
pub(super) struct TaskInstancesAreDistinct {
    /// Updates of current instances received by frameworks.
    received: BTreeMap<Task, BTreeSet<Vec<u8>>>,
    /// The same of earlier ones.
    past: BTreeSet<Vec<u8>>,
    /// Tasks sent to an agent by this master without a terminal update. No two frameworks share an id here.
    sent: BTreeSet<String>,
}

impl Check for TaskInstancesAreDistinct {
    fn name(&self) -> &'static str {
        "task_instances_are_distinct"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::FrameworkLaunches { id, task } => {
                let received = self.received.remove(&((*id).to_string(), (*task).to_string()));
                self.past.extend(received.unwrap_or_default());
            }
            Fact::FrameworkSees { id, status } => {
                let uuid = status.uuid.clone().filter(|uuid| !self.past.contains(uuid));
                let task = ((*id).to_string(), status.task_id.value.clone());
                self.received.entry(task).or_default().extend(uuid);
            }
            Fact::MasterRestarts(_) => self.sent.clear(),
            Fact::MasterEffect(Effect::Agent { event, .. }) => self.send(event),
            Fact::MasterEffect(Effect::Scheduler { event, .. })
                if event.r#type == Some(scheduler::event::Type::UPDATE) =>
            {
                return self.check_update(&event.update.status);
            }
            _ => (),
        }
        Ok(())
    }
}

impl TaskInstancesAreDistinct {
    fn send(&mut self, event: &link::Event) {
        let tasks = match event.r#type {
            Some(link::event::Type::LAUNCH) => std::slice::from_ref(&*event.launch.task),
            Some(link::event::Type::LAUNCH_GROUP) => &*event.launch_group.task_group.tasks,
            _ => return,
        };
        self.sent.extend(tasks.iter().map(|task| task.task_id.value.clone()));
    }

    fn check_update(&mut self, status: &TaskStatus) -> Result<(), String> {
        let task = &status.task_id.value;
        let earlier = status.uuid.as_ref().filter(|uuid| self.past.contains(*uuid));
        match earlier {
            Some(uuid) if self.sent.contains(task) => {
                Err(format!("{task} was sent, and then {} of an earlier one is told", short(uuid)))
            }
            Some(_) => Ok(()),
            None => {
                if status.state.is_terminal() {
                    self.sent.remove(task);
                }
                Ok(())
            }
        }
    }
}
