//! The queue: creates are tried in the order of their arrival whenever offers or engines have changed.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::{Budget, Now, Outbox};
use tepui_placement::Kind;
use tepui_types::{AgentId, TaskId};

use super::{
    Container, Effect, EngineOperation, LAUNCH_RECONCILE_INTERVAL, Launch, Manager, Pending, PendingId,
    Phase, Timer,
};
use crate::occupant::Occupant;
use crate::select::{Candidate, Selection, select};
use crate::spec::ContainerSpec;

/// Hex digits in the id of a task.
const TASK_ID_DIGITS: usize = 12;
/// Bytes of an image's name in the name of a container.
const IMAGE_NAME_BYTES_MAX: usize = 40;

impl Manager {
    /// Something has changed that may help those that wait. If the budget stopped the last round, it goes on from there: frequent
    /// changes do not keep it at the oldest creates.
    pub(super) fn try_all(&mut self) {
        let next = self.untried.front().copied().unwrap_or(PendingId(0));
        let rest = self.pending.range(next..).chain(self.pending.range(..next));
        self.untried = rest.map(|(id, _)| *id).collect();
    }

    pub(super) fn try_pending(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        while let Some(id) = self.untried.pop_front() {
            if self.pending.contains_key(&id) && self.connected {
                self.attempts += 1;
                self.attempt(now, id, out);
            }
            if !budget() {
                return;
            }
        }
    }

    /// Filters of declined and accepted offers hold back what a waiting create may need: they are cleared for it, once per round.
    pub(super) fn ask_for_offers(&mut self, out: &mut Outbox<Self>) {
        if !self.untried.is_empty() && self.attempts < self.pending.len() {
            return;
        }
        self.attempts = 0;
        if core::mem::take(&mut self.needs_offers) && !self.pending.is_empty() {
            out.effect(Effect::Revive);
        }
    }

    /// A master that failed may have lost a launch; the next one says so.
    pub(super) fn reconcile_launches(&mut self, now: Now, out: &mut Outbox<Self>) {
        let launches = self.containers.iter().filter(|(_, it)| it.phase == Phase::Launching);
        let launches: Vec<_> = launches.map(|(task, it)| (task.clone(), AgentId::new(&*it.agent))).collect();
        if launches.is_empty() {
            return;
        }
        self.timers.set(Timer::ReconcileLaunches, now.mono + LAUNCH_RECONCILE_INTERVAL);
        if self.connected {
            out.effect(Effect::Reconcile(launches));
        }
    }

    fn attempt(&mut self, now: Now, id: PendingId, out: &mut Outbox<Self>) {
        let mut rng = self.rng.fork();
        let Some(pending) = self.pending.get(&id) else { return };
        let selected = match &pending.adopts {
            Some(adoption) => self.refit(&adoption.container, &pending.spec),
            None => select(&self.config.scheduler, &pending.spec, &self.candidates(&pending.spec), &mut rng),
        };
        match selected {
            Ok(selection) => {
                self.timers.clear(&Timer::Create(id));
                if let Some(pending) = self.pending.remove(&id) {
                    self.launch(now, pending, selection, out);
                }
            }
            Err(error) => {
                if let Some(pending) = self.pending.get_mut(&id) {
                    self.needs_offers |= pending.error.is_none();
                    pending.error = Some(error);
                }
            }
        }
    }

    fn launch(&mut self, now: Now, mut pending: Pending, selection: Selection, out: &mut Outbox<Self>) {
        let Selection { agent, kind, placement } = selection;
        let adopted = self.adopted(&mut pending);
        let replaced = pending.replaces.as_ref().and_then(|task| self.containers.get(task));
        let starts = replaced.is_some_and(|container| container.started);
        let (task, name) = self.task_and_name(&pending);
        let spec = &pending.spec;
        let given = pending.name.as_deref().unwrap_or_default();
        let framework = self.framework_id.as_deref().unwrap_or_default();
        let labels = spec.placed_labels(kind, framework, task.as_str(), given);
        let document = spec.placed_document(&labels, &placement.ports);
        let occupant = match &adopted {
            Some(container) => container.occupant.clone(),
            None => Occupant {
                id: String::new(),
                name: name.clone(),
                labels,
                bindings: spec.host_bindings(&placement.ports),
                host_mode_ports: if spec.is_host_network() { spec.exposed_ports.clone() } else { Vec::new() },
                is_running: false,
            },
        };
        let container = Container {
            task: task.as_str().into(),
            agent: agent.as_str().into(),
            revocable: kind == Kind::Revocable,
            cpus_thousandths: spec.amounts.cpus.thousandths(),
            memory_bytes: spec.amounts.memory_bytes,
            phase: Phase::Launching,
            occupant,
            body: adopted.as_ref().map_or_else(|| spec.body(), |container| container.body.clone()),
            created_nanos: adopted.as_ref().map_or(now.wall.0, |container| container.created_nanos),
            restarted: pending.replaces.is_some(),
            started: starts || adopted.as_ref().is_some_and(|container| container.started),
        };
        let launch = Launch {
            task: task.clone(),
            agent: agent.clone(),
            offers: placement.offers.clone(),
            kind,
            resources: placement.resources,
            limits: spec.amounts.limits().collect(),
            name: Some(name),
            image: spec.image.clone(),
            socket: self.agents.get(&agent).map(|agent| agent.socket.clone()).unwrap_or_default(),
            document: format!("{document}"),
            start: starts,
            adopt: adopted.as_ref().map(|container| container.occupant.id.clone()),
            is_orphan: pending.adopts.as_ref().is_some_and(|adoption| adoption.is_orphan),
            refuse: self.config.refuse_timeout,
        };
        for offer in &placement.offers {
            self.take_offer(&agent, offer);
        }
        let adopted = adopted.map(|container| TaskId::new(&*container.task));
        match (&pending.replaces, adopted) {
            (Some(replaced), _) => self.replace(replaced.clone(), container, out),
            (None, Some(adopted)) => drop(self.replace_container(adopted, container, out)),
            (None, None) => self.put_container(container, out),
        }
        out.effect(Effect::Accept(Box::new(launch)));
        if self.launching.is_empty() {
            self.timers.set(Timer::ReconcileLaunches, now.mono + LAUNCH_RECONCILE_INTERVAL);
        }
        self.launching.insert(task, pending);
        self.needs_offers = true;
    }

    /// The container is placed again: what is left of it on its old node must not run.
    fn replace(&mut self, task: TaskId, container: Container, out: &mut Outbox<Self>) {
        let Some(before) = self.replace_container(task.clone(), container, out) else { return };
        let agent = AgentId::new(&*before.agent);
        if before.occupant.id.is_empty() {
            self.remove_unreported(&task, &before, out);
        } else {
            let operation = EngineOperation::Remove(before.occupant.id.clone());
            out.effect(Effect::Engine { agent: agent.clone(), operation });
        }
        self.forget_failed(&agent, out);
    }

    /// A new id for the task, and the name of the container. Engines would choose names that are unique on one of them only.
    fn task_and_name(&mut self, pending: &Pending) -> (TaskId, String) {
        loop {
            let digits = format!("{:016x}", self.rng.next_u64());
            let digits = &digits[..TASK_ID_DIGITS];
            let (task, name) = match &pending.name {
                Some(name) => (format!("{name}.{digits}"), name.clone()),
                None => (digits.into(), format!("{}-{digits}", image_name(&pending.spec.image))),
            };
            if self.names.insert(name.clone()) || pending.name.is_some() {
                return (TaskId::new(task), name);
            }
        }
    }

    /// Every agent that the spec allows, with what occupies its engine as far as the spec depends on it.
    pub(super) fn candidates(&self, spec: &ContainerSpec) -> Vec<Candidate<'_>> {
        let empty = || (0, Vec::new());
        let occupancy = |id: &AgentId, agent| {
            self.occupancies.get(id).map_or_else(empty, |occupancy| match spec.depends_on_occupants() {
                true => (occupancy.len(), occupancy.occupants(agent).collect()),
                false => (occupancy.len(), Vec::new()),
            })
        };
        let agents =
            self.agents.iter().filter(|(id, _)| spec.agents.as_ref().is_none_or(|only| only.contains(id)));
        let mut candidates: Vec<Candidate<'_>> = agents
            .map(|(id, agent)| {
                let (occupancy, occupants) = occupancy(id, &**agent);
                Candidate { id, agent, occupancy, occupants, dependency_names: Vec::new() }
            })
            .collect();
        let dependency_names = dependency_names(spec, &candidates);
        candidates.iter_mut().for_each(|candidate| candidate.dependency_names.clone_from(&dependency_names));
        candidates
    }
}

fn dependency_names<'a>(spec: &ContainerSpec, candidates: &[Candidate<'a>]) -> Vec<&'a str> {
    let named = |name: &str| {
        let mut occupants = candidates.iter().flat_map(|candidate| &candidate.occupants);
        occupants.find(|occupant| occupant.name == name).map(|occupant| occupant.name.as_str())
    };
    spec.dependencies().iter().filter_map(|(_, name)| named(name.trim_start_matches('/'))).collect()
}

/// The last part of an image's name, as far as it can be part of a container's name.
fn image_name(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or_default();
    let last = last.split([':', '@']).next().unwrap_or_default();
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = last.chars().filter(is_allowed).take(IMAGE_NAME_BYTES_MAX).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "container".into() } else { name.into() }
}
