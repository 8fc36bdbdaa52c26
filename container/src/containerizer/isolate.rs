//! What a new container of ours is kept in: the plan of the isolators, mounts, cgroups.

use std::path::Path;

use tepui_types::{ContainerId, LaunchSpec};

use super::Context;
use super::fault::ContainerFault;
use super::provision::Provisioned;
use crate::cgroups::{Controller, Place, Version};
use crate::host::background::blocking;
use crate::isolators::watcher::watched_resources;
use crate::isolators::{self, Parent, Site};
use crate::launcher::InitSpec;
use crate::plan::Plan;
use crate::runtime_dir::Mounted;

/// Creates the container's environment and sends it to the supervisor.
pub(super) async fn isolate(
    context: &Context,
    spec: &LaunchSpec,
    provisioned: Provisioned,
    parent_sandbox: Option<&Path>,
    init: &mut InitSpec,
) -> Result<(), ContainerFault> {
    let parent = spec.id.parent().map(|parent| parent_of(context, parent, parent_sandbox));
    init.plan = isolators::plan(&Site {
        spec,
        isolation: &context.options.isolation,
        options: &context.options.isolators,
        work_dir: &context.options.work_dir,
        identity: init.identity.as_ref(),
        rootfs: provisioned.rootfs.as_deref(),
        ready: &provisioned.ready,
        parent: parent.as_ref(),
    })?;
    provisioned.enter(context, spec, init)?;
    keep_mounts(context, spec, &init.plan).await?;
    let given = watched_resources(&spec.sandbox, &spec.resources, &spec.volumes);
    let kept = context.runtime.container(&spec.id).write_given(&given);
    kept.map_err(ContainerFault::persist("resources"))?;
    let Some(linux) = &context.linux else { return Ok(()) };
    let cgroups = linux.prepare(spec).await?;
    init.cgroups = cgroups.places.iter().map(Place::processes).collect();
    init.oom_score_adj = cgroups.oom_score_adj;
    let memory = cgroups.own(Controller::Memory).filter(|place| place.version == Version::V1);
    init.shortages_of = memory.map(|place| place.cgroup.clone());
    Ok(())
}

/// Makes what is mounted from, and writes down which persistent volumes are.
async fn keep_mounts(context: &Context, spec: &LaunchSpec, plan: &Plan) -> Result<(), ContainerFault> {
    if !context.options.isolation.mounts() {
        return Ok(());
    }
    let (dir, plan) = (context.runtime.container(&spec.id), plan.clone());
    let volumes: Vec<Mounted> = spec.volumes.iter().map(Mounted::from).collect();
    let work = move || {
        isolators::directories::make(&plan).map_err(ContainerFault::Directories)?;
        dir.write_volumes(&volumes).map_err(ContainerFault::persist("volumes"))
    };
    blocking(work).await?
}

/// The container around a nested one, as far as isolators care: its namespaces may be those of one further out.
fn parent_of(context: &Context, parent: &ContainerId, sandbox: Option<&Path>) -> Parent {
    let mut around = std::iter::successors(Some(parent), |id| id.parent());
    let init = around.find_map(|id| context.runtime.container(id).init());
    let (process, directory, root) =
        init.map_or((None, None, None), |init| (Some(init.process), init.directory, init.root));
    let sandbox = sandbox.unwrap_or(Path::new("/")).to_owned();
    Parent {
        process,
        directory: directory.unwrap_or_else(|| sandbox.clone()),
        sandbox,
        root,
        volumes: context.runtime.container(parent).volumes(),
    }
}
