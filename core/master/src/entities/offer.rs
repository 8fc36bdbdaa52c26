//! Offers: grants of the allocator until a scheduler accepts or declines them.
//!
//! Invariant: the resources of live offers are exactly those that the allocator has booked as offered to their
//! frameworks. A function that removes an offer also passes its resources on.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_allocator::Grant;
use tepui_fsm::{Budget, Now};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_resources::Revocable;
use tepui_types::{AgentId, FrameworkId, OfferId};

use crate::entities::inverse;
use crate::master::{Master, Out};
use crate::state::transition::Transition;
use crate::state::{Agent, Framework, Offer, agent_url};
use crate::values::event::to_scheduler;
use crate::values::timers::Timer;

/// What a scheduler never gets to see: the agent deals with it alone.
const HIDDEN_RESOURCE: &str = "ephemeral_ports";

/// Lets the allocator decide and offers what it grants: one event per framework.
pub(crate) fn allocate(master: &mut Master, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
    let allocation = master.allocator.allocate(now.mono, budget);
    if master.allocator.runs() != master.state.counters.allocation_runs {
        master.state.counters.allocation_runs = master.allocator.runs();
        master.counted = true;
    }
    let mut by_framework: BTreeMap<FrameworkId, Vec<pb::Offer>> = BTreeMap::new();
    for grant in allocation.grants {
        let framework_id = grant.framework.clone();
        match make(master, now, grant) {
            Ok(offer) => by_framework.entry(framework_id).or_default().push(offer),
            // Its framework or agent went away in the meantime.
            Err(grant) => master.allocator.decline(&grant.agent, &grant.framework, &grant.resources, None),
        }
    }
    for (framework_id, offers) in by_framework {
        master.send_to_framework(&framework_id, to_scheduler::offers(offers), out);
    }
    inverse::offer(master, now, allocation.inverse, out);
}

fn make(master: &mut Master, now: Now, grant: Grant) -> Result<pb::Offer, Grant> {
    let framework =
        master.framework(&grant.framework).filter(|framework| framework.conn().is_some()).cloned();
    let agent = master.agent(&grant.agent).filter(|agent| agent.is_offered()).cloned();
    let (Some(framework), Some(agent)) = (framework, agent) else { return Err(grant) };
    let offer = Offer {
        id: master.next_offer_id(),
        framework_id: grant.framework,
        agent_id: grant.agent,
        role: grant.role.to_string(),
        resources: grant.resources,
        offered_at: now.wall,
    };
    let message = message(&offer, &framework, &agent);
    if let Some(timeout) = master.config.offer_timeout {
        master.timers.set(Timer::Offer(offer.id.clone()), now.mono + timeout);
    }
    master.offers.insert(&offer.id, &offer.framework_id, &offer.agent_id);
    master.changed = true;
    master.state.offers.insert_mut(offer.id.clone(), Arc::new(offer));
    Ok(message)
}

/// An offer in the form that its framework understands.
pub fn message(offer: &Offer, framework: &Framework, agent: &Agent) -> pb::Offer {
    let mut resources = offer.resources.to_proto(framework.resource_format());
    resources.retain(|resource| resource.name != HIDDEN_RESOURCE);
    let multi_role = framework.has(Capability::MULTI_ROLE);
    if !multi_role {
        resources.iter_mut().for_each(|resource| resource.allocation_info = None.into());
    }
    let allocation = pb::resource::AllocationInfo { role: Some(offer.role.clone()), ..Default::default() };
    pb::Offer {
        id: offer.id.to_proto().into(),
        framework_id: offer.framework_id.to_proto().into(),
        agent_id: offer.agent_id.to_proto().into(),
        hostname: agent.info.hostname.clone(),
        url: agent_url(agent).into(),
        domain: agent.info.domain.clone(),
        resources,
        attributes: agent.info.attributes.clone(),
        executor_ids: agent
            .executors_of(&offer.framework_id)
            .map(|it| (*it.info.executor_id).clone())
            .collect(),
        unavailability: agent.unavailability.as_deref().cloned().into(),
        allocation_info: multi_role.then_some(allocation).into(),
        ..Default::default()
    }
}

/// Takes a live offer out of the books. Its resources are still booked as offered: the caller must move them.
pub(crate) fn take(master: &mut Master, id: &OfferId) -> Option<Arc<Offer>> {
    let offer = master.state.offers.get(id)?.clone();
    master.changed = true;
    master.state.offers.remove_mut(id);
    master.offers.remove(id, &offer.framework_id, &offer.agent_id);
    master.timers.clear(&Timer::Offer(id.clone()));
    Some(offer)
}

/// Takes an offer back without a word and without a filter.
pub(crate) fn withdraw(master: &mut Master, id: &OfferId) {
    if let Some(offer) = take(master, id) {
        master.allocator.decline(&offer.agent_id, &offer.framework_id, &offer.resources, None);
    }
}

/// Rescinds all offers and inverse offers of a framework whose scheduler is gone.
pub(crate) fn withdraw_all_of(master: &mut Master, framework_id: &FrameworkId) {
    for id in master.offers.of(framework_id) {
        withdraw(master, &id);
    }
    inverse::withdraw_all_of(master, framework_id);
}

/// Rescinds an offer, with an event.
pub(crate) fn rescind(master: &mut Master, id: &OfferId, out: &mut Out) {
    if let Some(offer) = master.state.offers.get(id).cloned() {
        withdraw(master, id);
        send_rescind(master, &offer, out);
    }
}

/// The same, and not offered to that framework again for the usual while.
pub(crate) fn rescind_for_a_while(master: &mut Master, now: Now, id: &OfferId, out: &mut Out) {
    if let Some(offer) = take(master, id) {
        let until = master.allocator.refusal(now.mono, None);
        master.allocator.decline(&offer.agent_id, &offer.framework_id, &offer.resources, until);
        send_rescind(master, &offer, out);
    }
}

fn send_rescind(master: &Master, offer: &Arc<Offer>, out: &mut Out) {
    Master::log(Transition::OfferRescinded { offer: Arc::clone(offer) }, out);
    master.send_to_framework(&offer.framework_id, to_scheduler::rescind(&offer.id), out);
}

/// Takes back everything offered of an agent, and every request to leave it.
pub(crate) fn rescind_all_on(master: &mut Master, agent_id: &AgentId, out: &mut Out) {
    for id in master.offers.on(agent_id) {
        rescind(master, &id, out);
    }
    inverse::rescind_all_on(master, agent_id, out);
}

/// Takes back offers of an agent in which there is something revocable that is the agent's own.
pub(crate) fn rescind_revocable_on(master: &mut Master, agent_id: &AgentId, out: &mut Out) {
    let own = |kind: Revocable| matches!(kind, Revocable::Plain | Revocable::UsageSlack);
    for id in master.offers.on(agent_id) {
        let offer = master.state.offers.get(&id);
        if offer.is_some_and(|offer| offer.resources.iter().any(|resource| own(resource.revocable()))) {
            rescind(master, &id, out);
        }
    }
}

/// Takes back what a framework was offered in roles it is no longer in.
pub(crate) fn rescind_roles_left(master: &mut Master, framework: &Framework, out: &mut Out) {
    let roles = framework.roles();
    for id in master.offers.of(&framework.id) {
        if master.state.offers.get(&id).is_some_and(|offer| !roles.contains(&offer.role)) {
            rescind(master, &id, out);
        }
    }
}

/// Without an answer in time.
pub(crate) fn expire(master: &mut Master, id: &OfferId, out: &mut Out) {
    rescind(master, id, out);
}
