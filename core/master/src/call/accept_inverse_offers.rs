//! ACCEPT_INVERSE_OFFERS: the framework agrees to leave. No inverse offers are made before maintenance is here, so
//! every id is unknown, and unknown ids are ignored.

use tepui_proto::mesos::v1::scheduler::call::AcceptInverseOffers;
use tepui_types::FrameworkId;

use crate::master::Master;

pub(super) fn accept_inverse_offers(_master: &mut Master, _from: &FrameworkId, _call: &AcceptInverseOffers) {}
