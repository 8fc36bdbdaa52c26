//! The framework and the task of `tepui run`, and the exit code of a terminal status.

use std::collections::BTreeMap;

use tepui_client::exit::CommandExit;
use tepui_client::v1::{
    CommandInfo, ContainerInfo, Environment, FrameworkInfo, Image, Offer, Resource, TaskID, TaskInfo,
    TaskState, TaskStatus, command_info, container_info, environment, framework_info, image, value,
};

use super::Run;

/// Exit code of a task that terminated without an exit status or signal.
const LOST_CODE: u8 = 125;

pub fn framework(run: &Run) -> FrameworkInfo {
    use framework_info::capability::Type;
    let capability = |r#type| framework_info::Capability { r#type: Some(r#type), ..Default::default() };
    FrameworkInfo {
        name: format!("tepui run {}", run.name),
        user: run.user.clone().unwrap_or_else(whoami),
        roles: vec![run.role.clone()],
        checkpoint: Some(true),
        failover_timeout: Some(run.reconnect_timeout.as_secs_f64()),
        capabilities: vec![
            capability(Type::MULTI_ROLE),
            capability(Type::PARTITION_AWARE),
            capability(Type::RESERVATION_REFINEMENT),
        ],
        ..Default::default()
    }
}

fn whoami() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_string())
}

/// A task of this run on the agent of this offer.
pub fn task(run: &Run, offer: &Offer, id: String, name: String) -> TaskInfo {
    TaskInfo {
        name,
        task_id: TaskID { value: id, ..Default::default() }.into(),
        agent_id: offer.agent_id.clone(),
        resources: wanted(run).into_iter().filter(|(_, amount)| *amount > 0.0).map(resource).collect(),
        command: command(run).into(),
        limits: limits(run),
        container: container(run).into(),
        ..Default::default()
    }
}

/// The container: an image of the Docker engine, an image of the agent, or the host's root filesystem.
fn container(run: &Run) -> Option<ContainerInfo> {
    match &run.docker {
        Some(image) => Some(in_docker(image)),
        None => run.image.as_deref().map(in_image),
    }
}

fn in_docker(image: &str) -> ContainerInfo {
    ContainerInfo {
        r#type: container_info::Type::DOCKER,
        docker: container_info::DockerInfo { image: image.to_owned(), ..Default::default() }.into(),
        ..Default::default()
    }
}

/// The limits of each task, where they exceed the request.
fn limits(run: &Run) -> BTreeMap<String, value::Scalar> {
    let limits = [("cpus", run.cpus_limit), ("mem", run.mem_limit)];
    let scalar = |value| value::Scalar { value, ..Default::default() };
    limits.into_iter().filter_map(|(name, limit)| Some((name.to_string(), scalar(limit?)))).collect()
}

/// Whether so many tasks of this run fit into the offer.
pub fn fits(run: &Run, offer: &Offer, count: usize) -> bool {
    wanted(run).iter().all(|(name, each)| scalar(offer, name) + 1e-9 >= each * count as f64)
}

fn wanted(run: &Run) -> [(&'static str, f64); 3] {
    [("cpus", run.cpus), ("mem", run.mem), ("disk", run.disk)]
}

fn command(run: &Run) -> CommandInfo {
    let variables = run.environment.iter().filter_map(|variable| variable.split_once('='));
    let variables: Vec<_> = variables
        .map(|(name, value)| environment::Variable {
            name: name.to_string(),
            value: Some(value.to_string()),
            ..Default::default()
        })
        .collect();
    let uris =
        run.uris.iter().map(|uri| command_info::URI { value: uri.clone(), ..Default::default() }).collect();
    let shell = run.command.len() == 1;
    // The first argument is argv[0], which the Docker engine does not accept.
    let arguments = &run.command[usize::from(run.docker.is_some()).min(run.command.len())..];
    CommandInfo {
        value: run.command.first().cloned(),
        arguments: if shell { Vec::new() } else { arguments.to_vec() },
        shell: Some(shell),
        environment: (!variables.is_empty()).then(|| Environment { variables, ..Default::default() }).into(),
        user: run.user.clone(),
        uris,
        ..Default::default()
    }
}

/// A container with this image.
fn in_image(image: &str) -> ContainerInfo {
    let docker = image::Docker { name: image.to_string(), ..Default::default() };
    let image = Image { r#type: image::Type::DOCKER, docker: docker.into(), ..Default::default() };
    ContainerInfo {
        r#type: container_info::Type::MESOS,
        mesos: container_info::MesosInfo { image: image.into(), ..Default::default() }.into(),
        ..Default::default()
    }
}

fn resource((name, amount): (&str, f64)) -> Resource {
    Resource {
        name: name.to_string(),
        r#type: value::Type::SCALAR,
        scalar: value::Scalar { value: amount, ..Default::default() }.into(),
        ..Default::default()
    }
}

fn scalar(offer: &Offer, name: &str) -> f64 {
    let fits = |resource: &&Resource| resource.name == name && !resource.revocable.is_set();
    offer.resources.iter().filter(fits).map(|resource| resource.scalar.value).sum()
}

/// The exit code of a terminal status; `None` if the task is live.
pub fn exit_code(status: &TaskStatus) -> Option<u8> {
    let ending = status.message.as_deref().and_then(CommandExit::read);
    match status.state {
        TaskState::TASK_FINISHED => Some(0),
        TaskState::TASK_STAGING
        | TaskState::TASK_STARTING
        | TaskState::TASK_RUNNING
        | TaskState::TASK_KILLING
        | TaskState::TASK_UNREACHABLE => None,
        TaskState::TASK_FAILED => {
            Some(ending.map(CommandExit::code).filter(|code| *code != 0).unwrap_or(LOST_CODE))
        }
        TaskState::TASK_KILLED => match ending {
            Some(CommandExit::Signalled { .. }) => ending.map(CommandExit::code),
            Some(CommandExit::Exited(_)) | None => Some(LOST_CODE),
        },
        // Task and agent are unknown to the master.
        TaskState::TASK_UNKNOWN
        | TaskState::TASK_ERROR
        | TaskState::TASK_LOST
        | TaskState::TASK_DROPPED
        | TaskState::TASK_GONE
        | TaskState::TASK_GONE_BY_OPERATOR => Some(LOST_CODE),
    }
}

/// The termination of a task as text.
pub fn reason(status: &TaskStatus) -> String {
    let message = status.message.as_deref().unwrap_or("no message");
    let reason = status.reason.map(|reason| format!(" ({reason:?})")).unwrap_or_default();
    crate::output::printable(&format!("{:?}: {message}{reason}", status.state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_task() {
        let table = [
            (TaskState::TASK_RUNNING, "", None),
            (TaskState::TASK_UNREACHABLE, "", None),
            (TaskState::TASK_FINISHED, "Command exited with status 0", Some(0)),
            (TaskState::TASK_FAILED, "Command exited with status 3", Some(3)),
            (TaskState::TASK_FAILED, "Command terminated with signal Killed", Some(137)),
            (TaskState::TASK_FAILED, "Command exited with status 0", Some(LOST_CODE)),
            (TaskState::TASK_FAILED, "cannot fetch", Some(LOST_CODE)),
            (TaskState::TASK_KILLED, "Command terminated with signal Terminated", Some(143)),
            (TaskState::TASK_KILLED, "Command exited with status 0", Some(LOST_CODE)),
            (TaskState::TASK_UNKNOWN, "", Some(LOST_CODE)),
            (TaskState::TASK_ERROR, "", Some(LOST_CODE)),
        ];
        for (state, message, expected) in table {
            let status = TaskStatus { state, message: Some(message.to_string()), ..Default::default() };
            assert_eq!(exit_code(&status), expected, "{state:?} {message}");
        }
    }
}
