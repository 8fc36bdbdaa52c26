//! Engines: their visible containers, those that are no longer visible, and unknown leftovers.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::{Now, Outbox};
use tepui_types::{AgentId, TaskId};

use super::{Container, Effect, EngineEvent, EngineOperation, Manager, Phase, Record};
use crate::agent::{Engine, EngineLink};
use crate::occupant::Occupant;
use crate::spec::{FRAMEWORK_LABEL, TASK_LABEL};

impl Manager {
    pub(super) fn on_engine(&mut self, now: Now, id: &AgentId, event: EngineEvent, out: &mut Outbox<Self>) {
        let Some(agent) = self.agent_mut(id) else { return };
        match event {
            EngineEvent::Up(engine) => {
                agent.engine = EngineLink::Up(engine.clone());
                self.on_listed(now, id, &engine, out);
                self.try_all();
            }
            EngineEvent::Down(error) => {
                let last = agent.engine().cloned();
                agent.engine = EngineLink::Down { error, last };
                // The next list begins after this moment: it has all that was created before.
                for task in self.occupancies.get(id).into_iter().flat_map(|occupancy| occupancy.own().keys())
                {
                    self.unseen.remove(task);
                }
                self.decline_all(id, out);
            }
        }
    }

    fn on_listed(&mut self, now: Now, id: &AgentId, engine: &Arc<Engine>, out: &mut Outbox<Self>) {
        let mut foreign = Vec::new();
        for (at, occupant) in engine.occupants.iter().enumerate() {
            match self.task_of(occupant) {
                Some(task) => {
                    self.unseen.remove(&task);
                    if self.recovered.remove(&task) {
                        self.on_recovered(&task, occupant, out);
                    }
                    if occupant.is_running {
                        self.adopt_started(now, &task, out);
                        self.check_remains(task, out);
                    }
                }
                None => foreign.push(at),
            }
        }
        for occupant in foreign.iter().filter_map(|at| engine.occupants.get(*at)) {
            if self.is_left_behind(occupant) {
                let operation = EngineOperation::Remove(occupant.id.clone());
                out.effect(Effect::Engine { agent: id.clone(), operation });
            }
        }
        self.occupancies.entry(id.clone()).or_default().set_foreign(foreign);
        self.forget_removed(id, engine, out);
    }

    /// The engine shows a container of the records for the first time: it may have been renamed before that was recorded.
    fn on_recovered(&mut self, task: &TaskId, occupant: &Occupant, out: &mut Outbox<Self>) {
        if self.check_free(&occupant.name).is_ok() {
            self.on_renamed(task, occupant.name.clone(), out);
        }
    }

    /// A container that waits for another node runs: it is killed if the master answers that its task has terminated.
    fn check_remains(&self, task: TaskId, out: &mut Outbox<Self>) {
        let moving = self.containers.get(&task).filter(|it| it.phase == Phase::Rescheduling);
        if let Some(container) = moving.filter(|_| self.connected) {
            out.effect(Effect::Reconcile(Vec::from([(task, AgentId::new(&*container.agent))])));
        }
    }

    /// By the id, or by the label as long as the id is not known.
    fn task_of(&self, occupant: &Occupant) -> Option<TaskId> {
        self.by_id.get(&occupant.id).cloned().or_else(|| {
            let task = TaskId::new(&**occupant.labels.get(TASK_LABEL)?);
            self.containers.contains_key(&task).then_some(task)
        })
    }

    /// A container of this framework whose task is on no record: its client left, its removal was lost, or it runs elsewhere
    /// since its node failed. An image made from such a container has its labels as well, but not its name.
    fn is_left_behind(&self, occupant: &Occupant) -> bool {
        let task = occupant.labels.get(TASK_LABEL);
        self.is_ours(occupant) && task.is_some_and(|task| is_named_for(&occupant.name, task))
    }

    /// Whether it has the label of this framework.
    pub(super) fn is_ours(&self, occupant: &Occupant) -> bool {
        self.framework_id.is_some() && occupant.labels.get(FRAMEWORK_LABEL) == self.framework_id.as_ref()
    }

    /// The task of a container terminated before its executor reported it. If an engine has listed it, it is removed now; otherwise
    /// the list that shows it will.
    pub(super) fn remove_unreported(&self, task: &TaskId, container: &Container, out: &mut Outbox<Self>) {
        let Some(former) = self.agents.get(&AgentId::new(&*container.agent)) else { return };
        // An agent that was replaced has left its engine to the next one.
        for (id, agent) in self.agents.iter().filter(|(_, agent)| agent.address == former.address) {
            let listed = agent.engine().map(|engine| engine.occupants.as_slice()).unwrap_or_default();
            let is_its = |it: &&Occupant| it.labels.get(TASK_LABEL).is_some_and(|of| *of == task.as_str());
            if let Some(left) = listed.iter().find(is_its).filter(|it| self.is_left_behind(it)) {
                let operation = EngineOperation::Remove(left.id.clone());
                out.effect(Effect::Engine { agent: id.clone(), operation });
            }
        }
    }

    /// Containers that terminated and that their engine has no more: removed by the engine itself or by another
    /// client.
    fn forget_removed(&mut self, agent: &AgentId, engine: &Engine, out: &mut Outbox<Self>) {
        let own = self.occupancies.get(agent).into_iter().flat_map(|occupancy| occupancy.own());
        let ended = own.filter(|(_, it)| matches!(it.phase, Phase::Ended { .. }));
        let mut gone: Vec<_> = ended.filter(|(task, _)| !self.unseen.contains(task)).collect();
        if !gone.is_empty() {
            let listed: BTreeSet<&str> = engine.occupants.iter().map(|it| it.id.as_str()).collect();
            gone.retain(|(_, it)| !listed.contains(it.occupant.id.as_str()));
        }
        let gone: Vec<TaskId> = gone.into_iter().map(|(task, _)| task.clone()).collect();
        for task in gone {
            self.on_removed(&task, out);
        }
    }

    /// An agent of the records is of interest if it has containers; otherwise it is known again by its next offer.
    pub(super) fn connect_again(&mut self, agent: AgentId, out: &mut Outbox<Self>) {
        let Some(it) = self.agents.get(&agent) else { return };
        if self.is_used(&agent) || !it.offers.is_empty() {
            let address = it.address.clone();
            out.effect(Effect::Connect { agent, address });
        } else {
            self.agents.remove_mut(&agent);
            out.record(Record::AgentForgotten(agent));
        }
    }

    pub(super) fn is_used(&self, agent: &AgentId) -> bool {
        self.occupancies.get(agent).is_some_and(|occupancy| !occupancy.own().is_empty())
    }

    /// An agent that left the cluster stays only as long as there are containers of it.
    pub(super) fn forget_failed(&mut self, agent: &AgentId, out: &mut Outbox<Self>) {
        if !self.is_used(agent) && self.agents.get(agent).is_some_and(|it| it.failed) {
            self.agents.remove_mut(agent);
            self.occupancies.remove(agent);
            self.changed = true;
            out.record(Record::AgentForgotten(agent.clone()));
            out.effect(Effect::Disconnect(agent.clone()));
        }
    }
}

/// The name that a container had when its task was launched.
fn is_named_for(name: &str, task: &str) -> bool {
    let digits = task.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    digits.is_some_and(|digits| !digits.contains('.'))
        || name.strip_suffix(task).is_some_and(|it| it.ends_with('-'))
}
