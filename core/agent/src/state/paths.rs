//! Where things lie below the work directory.

use alloc::format;
use alloc::string::String;

use tepui_types::{ContainerId, ExecutorId, FrameworkId};

pub(crate) fn agent_directory(work_dir: &str, agent: &str) -> String {
    format!("{work_dir}/slaves/{agent}")
}

pub(crate) fn framework_directory(work_dir: &str, agent: &str, framework: &FrameworkId) -> String {
    format!("{}/frameworks/{framework}", agent_directory(work_dir, agent))
}

pub(crate) fn executor_directory(
    work_dir: &str,
    agent: &str,
    framework: &FrameworkId,
    executor: &ExecutorId,
) -> String {
    format!("{}/executors/{executor}", framework_directory(work_dir, agent, framework))
}

pub(crate) fn sandbox(
    work_dir: &str,
    agent: &str,
    framework: &FrameworkId,
    executor: &ExecutorId,
    container: &ContainerId,
) -> String {
    format!("{}/runs/{container}", executor_directory(work_dir, agent, framework, executor))
}

/// `runs/latest` beside the sandbox.
pub(crate) fn latest_link(
    work_dir: &str,
    agent: &str,
    framework: &FrameworkId,
    executor: &ExecutorId,
) -> String {
    format!("{}/runs/latest", executor_directory(work_dir, agent, framework, executor))
}

pub(crate) fn is_below(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
