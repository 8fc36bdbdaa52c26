//! Images of containers: made ready before a launch, removed after the end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchSpec};

use super::Context;
use super::command_line::command_line;
use super::fault::ContainerFault;
use crate::host::background::blocking;
use crate::host::user::Identity;
use crate::images::{Runtime, rootfs};
use crate::launcher::InitSpec;
use crate::launcher::task_entry::{self, TaskEntry};
use crate::plan::{Make, Mount, Overlay, Plan, Root, Source, Target};

/// A container has the network of the host, and finds its way about there as the host does.
const NETWORK_FILES: [&str; 3] = ["etc/hosts", "etc/hostname", "etc/resolv.conf"];

/// What was made of a container's images.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    /// The container's own root file system; unset: the host's.
    pub rootfs: Option<PathBuf>,
    /// The user named by the image, unless another is requested.
    pub user: Option<Identity>,
    /// Volumes, by their place among those of the container.
    pub ready: BTreeMap<usize, PathBuf>,
    /// Those of them that drivers mounted.
    of_drivers: Vec<PathBuf>,
    /// The run configuration of the image, if it applies.
    runtime: Runtime,
    overlays: Vec<Overlay>,
}

pub(super) async fn provision(context: &Context, spec: &LaunchSpec) -> Result<Provisioned, ContainerFault> {
    let mut all = Provisioned::default();
    let wanted = images_of(spec);
    if let (Some(volumes), Some(info)) = (&context.volumes, &spec.container) {
        all.ready = volumes.mount(&spec.id, &info.volumes).await?;
        all.of_drivers = all.ready.values().cloned().collect();
    }
    if wanted.is_empty() {
        return Ok(all);
    }
    let Some(images) = &context.images else {
        return Err(ContainerFault::NoImages);
    };
    let _turn = context.launches.acquire().await;
    for (volume, image) in wanted {
        let index = volume.map_or(0, |index| index + 1);
        let made = images.provision(&spec.id, index, image).await?;
        all.overlays.extend(made.rootfs.overlay);
        match volume {
            Some(index) => drop(all.ready.insert(index, made.rootfs.path)),
            None => {
                all.rootfs = Some(made.rootfs.path);
                if context.options.isolation.has("docker/runtime") {
                    let is_open = spec.command.user.is_none() && context.options.switch_user && !spec.no_root;
                    all.user = made.user.filter(|_| is_open).transpose()?;
                    all.runtime = made.runtime;
                }
            }
        }
    }
    Ok(all)
}

/// Of the container itself, and of its volumes by their place.
fn images_of(spec: &LaunchSpec) -> Vec<(Option<usize>, &pb::Image)> {
    let Some(info) = &spec.container else { return Vec::new() };
    let own = info.mesos.as_option().and_then(|mesos| mesos.image.as_option()).map(|image| (None, image));
    let volumes = info.volumes.iter().enumerate();
    own.into_iter()
        .chain(volumes.filter_map(|(index, one)| Some((Some(index), one.image.as_option()?))))
        .collect()
}

impl Provisioned {
    /// The launch with the run configuration of the image; an executor outside of its task's image has none.
    pub fn complete<'a>(&self, spec: &'a LaunchSpec) -> Result<Cow<'a, LaunchSpec>, ContainerFault> {
        if self.rootfs.is_none() || spec.task.is_some() {
            return Ok(Cow::Borrowed(spec));
        }
        let mut spec = spec.clone();
        spec.environment.extend(self.runtime.environment(&spec.command));
        spec.command = self.runtime.command(&spec.command)?;
        Ok(Cow::Owned(spec))
    }

    /// Adds to a launch what comes of the images; its plan is made.
    pub fn enter(
        self,
        context: &Context,
        spec: &LaunchSpec,
        init: &mut InitSpec,
    ) -> Result<(), ContainerFault> {
        if let (Some(volumes), Some(user)) = (&context.volumes, &init.identity) {
            volumes.set_owner(&self.of_drivers, (user.uid, user.gid))?;
        }
        init.plan.overlays = self.overlays;
        if self.rootfs.is_none() {
            return Ok(());
        }
        if let Some(directory) = self.runtime.directory() {
            init.plan.working_directory = Some(PathBuf::from(directory));
        }
        let there = NETWORK_FILES.into_iter().filter(|file| Path::new("/").join(file).is_file());
        init.plan.mounts.extend(there.map(|file| Mount::Bind {
            source: Source::host(Path::new("/").join(file)),
            target: Target::new(Root::Rootfs, file, Make::File),
            read_only: true,
        }));
        let sandbox = init
            .plan
            .sandbox_inside()
            .map(|path| (String::from("MESOS_SANDBOX"), path.display().to_string()));
        match &spec.task {
            Some(task) => stay_outside(&context.options.program, &self.runtime, task, sandbox, init),
            None => {
                init.environment.extend(sandbox);
                Ok(())
            }
        }
    }
}

/// Leaves an executor outside of the root file system, and lets it let its task in. What a task may do is not what the
/// executor may.
fn stay_outside(
    program: &Path,
    runtime: &Runtime,
    task: &pb::CommandInfo,
    sandbox: Option<(String, String)>,
    init: &mut InitSpec,
) -> Result<(), ContainerFault> {
    let command = runtime.command(task)?;
    let mut environment = runtime.environment(task);
    // The executor itself has not all of them, see the agent's environment of generated executors.
    let variables = task.environment.variables.iter();
    let values = variables.filter(|one| one.r#type != Some(pb::environment::variable::Type::SECRET));
    environment.extend(values.map(|one| (one.name.clone(), one.value.clone().unwrap_or_default())));
    environment.extend(sandbox);
    let (task_program, arguments) = command_line(&command)?;
    let plan = &mut init.plan;
    plan.stays_outside = true;
    let inside = TaskEntry {
        plan: Plan {
            rootfs: plan.rootfs.clone(),
            working_directory: plan.working_directory.clone(),
            capabilities: plan.capabilities.take(),
            no_new_privs: std::mem::take(&mut plan.no_new_privs),
            seccomp: std::mem::take(&mut plan.seccomp),
            ..Plan::default()
        },
        identity: init.identity.take(),
        environment,
        program: task_program,
        arguments,
    };
    let text = serde_json::to_string(&inside).map_err(ContainerFault::Describe)?;
    init.environment.insert(String::from(task_entry::INSIDE), text);
    let words = [&program.display().to_string(), crate::HELPER_COMMAND, crate::INSIDE].join("\n");
    init.environment.insert(String::from(task_entry::LAUNCHER), words);
    Ok(())
}

/// Removes what was made for a container, which has ended.
pub(super) async fn remove(context: &Arc<Context>, id: &ContainerId) {
    if let Some(volumes) = &context.volumes {
        volumes.release(id).await;
    }
    let (work_dir, id) = (context.options.work_dir.clone(), id.clone());
    let name = id.to_string();
    let removed = blocking(move || rootfs::remove(&work_dir, &id)).await;
    if let Err(err) = removed.unwrap_or_else(|fault| Err(fault.into())) {
        tracing::warn!(container = name, %err, "cannot remove the root file system of a container");
    }
}

/// Removes leftovers of former agents for unknown containers.
pub(super) async fn remove_forgotten(context: &Arc<Context>, known: BTreeSet<ContainerId>) {
    if let Some(volumes) = context.volumes.clone() {
        let known = known.clone();
        // A driver may be slow; recovery does not wait for it.
        tokio::spawn(async move { volumes.release_forgotten(&known).await });
    }
    let work_dir = context.options.work_dir.clone();
    let listed = blocking(move || rootfs::list(&work_dir)).await;
    let listed = listed.unwrap_or_else(|fault| Err(fault.into())).unwrap_or_else(|err| {
        tracing::warn!(%err, "cannot list root file systems, some may be left");
        Vec::new()
    });
    let is_around = |id: &ContainerId| {
        known.iter().any(|one| std::iter::successors(Some(one), |id| id.parent()).any(|above| above == id))
    };
    for id in listed.iter().filter(|id| !is_around(id)) {
        remove(context, id).await;
    }
}
