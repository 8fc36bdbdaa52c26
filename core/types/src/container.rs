//! The container port: what the agent asks of containers and what it hears back.
//!
//! An enum and not a trait, so that the same agent runs over Linux, over pretend containers and in a unit test.
//! Operations on one container take effect in order. Every Launch is answered by Launched or LaunchFailed; every
//! launched container ends with exactly one Exited, also across restarts of the agent.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::ContainerId;

/// What the executor of a command task takes for itself, on top of what the task asks for.
pub const COMMAND_EXECUTOR_CPUS: f64 = 0.1;
pub const COMMAND_EXECUTOR_MEM_MB: f64 = 32.0;

/// What the agent asks for.
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
    /// Asks whether the container is out of memory: an OOM kill of one of its processes, for which it is about to end.
    /// Answered by one Examined, also if the container is not there.
    Examine { id: ContainerId },
    /// Sends a signal to the container's first process. One that is still being launched is destroyed instead.
    Signal { id: ContainerId, signal: i32 },
    /// Ends every process of the container and of those nested in it, these first. Answered by its Exited, or by
    /// LaunchFailed if it was still being launched; ignored if it is not there.
    Destroy { id: ContainerId },
    /// As Destroy; this is why it ended, whatever its processes say.
    Evict { id: ContainerId, why: Termination },
    /// Forgets an ended nested container and removes its sandbox. Answered by PathDone with the sandbox.
    Remove { id: ContainerId, sandbox: String },
    /// Removes a directory tree below the work directory that is no longer needed; a later Launch with its sandbox
    /// below waits for that. This and the two following are answered by PathDone.
    RemovePath { path: String },
    /// Makes the directory of a persistent volume; one that exists is left alone.
    CreateVolume { path: String },
    /// Removes a persistent volume with its content; of a mount point only the content.
    DestroyVolume { path: String },
}

/// A container as the agent's records know it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownContainer {
    pub id: ContainerId,
    pub sandbox: String,
    /// What it was last given, as far as records tell.
    pub resources: Vec<pb::Resource>,
    pub volumes: Vec<Volume>,
}

/// Everything needed to start one container.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchSpec {
    pub id: ContainerId,
    /// What to run; `uris` are fetched into the sandbox first. Its own `environment` is already merged into the one below.
    pub command: pb::CommandInfo,
    /// The complete environment: nothing is inherited from the agent.
    pub environment: BTreeMap<String, String>,
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
    /// Processes of tasks are in this very container, not only in containers below it: while it uses more memory than it
    /// asked for they are the first to go when there is none left.
    pub holds_tasks: bool,
    /// The command of the task that the executor in this container is for: an image is the task's, the executor itself
    /// stays outside of it.
    pub task: Option<pb::CommandInfo>,
    /// Somebody looks into the parent by it: it begins in the parent's sandbox, with the parent's environment under its
    /// own, and writes nothing before somebody listens.
    pub is_session: bool,
}

/// A persistent volume of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Absolute path on the host.
    pub source: String,
    /// Path in the sandbox, relative.
    pub target: String,
    pub read_only: bool,
    /// Used by several containers at once: who comes later does not become its owner.
    pub shared: bool,
}

/// How far a launch came before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchStage {
    /// The sandbox could not be made, for instance because the user does not exist. The message is complete; for the
    /// other stages v1 puts `Failed to launch container: ` before it.
    Sandbox,
    Fetch,
    Start,
}

/// What the agent hears.
#[derive(Clone, Debug, PartialEq)]
pub enum ContainerEvent {
    /// The state of every known container after a restart; Exited follows later for those alive, never for the others.
    Recovered {
        containers: Vec<RecoveredContainer>,
    },
    /// The process that stands for the container runs; the command is about to.
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
    /// RemovePath, Remove, CreateVolume or DestroyVolume came to an end.
    PathDone {
        path: String,
        error: Option<String>,
    },
}

/// One container after a restart: alive, or how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveredContainer {
    pub id: ContainerId,
    /// Its first process, if it is alive.
    pub pid: Option<u32>,
    pub ended: Option<Termination>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Termination {
    /// The raw wait(2) status of the first process; unset if it is not known.
    pub status: Option<i32>,
    /// Set when the end has a reason of its own, such as a limit.
    pub state: Option<pb::TaskState>,
    pub reason: Option<pb::task_status::Reason>,
    pub message: Option<String>,
    /// The resources whose limit was hit.
    pub limited: Vec<pb::Resource>,
}
