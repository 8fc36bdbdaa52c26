//! The Docker containerizer: containers of type DOCKER, run by a Docker engine.
//!
//! A container here is two: a process of ours on the host, under the supervisor that every container has, and the
//! engine's container `mesos-<id>`, which that process starts, attaches to and waits for. For a command task the
//! process is the Docker executor, otherwise `run`. So restarts of the agent, exit statuses and sandboxes are as
//! everywhere; added are the document for the engine (`plan`), the pull of the image, and the removal of leftovers.
//! Absent: tasks, and other containers of the engine.

pub(crate) mod fault;
mod limits;
mod login;
mod parameters;
mod plan;
pub(crate) mod run;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use tepui_docker::{Engine, EngineFault, Listed, OomCause, OutOfMemory, Setup};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerId, LaunchSpec, Termination};

use self::fault::{DocumentFault, NoEngine, PullFault};
pub(crate) use self::limits::followed_score;
use crate::cgroups::{Cgroups, Controller, Demand, Limit, Place, Policy, Version, oom};
use crate::host::background::blocking;
use crate::host::process::Process;
use crate::images::Logins;
use crate::pulls::Pulls;

/// Every name of a container of ours begins so, as in v1.
const NAME_PREFIX: &str = "mesos-";
/// Label with the owner of a container: several agents may share an engine.
const WORK_DIR_LABEL: &str = "tepui.work_dir";
/// Distinguishes the containers of this start of the agent from those of a former one. The engine's creation time, in whole
/// seconds, cannot: an agent may be killed and restarted within one.
const AGENT_START_LABEL: &str = "tepui.agent_start";

/// The process may have created a container just before it was killed; number and interval of the checks for it.
const LATE_LOOKS: u32 = 3;
const LATE_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Interval of checks whether a container runs, as in v1.
const PROCESS_LOOK_EVERY: Duration = Duration::from_millis(500);

/// What an operator chose about Docker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerOptions {
    pub socket: PathBuf,
    /// Time for which a terminated container is kept for inspection.
    pub remove_delay: Duration,
    /// Grace period of a container.
    pub stop_timeout: Duration,
    /// Kill orphaned containers of ours.
    pub kill_orphans: bool,
    /// For registries, unless a container brings its own.
    pub logins: Logins,
}

impl Default for DockerOptions {
    /// The defaults of the v1 flags.
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/var/run/docker.sock"),
            remove_delay: Duration::from_secs(6 * 3600),
            stop_timeout: Duration::ZERO,
            kill_orphans: true,
            logins: Logins::default(),
        }
    }
}

/// The engine of an agent, and what all containers on it share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Docker {
    engine: Engine,
    options: DockerOptions,
    site: DockerSite,
    pulls: Pulls,
}

/// Parameters of the agent for an engine's containers.
#[derive(Clone, Debug)]
pub(crate) struct DockerSite {
    pub policy: Policy,
    /// Below each mount.
    pub cgroups_root: PathBuf,
    pub program: PathBuf,
    pub work_dir: PathBuf,
    /// Unique among the starts of this agent.
    pub agent_start: String,
    /// Where a container sees its sandbox.
    pub sandbox_directory: PathBuf,
}

/// Whether a container is for an engine.
pub(crate) fn is_docker(spec: &LaunchSpec) -> bool {
    spec.container.as_ref().is_some_and(|info| info.r#type == pb::container_info::Type::DOCKER)
}

impl Docker {
    /// The socket must accept connections.
    pub fn open(options: DockerOptions, site: DockerSite) -> Result<Docker, NoEngine> {
        std::os::unix::net::UnixStream::connect(&options.socket)
            .map_err(|err| NoEngine { socket: options.socket.clone(), err })?;
        Ok(Docker { engine: Engine::at(&options.socket), options, site, pulls: Pulls::default() })
    }

    /// The process on the host for a container. An unsupported field is rejected by its name. `user`: the user it
    /// runs as, without a way to become another. `end`: file for the reason of the termination, unless the process is
    /// an executor, which reports to the framework.
    pub fn on_host(
        &self,
        spec: &LaunchSpec,
        user: Option<(u32, u32)>,
        end: PathBuf,
    ) -> Result<LaunchSpec, DocumentFault> {
        if spec.id.parent().is_some() {
            return Err(DocumentFault::Nested);
        }
        let name = name(&spec.id);
        let document = plan::document(spec, user, (&name, &self.site.sandbox_directory), &self.site.policy)?;
        let mut host = LaunchSpec { container: None, ..spec.clone() };
        let labelled = self.labelled(document);
        let (socket, stop_timeout) = (self.options.socket.clone(), self.options.stop_timeout);
        let end = (!spec.of_task).then_some(end);
        let cgroups_root = self.site.cgroups_root.clone();
        let setup = Setup { socket, name, document: labelled, stop_timeout, cgroups_root, end };
        if !spec.of_task {
            // The command is the engine's to run, in an environment that is in the document.
            let program = self.site.program.display().to_string();
            host.command.shell = Some(false);
            host.command.arguments =
                vec![program.clone(), crate::HELPER_COMMAND.to_owned(), crate::DOCKER.to_owned()];
            host.command.value = Some(program);
            host.environment = BTreeMap::new();
        }
        host.environment.extend([setup.to_env()]);
        Ok(host)
    }

    fn labelled(&self, mut document: serde_json::Value) -> serde_json::Value {
        document["Labels"][WORK_DIR_LABEL] = self.site.work_dir.display().to_string().into();
        document["Labels"][AGENT_START_LABEL] = self.site.agent_start.clone().into();
        document
    }

    /// Brings the image, if it is not there or must be the newest.
    pub async fn pull(&self, spec: &LaunchSpec) -> Result<(), PullFault> {
        let Some(info) = spec.container.as_ref().map(|info| &info.docker) else { return Ok(()) };
        if info.force_pull_image != Some(true) && self.engine.image(&info.image).await?.is_some() {
            return Ok(());
        }
        let sandbox = PathBuf::from(&spec.sandbox);
        let logins = blocking(move || login::fetched(&sandbox)).await??;
        let logins = logins.as_ref().unwrap_or(&self.options.logins);
        let header = login::header(&info.image, logins).await?;
        Ok(self.pulls.time(self.engine.pull(&info.image, header.as_deref())).await?)
    }

    /// How long images took to come.
    pub fn pulls(&self) -> Pulls {
        self.pulls.clone()
    }

    /// Holds a running container to new requests and limits. That of a command task has had them from the beginning.
    /// Returns the OOM score that is to follow its use of memory, if one is.
    pub async fn update(
        &self,
        id: &ContainerId,
        resources: &[pb::Resource],
        limits: &BTreeMap<String, f64>,
    ) -> Result<Option<i32>, EngineFault> {
        let name = name(id);
        let Some(now) = self.engine.inspect(&name).await? else { return Ok(None) };
        if !now.state.running {
            return Ok(None);
        }
        let demand = limits::demand(resources, limits, false);
        let host_config = &now.raw["HostConfig"];
        let change = limits::change(&demand, &self.site.policy, host_config);
        self.engine.update(&name, &change).await?;
        let cgroups = Cgroups::of_live(now.state.pid);
        let memory = cgroups.own(Controller::Memory);
        let lowered = limits::lower(&demand, &self.site.policy, host_config);
        if let Some(lowered) = lowered.filter(|_| memory.is_some_and(|place| has_room(place, &demand)))
            && let Err(fault) = self.engine.update(&name, &lowered).await
        {
            tracing::debug!(container = %id, %fault, "the memory limit of a container stays as it is");
        }
        // The engine takes a score only when it makes a container.
        let score = limits::changed_score(&demand, host_config);
        if let (Some(score), Some(place)) = (score, memory) {
            oom::score_all(&place.cgroup, score);
        }
        Ok(score.filter(|_| demand.bursts()))
    }

    /// Waits for the first process of a container.
    pub async fn process(&self, id: &ContainerId) -> Process {
        let name = name(id);
        loop {
            let found = self.engine.inspect(&name).await.ok().flatten();
            let pid = found.map_or(0, |found| found.state.pid);
            if pid > 0
                && let Ok(Some(stat)) = Process::find(pid)
            {
                return stat.process;
            }
            tokio::time::sleep(PROCESS_LOOK_EVERY).await;
        }
    }

    /// Kills what is left of a container whose process has exited; the container is removed later. A process that
    /// exited in order has no requests pending at the engine; a killed one may have.
    pub async fn end(&self, id: &ContainerId, in_order: bool) {
        let name = name(id);
        if let Err(fault) = self.engine.stop(&name, self.options.stop_timeout).await {
            tracing::warn!(container = %id, %fault, "cannot kill a container, retrying");
        }
        let (docker, looks) = (self.clone(), if in_order { 0 } else { LATE_LOOKS });
        // What it does not manage is done by the next start of the agent.
        tokio::spawn(async move {
            for _ in 0..looks {
                tokio::time::sleep(LATE_LOOK_AFTER).await;
                docker.engine.stop(&name, Duration::ZERO).await.ok();
            }
            tokio::time::sleep(docker.options.remove_delay).await;
            docker.remove(&name).await;
        });
    }

    /// Kills and removes containers of a former start of this agent that are none of `known`.
    pub async fn sweep(self, known: BTreeSet<ContainerId>) {
        if !self.options.kill_orphans {
            return;
        }
        let listed = match self.engine.list(NAME_PREFIX).await {
            Ok(listed) => listed,
            Err(fault) => return tracing::warn!(%fault, "cannot list orphaned containers"),
        };
        let known: BTreeSet<String> = known.iter().map(name).collect();
        let label = self.site.work_dir.display().to_string();
        let is_orphan = |one: &Listed| {
            one.labels.get(WORK_DIR_LABEL) == Some(&label)
                && one.labels.get(AGENT_START_LABEL) != Some(&self.site.agent_start)
                && !one.names.iter().any(|name| known.contains(name.trim_start_matches('/')))
        };
        for orphan in listed.into_iter().filter(is_orphan) {
            tracing::info!(names = ?orphan.names, "removing an orphaned container");
            self.engine.stop(&orphan.id, self.options.stop_timeout).await.ok(); // To remove it ends it too.
            self.remove(&orphan.id).await;
            let names = orphan.names.iter().map(|name| name.trim_start_matches('/'));
            names.for_each(|name| tepui_docker::remove_parent_cgroup(&self.site.cgroups_root, name));
        }
    }

    /// Removes a container whose process was just killed and may have created it immediately before.
    pub async fn remove_for_good(&self, name: &str) {
        self.remove(name).await;
        for _ in 0..LATE_LOOKS {
            tokio::time::sleep(LATE_LOOK_AFTER).await;
            self.remove(name).await;
        }
    }

    /// At once.
    pub async fn remove(&self, name: &str) {
        if let Err(fault) = self.engine.remove(name).await {
            tracing::warn!(container = name, %fault, "cannot remove a container");
        }
        tepui_docker::remove_parent_cgroup(&self.site.cgroups_root, name);
    }
}

/// Whether a limit of memory can go down without a kill. On v1 the kernel refuses one that it cannot reach by reclaim; on
/// v2 it would kill.
fn has_room(place: &Place, demand: &Demand) -> bool {
    let used = || std::fs::read_to_string(place.cgroup.join("memory.current")).ok()?.trim().parse().ok();
    match (place.version, demand.mem_bound()) {
        (Version::V1, _) | (Version::V2, Limit::Infinite) => true,
        (Version::V2, Limit::Finite(bytes)) => used().is_some_and(|used: u64| used < bytes),
    }
}

/// The termination for an OOM kill.
pub(crate) fn termination(why: OutOfMemory) -> Termination {
    let reason = match why.whose {
        OomCause::Own => Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        OomCause::OthersOverRequest => Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED),
        OomCause::OthersWithinRequest => None,
    };
    Termination {
        state: reason.map(|_| TaskState::TASK_FAILED),
        limited: why.peak_bytes.filter(|_| reason.is_some()).map(oom::used).into_iter().collect(),
        reason,
        message: Some(why.message),
        ..Default::default()
    }
}

/// What the engine calls a container.
pub(crate) fn name(id: &ContainerId) -> String {
    format!("{NAME_PREFIX}{}", id.value())
}
