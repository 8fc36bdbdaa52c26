//! The fit of one request into the offers of one agent.
//!
//! Order of preference: one offer rather than several; for regular resources offers without revocable parts, because those
//! are rescinded more often; reserved resources before unreserved ones; one type of revocable resources rather than a mix.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tepui_resources::{Quantities, Resource, Resources, Revocable, Role};
use tepui_types::OfferId;

use crate::offer::usable;
use crate::{HeldOffer, Kind, Misfit, Request, ports};

/// What a task takes, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offers to accept, in the order of their ids.
    pub offers: Vec<OfferId>,
    /// The resources of the task, with reservation and allocation as they were offered.
    pub resources: Resources,
    /// A number for each port of the request.
    pub ports: Vec<u64>,
}

/// Fits a request of one kind into the offers of one agent. The misfit is that of the role that holds the most offers.
pub fn fit(request: &Request, kind: Kind, offers: &[HeldOffer]) -> Result<Placement, Misfit> {
    let roles: BTreeSet<Option<&Role>> = offers.iter().map(HeldOffer::role).collect();
    let mut closest: Option<(usize, Misfit)> = None;
    for role in roles {
        let mut own: Vec<&HeldOffer> = offers.iter().filter(|offer| offer.role() == role).collect();
        own.sort_by(|a, b| {
            let mixed = |offer: &HeldOffer| kind == Kind::Regular && offer.has(Kind::Revocable);
            mixed(a).cmp(&mixed(b)).then_with(|| a.id.cmp(&b.id))
        });
        match fit_role(request, kind, &own) {
            Ok(placement) => return Ok(placement),
            Err(misfit) if closest.as_ref().is_none_or(|(most, _)| own.len() > *most) => {
                closest = Some((own.len(), misfit));
            }
            Err(_) => (),
        }
    }
    Err(closest.map_or(Misfit::NoOffers, |(_, misfit)| misfit))
}

/// Fits into offers of one role: into one of them if possible, else into as few as a greedy choice finds.
fn fit_role(request: &Request, kind: Kind, offers: &[&HeldOffer]) -> Result<Placement, Misfit> {
    if let Some(placement) = offers.iter().find_map(|offer| fit_together(request, kind, &[offer]).ok()) {
        return Ok(placement);
    }
    let mut chosen: Vec<&HeldOffer> = offers.to_vec();
    let mut best = fit_together(request, kind, &chosen)?;
    // The least preferred offers are last: they are the first to go.
    for at in (0..offers.len()).rev() {
        let mut fewer = chosen.clone();
        fewer.remove(at);
        if let Ok(placement) = fit_together(request, kind, &fewer) {
            (chosen, best) = (fewer, placement);
        }
    }
    Ok(best)
}

/// Fits into all of these offers taken together.
fn fit_together(request: &Request, kind: Kind, offers: &[&HeldOffer]) -> Result<Placement, Misfit> {
    let all = offers.iter().fold(Resources::new(), |sum, offer| sum + &offer.resources);
    let mut resources = take_amounts(&request.amounts, kind, &all)?;
    let ports = ports::choose(&request.ports, &all.ports())?;
    resources += &ports::take(&ports, &all);
    let mut ids: Vec<OfferId> = offers.iter().map(|offer| offer.id.clone()).collect();
    ids.sort();
    Ok(Placement { offers: ids, resources, ports })
}

fn take_amounts(amounts: &Quantities, kind: Kind, all: &Resources) -> Result<Resources, Misfit> {
    let usable = usable(all, kind);
    let have = usable.scalar_quantities();
    for (name, requested) in amounts.iter() {
        let have = have.get(name);
        if have < requested {
            return Err(Misfit::Short { kind, name: name.clone(), requested, have });
        }
    }
    let single_type = [Revocable::UsageSlack, Revocable::AllocationSlack, Revocable::Plain]
        .into_iter()
        .map(|revocable| usable.revocable_as(revocable))
        .find(|part| part.scalar_quantities().contains(amounts));
    Ok(shrink(&single_type.unwrap_or(usable), amounts))
}

/// As much as requested, reserved resources first.
fn shrink(resources: &Resources, amounts: &Quantities) -> Resources {
    let reserved = resources.filter(Resource::is_reserved).shrink_to(amounts);
    let rest = amounts.clone() - &reserved.scalar_quantities();
    let unreserved = resources.filter(|resource| !resource.is_reserved()).shrink_to(&rest);
    reserved + &unreserved
}

#[cfg(test)]
mod tests;
