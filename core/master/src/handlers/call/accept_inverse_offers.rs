//! ACCEPT_INVERSE_OFFERS: the framework agrees to leave.

use tepui_fsm::Now;
use tepui_proto::mesos::v1::allocator::inverse_offer_status::Status;
use tepui_proto::mesos::v1::scheduler::call::AcceptInverseOffers;
use tepui_types::FrameworkId;

use crate::entities::inverse;
use crate::master::Master;

pub(super) fn accept_inverse_offers(
    master: &mut Master,
    now: Now,
    from: &FrameworkId,
    call: &AcceptInverseOffers,
) {
    inverse::answer(master, now, from, &call.inverse_offer_ids, (Status::ACCEPT, &call.filters));
}
