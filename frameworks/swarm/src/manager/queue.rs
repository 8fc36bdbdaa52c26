//! The queue: creates are tried in the order of their arrival whenever offers or engines have changed.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::{Budget, Now, Outbox};
use tepui_placement::Kind;
use tepui_types::TaskId;

use super::{Container, Effect, Launch, Manager, Pending, PendingId, Phase, Timer};
use crate::occupant::Occupant;
use crate::select::{Candidate, Selection, select};
use crate::spec::TASK_LABEL;

/// Hex digits in the id of a task.
const TASK_ID_DIGITS: usize = 12;

impl Manager {
    /// Something has changed that may help those that wait.
    pub(super) fn try_all(&mut self) {
        self.untried = self.pending.keys().copied().collect();
    }

    pub(super) fn try_pending(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        while let Some(id) = self.untried.pop_front() {
            if self.pending.contains_key(&id) && self.connected {
                self.attempt(now, id, out);
            }
            if !budget() {
                return;
            }
        }
    }

    fn attempt(&mut self, now: Now, id: PendingId, out: &mut Outbox<Self>) {
        let mut rng = self.rng.fork();
        let Some(pending) = self.pending.get(&id) else { return };
        match select(&self.config.scheduler, &pending.spec, &self.candidates(), &mut rng) {
            Ok(selection) => {
                self.timers.clear(&Timer::Create(id));
                if let Some(pending) = self.pending.remove(&id) {
                    self.launch(now, pending, selection, out);
                }
            }
            Err(error) => {
                if let Some(pending) = self.pending.get_mut(&id) {
                    pending.error = Some(error);
                }
            }
        }
    }

    fn launch(&mut self, now: Now, pending: Pending, selection: Selection, out: &mut Outbox<Self>) {
        let Selection { agent, kind, placement } = selection;
        let task = self.task_id(pending.name.as_deref());
        let name = pending.name.clone().unwrap_or_default();
        let spec = &pending.spec;
        let labels = spec.placed_labels(kind, task.as_str(), &name);
        let document = spec.placed_document(&labels, &placement.ports);
        let container = Container {
            task: task.as_str().into(),
            agent: agent.as_str().into(),
            revocable: kind == Kind::Revocable,
            cpus_thousandths: spec.amounts.cpus.thousandths(),
            memory_bytes: spec.amounts.memory_bytes,
            phase: Phase::Launching,
            occupant: Occupant {
                id: String::new(),
                name,
                labels,
                bindings: spec.host_bindings(&placement.ports),
                host_mode_ports: if spec.is_host_network() { spec.exposed_ports.clone() } else { Vec::new() },
            },
            body: spec.body(),
            created_nanos: now.wall.0,
        };
        let launch = Launch {
            task: task.clone(),
            agent: agent.clone(),
            offers: placement.offers.clone(),
            kind,
            resources: placement.resources,
            limits: spec.amounts.limits().collect(),
            name: pending.name.clone(),
            image: spec.image.clone(),
            socket: self.agents.get(&agent).map(|agent| agent.socket.clone()).unwrap_or_default(),
            document: format!("{document}"),
            start: pending.replaces.is_some(),
            refuse: self.config.refuse_timeout,
        };
        for offer in &placement.offers {
            self.take_offer(&agent, offer);
        }
        if let Some(replaced) = &pending.replaces {
            self.forget_container(replaced, out);
        }
        self.put_container(container, out);
        out.effect(Effect::Accept(Box::new(launch)));
        self.launching.insert(task, pending);
    }

    fn task_id(&mut self, name: Option<&str>) -> TaskId {
        let digits = format!("{:016x}", self.rng.next_u64());
        let digits = &digits[..TASK_ID_DIGITS];
        TaskId::new(name.map_or_else(|| digits.into(), |name| format!("{name}.{digits}")))
    }

    /// Every agent whose engine was ever reached, with all that occupies it: ours, whether the engine shows it yet or not, and
    /// what others have there.
    pub(super) fn candidates(&self) -> Vec<Candidate<'_>> {
        let mut own: BTreeMap<&str, Vec<&Occupant>> = BTreeMap::new();
        for container in self.containers.values().filter(|it| it.phase != Phase::Rescheduling) {
            own.entry(container.agent.as_str()).or_default().push(&container.occupant);
        }
        self.agents
            .iter()
            .map(|(id, agent)| {
                let mut occupants = own.remove(id.as_str()).unwrap_or_default();
                let foreign = agent.engine().into_iter().flat_map(|engine| &engine.occupants);
                let is_ours = |it: &Occupant| {
                    it.labels
                        .get(TASK_LABEL)
                        .is_some_and(|task| self.containers.contains_key(&TaskId::new(&**task)))
                };
                occupants.extend(foreign.filter(|it| !is_ours(it)));
                Candidate { id, agent, occupants }
            })
            .collect()
    }
}
