//! DECLINE_INVERSE_OFFERS: the framework does not agree to leave. No inverse offers are made before maintenance is
//! here, so every id is unknown, and unknown ids are ignored.

use tepui_proto::mesos::v1::scheduler::call::DeclineInverseOffers;
use tepui_types::FrameworkId;

use crate::master::Master;

pub(super) fn decline_inverse_offers(
    _master: &mut Master,
    _from: &FrameworkId,
    _call: &DeclineInverseOffers,
) {
}
