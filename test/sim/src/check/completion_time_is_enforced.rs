//! Completion time is enforced: a built-in executor with only overdue tasks is destroyed after its own margin, whatever it
//! does.

use std::collections::BTreeMap;

use tepui_core_agent::{Agent, Executor, Phase, Task};
use tepui_types::{ContainerId, TaskId};

use super::{Check, Fact};
use crate::chance::SECOND;

/// The margin of an executor to kill a task.
const COMPLETION_MARGIN: u64 = 10 * SECOND;

#[derive(Debug, Default)]
pub(super) struct CompletionTimeIsEnforced {
    /// The start of each task according to its agent: after a restart the time starts again.
    since: BTreeMap<(usize, ContainerId, TaskId), u64>,
}

impl Check for CompletionTimeIsEnforced {
    fn name(&self) -> &'static str {
        "completion_time_is_enforced"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::AgentTurn { agent, machine, now, .. } = fact else { return Ok(()) };
        let mut seen = BTreeMap::new();
        for executor in executors(machine) {
            let key = |task: &Task| (*agent, executor.container_id.clone(), task.id.clone());
            let mut is_over = executor.live_tasks().next().is_some();
            for task in executor.live_tasks() {
                let since = *self.since.get(&key(task)).unwrap_or(now);
                seen.insert(key(task), since);
                is_over &= longest(task).is_some_and(|longest| now - since > longest + COMPLETION_MARGIN);
            }
            if is_over {
                return Err(format!("{} on A{agent} was to end all its tasks", executor.container_id));
            }
        }
        self.since.retain(|(at, ..), _| at != agent);
        self.since.append(&mut seen);
        Ok(())
    }
}

/// Built-in executors that have all their tasks and are not being destroyed.
fn executors(machine: &Agent) -> impl Iterator<Item = &Executor> {
    let state = machine.state();
    let known = state.frameworks.values().filter(|_| state.phase != Phase::Recovering);
    let executors = known.flat_map(|framework| framework.executors.values()).map(|executor| &**executor);
    executors.filter(|executor| {
        let is_ready = executor.live_tasks().all(|task| task.stage.is_launched());
        executor.is_built_in() && is_ready && !executor.is_ending()
    })
}

fn longest(task: &Task) -> Option<u64> {
    let longest = task.info.max_completion_time.as_option()?;
    u64::try_from(longest.nanoseconds).ok()
}
