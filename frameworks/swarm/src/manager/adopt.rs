//! Adoption: a container that its engine has already gets another task, on the same agent and of the same kind.
//!
//! Needed when a client starts a container again that has exited, and when an executor died while its container runs on.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::{Mono, Now, Outbox};
use tepui_placement::fit;
use tepui_proto::mesos::v1::TaskState;
use tepui_types::{AgentId, TaskId};

use super::{
    Adoption, Container, Created, Effect, EngineOperation, LISTED_WITHIN, Manager, Pending, PendingId, Phase,
    RequestId, Timer, Update,
};
use crate::rejection::Rejection;
use crate::res_type::Choice;
use crate::schedule::ScheduleError;
use crate::select::Selection;
use crate::spec::ContainerSpec;

impl Manager {
    /// Answers at once if the task holds the resources still.
    pub(super) fn on_hold(&mut self, now: Now, request: RequestId, task: &TaskId, out: &mut Outbox<Self>) {
        let answer = match self.containers.get(task).cloned() {
            None => Err(Rejection::Failed("the container is being removed".into())),
            Some(container) => match container.phase {
                Phase::Created => Ok(Created { task: task.clone(), id: container.occupant.id.clone() }),
                Phase::Launching | Phase::Rescheduling => {
                    Err(Rejection::Conflict("Conflict: the container is being placed".into()))
                }
                Phase::Ended { .. } if self.is_adopted(task) => {
                    Err(Rejection::Conflict("Conflict: the container is being started already".into()))
                }
                Phase::Ended { .. } => {
                    let deadline = now.mono + self.config.task_timeout;
                    match self.adopt(container, Some(request), deadline, false) {
                        Ok(()) => return,
                        Err(rejection) => Err(rejection),
                    }
                }
            },
        };
        out.effect(Effect::Reply { request, answer });
    }

    fn is_adopted(&self, task: &TaskId) -> bool {
        let adopts = |pending: &Pending| {
            pending.adopts.as_ref().is_some_and(|adoption| adoption.container.task == task.as_str())
        };
        self.pending.values().any(adopts)
    }

    fn adopt(
        &mut self,
        container: Arc<Container>,
        request: Option<RequestId>,
        deadline: Mono,
        is_orphan: bool,
    ) -> Result<(), Rejection> {
        let spec = held_spec(&container)?;
        let name = Some(container.occupant.name.clone()).filter(|name| !name.is_empty());
        self.enqueue(Pending {
            request,
            abandoned: false,
            name,
            spec: Arc::new(spec),
            deadline: Some(deadline),
            error: None,
            replaces: None,
            adopts: Some(Adoption { container, is_orphan }),
        });
        Ok(())
    }

    /// The executor died and the container may run on: it is followed by another executor, or killed.
    pub(super) fn adopt_orphan(&mut self, now: Now, container: &Container, out: &mut Outbox<Self>) {
        let deadline = now.mono + self.config.task_timeout;
        if self.adopt(Arc::new(container.clone()), None, deadline, true).is_err() {
            kill(container, out);
        }
    }

    /// A container runs though its task has terminated: a restart took longer than its executor waited, or another
    /// client started it at the engine. If the cluster took its task away it is killed: it may have been started
    /// after it was killed before.
    pub(super) fn adopt_started(&mut self, now: Now, task: &TaskId, out: &mut Outbox<Self>) {
        let Some(container) = self.containers.get(task).cloned() else { return };
        let Phase::Ended { state, reason, .. } = &container.phase else { return };
        let is_own_end = match reason.as_deref() {
            None => matches!(state.as_str(), "TASK_FINISHED" | "TASK_FAILED"),
            Some(reason) => {
                matches!(reason, "REASON_COMMAND_EXECUTOR_FAILED" | "REASON_EXECUTOR_TERMINATED")
            }
        };
        match (self.is_adopted(task), is_own_end) {
            (true, _) => (),
            (false, true) => self.adopt_orphan(now, &container, out),
            (false, false) => kill(&container, out),
        }
    }

    /// Only its own agent will do.
    pub(super) fn refit(
        &self,
        container: &Container,
        spec: &ContainerSpec,
    ) -> Result<Selection, ScheduleError> {
        if !self.containers.contains_key(&TaskId::new(&*container.task)) {
            return Err(ScheduleError::Empty); // Removed meanwhile: the request times out.
        }
        let id = AgentId::new(&*container.agent);
        let agent = self.agents.get(&id).filter(|agent| agent.is_healthy());
        let agent = agent.ok_or(ScheduleError::Full)?;
        let offers: Vec<_> = agent.offers.values().cloned().collect();
        let placement = fit(&spec.request(), container.kind(), &offers).map_err(|_| ScheduleError::Full)?;
        Ok(Selection { agent: id, kind: container.kind(), placement })
    }

    /// The container to be adopted as it is now: it may have been renamed while it waited.
    pub(super) fn adopted(&self, pending: &mut Pending) -> Option<Arc<Container>> {
        let adoption = pending.adopts.as_mut()?;
        let current = self.containers.get(&TaskId::new(&*adoption.container.task))?;
        adoption.container = current.clone();
        pending.name = Some(current.occupant.name.clone());
        Some(current.clone())
    }

    /// The task holds the resources after all: those that wait for another need none.
    pub(super) fn answer_holds(&mut self, task: &TaskId, out: &mut Outbox<Self>) {
        let Some(container) = self.containers.get(task).filter(|it| it.phase == Phase::Created).cloned()
        else {
            return;
        };
        let adopts = |pending: &Pending| {
            pending.adopts.as_ref().is_some_and(|adoption| adoption.container.task == task.as_str())
        };
        let held: Vec<PendingId> =
            self.pending.iter().filter(|(_, pending)| adopts(pending)).map(|(id, _)| *id).collect();
        for id in held {
            self.timers.clear(&Timer::Create(id));
            if let Some(request) = self.pending.remove(&id).and_then(|pending| pending.request) {
                let created = Created { task: task.clone(), id: container.occupant.id.clone() };
                out.effect(Effect::Reply { request, answer: Ok(created) });
            }
        }
    }

    /// No task could be had in time, or it could not adopt the container.
    pub(super) fn give_up_adoption(&mut self, adoption: &Adoption, out: &mut Outbox<Self>) {
        if adoption.is_orphan {
            kill(&adoption.container, out);
        }
        self.forget_if_removed(&TaskId::new(&*adoption.container.task), out);
    }

    /// An earlier life of the manager was killed before its launch of the new task arrived. The container may run without one;
    /// how its former task terminated is on no record any more.
    pub(super) fn on_adoption_lost(&mut self, now: Now, container: Container, out: &mut Outbox<Self>) {
        let (state, message) = (alloc::format!("{:?}", TaskState::TASK_FAILED), alloc::string::String::new());
        let container = Container { phase: Phase::Ended { state, reason: None, message }, ..container };
        self.put_container(container.clone(), out);
        self.adopt_running(now, &container, out);
    }

    /// If its engine is not listed yet, the list says whether it runs, or is gone.
    fn adopt_running(&mut self, now: Now, container: &Container, out: &mut Outbox<Self>) {
        let task = TaskId::new(&*container.task);
        let agent = self.agents.get(&AgentId::new(&*container.agent));
        if agent.is_some_and(|agent| agent.engine().is_none()) {
            return;
        }
        match self.listed(container).is_some_and(|it| it.is_running) {
            true => self.adopt_started(now, &task, out),
            false => self.forget_if_removed(&task, out),
        }
    }

    /// The new task terminated before it held the container, which stays as it was.
    #[expect(clippy::too_many_arguments, reason = "the parts of one failed adoption")]
    pub(super) fn on_not_adopted(
        &mut self,
        now: Now,
        container: Container,
        waiting: Option<Pending>,
        is_invalid_offer: bool,
        update: &Update,
        message: alloc::string::String,
        out: &mut Outbox<Self>,
    ) {
        let former = waiting.as_ref().and_then(|pending| pending.adopts.as_ref());
        let former = former.map(|adoption| adoption.container.phase.clone());
        let phase =
            former.filter(|phase| matches!(phase, Phase::Ended { .. })).unwrap_or_else(|| Phase::Ended {
                state: alloc::format!("{:?}", update.state),
                reason: update.reason.map(|reason| alloc::format!("{reason:?}")),
                message: update.message.to_string(),
            });
        let container = Container { phase, ..container };
        self.put_container(container.clone(), out);
        if update.by_executor && self.unseen.contains(&update.task) {
            // The executor may not have found it.
            self.timers.set(Timer::List(update.task.clone()), now.mono + LISTED_WITHIN);
        }
        let Some(mut pending) = waiting else {
            // An earlier life of the manager launched the task: the container may run.
            return self.adopt_running(now, &container, out);
        };
        let is_orphan = pending.adopts.as_ref().is_some_and(|adoption| adoption.is_orphan);
        pending.adopts = Some(Adoption { container: Arc::new(container), is_orphan });
        if is_invalid_offer && !pending.abandoned {
            self.enqueue(pending);
            return;
        }
        if let Some(adoption) = &pending.adopts {
            self.give_up_adoption(adoption, out);
        }
        if let Some(request) = pending.request {
            out.effect(Effect::Reply { request, answer: Err(Rejection::Failed(message)) });
        }
    }
}

pub(super) fn kill(container: &Container, out: &mut Outbox<Manager>) {
    let (agent, id) = (AgentId::new(&*container.agent), container.occupant.id.clone());
    out.effect(Effect::Engine { agent, operation: EngineOperation::Kill(id) });
}

/// What the container was created with: the kind and the host ports are decided.
fn held_spec(container: &Container) -> Result<ContainerSpec, Rejection> {
    let mut spec = ContainerSpec::parse(container.body.as_bytes(), true)?;
    spec.choice = Choice::Only(container.kind());
    for (binding, placed) in spec.bindings.iter_mut().zip(&container.occupant.bindings) {
        binding.host_port = placed.port.parse().ok();
    }
    Ok(spec)
}
