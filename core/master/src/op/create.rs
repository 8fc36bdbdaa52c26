//! CREATE: offered disk becomes a persistent volume.

use tepui_proto::mesos::v1::offer::Operation;

use super::AcceptedOffers;
use super::convert::{Result, convert};
use crate::master::{Master, Out};

pub(super) fn create(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    operation: Operation,
    out: &mut Out,
) {
    convert(master, accepted, operation, Result::Usable, out);
}
