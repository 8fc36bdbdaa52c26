//! Inverse offers: requests to frameworks to leave agents before their machine's maintenance.
//!
//! The allocator chooses the frameworks; a framework has at most one inverse offer for an agent. Its answer is stored
//! with the agent, for operators; it has no other effect.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_allocator::InverseGrant;
use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::allocator::InverseOfferStatus;
use tepui_proto::mesos::v1::allocator::inverse_offer_status::Status;
use tepui_types::{AgentId, FrameworkId, OfferId};

use crate::master::{Master, Out};
use crate::state::status::time;
use crate::state::{Agent, InverseOffer, agent_url};
use crate::values::event::to_scheduler;
use crate::values::timers::Timer;

/// Sends inverse offers to these frameworks: one event for each.
pub(crate) fn offer(master: &mut Master, now: Now, grants: Vec<InverseGrant>, out: &mut Out) {
    let mut by_framework: BTreeMap<FrameworkId, Vec<pb::InverseOffer>> = BTreeMap::new();
    for grant in grants {
        match make(master, now, &grant) {
            Some(asked) => by_framework.entry(grant.framework).or_default().push(asked),
            // Its framework or agent went away in the meantime.
            None => master.allocator.inverse_answered(&grant.agent, &grant.framework, None),
        }
    }
    for (framework_id, asked) in by_framework {
        master.send_to_framework(&framework_id, to_scheduler::inverse_offers(asked), out);
    }
}

fn make(master: &mut Master, now: Now, grant: &InverseGrant) -> Option<pb::InverseOffer> {
    master.framework(&grant.framework).filter(|framework| framework.conn().is_some())?;
    let agent = master.agent(&grant.agent)?.clone();
    let unavailability = agent.unavailability.clone()?;
    let id = master.next_offer_id();
    let asked = InverseOffer {
        id,
        framework_id: grant.framework.clone(),
        agent_id: agent.id.clone(),
        unavailability,
    };
    if let Some(timeout) = master.config.offer_timeout {
        master.timers.set(Timer::InverseOffer(asked.id.clone()), now.mono + timeout);
    }
    let message = message(&asked, &agent);
    master.inverse_offers.insert(&asked.id, &asked.framework_id, &asked.agent_id);
    master.changed = true;
    master.state.inverse_offers.insert_mut(asked.id.clone(), Arc::new(asked));
    Some(message)
}

/// A request as its framework sees it. No resources: all of the agent.
pub fn message(asked: &InverseOffer, agent: &Agent) -> pb::InverseOffer {
    pb::InverseOffer {
        id: asked.id.to_proto().into(),
        url: agent_url(agent).into(),
        framework_id: asked.framework_id.to_proto().into(),
        agent_id: asked.agent_id.to_proto().into(),
        unavailability: pb::Unavailability::clone(&asked.unavailability).into(),
        ..Default::default()
    }
}

/// A framework's answer to its own inverse offers; the next one is sent when the filter has passed.
pub(crate) fn answer<'a>(
    master: &mut Master,
    now: Now,
    from: &FrameworkId,
    ids: impl IntoIterator<Item = &'a pb::OfferID>,
    (status, filters): (Status, &pb::Filters),
) {
    let until = master.allocator.refusal(now.mono, filters.refuse_seconds);
    for id in ids.into_iter().map(OfferId::from) {
        // Rescinded while the call was in flight, or another framework's: nothing to undo.
        if master.state.inverse_offers.get(&id).is_none_or(|asked| asked.framework_id != *from) {
            continue;
        }
        let Some(asked) = take(master, &id) else { continue };
        master.allocator.inverse_answered(&asked.agent_id, from, until);
        if let Some(agent) = master.agent_mut(&asked.agent_id) {
            let answer = InverseOfferStatus {
                status,
                framework_id: from.to_proto().into(),
                timestamp: time(now.wall).into(),
                ..Default::default()
            };
            agent.inverse_answers.insert_mut(from.clone(), answer);
        }
    }
}

fn take(master: &mut Master, id: &OfferId) -> Option<Arc<InverseOffer>> {
    let asked = master.state.inverse_offers.get(id)?.clone();
    master.changed = true;
    master.state.inverse_offers.remove_mut(id);
    master.inverse_offers.remove(id, &asked.framework_id, &asked.agent_id);
    master.timers.clear(&Timer::InverseOffer(id.clone()));
    Some(asked)
}

fn withdraw(master: &mut Master, id: &OfferId) -> Option<Arc<InverseOffer>> {
    let asked = take(master, id)?;
    master.allocator.inverse_answered(&asked.agent_id, &asked.framework_id, None);
    Some(asked)
}

/// Without an answer in time, or the maintenance was cancelled.
pub(crate) fn rescind(master: &mut Master, id: &OfferId, out: &mut Out) {
    if let Some(asked) = withdraw(master, id) {
        master.send_to_framework(&asked.framework_id, to_scheduler::rescind_inverse_offer(id), out);
    }
}

pub(crate) fn rescind_all_on(master: &mut Master, agent_id: &AgentId, out: &mut Out) {
    for id in master.inverse_offers.on(agent_id) {
        rescind(master, &id, out);
    }
}

/// The framework's scheduler is gone.
pub(crate) fn withdraw_all_of(master: &mut Master, framework_id: &FrameworkId) {
    for id in master.inverse_offers.of(framework_id) {
        withdraw(master, &id);
    }
}
