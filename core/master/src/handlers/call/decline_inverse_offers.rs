//! DECLINE_INVERSE_OFFERS: the framework does not agree to leave.

use tepui_fsm::Now;
use tepui_proto::mesos::v1::allocator::inverse_offer_status::Status;
use tepui_proto::mesos::v1::scheduler::call::DeclineInverseOffers;
use tepui_types::FrameworkId;

use crate::entities::inverse;
use crate::master::Master;

pub(super) fn decline_inverse_offers(
    master: &mut Master,
    now: Now,
    from: &FrameworkId,
    call: &DeclineInverseOffers,
) {
    inverse::answer(master, now, from, &call.inverse_offer_ids, (Status::DECLINE, &call.filters));
}
