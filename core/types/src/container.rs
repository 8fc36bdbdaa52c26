//! The container port: operations of the agent on containers, and their events.
//!
//! An enum and not a trait, so that the same agent runs with Linux containers, simulated containers and in unit tests.
//! Operations on one container take effect in order. Every Launch is answered by Launched or LaunchFailed; every
//! launched container terminates with exactly one Exited, also across restarts of the agent.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::ContainerId;

/// The overhead of the command executor, added to the resources of its task.
pub const COMMAND_EXECUTOR_CPUS: f64 = 0.1;
pub const COMMAND_EXECUTOR_MEM_MB: f64 = 32.0;

/// An operation of the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum ContainerOp {
    /// The first operation after a start: these should exist; anything else of ours is an orphan and is destroyed.
    /// Answered by one Recovered.
    Recover { known: Vec<KnownContainer> },
    /// Makes the sandbox, fetches, starts the command.
    Launch(Box<LaunchSpec>),
    /// New requests, limits and persistent volumes of a running container. Ignored if it is not there.
    Update {
        id: ContainerId,
        resources: Vec<pb::Resource>,
        limits: BTreeMap<String, f64>,
        volumes: Vec<Volume>,
    },
    /// Checks whether the container is about to terminate because of an OOM kill of one of its processes.
    /// Answered by one Examined, also if the container does not exist.
    Examine { id: ContainerId },
    /// Sends a signal to the container's first process. One that is still being launched is destroyed instead.
    Signal { id: ContainerId, signal: i32 },
    /// Kills every process of the container, nested containers first. Answered by its Exited, or by LaunchFailed if it
    /// was still being launched; ignored if it does not exist.
    Destroy { id: ContainerId },
    /// As Destroy; `why` replaces the exit status of its processes.
    Evict { id: ContainerId, why: Termination },
    /// Removes a terminated nested container and its sandbox. Answered by PathDone with the sandbox.
    Remove { id: ContainerId, sandbox: String },
    /// Removes a directory tree below the work directory that is no longer needed; a later Launch with its sandbox
    /// below waits for that. This and the two following are answered by PathDone.
    RemovePath { path: String },
    /// Creates the directory of a persistent volume; an existing one is unchanged.
    CreateVolume { path: String },
    /// Removes a persistent volume with its content; of a mount point only the content.
    DestroyVolume { path: String },
}

/// A container in the agent's checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownContainer {
    pub id: ContainerId,
    pub sandbox: String,
    /// Its last checkpointed resources.
    pub resources: Vec<pb::Resource>,
    pub volumes: Vec<Volume>,
}

/// Everything needed to start one container.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchSpec {
    pub id: ContainerId,
    /// What to run; `uris` are fetched into the sandbox first. Its own `environment` is already merged into the one below.
    pub command: pb::CommandInfo,
    /// The complete environment; the agent's is not inherited.
    pub environment: BTreeMap<String, String>,
    pub secrets: Secrets,
    /// Absolute path of the sandbox, below the work directory; made if missing, owned by `user`.
    pub sandbox: String,
    /// Absolute path of a link to make to the sandbox, such as `…/runs/latest`.
    pub latest_link: Option<String>,
    /// The user to run as; unset: the agent's own.
    pub user: Option<String>,
    /// The framework may not use root: no process becomes root by its user, its image, its rights or a setuid program.
    pub no_root: bool,
    pub container: Option<pb::ContainerInfo>,
    pub resources: Vec<pb::Resource>,
    pub limits: BTreeMap<String, f64>,
    /// Persistent volumes to show in the sandbox.
    pub volumes: Vec<Volume>,
    /// A task's own container, not that of an executor on which several tasks depend.
    pub of_task: bool,
    /// Tasks run in this container itself, not only in nested ones: while it uses more memory than its request, the OOM
    /// killer selects its processes first.
    pub holds_tasks: bool,
    /// The command of the task that the executor in this container is for: an image is the task's, the executor itself
    /// stays outside of it.
    pub task: Option<pb::CommandInfo>,
    /// A debug session: it starts in the parent's sandbox, inherits the parent's environment, and writes no output before
    /// a client is attached.
    pub is_session: bool,
}

/// Secrets by reference of a launch: what the containerizer has to read, and for whom. References of volumes and images are
/// in its `container`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Secrets {
    /// The principal of the framework, which has its own secrets only.
    pub principal: Option<String>,
    /// Environment variables, in addition to those of the environment.
    pub variables: BTreeMap<String, pb::secret::Reference>,
}

/// A persistent volume of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Absolute path on the host.
    pub source: String,
    /// Path in the sandbox, relative.
    pub target: String,
    pub read_only: bool,
    /// Used by several containers at once: a later user does not become its owner.
    pub shared: bool,
}

/// The stage in which a launch failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchStage {
    /// The sandbox could not be made, for instance because the user does not exist. The message is complete; for the
    /// other stages v1 puts `Failed to launch container: ` before it.
    Sandbox,
    Fetch,
    Start,
}

/// An event of a container.
#[derive(Clone, Debug, PartialEq)]
pub enum ContainerEvent {
    /// The state of every known container after a restart; Exited follows later for those alive, never for the others.
    Recovered {
        containers: Vec<RecoveredContainer>,
    },
    /// The process that represents the container runs; the command is about to.
    Launched {
        id: ContainerId,
        pid: u32,
    },
    LaunchFailed {
        id: ContainerId,
        stage: LaunchStage,
        message: String,
    },
    /// The new requests or limits could not be set; the container runs on as it was.
    UpdateFailed {
        id: ContainerId,
        message: String,
    },
    /// The answer to Examine; `killed` has everything but a status.
    Examined {
        id: ContainerId,
        killed: Option<Termination>,
    },
    Exited {
        id: ContainerId,
        termination: Termination,
    },
    /// The answer to Signal for a container that is not there.
    NoSuchContainer {
        id: ContainerId,
    },
    /// RemovePath, Remove, CreateVolume or DestroyVolume completed.
    PathDone {
        path: String,
        error: Option<String>,
    },
}

/// One container after a restart: alive, or terminated.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveredContainer {
    pub id: ContainerId,
    /// Its first process, if it is alive.
    pub pid: Option<u32>,
    pub ended: Option<Termination>,
}

/// How a container terminated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Termination {
    /// The raw wait(2) status of the first process; unset if it is not known.
    pub status: Option<i32>,
    /// Set if the termination has a specific reason, such as a limit.
    pub state: Option<pb::TaskState>,
    pub reason: Option<pb::task_status::Reason>,
    pub message: Option<String>,
    /// The resources whose limit was reached.
    pub limited: Vec<pb::Resource>,
}
