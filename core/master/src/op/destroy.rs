//! DESTROY: a persistent volume becomes plain disk again, and its content is lost.

use alloc::vec::Vec;

use tepui_proto::mesos::v1::offer::Operation;
use tepui_resources::{Resource, Resources};

use super::AcceptedOffers;
use super::convert::{Result, convert};
use super::launch::parse;
use crate::master::{Master, Out};
use crate::offer;

pub(super) fn destroy(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    operation: Operation,
    out: &mut Out,
) {
    let volumes = parse(&operation.destroy.volumes).unwrap_or_default().unallocate();
    rescind_others(master, accepted, &volumes, out);
    convert(master, accepted, operation, Result::Usable, out);
}

/// A shared volume may be offered to several frameworks at once; none of them may use it from now on.
fn rescind_others(master: &mut Master, accepted: &AcceptedOffers, volumes: &Resources, out: &mut Out) {
    let shared: Vec<&Resource> = volumes.iter().filter(|volume| volume.is_shared()).collect();
    if shared.is_empty() {
        return;
    }
    for id in master.offers.on(&accepted.agent_id) {
        let offered = master.state.offers.get(&id).map(|offer| offer.resources.clone().unallocate());
        if offered.is_some_and(|offered| shared.iter().any(|volume| offered.contains_resource(volume))) {
            offer::rescind(master, &id, out);
        }
    }
}
