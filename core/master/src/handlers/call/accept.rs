//! ACCEPT: offers are used. The operations run in order against what the offers hold; what is left goes back.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::offer::Operation;
use tepui_proto::mesos::v1::scheduler::call::Accept;
use tepui_resources::{Resources, Role};
use tepui_types::{FrameworkId, OfferId};

use crate::entities::{offer, slack};
use crate::handlers::op;
use crate::master::{Master, Out};
use crate::rules::rejection::Rejection;
use crate::state::Offer;
use crate::values::accepted_offers::AcceptedOffers;
use crate::values::counters::OfferFate;

pub(super) fn accept(master: &mut Master, now: Now, from: &FrameworkId, call: Accept, out: &mut Out) {
    let ids: Vec<OfferId> = call.offer_ids.iter().map(OfferId::from).collect();
    let mut accepted = match check(master, from, &ids) {
        Ok(first) => consume_offers(master, from, &first, &ids),
        Err(why) => return reject_accept(master, now, from, &ids, &call.operations, why, out),
    };
    for operation in call.operations {
        op::run(master, now, &mut accepted, operation, out);
    }
    let agent_id = accepted.agent_id.clone();
    release_rest(master, now, accepted, call.filters.refuse_seconds);
    slack::rescind_over_lent(master, &agent_id, out);
}

/// The offers must be live, the caller's own, and of one role and agent. Returns one of them for all.
fn check(master: &Master, from: &FrameworkId, ids: &[OfferId]) -> Result<Offer, String> {
    let mut seen = BTreeSet::new();
    if let Some(id) = ids.iter().find(|id| !seen.insert(*id)) {
        return Err(format!("Duplicate offer {id} in offer list"));
    }
    let live = |id: &OfferId| match master.state.offers.get(id) {
        Some(offer) if offer.framework_id == *from => Ok(offer),
        Some(_) => Err(format!("Offer {id} belongs to another framework")),
        None => Err(format!("Offer {id} is no longer valid")),
    };
    let offers = ids.iter().map(live).collect::<Result<Vec<_>, _>>()?;
    let first = offers.first().ok_or("No offers specified")?;
    if let Some(other) = offers.iter().find(|other| other.role != first.role) {
        return Err(format!("Offers of several roles: '{}' and '{}'", first.role, other.role));
    }
    if let Some(other) = offers.iter().find(|other| other.agent_id != first.agent_id) {
        return Err(format!("Offers of several agents: {} and {}", first.agent_id, other.agent_id));
    }
    Ok(Offer::clone(first))
}

/// Removes the offers from the books; their resources form the pool of this ACCEPT.
fn consume_offers(master: &mut Master, from: &FrameworkId, first: &Offer, ids: &[OfferId]) -> AcceptedOffers {
    let mut pool = Resources::new();
    for id in ids {
        if let Some(offer) = offer::take(master, id) {
            pool += &offer.resources;
        }
    }
    master.count_offers(from, OfferFate::Accepted, ids.len());
    AcceptedOffers {
        framework_id: from.clone(),
        agent_id: first.agent_id.clone(),
        role: Role::from(first.role.as_str()),
        offered: pool.clone(),
        pool,
        withheld: Resources::new(),
    }
}

/// The offers are not usable together: those that are the caller's go back, and nothing is launched.
fn reject_accept(
    master: &mut Master,
    now: Now,
    from: &FrameworkId,
    ids: &[OfferId],
    operations: &[Operation],
    why: String,
    out: &mut Out,
) {
    for id in ids {
        if master.state.offers.get(id).is_some_and(|offer| offer.framework_id == *from) {
            offer::withdraw(master, id);
        }
    }
    let rejection = Rejection::InvalidOffers(why);
    for operation in operations {
        op::reject(master, now, from, operation, &rejection, out);
    }
}

/// What no operation touched is declined with the filter; what operations made and did not use is not.
fn release_rest(master: &mut Master, now: Now, accepted: AcceptedOffers, refuse_seconds: Option<f64>) {
    let until = master.allocator.refusal(now.mono, refuse_seconds);
    let AcceptedOffers { framework_id, agent_id, pool, withheld, offered, .. } = accepted;
    let made = &pool - &offered;
    let untouched = pool - &made;
    if !untouched.is_empty() {
        master.allocator.decline(&agent_id, &framework_id, &untouched, until);
    }
    let made = made + &withheld;
    if !made.is_empty() {
        master.allocator.decline(&agent_id, &framework_id, &made, None);
    }
}
