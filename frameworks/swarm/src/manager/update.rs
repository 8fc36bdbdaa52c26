//! Status updates: what they say about a container, and whom to answer.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use tepui_fsm::{Now, Outbox};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, TaskId, TaskStateExt};

use super::{
    Container, Created, Effect, EngineOperation, LISTED_WITHIN, Manager, Phase, Timer, Update, adopt,
};
use crate::occupant::Occupant;
use crate::rejection::Rejection;
use crate::spec::{ContainerSpec, Reschedule};

impl Manager {
    pub(super) fn on_update(&mut self, now: Now, update: Update, out: &mut Outbox<Self>) {
        let known = self.containers.get(&update.task).map(|container| (**container).clone());
        match known {
            None => self.on_unknown(&update, out),
            Some(container) => match (&container.phase, Fate::of(&update)) {
                (Phase::Rescheduling | Phase::Ended { .. }, _) if is_live(&update) => {
                    self.on_node_back(container, &update, out)
                }
                (Phase::Rescheduling, Fate::Terminal) => self.stop_remains(&update.task, out),
                (Phase::Ended { .. } | Phase::Rescheduling, _) | (_, Fate::Underway) => (),
                (Phase::Launching, Fate::Held) => self.on_created(container, &update, out),
                (Phase::Launching, Fate::Unreachable | Fate::Terminal) => {
                    self.on_not_created(now, container, &update, out)
                }
                (Phase::Created, Fate::Held) => self.on_held(container, &update, out),
                // The agent may come back, and the container with it.
                (Phase::Created, Fate::Unreachable) if !is_lost_node(&container, &update) => (),
                (Phase::Created, Fate::Unreachable | Fate::Terminal) => {
                    self.on_ended(now, container, &update, out)
                }
            },
        }
        if let (Some(uuid), Some(agent)) = (update.uuid, update.agent) {
            out.effect(Effect::Acknowledge { agent, task: update.task, uuid });
        }
    }

    /// A container that was removed, or placed elsewhere after its node failed: what is left of it must not run.
    fn on_unknown(&mut self, update: &Update, out: &mut Outbox<Self>) {
        let Some(agent) = &update.agent else { return };
        // The master answers the kill of a task that it does not have with TASK_UNKNOWN.
        let is_gone = update.state.is_terminal() || update.state == TaskState::TASK_UNKNOWN;
        if !is_gone && Fate::of(update) != Fate::Unreachable {
            out.effect(Effect::Kill { task: update.task.clone(), agent: agent.clone() });
            let left = update.container.as_ref().filter(|(id, _)| !self.by_id.contains_key(id));
            if let Some((id, _)) = left {
                let operation = EngineOperation::Remove(id.clone());
                out.effect(Effect::Engine { agent: agent.clone(), operation });
            }
        }
    }

    /// The node came back before the container had another, or after it was given up.
    fn on_node_back(&mut self, container: Container, update: &Update, out: &mut Outbox<Self>) {
        self.pending
            .retain(|_, pending| pending.replaces.as_ref().map(TaskId::as_str) != Some(&container.task));
        if update.container.is_some() {
            self.on_created(container, update, out);
        } else {
            let phase = if container.occupant.id.is_empty() { Phase::Launching } else { Phase::Created };
            let started = container.started || is_started(update);
            self.put_container(Container { phase, started, ..container }, out);
        }
        self.answer_holds(&update.task, out);
    }

    fn on_created(&mut self, mut container: Container, update: &Update, out: &mut Outbox<Self>) {
        let Some((id, _)) = update.container.clone() else { return };
        let waiting = self.launching.remove(&update.task);
        let is_new = container.occupant.id.is_empty();
        if is_new && waiting.as_ref().is_some_and(|pending| pending.abandoned) {
            let (agent, operation) = (AgentId::new(&*container.agent), EngineOperation::Remove(id));
            out.effect(Effect::Engine { agent, operation });
            self.on_removed(&update.task, out);
            return;
        }
        container.phase = Phase::Created;
        container.started |= is_started(update);
        container.occupant.id = id.clone();
        self.unseen.insert(update.task.clone());
        self.put_container(container, out);
        if let Some(request) = waiting.and_then(|pending| pending.request) {
            out.effect(Effect::Reply { request, answer: Ok(Created { task: update.task.clone(), id }) });
        }
    }

    fn on_held(&mut self, container: Container, update: &Update, out: &mut Outbox<Self>) {
        if !container.started && is_started(update) {
            self.put_container(Container { started: true, ..container }, out);
        }
    }

    /// The task terminated before the engine had the container.
    fn on_not_created(&mut self, now: Now, container: Container, update: &Update, out: &mut Outbox<Self>) {
        let waiting = self.launching.remove(&update.task);
        if waiting.is_none() && !container.occupant.id.is_empty() && is_never_launched(update) {
            return self.on_adoption_lost(now, container, out);
        }
        if !container.occupant.id.is_empty() {
            let (is_invalid, message) = (is_invalid_offer(update), failure(update));
            return self.on_not_adopted(now, container, waiting, is_invalid, update, message, out);
        }
        if container.restarted && self.requeue_replacement(&container).is_ok() {
            // No call waits for the answer: the container stays on record until it has another node.
            self.reschedule(container, update, out);
            return;
        }
        self.remove_unreported(&update.task, &container, out);
        self.forget_container(&update.task, out);
        self.names.remove(&container.occupant.name);
        // Launched by an earlier life of the manager: its client is gone.
        let Some(pending) = waiting else { return };
        if is_invalid_offer(update) && !pending.abandoned {
            // The offers were taken away between selection and accept: back into the queue, with the same deadline.
            self.names.extend(pending.name.clone());
            self.enqueue(pending);
        } else if let Some(request) = pending.request {
            let answer = match &update.missing_image {
                Some(image) => Rejection::NoImage {
                    agent: AgentId::new(&*container.agent),
                    message: format!("No such image: {image}: {}", failure(update)),
                },
                None => Rejection::Failed(failure(update)),
            };
            out.effect(Effect::Reply { request, answer: Err(answer) });
        }
    }

    fn on_ended(&mut self, now: Now, mut container: Container, update: &Update, out: &mut Outbox<Self>) {
        let agent = AgentId::new(&*container.agent);
        if is_lost_node(&container, update) && self.requeue_replacement(&container).is_ok() {
            // The update that says so may be lost with the node.
            container.started |= self.listed(&container).is_some_and(|it| it.is_running);
            self.reschedule(container, update, out);
            return;
        }
        let is_orphan = !update.by_executor && update.reason == Some(ORPHANED);
        match (update.by_executor, is_orphan) {
            (true, _) => (),
            // The executor is gone and may have left the container behind.
            (false, true) => self.adopt_orphan(now, &container, out),
            (false, false) => {
                let operation = EngineOperation::Kill(container.occupant.id.clone());
                out.effect(Effect::Engine { agent, operation });
            }
        }
        container.phase = Phase::Ended {
            state: format!("{:?}", update.state),
            reason: update.reason.map(|reason| format!("{reason:?}")),
            message: update.message.clone(),
        };
        // A client may have started it again: then the engine has listed it as running, and sends no other list. One that was
        // removed before its update arrived is never listed.
        let runs_again = update.by_executor && self.listed(&container).is_some_and(|it| it.is_running);
        if runs_again || self.unseen.contains(&update.task) {
            self.timers.set(Timer::List(update.task.clone()), now.mono + LISTED_WITHIN);
        }
        self.put_container(container, out);
        if !is_orphan {
            self.forget_if_removed(&update.task, out);
        }
    }

    /// It waits for another node. Its task may come back with an unreachable agent; after a terminal state it holds no resources.
    fn reschedule(&mut self, container: Container, update: &Update, out: &mut Outbox<Self>) {
        self.put_container(Container { phase: Phase::Rescheduling, ..container }, out);
        if Fate::of(update) == Fate::Terminal {
            self.stop_remains(&update.task, out);
        }
    }

    /// A container without a task does not run on until there is another node, which may take long.
    fn stop_remains(&self, task: &TaskId, out: &mut Outbox<Self>) {
        let Some(container) = self.containers.get(task) else { return };
        if container.occupant.id.is_empty() {
            self.remove_unreported(task, container, out);
        } else if self.listed(container).is_some_and(|it| it.is_running) {
            adopt::kill(container, out);
        }
    }

    /// A list that is older than the exit of the container, or than its creation, would have been followed by another.
    pub(super) fn on_list_check(&mut self, now: Now, task: &TaskId, out: &mut Outbox<Self>) {
        let Some(container) = self.containers.get(task) else { return };
        match self.listed(container).map(|it| it.is_running) {
            Some(true) => self.adopt_started(now, task, out),
            Some(false) => (),
            None => {
                self.unseen.remove(task);
                self.forget_if_removed(task, out);
            }
        }
    }

    /// A container that has terminated and is gone from its engine already: no list will say so.
    pub(super) fn forget_if_removed(&mut self, task: &TaskId, out: &mut Outbox<Self>) {
        let container = self.containers.get(task).filter(|it| matches!(it.phase, Phase::Ended { .. }));
        let Some(container) = container.filter(|container| self.is_removed(container)) else { return };
        let (agent, id) = (AgentId::new(&*container.agent), container.occupant.id.clone());
        // An engine removes by itself only what has run.
        if self.listed(container).is_some_and(|it| !it.is_running) {
            out.effect(Effect::Engine { agent, operation: EngineOperation::Remove(id) });
        }
        self.on_removed(task, out);
    }

    /// The engine removes some containers by itself when they exit (`docker run --rm`). Others were removed if the engine has
    /// shown them before and shows them no more.
    fn is_removed(&self, container: &Container) -> bool {
        if spec(container).is_some_and(|spec| spec.auto_remove) {
            return true;
        }
        if self.unseen.contains(&TaskId::new(&*container.task)) {
            return false;
        }
        let agent = self.agents.get(&AgentId::new(&*container.agent));
        agent.is_some_and(|agent| agent.is_healthy()) && self.listed(container).is_none()
    }

    /// A container as its engine listed it last.
    pub(super) fn listed(&self, container: &Container) -> Option<&Occupant> {
        let engine = self.agents.get(&AgentId::new(&*container.agent))?.engine()?;
        engine.occupants.iter().find(|it| it.id == container.occupant.id)
    }
}

/// The executor died; its container may run on.
const ORPHANED: Reason = Reason::REASON_EXECUTOR_TERMINATED;

/// What an update means for the container of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing to say yet.
    Underway,
    /// The engine has the container.
    Held,
    Unreachable,
    Terminal,
}

impl Fate {
    fn of(update: &Update) -> Fate {
        let is_repeated = match update.reason {
            // With a uuid it is the agent's own: it never had the task.
            Some(Reason::REASON_RECONCILIATION) => update.has_executor && update.uuid.is_none(),
            // The master sends the state of a task whose agent came back, without the reason of that state.
            Some(Reason::REASON_AGENT_REREGISTERED) => true,
            _ => false,
        };
        match update.state {
            // The executor reports the container as soon as the engine has created it, long before it is started.
            TaskState::TASK_STARTING if update.container.is_some() => Fate::Held,
            // The agent sends the update itself, with its reason, until it is acknowledged.
            state if state.is_terminal() && is_repeated => Fate::Underway,
            TaskState::TASK_STAGING | TaskState::TASK_STARTING | TaskState::TASK_KILLING => Fate::Underway,
            TaskState::TASK_RUNNING => Fate::Held,
            TaskState::TASK_UNREACHABLE => Fate::Unreachable,
            // The answer to the reconciliation of an unknown task.
            TaskState::TASK_UNKNOWN => Fate::Terminal,
            TaskState::TASK_FINISHED
            | TaskState::TASK_FAILED
            | TaskState::TASK_KILLED
            | TaskState::TASK_ERROR
            | TaskState::TASK_LOST
            | TaskState::TASK_DROPPED
            | TaskState::TASK_GONE
            | TaskState::TASK_GONE_BY_OPERATOR => Fate::Terminal,
        }
    }
}

/// The task is on its agent, and the master says so.
fn is_live(update: &Update) -> bool {
    use TaskState::{TASK_RUNNING, TASK_STAGING, TASK_STARTING};
    matches!(update.state, TASK_STAGING | TASK_STARTING | TASK_RUNNING)
}

/// TASK_STARTING says that the container was created only.
fn is_started(update: &Update) -> bool {
    update.state == TaskState::TASK_RUNNING
}

/// The node failed and the container is to run on another.
fn is_lost_node(container: &Container, update: &Update) -> bool {
    let failed = matches!(
        update.state,
        TaskState::TASK_LOST
            | TaskState::TASK_GONE
            | TaskState::TASK_GONE_BY_OPERATOR
            | TaskState::TASK_UNREACHABLE
            | TaskState::TASK_UNKNOWN
    );
    // Its owner wanted the resources back: the node is there, and the container must not run elsewhere by itself.
    let preempted = update.reason == Some(Reason::REASON_CONTAINER_PREEMPTED);
    failed && !preempted && spec(container).is_some_and(|spec| spec.reschedule == Reschedule::OnNodeFailure)
}

fn spec(container: &Container) -> Option<ContainerSpec> {
    ContainerSpec::parse(container.body.as_bytes(), true).ok()
}

/// The master does not have the task, though its agent may be there.
fn is_never_launched(update: &Update) -> bool {
    use TaskState::{TASK_DROPPED, TASK_GONE, TASK_UNKNOWN};
    let is_told = update.by_executor || update.has_executor;
    let preempted = update.reason == Some(Reason::REASON_CONTAINER_PREEMPTED);
    matches!(update.state, TASK_DROPPED | TASK_GONE | TASK_UNKNOWN) && !is_told && !preempted
}

/// The master never launched it: the offers were gone, or the call did not arrive.
fn is_invalid_offer(update: &Update) -> bool {
    let is_unlaunched =
        matches!(update.reason, Some(Reason::REASON_INVALID_OFFERS | Reason::REASON_RECONCILIATION));
    is_unlaunched && !update.by_executor
}

fn failure(update: &Update) -> String {
    let reason = update.reason.map(|reason| format!("{reason:?}"));
    let text = match (update.message.as_str(), reason) {
        ("", None) => "Container failed to create".to_owned(),
        ("", Some(reason)) => format!("Container failed to create: {reason}"),
        (message, _) => message.to_owned(),
    };
    let is_user = text.contains("Abnormal executor termination")
        || update.reason == Some(Reason::REASON_EXECUTOR_TERMINATED)
        || update.reason == Some(Reason::REASON_CONTAINER_LAUNCH_FAILED);
    if is_user { format!("{text} : please verify your SWARM_MESOS_USER is correctly set") } else { text }
}
