//! The names under which sandboxes are shown.

use tepui_core_agent::{Executor, State};

/// One name of one sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// The name.
    pub path: String,
    /// Where it is.
    pub sandbox: String,
}

/// Every name of every sandbox that is still known.
pub(crate) fn all(state: &State) -> Vec<Attached> {
    let names =
        |executor: &Executor| names(executor.framework_id.as_str(), executor.id.as_str(), &executor.sandbox);
    executors(state).flat_map(names).collect()
}

/// The names of one: the sandbox itself, its `runs/latest`, and the short one that needs no knowledge of the agent.
pub(crate) fn names(framework: &str, executor: &str, sandbox: &str) -> Vec<Attached> {
    let short = format!("/frameworks/{framework}/executors/{executor}/runs/latest");
    let latest = sandbox.rsplit_once('/').map(|(runs, _)| format!("{runs}/latest"));
    let paths = [Some(sandbox.to_owned()), latest, Some(short)];
    paths.into_iter().flatten().map(|path| Attached { path, sandbox: sandbox.to_owned() }).collect()
}

/// The longest name that a path begins with, and the rest of the path. Of the same names the newest, which is the last.
pub(crate) fn find<'a, 'p>(attached: &'a [Attached], path: &'p str) -> Option<(&'a Attached, &'p str)> {
    let candidates = attached.iter().filter_map(|one| Some((one, rest_of(path, &one.path)?)));
    candidates.max_by_key(|(one, _)| one.path.len())
}

fn executors(state: &State) -> impl Iterator<Item = &Executor> {
    let frameworks = state.completed_frameworks.iter().chain(state.frameworks.values());
    frameworks.flat_map(|framework| {
        framework.completed_executors.iter().chain(framework.executors.values()).map(|executor| &**executor)
    })
}

/// What follows a name in a path, at a boundary.
fn rest_of<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
