//! Reservations that no pod owns: destroyed and unreserved as soon as they are offered, and forgotten when the agent confirmed it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Format, Resource, Resources, Role};
use tepui_types::{AgentId, OfferId};

use super::assumed::{is_assumed, is_releasing};
use super::evaluate::{Held, Identity};
use super::record::{Garbage, Pod, Record};
use super::{Effect, Operation, Out, Scheduler};
use crate::plan::PodInstance;

type OperationType = pb::offer::operation::Type;

impl Scheduler {
    /// Whether something is left to be released that may be offered.
    pub(super) fn has_garbage(&self) -> bool {
        self.state.garbage.values().any(|garbage| !is_releasing(garbage))
    }

    /// Identity of reservations, whatever their role.
    pub(super) fn identity(&self, role: &str, pre_reserved: &str) -> Option<Identity> {
        let named = self.target().map(|(_, spec)| spec.principal.clone());
        let principal = self.config.principal.clone().or(named).unwrap_or_default();
        let pre_reserved = Some(pre_reserved).filter(|role| !matches!(*role, "" | "*")).map(Role::from);
        Some(Identity {
            role: Role::from(role),
            pre_reserved,
            principal,
            framework_id: self.state.framework_id.clone()?,
        })
    }

    /// Releases what held offers have of it. Offers are looked at once, and again when pods lose reservations.
    pub(super) fn scan_offers(&mut self, out: &mut Out) {
        if !self.state.connected || !core::mem::take(&mut self.rescan_offers) {
            return;
        }
        let Some(identity) = self.identity(&self.config.role.clone(), "*") else { return };
        let mut found: BTreeMap<OfferId, (AgentId, String, Vec<(String, Resource)>)> = BTreeMap::new();
        for held in self.offers.iter() {
            let garbage = self.garbage_of(&identity, held);
            if !garbage.is_empty() {
                let site = &held.site;
                found.insert(held.id.clone(), (site.agent.clone(), site.hostname.clone(), garbage));
            }
        }
        for (offer, (agent, hostname, garbage)) in found {
            match self.unreconciled.is_empty() {
                true => self.release(offer, agent, &hostname, garbage, out),
                false => self.note_garbage(&agent, &hostname, garbage, out),
            }
        }
        self.rescan_offers = !self.unreconciled.is_empty();
    }

    /// Offers may be gone before all tasks are reconciled: what they have is released with later ones.
    fn note_garbage(
        &mut self,
        agent: &AgentId,
        hostname: &str,
        garbage: Vec<(String, Resource)>,
        out: &mut Out,
    ) {
        let new = garbage.into_iter().filter(|(id, _)| !self.state.garbage.contains_key(id));
        let record = |(id, _): (String, Resource)| {
            let (agent, hostname) = (agent.as_str().to_owned(), hostname.to_owned());
            let garbage = Garbage { id, agent, hostname, pod: None, reserving: None, operation: None };
            Record::Garbage(Arc::new(garbage))
        };
        let batch: Vec<Record> = new.map(record).collect();
        if !batch.is_empty() {
            self.apply(Record::Batch(batch), out);
        }
    }

    /// Reservations of ours in an offer that no pod owns and no operation releases.
    fn garbage_of(&self, identity: &Identity, held: &Held) -> Vec<(String, Resource)> {
        let own = |resource: &Resource| {
            let id = identity.own_id(resource)?;
            let is_releasing = self.state.garbage.get(id).is_some_and(|own| is_releasing(own));
            (!self.owned.contains_key(id) && !is_releasing).then(|| (id.to_owned(), resource.clone()))
        };
        held.resources.iter().filter_map(own).collect()
    }

    fn release(
        &mut self,
        offer: OfferId,
        agent: AgentId,
        hostname: &str,
        garbage: Vec<(String, Resource)>,
        out: &mut Out,
    ) {
        let mut batch = Vec::new();
        let mut operations = Vec::new();
        let mut consumed = Resources::new();
        for (id, resource) in garbage {
            let operation = self.operation_id(&agent);
            let pod = self.state.garbage.get(&id).and_then(|own| own.pod.clone());
            batch.push(Record::Garbage(Arc::new(Garbage {
                id,
                agent: agent.as_str().to_owned(),
                hostname: hostname.to_owned(),
                pod,
                // It was offered, so it exists.
                reserving: None,
                operation: Some(operation.clone()),
            })));
            if resource.is_persistent_volume() {
                operations.push(destroy(&resource));
            }
            consumed.insert(resource.clone());
            operations.push(unreserve(&resource.without_volume(), Some(operation)));
        }
        self.apply(Record::Batch(batch), out);
        self.use_offers(agent, &[offer].into(), &consumed, operations);
    }

    pub(super) fn on_operation(&mut self, status: &pb::OperationStatus, out: &mut Out) {
        use pb::OperationState as S;
        let id = status.operation_id.value.clone();
        let subject = self.operations.get(&id).cloned();
        let done = match status.state {
            S::OPERATION_FINISHED => Some(true),
            S::OPERATION_FAILED
            | S::OPERATION_ERROR
            | S::OPERATION_DROPPED
            | S::OPERATION_UNSUPPORTED
            | S::OPERATION_UNKNOWN => Some(false),
            // With its agent, all its reservations are gone.
            S::OPERATION_GONE_BY_OPERATOR => Some(matches!(subject, Some(Operation::Release(_)))),
            S::OPERATION_PENDING | S::OPERATION_UNREACHABLE | S::OPERATION_RECOVERING => None,
        };
        match (subject, done) {
            (Some(Operation::Reserve(pod, _)), Some(done)) => self.on_reserved(&pod, &id, done, out),
            (Some(Operation::Release(garbage)), Some(true)) => {
                self.apply(Record::GarbageForgotten(garbage), out);
                self.is_dirty = true;
            }
            (Some(Operation::Release(garbage)), Some(false)) => self.retry_release(&garbage, &id, out),
            (Some(_), None) | (None, _) => (),
        }
        if let Some(uuid) = status.uuid.as_option() {
            let agent = status.agent_id.as_option().map(AgentId::from);
            out.effect(Effect::AcknowledgeOperation { agent, operation: id, uuid: uuid.value.clone() });
        }
    }

    fn retry_release(&mut self, garbage: &str, operation: &str, out: &mut Out) {
        self.is_dirty = true;
        let Some(own) = self.state.garbage.get(garbage).cloned() else { return };
        self.operations.remove(operation);
        self.apply(Record::Garbage(Arc::new(Garbage { operation: None, ..(*own).clone() })), out);
        self.rescan_offers = true;
    }

    /// The agent has the reservations of a RESERVE, or never will.
    pub(super) fn on_reserved(&mut self, instance: &PodInstance, operation: &str, done: bool, out: &mut Out) {
        self.operations.remove(operation);
        self.is_dirty |= !done;
        let garbage = self.state.garbage.values().filter(|own| own.reserving.as_deref() == Some(operation));
        let garbage: Vec<Record> = garbage
            .map(|own| match done {
                true => Record::Garbage(Arc::new(Garbage { reserving: None, ..(**own).clone() })),
                false => Record::GarbageForgotten(own.id.clone()),
            })
            .collect();
        if !garbage.is_empty() {
            self.apply(Record::Batch(garbage), out);
        }
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        if pod.reservations.iter().all(|own| own.operation.as_deref() != Some(operation)) {
            return;
        }
        let mut pod: Pod = (*pod).clone();
        if done {
            for own in pod.reservations.iter_mut().filter(|own| own.operation.as_deref() == Some(operation)) {
                own.operation = None;
            }
        } else {
            pod.reservations.retain(|own| own.operation.as_deref() != Some(operation));
        }
        match pod.reservations.is_empty() {
            true => self.apply(Record::PodForgotten(instance.clone()), out),
            false => self.apply(Record::Pod(Arc::new(pod)), out),
        }
        self.recheck.insert(instance.clone());
    }
}

pub(super) fn operation(kind: OperationType) -> pb::offer::Operation {
    pb::offer::Operation { r#type: Some(kind), ..Default::default() }
}

/// The id that asks for feedback.
pub(super) fn operation_id(id: String) -> Option<pb::OperationID> {
    (!is_assumed(&id)).then(|| pb::OperationID { value: id, ..Default::default() })
}

pub(super) fn unreserve(resource: &Resource, id: Option<String>) -> pb::offer::Operation {
    let resources = vec![resource.to_proto(Format::Post)];
    pb::offer::Operation {
        id: id.and_then(operation_id).into(),
        unreserve: pb::offer::operation::Unreserve { resources, ..Default::default() }.into(),
        ..operation(OperationType::UNRESERVE)
    }
}

fn destroy(resource: &Resource) -> pb::offer::Operation {
    let volumes = vec![resource.to_proto(Format::Post)];
    pb::offer::Operation {
        destroy: pb::offer::operation::Destroy { volumes, ..Default::default() }.into(),
        ..operation(OperationType::DESTROY)
    }
}
