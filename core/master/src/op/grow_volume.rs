//! GROW_VOLUME: a persistent volume gets more disk. What comes of it is offered again later.

use tepui_proto::mesos::v1::offer::Operation;

use super::AcceptedOffers;
use super::convert::{Result, convert};
use crate::master::{Master, Out};

pub(super) fn grow_volume(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    operation: Operation,
    out: &mut Out,
) {
    convert(master, accepted, operation, Result::SetAside, out);
}
