//! The executor the agent makes for a task that has a command and no executor, and the command of a DEFAULT one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{COMMAND_EXECUTOR_CPUS, COMMAND_EXECUTOR_MEM_MB, FrameworkId};

use crate::Config;

/// A command is shown up to this many characters, longer ones are cut to `COMMAND_SHOWN_CUT_CHARS` and an ellipsis.
const COMMAND_SHOWN_CHARS_MAX: usize = 15;
const COMMAND_SHOWN_CUT_CHARS: usize = 12;

/// What an executor needs after its task's grace period to see the process end and to report it.
const REPORT_GRACE_NS: i64 = 2_000_000_000;

/// The executor for a command task.
pub(crate) fn for_command_task(
    config: &Config,
    framework: &FrameworkId,
    task: &pb::TaskInfo,
) -> pb::ExecutorInfo {
    let container = task.container.as_option();
    let in_docker = container.is_some_and(|info| info.r#type == pb::container_info::Type::DOCKER);
    let command = pb::CommandInfo {
        uris: task.command.uris.clone(),
        environment: task.command.environment.clone(),
        user: task.command.user.clone(),
        ..built_in(&config.executor_program, if in_docker { "docker" } else { "command" })
    };
    let grace = task.kill_policy.grace_period.as_option().map(|grace| pb::DurationInfo {
        nanoseconds: grace.nanoseconds.saturating_add(REPORT_GRACE_NS),
        ..Default::default()
    });
    let id = task.task_id.value.clone();
    pb::ExecutorInfo {
        executor_id: pb::ExecutorID { value: id.clone(), ..Default::default() }.into(),
        framework_id: framework.to_proto().into(),
        name: Some(format!("Command Executor (Task: {id}) (Command: {})", shown(&task.command))),
        source: Some(id),
        command: command.into(),
        container: task.container.clone(),
        labels: task.labels.clone(),
        discovery: task.discovery.clone(),
        resources: overhead(config.best_effort_tasks && !in_docker, task),
        shutdown_grace_period: grace.into(),
        ..Default::default()
    }
}

/// How one of our own executors is run.
pub(crate) fn built_in(program: &str, kind: &str) -> pb::CommandInfo {
    pb::CommandInfo {
        shell: Some(false),
        value: Some(program.to_string()),
        arguments: vec![program.to_string(), "executor".to_string(), kind.to_string()],
        ..Default::default()
    }
}

/// Accounted by the agent only. With `best_effort`, nothing of a resource that the task itself does not request: its
/// executor is in the same cgroups.
fn overhead(best_effort: bool, task: &pb::TaskInfo) -> Vec<pb::Resource> {
    let asked = |name: &str| task.resources.iter().any(|one| one.name == name && one.scalar.value > 0.0);
    let allocation =
        task.resources.first().map(|resource| resource.allocation_info.clone()).unwrap_or_default();
    let scalar = |name: &str, value: f64| pb::Resource {
        name: name.to_string(),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value, ..Default::default() }.into(),
        allocation_info: allocation.clone(),
        ..Default::default()
    };
    let all = [scalar("cpus", COMMAND_EXECUTOR_CPUS), scalar("mem", COMMAND_EXECUTOR_MEM_MB)];
    all.into_iter().filter(|one| !best_effort || asked(&one.name)).collect()
}

fn shown(command: &pb::CommandInfo) -> String {
    if command.shell.unwrap_or(true) {
        return match &command.value {
            Some(value) => format!("sh -c '{}'", cut(value)),
            None => "NO COMMAND".into(),
        };
    }
    match &command.value {
        Some(value) => {
            let words: Vec<&str> = core::iter::once(value.as_str())
                .chain(command.arguments.iter().map(String::as_str))
                .collect();
            format!("[{}]", words.join(", "))
        }
        None => "NO EXECUTABLE".into(),
    }
}

fn cut(value: &str) -> String {
    if value.chars().count() <= COMMAND_SHOWN_CHARS_MAX {
        return value.into();
    }
    let start: String = value.chars().take(COMMAND_SHOWN_CUT_CHARS).collect();
    format!("{start}...")
}
