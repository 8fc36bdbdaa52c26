//! The names under which sandboxes, and the agent's log, are shown.

use tepui_core_agent::{Executor, State};
use tepui_program::files::Attached;

/// The name under which the agent's log is shown.
pub(crate) const LOG: &str = "/slave/log";

/// Every name of every sandbox that is still known, and of the agent's log.
pub(crate) fn all(state: &State, log: Option<Attached>) -> Vec<Attached> {
    let names =
        |executor: &Executor| names(executor.framework_id.as_str(), executor.id.as_str(), &executor.sandbox);
    executors(state).flat_map(names).chain(alone(state)).chain(log).collect()
}

/// Sandboxes of containers that stand alone, as long as these live.
fn alone(state: &State) -> impl Iterator<Item = Attached> {
    let alone = state.containers.values().filter(|container| container.id.parent().is_none());
    alone.map(|container| Attached {
        path: container.sandbox.to_string(),
        real: container.sandbox.to_string(),
    })
}

/// The names of one: the sandbox itself, its `runs/latest`, and the short one that needs no knowledge of the agent.
fn names(framework: &str, executor: &str, sandbox: &str) -> Vec<Attached> {
    let short = format!("/frameworks/{framework}/executors/{executor}/runs/latest");
    let latest = sandbox.rsplit_once('/').map(|(runs, _)| format!("{runs}/latest"));
    let paths = [Some(sandbox.to_owned()), latest, Some(short)];
    paths.into_iter().flatten().map(|path| Attached { path, real: sandbox.to_owned() }).collect()
}

fn executors(state: &State) -> impl Iterator<Item = &Executor> {
    let frameworks = state.completed_frameworks.iter().chain(state.frameworks.values());
    frameworks.flat_map(|framework| {
        framework.completed_executors.iter().chain(framework.executors.values()).map(|executor| &**executor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_is_attached_under_three_paths() {
        let sandbox = "/w/slaves/S0/frameworks/F/executors/E/runs/c1";
        let names = names("F", "E", sandbox);
        assert!(names.iter().all(|one| one.real == sandbox), "{names:?}");
        let paths: Vec<&str> = names.iter().map(|one| one.path.as_str()).collect();
        let latest = "/w/slaves/S0/frameworks/F/executors/E/runs/latest";
        assert_eq!(paths, [sandbox, latest, "/frameworks/F/executors/E/runs/latest"]);
    }
}
