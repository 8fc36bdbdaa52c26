//! The agent's state as readers see it: persistent maps of shared entities, so that a snapshot is a clone.
//!
//! Owned and changed by the agent alone, and only through the `_mut` methods, which count the change.
//! Never here: timers, connections waiting for an answer, status update streams.

pub(crate) mod bookkeeping;
mod executor_phase;
pub(crate) mod key;
pub(crate) mod launching;
pub(crate) mod paths;
mod task_stage;
pub(crate) mod transition;
pub(crate) mod visible;
pub(crate) mod volumes;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;
use tepui_types::{ConnId, ContainerId, DiskPressure, ExecutorId, FrameworkId, TaskId, Termination};

pub(crate) use executor_phase::ExecutorEvent;
pub use executor_phase::ExecutorPhase;
pub(crate) use task_stage::TaskEvent;
pub use task_stage::{Completion, Kill, TaskStage};

pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// Everything readers may ask about. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct State {
    /// Grows with every change.
    pub version: u64,
    pub started_at: Wall,
    pub phase: Phase,
    /// `id` is set once a master admitted the agent; `resources` are those it was started with.
    pub info: Arc<pb::AgentInfo>,
    pub capabilities: Arc<Vec<pb::agent_info::capability::Type>>,
    /// All resources, with dynamic reservations and volumes applied.
    pub total: Resources,
    /// Revocable ones beyond the total: given out and not used.
    pub oversubscribed: Resources,
    /// The master the agent is subscribed with.
    pub master: Option<Arc<pb::MasterInfo>>,
    pub frameworks: Map<FrameworkId, Arc<Framework>>,
    /// Oldest first.
    pub completed_frameworks: QueueSync<Arc<Framework>>,
    /// Launched through the operator API: nested below an executor's container, or standing alone.
    pub containers: Map<ContainerId, Arc<Container>>,
    /// Operations with unacknowledged statuses, by their uuid.
    pub operations: Map<[u8; 16], Arc<pb::Operation>>,
    pub drain: Option<Arc<Drain>>,
    /// Set while the disk of the records is short of room: launches are rejected.
    pub disk_pressure: Option<DiskPressure>,
    /// How long old sandboxes are kept, as full as the disk is.
    pub executor_directory_max_allowed_age: Duration,
    /// Directories that wait for their removal.
    pub path_removals_pending: usize,
    /// WAIT_CONTAINER calls without an answer yet.
    pub container_waits_pending: usize,
    /// How long it took to find out which containers still run.
    pub recovery_time: Option<Duration>,
    pub counters: Counters,
}

/// How far the agent is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not known yet which of its containers are alive.
    Recovering,
    /// Executors from before the restart may resubscribe; the master is not contacted yet.
    Reconnecting,
    Running,
    /// It ends when its last framework has ended.
    Terminating,
}

#[derive(Clone, Debug)]
pub struct Framework {
    pub id: FrameworkId,
    pub info: Arc<pb::FrameworkInfo>,
    /// Its executors are shut down and its updates no longer needed.
    pub terminating: bool,
    pub executors: Map<ExecutorId, Arc<Executor>>,
    /// Oldest first.
    pub completed_executors: QueueSync<Arc<Executor>>,
    /// The number of its record, once it is over.
    pub(crate) history: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Executor {
    pub id: ExecutorId,
    pub framework_id: FrameworkId,
    pub info: Arc<pb::ExecutorInfo>,
    /// Those of its info.
    pub own: Resources,
    /// Made by the agent for a task that has a command and no executor.
    pub generated: bool,
    pub container_id: ContainerId,
    /// The sandbox directory.
    pub sandbox: Arc<str>,
    pub user: Option<Arc<str>>,
    /// Its framework may not use the user root.
    pub no_root: bool,
    /// Its first process, once launched.
    pub pid: Option<u32>,
    pub phase: ExecutorPhase,
    /// When its first task came.
    pub added: Wall,
    /// A task was handed over to it.
    pub delivered: bool,
    /// How many deliveries were put into the queue.
    pub(crate) deliveries: u64,
    /// What its container was last given.
    pub(crate) applied: Option<(Resources, BTreeMap<String, f64>)>,
    /// Every task that is not both terminal and acknowledged.
    pub tasks: Map<TaskId, Arc<Task>>,
    /// What waits to be handed over, in order.
    pub queue: Vec<Delivery>,
    /// Oldest first.
    pub completed_tasks: QueueSync<Arc<Task>>,
    /// The number of its record, once it is over.
    pub(crate) history: Option<u64>,
}

/// Tasks that are handed over together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    Task(TaskId),
    Group(Vec<TaskId>),
}

/// What unfinished tasks of an executor become when the agent ends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub state: pb::TaskState,
    pub reason: pb::task_status::Reason,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    pub info: Arc<pb::TaskInfo>,
    /// As GET_TASKS shows it; `state` and `statuses` are kept current in here.
    pub task: pb::Task,
    pub stage: TaskStage,
    pub resources: Resources,
    /// The number of the delivery it belongs to, counted per executor, and whether that is a group.
    pub(crate) delivery: (u64, bool),
    /// The number of its record, once it is over.
    pub(crate) history: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub id: ContainerId,
    pub sandbox: Arc<str>,
    pub stage: ContainerStage,
    /// It lives as long as the connection of its call, and does not survive a restart.
    pub is_session: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ContainerStage {
    Launching,
    Running { pid: Option<u32> },
    Ended(Termination),
}

/// The agent is being emptied.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    pub config: pb::DrainConfig,
    pub started: Wall,
}

/// What is counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub recovery_errors: u64,
    pub container_launch_errors: u64,
    pub executors_terminated: u64,
    pub executors_preempted: u64,
    pub valid_status_updates: u64,
    pub invalid_status_updates: u64,
    pub valid_framework_messages: u64,
    pub invalid_framework_messages: u64,
    pub tasks_finished: u64,
    pub tasks_failed: u64,
    pub tasks_killed: u64,
    pub tasks_lost: u64,
    pub tasks_gone: u64,
    pub path_removals_succeeded: u64,
    pub path_removals_failed: u64,
    /// Executors ended because what was lent to them was needed.
    pub slack_evictions: u64,
    /// Launches that had to wait for that, and for how long.
    pub slack_take_backs: u64,
    pub slack_take_back_time: Duration,
    pub slack_take_back_time_max: Duration,
    /// Containers evicted for exceeding their memory request.
    pub memory_evictions: u64,
    pub disk_evictions: u64,
}

impl State {
    pub fn framework(&self, id: &FrameworkId) -> Option<&Framework> {
        self.frameworks.get(id).map(|framework| &**framework)
    }

    pub fn executor(&self, framework: &FrameworkId, executor: &ExecutorId) -> Option<&Executor> {
        self.framework(framework)?.executors.get(executor).map(|executor| &**executor)
    }

    pub fn task(&self, framework: &FrameworkId, executor: &ExecutorId, task: &TaskId) -> Option<&Task> {
        self.executor(framework, executor)?.tasks.get(task).map(|task| &**task)
    }

    /// The executor of this container.
    pub fn executor_in(&self, id: &ContainerId) -> Option<(&Framework, &Executor)> {
        let frameworks = self.frameworks.values();
        let mut executors = frameworks
            .flat_map(|framework| framework.executors.values().map(move |one| (&**framework, &**one)));
        executors.find(|(_, executor)| executor.container_id == *id)
    }

    /// The executor that has this task.
    pub fn executor_of(&self, framework: &FrameworkId, task: &TaskId) -> Option<&Executor> {
        // A generated executor has its task's id.
        if let Some(executor) = self.executor(framework, &ExecutorId::new(task.as_str()))
            && executor.tasks.contains_key(task)
        {
            return Some(executor);
        }
        let mut executors = self.framework(framework)?.executors.values();
        executors.find(|executor| executor.tasks.contains_key(task)).map(|executor| &**executor)
    }

    pub(crate) fn touch(&mut self) {
        self.version += 1;
    }

    pub(crate) fn framework_mut(&mut self, id: &FrameworkId) -> Option<&mut Framework> {
        self.version += 1;
        self.frameworks.get_mut(id).map(Arc::make_mut)
    }

    pub(crate) fn executor_mut(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
    ) -> Option<&mut Executor> {
        self.framework_mut(framework)?.executors.get_mut(executor).map(Arc::make_mut)
    }

    pub(crate) fn task_mut(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        task: &TaskId,
    ) -> Option<&mut Task> {
        self.executor_mut(framework, executor)?.tasks.get_mut(task).map(Arc::make_mut)
    }

    pub(crate) fn container_mut(&mut self, id: &ContainerId) -> Option<&mut Container> {
        self.version += 1;
        self.containers.get_mut(id).map(Arc::make_mut)
    }

    /// Those that calls launched inside of a container, however deep. Costs as much as there are, not as there are in all:
    /// the children of a container follow each other in the order of ids.
    pub(crate) fn containers_in(&self, id: &ContainerId) -> Vec<ContainerId> {
        let (mut found, mut next) = (Vec::new(), Some(id.clone()));
        let mut looked = 0;
        while let Some(parent) = next {
            let later = self.containers.range(parent.child("")..).map(|(id, _)| id);
            found.extend(later.take_while(|id| id.parent() == Some(&parent)).cloned());
            next = found.get(looked).cloned();
            looked += 1;
        }
        found
    }
}

impl Framework {
    /// Whether it supports states more precise than TASK_LOST.
    pub fn is_partition_aware(&self) -> bool {
        has_capability(&self.info, pb::framework_info::capability::Type::PARTITION_AWARE)
    }

    /// Whether its tasks and executors survive a restart of the agent.
    pub fn is_checkpointing(&self) -> bool {
        self.info.checkpoint == Some(true)
    }
}

pub(crate) fn has_capability(
    info: &pb::FrameworkInfo,
    capability: pb::framework_info::capability::Type,
) -> bool {
    info.capabilities.iter().any(|entry| entry.r#type == Some(capability))
}

impl Task {
    /// Applies an event of its life; whether it changed anything.
    pub(crate) fn apply(&mut self, event: TaskEvent) -> bool {
        let Some(next) = self.stage.after(event) else { return false };
        let changed = self.stage != next;
        self.stage = next;
        changed
    }

    /// Whether what it uses is counted by itself, not with its executor.
    pub(crate) fn has_own_cgroups(&self) -> bool {
        let (_, is_group) = self.delivery;
        is_group && self.info.container.linux_info.share_cgroups == Some(false)
    }
}

impl Executor {
    /// Applies an event of its life; whether it changed anything.
    pub(crate) fn apply(&mut self, event: ExecutorEvent) -> bool {
        let Some(next) = self.phase.after(event) else { return false };
        self.phase = next;
        true
    }

    /// Whether it never had a task and none waits for it: nothing is left to start it for.
    pub(crate) fn is_pointless(&self) -> bool {
        !self.delivered && self.queue.is_empty()
    }

    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.phase.conn()
    }

    /// Whether a container of it may be there.
    pub(crate) fn has_container(&self) -> bool {
        match self.phase {
            ExecutorPhase::Registering
            | ExecutorPhase::Running { .. }
            | ExecutorPhase::Terminating { .. } => true,
            ExecutorPhase::Pending | ExecutorPhase::Terminated { .. } => false,
        }
    }

    pub fn is_terminated(&self) -> bool {
        matches!(self.phase, ExecutorPhase::Terminated { .. })
    }

    /// It comes with the agent: made for a command, or for task groups.
    pub fn is_built_in(&self) -> bool {
        self.generated || self.info.r#type == Some(pb::executor_info::Type::DEFAULT)
    }

    /// It is built in, and all its remaining tasks were killed: its termination is expected.
    pub fn is_shutdown_requested(&self) -> bool {
        self.is_built_in() && self.live_tasks().all(|task| task.stage.kill().is_requested())
    }

    pub fn is_ending(&self) -> bool {
        matches!(self.phase, ExecutorPhase::Terminating { .. } | ExecutorPhase::Terminated { .. })
    }

    /// Why it is terminated, if its resources are reclaimed.
    pub(crate) fn preempted(&self) -> Option<&Cause> {
        let cause = self.phase.cause().map(|cause| &**cause);
        cause.filter(|cause| cause.reason == pb::task_status::Reason::REASON_CONTAINER_PREEMPTED)
    }

    /// Whether its framework set a grace period for it: then it may have something to terminate that the agent cannot kill.
    pub(crate) fn has_own_grace(&self) -> bool {
        !self.generated && self.info.shutdown_grace_period.is_set()
    }

    /// Tasks that use resources: everything but the terminated ones.
    pub fn live_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values().filter(|task| !task.stage.is_terminated())
    }

    /// What it has by itself in the master's books; an executor that the agent made is not in them.
    pub(crate) fn own_allocated(&self) -> Resources {
        match self.generated {
            true => Resources::default(),
            false => self.own.clone(),
        }
    }

    /// What it has in the master's books, with its live tasks.
    pub(crate) fn allocated(&self) -> Resources {
        self.live_tasks().fold(self.own_allocated(), |sum, task| sum + &task.resources)
    }

    /// How much more than it has its container may use, by resource; infinite, if as much as there is.
    pub fn limits(&self) -> &BTreeMap<String, f64> {
        const NONE: &BTreeMap<String, f64> = &BTreeMap::new();
        self.applied.as_ref().map_or(NONE, |(_, limits)| limits)
    }

    /// What its container may use: its own resources and those of its live tasks.
    pub fn resources(&self) -> Resources {
        self.live_tasks().fold(self.own.clone(), |sum, task| sum + &task.resources)
    }
}

impl Delivery {
    pub fn tasks(&self) -> &[TaskId] {
        match self {
            Delivery::Task(task) => core::slice::from_ref(task),
            Delivery::Group(tasks) => tasks,
        }
    }
}
