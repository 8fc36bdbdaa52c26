//! GET_FRAMEWORKS: frameworks, and those that ended, with their offers.

use std::sync::Arc;

use tepui_core_master::{
    Framework, FrameworkLink, InverseOffer, Offer, State, inverse_offer_message, offer_message,
};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::response::{GetFrameworks, get_frameworks};
use tepui_resources::Format;

use super::time;
use crate::document::is_connected;
use crate::index::Index;

pub(super) fn json(w: &mut JsonWriter, state: &State, index: &Index) {
    w.array_field("frameworks", |w| {
        state.frameworks.values().for_each(|one| w.value(&entry(one, state, index)));
    });
    w.array_field("completed_frameworks", |w| {
        state.completed_frameworks.iter().for_each(|one| w.value(&entry(one, state, index)));
    });
}

pub(super) fn message(state: &State, index: &Index) -> GetFrameworks {
    GetFrameworks {
        frameworks: state.frameworks.values().map(|one| entry(one, state, index)).collect(),
        completed_frameworks: state.completed_frameworks.iter().map(|one| entry(one, state, index)).collect(),
        ..Default::default()
    }
}

fn entry(framework: &Framework, state: &State, index: &Index) -> get_frameworks::Framework {
    let sums = index.framework(&framework.id);
    get_frameworks::Framework {
        framework_info: pb::FrameworkInfo::clone(&framework.info).into(),
        active: is_connected(framework),
        connected: is_connected(framework),
        recovered: framework.link == FrameworkLink::Recovered,
        registered_time: time(framework.registered_at).into(),
        reregistered_time: time(framework.reregistered_at.unwrap_or(framework.registered_at)).into(),
        unregistered_time: framework.unregistered_at.map(time).into(),
        offers: index.offers(&framework.id).iter().filter_map(|one| offer(one, framework, state)).collect(),
        inverse_offers: inverse_offers(framework, state),
        allocated_resources: sums.used.to_proto(Format::Endpoint),
        offered_resources: sums.offered.to_proto(Format::Endpoint),
        offer_constraints: framework.offer_constraints.as_deref().cloned().unwrap_or_default().into(),
        ..Default::default()
    }
}

/// The agents of the framework's inverse offers.
fn inverse_offers(framework: &Framework, state: &State) -> Vec<pb::InverseOffer> {
    let asked = state.inverse_offers.values().filter(|asked| asked.framework_id == framework.id);
    let message =
        |asked: &Arc<InverseOffer>| Some(inverse_offer_message(asked, state.agents.get(&asked.agent_id)?));
    asked.filter_map(message).collect()
}

/// As the framework gets it, but with reservations in the newer form, independent of its capabilities.
fn offer(offer: &Offer, framework: &Framework, state: &State) -> Option<pb::Offer> {
    let agent = state.agents.get(&offer.agent_id)?;
    let role = Some(offer.role.clone());
    Some(pb::Offer {
        resources: offer.resources.to_proto(Format::Post),
        allocation_info: pb::resource::AllocationInfo { role, ..Default::default() }.into(),
        ..offer_message(offer, framework, agent)
    })
}
