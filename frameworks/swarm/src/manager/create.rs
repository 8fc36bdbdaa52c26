//! Creates: accepted into the queue or rejected at once, and their clients that leave.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use tepui_fsm::{Now, Outbox};
use tepui_types::{AgentId, TaskId};

use super::{
    Container, Created, Effect, Manager, PENDING_CREATES_MAX, Pending, PendingId, RecoverError, RequestId,
    Timer,
};
use crate::agent::Agent;
use crate::go;
use crate::rejection::Rejection;
use crate::select::explain;
use crate::spec::ContainerSpec;

/// Task ids are `name.<12 hex digits>` and at most 255 bytes long.
const NAME_BYTES_MAX: usize = 200;

impl Manager {
    pub(super) fn on_create(
        &mut self,
        now: Now,
        request: RequestId,
        name: Option<String>,
        spec: Box<ContainerSpec>,
        out: &mut Outbox<Self>,
    ) {
        if let Err(rejection) = self.check_create(name.as_deref()) {
            out.effect(Effect::Reply { request, answer: Err(rejection) });
            return;
        }
        self.names.extend(name.clone());
        let deadline = Some(now.mono + self.config.task_timeout);
        let spec = Arc::new(*spec);
        let pending = Pending {
            request: Some(request),
            abandoned: false,
            name,
            spec,
            deadline,
            error: None,
            replaces: None,
            adopts: None,
        };
        self.enqueue(pending);
    }

    fn check_create(&self, name: Option<&str>) -> Result<(), Rejection> {
        if self.pending.len() >= PENDING_CREATES_MAX {
            return Err(Rejection::Busy(format!("{PENDING_CREATES_MAX} containers wait for a node already")));
        }
        name.map_or(Ok(()), |name| self.check_name(name))
    }

    fn check_name(&self, name: &str) -> Result<(), Rejection> {
        check_form(name)?;
        self.check_free(name)?;
        if self.is_foreign(name) { Err(conflict(name)) } else { Ok(()) }
    }

    pub(super) fn check_free(&self, name: &str) -> Result<(), Rejection> {
        if self.names.contains(name) { Err(conflict(name)) } else { Ok(()) }
    }

    /// Whether a container of another client of an engine has the name: that engine would reject it, and another would not. One
    /// with the label of this framework is removed already, though its engine's last list has it.
    fn is_foreign(&self, name: &str) -> bool {
        let foreign = |(id, agent): (&AgentId, &Arc<Agent>)| {
            let occupancy = self.occupancies.get(id);
            occupancy.is_some_and(|it| it.foreign(agent).any(|it| it.name == name && !self.is_ours(it)))
        };
        self.agents.iter().any(foreign)
    }

    pub(super) fn enqueue(&mut self, pending: Pending) {
        let id = PendingId(self.next_pending);
        self.next_pending += 1;
        if let Some(deadline) = pending.deadline {
            self.timers.set(Timer::Create(id), deadline);
        }
        self.pending.insert(id, pending);
        self.untried.push_back(id);
        self.changed = true;
    }

    /// A container whose node failed waits for another for as long as it takes.
    pub(super) fn requeue_replacement(&mut self, container: &Container) -> Result<(), RecoverError> {
        let spec = ContainerSpec::parse(container.body.as_bytes(), true).map_err(|rejection| {
            RecoverError { key: container.task.clone(), error: rejection.message().to_owned() }
        })?;
        let name = Some(container.occupant.name.clone()).filter(|name| !name.is_empty());
        let replaces = Some(TaskId::new(&*container.task));
        let spec = Arc::new(spec);
        self.enqueue(Pending {
            request: None,
            abandoned: false,
            name,
            spec,
            deadline: None,
            error: None,
            replaces,
            adopts: None,
        });
        Ok(())
    }

    pub(super) fn on_create_timeout(&mut self, id: PendingId, out: &mut Outbox<Self>) {
        let Some(pending) = self.pending.remove(&id) else { return };
        self.changed = true;
        self.release_name(&pending);
        if let Some(adoption) = &pending.adopts {
            self.give_up_adoption(adoption, out);
        }
        let Some(request) = pending.request else { return };
        let after = go::duration_text(self.config.task_timeout);
        let mut text = format!("container failed to start after {after}");
        if let Some(error) = &pending.error {
            text += &format!(": {error}");
        }
        let mut candidates = self.candidates(&pending.spec);
        if let Some(adoption) = &pending.adopts {
            candidates.retain(|candidate| candidate.id.as_str() == adoption.container.agent);
        }
        for line in explain(&self.config.scheduler, &pending.spec, &candidates) {
            text += &format!("\n  {line}");
        }
        out.effect(Effect::Reply { request, answer: Err(Rejection::Failed(text)) });
    }

    /// A create that waits is taken out of the queue; one whose task is on its way is undone when it arrives.
    pub(super) fn on_abandoned(&mut self, request: RequestId, out: &mut Outbox<Self>) {
        let queued = self.pending.iter().find(|(_, pending)| pending.request == Some(request));
        if let Some(id) = queued.map(|(id, _)| *id) {
            self.timers.clear(&Timer::Create(id));
            self.changed = true;
            if let Some(pending) = self.pending.remove(&id) {
                self.release_name(&pending);
            }
            return;
        }
        let launching = self.launching.iter_mut().find(|(_, pending)| pending.request == Some(request));
        if let Some((task, pending)) = launching {
            pending.request = None;
            pending.abandoned = true;
            let task = task.clone();
            if let Some(container) = self.containers.get(&task) {
                out.effect(Effect::Kill { agent: AgentId::new(&*container.agent), task });
            }
        }
    }

    pub(super) fn release_name(&mut self, pending: &Pending) {
        if let (Some(name), None) = (&pending.name, &pending.adopts) {
            self.names.remove(name);
        }
    }

    /// Names are unique in the cluster, not only on one engine: the name is reserved before the engine is asked.
    pub(super) fn on_rename(
        &mut self,
        request: RequestId,
        task: TaskId,
        name: String,
        out: &mut Outbox<Self>,
    ) {
        let answer = match self.containers.get(&task).filter(|it| !it.occupant.id.is_empty()) {
            None => Err(Rejection::Failed("the container is no longer there".to_owned())),
            Some(container) => {
                let id = container.occupant.id.clone();
                self.check_name(&name).map(|()| Created { task, id })
            }
        };
        if let Ok(created) = &answer {
            self.names.insert(name.clone());
            self.renaming.insert(name, created.id.clone());
        }
        out.effect(Effect::Reply { request, answer });
    }

    pub(super) fn on_renamed(&mut self, task: &TaskId, name: String, out: &mut Outbox<Self>) {
        // Another task may hold it since.
        let replaced = || self.by_id.get(self.renaming.get(&name)?);
        let task = Some(task).filter(|task| self.containers.contains_key(task)).or_else(replaced);
        let Some(container) = task.and_then(|task| self.containers.get(task)) else {
            return self.on_rename_failed(&name);
        };
        let mut container = (**container).clone();
        self.renaming.remove(&name);
        self.recovered.remove(&TaskId::new(&*container.task));
        self.names.remove(&container.occupant.name);
        self.names.insert(name.clone());
        container.occupant.name = name;
        self.put_container(container, out);
    }

    pub(super) fn on_rename_failed(&mut self, name: &str) {
        if let Some(id) = self.renaming.remove(name) {
            self.names.remove(name);
            // The engine may have renamed it, and its answer was lost.
            self.recovered.extend(self.by_id.get(&id).cloned());
        }
    }
}

fn conflict(name: &str) -> Rejection {
    Rejection::Conflict(format!(
        "Conflict: The name {name} is already assigned or in pending tasks. You have to delete (or rename) that \
         container to be able to assign {name} to a container again."
    ))
}

/// The rule of the engine, and short enough for the id of a task.
fn check_form(name: &str) -> Result<(), Rejection> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let others = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if first && (2..=NAME_BYTES_MAX).contains(&name.len()) && bytes.all(others) {
        return Ok(());
    }
    Err(Rejection::BadParameter(format!(
        "Invalid container name ({}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed, 2 to {NAME_BYTES_MAX} characters",
        name.chars().take(NAME_BYTES_MAX).collect::<String>().escape_debug()
    )))
}
