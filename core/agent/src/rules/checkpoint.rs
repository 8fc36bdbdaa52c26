//! Entities in the form in which they are recorded, and back; recording of executors and tasks.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::{Resource, Resources};
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId, Termination};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::state::paths;
use crate::state::{Cause, Executor, ExecutorPhase, Framework};

pub(crate) fn stored_framework(framework: &Framework) -> stored::StoredFramework {
    stored::StoredFramework {
        info: (*framework.info).clone().into(),
        terminating: framework.terminating.then_some(true),
        ..Default::default()
    }
}

pub(crate) fn stored_executor(executor: &Executor) -> stored::StoredExecutor {
    use stored::stored_executor::Phase;
    let cause = executor.phase.cause().map(|cause| stored::StoredCause {
        state: cause.state,
        reason: cause.reason,
        message: cause.message.clone(),
        ..Default::default()
    });
    let phase = match &executor.phase {
        ExecutorPhase::Pending | ExecutorPhase::Registering | ExecutorPhase::Running { .. } => Phase::LIVE,
        ExecutorPhase::Terminating { .. } => Phase::TERMINATING,
        ExecutorPhase::Terminated { .. } => Phase::TERMINATED,
    };
    stored::StoredExecutor {
        framework_id: executor.framework_id.to_proto().into(),
        info: (*executor.info).clone().into(),
        generated: executor.generated,
        container_id: executor.container_id.to_proto().into(),
        user: executor.user.as_ref().map(|user| user.to_string()),
        no_root: executor.no_root.then_some(true),
        phase,
        delivered: executor.delivered,
        cause: cause.into(),
        added: pb::TimeInfo { nanoseconds: executor.added.as_nanos_i64(), ..Default::default() }.into(),
        waiting: (executor.phase == ExecutorPhase::Pending).then_some(true),
        ..Default::default()
    }
}

pub(crate) fn rebuilt_framework(id: FrameworkId, framework: stored::StoredFramework) -> Framework {
    Framework {
        id,
        info: Arc::new(framework.info.into_option().unwrap_or_default()),
        terminating: framework.terminating == Some(true),
        executors: RedBlackTreeMapSync::new_sync(),
        completed_executors: QueueSync::new_sync(),
        history: None,
    }
}

pub(crate) fn rebuilt_executor(
    agent: &Agent,
    framework: &FrameworkId,
    executor: stored::StoredExecutor,
    own: Resources,
) -> Executor {
    use stored::stored_executor::Phase;
    let id = ExecutorId::from(&*executor.info.executor_id);
    let container_id = ContainerId::from(&*executor.container_id);
    let sandbox = paths::sandbox(&agent.config.work_dir, &agent.id(), framework, &id, &container_id);
    let cause = executor
        .cause
        .into_option()
        .map(|cause| Arc::new(Cause { state: cause.state, reason: cause.reason, message: cause.message }));
    Executor {
        id,
        framework_id: framework.clone(),
        info: Arc::new(executor.info.into_option().unwrap_or_default()),
        own,
        generated: executor.generated,
        container_id,
        sandbox: sandbox.into(),
        user: executor.user.map(Arc::from),
        no_root: executor.no_root == Some(true),
        pid: None,
        phase: match executor.phase {
            Phase::LIVE if executor.waiting == Some(true) => ExecutorPhase::Pending,
            Phase::LIVE => ExecutorPhase::Registering,
            Phase::TERMINATING => ExecutorPhase::Terminating { conn: None, cause },
            Phase::TERMINATED => ExecutorPhase::Terminated { cause },
        },
        added: Wall(u64::try_from(executor.added.nanoseconds).unwrap_or(0)),
        delivered: executor.delivered,
        deliveries: 0,
        applied: None,
        tasks: RedBlackTreeMapSync::new_sync(),
        queue: Vec::new(),
        completed_tasks: QueueSync::new_sync(),
        history: None,
    }
}

pub(crate) fn termination_to(termination: &Termination) -> stored::StoredTermination {
    stored::StoredTermination {
        status: termination.status,
        state: termination.state,
        reason: termination.reason,
        message: termination.message.clone(),
        limited: termination.limited.clone() as Vec<pb::Resource>,
        ..Default::default()
    }
}

/// Whether this was made while the agent ran, so that it has to be recorded.
pub(crate) fn is_kept(resource: &Resource) -> bool {
    resource.is_dynamically_reserved() || resource.is_persistent_volume()
}

/// Records a task as it is now.
pub(crate) fn record_task(
    agent: &Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    id: &TaskId,
    out: &mut Out,
) {
    if !agent.is_checkpointing(framework) {
        return;
    }
    let Some(task) = agent.state.task(framework, executor, id) else { return };
    let kill = task.stage.kill();
    let stored_kill = || stored::StoredKill { policy: kill.policy().cloned().into(), ..Default::default() };
    let (delivery, group) = task.delivery;
    let task = stored::StoredTask {
        framework_id: framework.to_proto().into(),
        executor_id: executor.to_proto().into(),
        info: (*task.info).clone().into(),
        delivery,
        group: group.then_some(true),
        kill: kill.is_requested().then(stored_kill).into(),
        held_back: task.stage.is_held_back().then_some(true),
        ..Default::default()
    };
    out.record(Record::Task(task.into()));
}

/// Records the executor as it is now.
pub(crate) fn record_executor(agent: &Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    if !agent.is_checkpointing(framework) {
        return;
    }
    let Some(executor) = agent.state.executor(framework, id) else { return };
    out.record(Record::Executor(stored_executor(executor).into()));
}

impl Agent {
    /// Whether what happens to this framework is recorded.
    pub(crate) fn is_checkpointing(&self, framework: &FrameworkId) -> bool {
        self.state.framework(framework).is_some_and(Framework::is_checkpointing)
    }
}
