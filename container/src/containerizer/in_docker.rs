//! The part of a container's life that is a Docker engine's: who takes it, what is written down of it, its changes, its end.

use std::sync::Arc;

use tepui_types::{ContainerId, LaunchSpec};
use tokio::sync::watch;

use super::Context;
use super::container::Update;
use crate::docker::{self, Docker};
use crate::runtime_dir::{InDocker, Mounted};

/// A container for a Docker engine: the engine, and what runs on the host for it.
pub(super) struct OnDocker {
    pub docker: Docker,
    pub host: LaunchSpec,
}

/// Which containerizer takes the container: `None` is ours.
pub(super) fn choose(context: &Context, spec: &LaunchSpec) -> Result<Option<OnDocker>, String> {
    let parent_in_docker =
        spec.id.parent().is_some_and(|parent| context.runtime.container(parent).docker().is_some());
    match (docker::is_docker(spec), &context.docker) {
        _ if parent_in_docker => Err(String::from("nothing can be nested in a DOCKER container")),
        (true, Some(docker)) => {
            let host = docker.on_host(spec, context.runtime.container(&spec.id).docker_end_path())?;
            Ok(Some(OnDocker { docker: docker.clone(), host }))
        }
        (true, None) => Err(String::from("no containerizer for DOCKER containers")),
        (false, _) if !context.options.mesos => {
            Err(String::from("no containerizer for containers other than DOCKER"))
        }
        (false, _) => Ok(None),
    }
}

/// Writes down that an engine is about to have a container, and with which volumes.
pub(super) fn keep(context: &Context, spec: &LaunchSpec) -> Result<(), String> {
    let (dir, volumes) = (context.runtime.container(&spec.id), spec.volumes.iter().map(Mounted::from));
    let kept = dir.write_volumes(&volumes.collect::<Vec<_>>());
    let kept = kept.and_then(|()| dir.write_docker(InDocker { of_task: spec.of_task, process: None }));
    kept.map_err(|err| format!("cannot keep that it is a DOCKER container: {err}"))
}

/// Holds a running container to what it is to have from now on. An engine cannot give it other volumes.
pub(super) async fn update(
    context: &Context,
    id: &ContainerId,
    in_docker: InDocker,
    update: Update,
) -> Result<(), String> {
    let after: Vec<Mounted> = update.volumes.iter().map(Mounted::from).collect();
    match &context.docker {
        _ if in_docker.of_task => Ok(()), // It was made with all that its task may use.
        _ if after != context.runtime.container(id).volumes() => {
            Err(String::from("the persistent volumes of a running DOCKER container cannot be changed"))
        }
        Some(docker) => docker.update(id, &update.resources, &update.limits).await,
        None => Err(String::from("there is no Docker engine to ask")),
    }
}

/// Looks for the first process of the engine's container and writes it down, for those who measure. Gives up when `alive`
/// closes: the container has ended.
pub(super) fn find_process(context: &Arc<Context>, id: &ContainerId, mut alive: watch::Receiver<()>) {
    let (Some(docker), Some(kept)) = (context.docker.clone(), context.runtime.container(id).docker()) else {
        return;
    };
    if kept.process.is_some() {
        return;
    }
    let (dir, id) = (context.runtime.container(id), id.clone());
    tokio::spawn(async move {
        let found = tokio::select! {
            found = docker.process(&id) => found,
            _ = alive.changed() => return,
        };
        if let Err(err) = dir.write_docker(InDocker { process: Some(found), ..kept }) {
            tracing::warn!(container = %id, %err, "cannot keep the process of a container, it is not measured");
        }
    });
}

/// Ends what an engine has of the container.
pub(super) async fn end(context: &Context, id: &ContainerId) {
    let dir = context.runtime.container(id);
    match (dir.docker(), &context.docker) {
        (Some(_), Some(docker)) => docker.end(id, dir.status() == Some(0)).await,
        (Some(_), None) => {
            tracing::warn!(container = %id, "its Docker container may go on: there is no engine to ask");
        }
        (None, _) => (),
    }
}
