//! Lent slack that is reclaimed: offers of it are rescinded.
//!
//! After a launch of the owner, an UNRESERVE or a change of an agent, more may be lent than is idle. The agent
//! preempts borrowers before the owner's container starts; it chooses them. Offers are rescinded by the master, the
//! youngest first and no more than needed, before they can be accepted. The duration of a reclaim is an effect, for
//! statistics.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Resource, Resources, Revocable};
use tepui_types::{AgentId, OfferId};

use crate::Effect;
use crate::entities::offer;
use crate::master::{Master, Out};
use crate::state::Offer;
use crate::values::counters::Counter;

/// Whatever changed what is idle in this turn.
pub(crate) fn take_back_everywhere(master: &mut Master, now: Now, out: &mut Out) {
    let agents: Vec<AgentId> = master.allocator.over_lent_agents().cloned().collect();
    for agent_id in agents {
        rescind_over_lent(master, &agent_id, out);
    }
    note_times(master, now, out);
}

/// From the turn in which lent resources are reclaimed until the one in which no borrower has them.
fn note_times(master: &mut Master, now: Now, out: &mut Out) {
    let Master { allocator, wanted_back, .. } = master;
    for agent_id in allocator.over_lent_agents() {
        if !wanted_back.contains_key(agent_id) {
            wanted_back.insert(agent_id.clone(), now.mono);
        }
    }
    wanted_back.retain(|agent_id, since| {
        let wanted = !allocator.over_lent(agent_id).is_empty();
        // With an agent that is gone, what was lent of it is.
        if !wanted && allocator.total(agent_id).is_some() {
            let took = now.mono.since(*since);
            out.effect(Effect::SlackTakenBack { agent_id: agent_id.clone(), took });
        }
        wanted
    });
}

/// Rescinds offers of slack until no more is lent than is idle, or only what borrowers run is left.
pub(crate) fn rescind_over_lent(master: &mut Master, agent_id: &AgentId, out: &mut Out) {
    loop {
        let over = master.allocator.over_lent(agent_id);
        let Some(id) = youngest_offer(master, agent_id, &over) else { return };
        offer::rescind(master, &id, out);
    }
}

/// The youngest offer that contains some of the reclaimed resources.
fn youngest_offer(master: &Master, agent_id: &AgentId, over: &Resources) -> Option<OfferId> {
    if over.is_empty() {
        return None;
    }
    let holds = |offer: &Offer| {
        let lent = offer.resources.filter(is_slack);
        lent.names().any(|name| over.names().any(|wanted| wanted == name))
    };
    let ids = master.offers.on(agent_id);
    let offers = ids.iter().filter_map(|id| master.state.offers.get(id)).filter(|offer| holds(offer));
    offers.max_by_key(|offer| (offer.offered_at, offer.id.clone())).map(|offer| offer.id.clone())
}

/// Counts a borrower that had to go.
pub(crate) fn count_eviction(master: &mut Master, status: &pb::TaskStatus, resources: &Resources) {
    if status.reason == Some(Reason::REASON_CONTAINER_PREEMPTED) && resources.iter().any(is_slack) {
        master.count(Counter::SlackEvictions);
    }
}

fn is_slack(resource: &Resource) -> bool {
    resource.revocable() == Revocable::AllocationSlack
}
