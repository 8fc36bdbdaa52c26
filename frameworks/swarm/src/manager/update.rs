//! Status updates: what they say about a container, and whom to answer.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use tepui_fsm::{Now, Outbox};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, TaskStateExt};

use super::{Container, Created, Effect, EngineOperation, Manager, Pending, Phase, Update};
use crate::rejection::Rejection;
use crate::spec::{ContainerSpec, Reschedule};

impl Manager {
    pub(super) fn on_update(&mut self, _: Now, update: Update, out: &mut Outbox<Self>) {
        let known = self.containers.get(&update.task).map(|container| (**container).clone());
        match known {
            None => self.on_unknown(&update, out),
            Some(container) => match (&container.phase, Fate::of(&update)) {
                (Phase::Ended { .. } | Phase::Rescheduling, _) | (_, Fate::Underway) => (),
                (Phase::Launching, Fate::Held) => self.on_created(container, &update, out),
                (Phase::Launching, Fate::Unreachable | Fate::Terminal) => {
                    self.on_not_created(container, &update, out)
                }
                (Phase::Created, Fate::Held) => (),
                // The agent may come back, and the container with it.
                (Phase::Created, Fate::Unreachable) if !is_lost_node(&container, &update) => (),
                (Phase::Created, Fate::Unreachable | Fate::Terminal) => {
                    self.on_ended(container, &update, out)
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
        if !update.state.is_terminal() && Fate::of(update) != Fate::Unreachable {
            out.effect(Effect::Kill { task: update.task.clone(), agent: agent.clone() });
            if let Some((id, _)) = &update.container {
                let operation = EngineOperation::Remove(id.clone());
                out.effect(Effect::Engine { agent: agent.clone(), operation });
            }
        }
    }

    fn on_created(&mut self, mut container: Container, update: &Update, out: &mut Outbox<Self>) {
        let Some((id, name)) = update.container.clone() else { return };
        let waiting = self.launching.remove(&update.task);
        if waiting.as_ref().is_some_and(|pending| pending.abandoned) {
            let (agent, operation) = (AgentId::new(&*container.agent), EngineOperation::Remove(id));
            out.effect(Effect::Engine { agent, operation });
            self.on_removed(&update.task, out);
            return;
        }
        container.phase = Phase::Created;
        container.occupant.id = id.clone();
        if container.occupant.name.is_empty() {
            self.names.insert(name.clone());
            container.occupant.name = name;
        }
        self.put_container(container, out);
        if let Some(request) = waiting.and_then(|pending| pending.request) {
            out.effect(Effect::Reply { request, answer: Ok(Created { task: update.task.clone(), id }) });
        }
    }

    /// The task terminated before the engine had the container.
    fn on_not_created(&mut self, container: Container, update: &Update, out: &mut Outbox<Self>) {
        let waiting = self.launching.remove(&update.task);
        if let Some(pending) = waiting.as_ref().filter(|pending| pending.replaces.is_some()) {
            // Nobody waits for the answer: the container stays on record until it has another node.
            self.enqueue(Pending { replaces: Some(update.task.clone()), ..pending.clone() });
            self.put_container(Container { phase: Phase::Rescheduling, ..container }, out);
            return;
        }
        self.forget_container(&update.task, out);
        match waiting {
            // The offers were taken away between selection and accept: back into the queue, with the same deadline.
            Some(pending) if is_invalid_offer(update) && !pending.abandoned => self.enqueue(pending),
            Some(pending) => {
                self.release_name(&pending);
                if let Some(request) = pending.request {
                    let answer = Err(Rejection::Failed(failure(update)));
                    out.effect(Effect::Reply { request, answer });
                }
            }
            // Launched by an earlier life of the manager: its client is gone.
            None => drop(self.names.remove(&container.occupant.name)),
        }
    }

    fn on_ended(&mut self, mut container: Container, update: &Update, out: &mut Outbox<Self>) {
        let agent = AgentId::new(&*container.agent);
        if is_lost_node(&container, update) && self.requeue_replacement(&container).is_ok() {
            container.phase = Phase::Rescheduling;
            self.put_container(container, out);
            return;
        }
        if !update.by_executor {
            // The executor is gone and may have left the container behind.
            let operation = EngineOperation::Kill(container.occupant.id.clone());
            out.effect(Effect::Engine { agent, operation });
        }
        container.phase = Phase::Ended {
            state: format!("{:?}", update.state),
            reason: update.reason.map(|reason| format!("{reason:?}")),
            message: update.message.clone(),
        };
        let is_removed = self.is_removed(&container);
        self.put_container(container, out);
        if is_removed {
            self.on_removed(&update.task, out);
        }
    }

    /// The engine removes some containers by itself when they exit (`docker run --rm`), and says so before the executor does.
    fn is_removed(&self, container: &Container) -> bool {
        let agent = self.agents.get(&AgentId::new(&*container.agent));
        let engine = agent.filter(|agent| agent.is_healthy()).and_then(|agent| agent.engine());
        engine.is_some_and(|engine| !engine.occupants.iter().any(|it| it.id == container.occupant.id))
    }
}

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
        match update.state {
            TaskState::TASK_STAGING | TaskState::TASK_STARTING | TaskState::TASK_KILLING => Fate::Underway,
            TaskState::TASK_RUNNING => Fate::Held,
            TaskState::TASK_UNREACHABLE => Fate::Unreachable,
            // The answer to a question about a task that nobody knows.
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
    let spec = || ContainerSpec::parse(container.body.as_bytes(), true);
    failed && spec().is_ok_and(|spec| spec.reschedule == Reschedule::OnNodeFailure)
}

fn is_invalid_offer(update: &Update) -> bool {
    update.reason == Some(Reason::REASON_INVALID_OFFERS)
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
