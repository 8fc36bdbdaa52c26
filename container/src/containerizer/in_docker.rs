//! The part of a container's life in a Docker engine: launch, checkpoint, updates, termination.

use std::pin::Pin;

use tepui_types::{ContainerId, LaunchSpec};

use super::Context;
use super::fault::{ContainerFault, DockerFault};
use super::update::Update;
use crate::docker::{self, Docker};
use crate::host::process::Process;
use crate::runtime_dir::{InDocker, Mounted};
use crate::sandbox;

/// The end of a search for a process.
pub(super) type Search = Pin<Box<dyn Future<Output = Process> + Send>>;

/// A container for a Docker engine: the engine, and what runs on the host for it.
pub(super) struct OnDocker {
    pub docker: Docker,
    pub host: LaunchSpec,
    /// The OOM score that follows the use of memory, if it does.
    pub oom_score_adj: Option<i32>,
}

/// Which containerizer takes the container: `None` is ours.
pub(super) fn choose(context: &Context, spec: &LaunchSpec) -> Result<Option<OnDocker>, ContainerFault> {
    let parent_in_docker =
        spec.id.parent().is_some_and(|parent| context.runtime.container(parent).docker().is_some());
    match (docker::is_docker(spec), &context.docker) {
        _ if parent_in_docker => Err(DockerFault::Nested.into()),
        (true, Some(docker)) => {
            let user = user_inside(context, spec)?;
            let end = context.runtime.container(&spec.id).docker_end_path();
            let host = docker.on_host(spec, user, end).map_err(DockerFault::from)?;
            Ok(Some(OnDocker { docker: docker.clone(), host, oom_score_adj: docker::followed_score(spec) }))
        }
        (true, None) => Err(DockerFault::NoDocker.into()),
        (false, _) if !context.options.mesos => Err(DockerFault::OnlyDocker.into()),
        (false, _) => Ok(None),
    }
}

/// The container's user if its framework may not use root; else the user of the image applies.
fn user_inside(context: &Context, spec: &LaunchSpec) -> Result<Option<(u32, u32)>, ContainerFault> {
    if !spec.no_root {
        return Ok(None);
    }
    let identity = sandbox::identity(spec.user.as_deref(), context.options.switch_user);
    let ids = identity.and_then(|identity| sandbox::not_root(identity.as_ref()));
    Ok(ids.map(Some)?)
}

/// Writes down that an engine is about to have a container, and with which volumes.
pub(super) fn keep(context: &Context, spec: &LaunchSpec, docker: &OnDocker) -> Result<(), ContainerFault> {
    let (dir, volumes) = (context.runtime.container(&spec.id), spec.volumes.iter().map(Mounted::from));
    let kept = dir.write_volumes(&volumes.collect::<Vec<_>>());
    let in_docker = InDocker { of_task: spec.of_task, process: None, oom_score_adj: docker.oom_score_adj };
    let kept = kept.and_then(|()| dir.write_docker(in_docker));
    kept.map_err(ContainerFault::persist("type"))
}

/// Holds a running container to what it is to have from now on. An engine cannot give it other volumes.
pub(super) async fn update(
    context: &Context,
    id: &ContainerId,
    in_docker: InDocker,
    update: Update,
) -> Result<(), ContainerFault> {
    let after: Vec<Mounted> = update.volumes.iter().map(Mounted::from).collect();
    let dir = context.runtime.container(id);
    match &context.docker {
        _ if in_docker.of_task => Ok(()), // It was made with all that its task may use.
        _ if after != dir.volumes() => Err(DockerFault::Volumes.into()),
        Some(docker) => {
            let oom_score_adj = docker.update(id, &update.resources, &update.limits).await;
            let oom_score_adj = oom_score_adj.map_err(DockerFault::Engine)?;
            let written = dir.write_docker(InDocker { oom_score_adj, ..in_docker });
            written.map_err(ContainerFault::persist("OOM score"))
        }
        None => Err(DockerFault::NoEngine.into()),
    }
}

/// Looks for the first process of the engine's container; `None` if it is known, or the container is not an engine's.
pub(super) fn find_process(context: &Context, id: &ContainerId) -> Option<Search> {
    let (docker, kept) = (context.docker.clone()?, context.runtime.container(id).docker()?);
    let id = id.clone();
    kept.process.is_none().then(|| Box::pin(async move { docker.process(&id).await }) as Search)
}

/// Checkpoints the process, for measurements.
pub(super) fn keep_process(context: &Context, id: &ContainerId, process: Process) {
    let dir = context.runtime.container(id);
    let kept = dir.docker().unwrap_or_default();
    if let Err(err) = dir.write_docker(InDocker { process: Some(process), ..kept }) {
        tracing::warn!(container = %id, %err, "cannot persist the process of a container, it is not measured");
    }
}

/// Ends what an engine has of the container.
pub(super) async fn end(context: &Context, id: &ContainerId) {
    let dir = context.runtime.container(id);
    match (dir.docker(), &context.docker) {
        (Some(_), Some(docker)) => docker.end(id, dir.status() == Some(0)).await,
        (Some(_), None) => {
            tracing::warn!(container = %id, "its Docker container may still run: no engine is available");
        }
        (None, _) => (),
    }
}
