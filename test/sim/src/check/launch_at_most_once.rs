//! Launch at most once: a task starts at most once per launch of its framework, an executor's container is launched at most
//! once, and a container of the API runs at most once.

use std::collections::BTreeSet;

use super::nested_tasks::{NestedTasks, Task};
use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct LaunchAtMostOnce {
    tasks: BTreeSet<Task>,
    nested: NestedTasks,
    containers: BTreeSet<String>,
    ran: BTreeSet<String>,
}

impl Check for LaunchAtMostOnce {
    fn name(&self) -> &'static str {
        "launch_at_most_once"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        if let Some(task) = self.nested.started(fact)
            && !self.tasks.insert(task.clone())
        {
            return Err(format!("{} starts again", task.1));
        }
        match fact {
            Fact::FrameworkLaunches { id, task } => {
                self.tasks.remove(&((*id).into(), (*task).into()));
                Ok(())
            }
            // A failed launch may be repeated.
            Fact::ContainerLaunches { agent, spec }
                if !spec.environment.contains_key("MESOS_EXECUTOR_ID") =>
            {
                match self.ran.contains(&spec.id.to_string()) {
                    true => Err(format!("container {} ran and is launched again on A{agent}", spec.id)),
                    false => Ok(()),
                }
            }
            Fact::ContainerRuns { agent, spec } => {
                let new = self.ran.insert(spec.id.to_string());
                new.then_some(()).ok_or_else(|| format!("container {} runs again on A{agent}", spec.id))
            }
            Fact::ContainerLaunches { agent, spec } => {
                let new = self.containers.insert(spec.id.to_string());
                new.then_some(())
                    .ok_or_else(|| format!("container {} is launched again on A{agent}", spec.id))
            }
            _ => Ok(()),
        }
    }
}
