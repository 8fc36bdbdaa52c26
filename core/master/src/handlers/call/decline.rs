//! DECLINE: offers go back, and are not made again for a while.

use tepui_fsm::Now;
use tepui_proto::mesos::v1::scheduler::call::Decline;
use tepui_types::{FrameworkId, OfferId};

use crate::entities::offer;
use crate::master::Master;
use crate::values::counters::OfferFate;

pub(super) fn decline(master: &mut Master, now: Now, from: &FrameworkId, call: &Decline) {
    let until = master.allocator.refusal(now.mono, call.filters.refuse_seconds);
    for id in call.offer_ids.iter().map(OfferId::from) {
        // Rescinded while the call was in flight: an ordinary race, nothing to undo. Others' offers are others'.
        if master.state.offers.get(&id).is_some_and(|offer| offer.framework_id == *from)
            && let Some(offer) = offer::take(master, &id)
        {
            master.count_offers(from, OfferFate::Declined, 1);
            master.allocator.decline(&offer.agent_id, from, &offer.resources, until);
        }
    }
}
