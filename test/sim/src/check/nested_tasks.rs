//! Tasks with a container of their own: they start when it runs, not when their executor has decided to launch it, because the
//! agent may reject that.

use std::collections::BTreeMap;

use tepui_types::ContainerId;

use super::Fact;

/// Framework and task.
pub(super) type Task = (String, String);

#[derive(Debug, Default)]
pub(super) struct NestedTasks {
    by_container: BTreeMap<ContainerId, Task>,
}

impl NestedTasks {
    /// The task that starts with this fact, nested or not.
    pub(super) fn started(&mut self, fact: &Fact<'_>) -> Option<Task> {
        match fact {
            Fact::FrameworkLaunches { id, task } => {
                let task = ((*id).to_owned(), (*task).to_owned());
                self.by_container.retain(|_, nested| *nested != task);
                None
            }
            Fact::ExecutorUpdates { executor, container, status, .. } => {
                let own = status.container_status.container_id.as_option().map(ContainerId::from);
                if let Some(own) = own.filter(|own| own != *container) {
                    let task = (executor.framework_id.clone(), status.task_id.value.clone());
                    self.by_container.insert(own, task);
                }
                None
            }
            Fact::TaskStarts { framework, task, is_nested: false, .. } => {
                Some(((*framework).to_owned(), (*task).to_owned()))
            }
            Fact::ContainerRuns { spec, .. } => self.by_container.get(&spec.id).cloned(),
            _ => None,
        }
    }
}
