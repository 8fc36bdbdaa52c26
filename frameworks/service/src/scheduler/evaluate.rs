//! Offers of one agent against the needs of one pod.
//!
//! A pod that has reservations uses those, and only takes unreserved resources for what it needs more; a new pod reserves everything
//! it will ever need, so that later launches of its tasks find it. External volumes are in no offer and have no part in this.

use std::collections::{BTreeMap, BTreeSet};

use tepui_placement::{HeldOffer, Kind, Misfit, Port, Request, fit};
use tepui_proto::mesos::v1 as pb;
use tepui_resources::{
    Disk, DiskKind, Labels, Name, Persistence, Range, Ranges, Reservation as Level, Resource, Resources,
    Role, Scalar, Value,
};
use tepui_types::OfferId;

use super::need::{Need, NeedKind};
use super::obstacle::Obstacle;
use super::record::{Owner, Pod, Reservation, ReservedVolume};
use super::site::Site;
use crate::spec::VolumeKind;

pub(super) const RESOURCE_ID: &str = "resource_id";
pub(super) const FRAMEWORK_ID: &str = "framework_id";

/// An offer that is held.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub id: OfferId,
    pub site: Site,
    pub resources: Resources,
    pub executors: Vec<String>,
    /// Role that the offer is made to. One ACCEPT has offers of one role.
    pub role: String,
    /// In the order of arrival.
    pub number: u64,
}

/// What a pod asks of offers.
pub(super) struct Ask<'a> {
    pub needs: &'a [Need],
    /// Parts of the pod to be launched; reservations of others are left alone. A new pod reserves all.
    pub owners: &'a BTreeSet<Owner>,
    /// The pod, if it has reservations.
    pub pod: Option<&'a Pod>,
    pub identity: &'a Identity,
}

/// How our reservations look.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub role: Role,
    pub pre_reserved: Option<Role>,
    pub principal: String,
    pub framework_id: String,
}

/// Offers that meet the needs, and what to do with them.
#[derive(Debug, Default)]
pub(super) struct Match {
    pub offers: BTreeSet<OfferId>,
    pub unreserve: Vec<Resource>,
    pub reserve: Vec<Resource>,
    pub create: Vec<Resource>,
    /// Reservations of the launched parts, old and new.
    pub reservations: Vec<Reservation>,
    /// Reservations of the launched parts that nothing needs any more.
    pub obsolete: Vec<Reservation>,
    /// Resources to launch with.
    pub resources: BTreeMap<Owner, Vec<Resource>>,
    /// What of the offers is used up.
    pub consumed: Resources,
}

impl Identity {
    /// The id of a reservation of ours.
    pub fn own_id<'r>(&self, resource: &'r Resource) -> Option<&'r str> {
        let level = resource.reservation().filter(|level| level.is_dynamic())?;
        let label = |key: &str| {
            let labels = level.labels.as_ref()?;
            labels.iter().find(|(own, _)| own == key).and_then(|(_, value)| value.as_deref())
        };
        let is_ours = label(FRAMEWORK_ID).is_none_or(|id| id == self.framework_id);
        label(RESOURCE_ID).filter(|_| is_ours)
    }

    /// Whether new reservations may be made of a resource.
    fn is_free(&self, resource: &Resource) -> bool {
        let is_ours = resource.allocation() == Some(&self.role) && !resource.is_revocable();
        is_ours
            && match &self.pre_reserved {
                None => !resource.is_reserved(),
                Some(role) => resource.reservation_role() == Some(role) && self.own_id(resource).is_none(),
            }
    }

    fn reserve(&self, resource: Resource, id: &str) -> Resource {
        let label = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        let labels: Labels =
            [label(FRAMEWORK_ID, &self.framework_id), label(RESOURCE_ID, id)].into_iter().collect();
        let mut level = Level::dynamic(self.role.as_str()).by(self.principal.as_str());
        level.labels = Some(labels);
        resource.push_reservation(level)
    }
}

/// A need without a reservation, or one that grows.
struct Extra<'n> {
    need: &'n Need,
    name: Name,
    amount: Scalar,
    /// The reservation that grows, and its resource.
    grown: Option<(Reservation, Resource)>,
}

/// Matches the offers of one agent, or returns everything that is missing.
pub(super) fn evaluate(
    ask: &Ask<'_>,
    offers: &[&Held],
    ids: &mut dyn FnMut() -> String,
) -> Result<Match, Vec<Obstacle>> {
    let mut found = Match::default();
    let mut obstacles = Vec::new();
    let mut extras = Vec::new();
    let mut taken = BTreeSet::new();
    let wanted = |owner: &Owner| ask.pod.is_none() || ask.owners.contains(owner);
    let old: &[Reservation] = ask.pod.map(|pod| pod.reservations.as_slice()).unwrap_or_default();
    for need in ask.needs.iter().filter(|need| wanted(&need.owner)) {
        let reservation = old.iter().find(|own| need.is_met_by(own));
        match reservation {
            Some(own) => match take_reserved(ask, offers, need, own, &mut found) {
                Ok(extra) => extras.extend(extra),
                Err(obstacle) => obstacles.push(obstacle),
            },
            None => match new_extra(ask, offers, need, &mut taken, &mut found, ids) {
                Ok(extra) => extras.extend(extra),
                Err(obstacle) => obstacles.push(obstacle),
            },
        }
    }
    if let Err(short) = take_free(ask, offers, extras, &mut found, ids) {
        obstacles.extend(short);
    }
    if !obstacles.is_empty() {
        return Err(obstacles);
    }
    let is_met = |own: &Reservation| ask.needs.iter().any(|need| need.is_met_by(own));
    let obsolete = old.iter().filter(|own| wanted(&own.owner) && !is_met(own));
    found.obsolete = obsolete.cloned().collect();
    Ok(found)
}

/// Takes a reservation of the pod out of the offers; what it lacks is returned, what it has too much is unreserved.
fn take_reserved<'n>(
    ask: &Ask<'_>,
    offers: &[&Held],
    need: &'n Need,
    own: &Reservation,
    found: &mut Match,
) -> Result<Option<Extra<'n>>, Obstacle> {
    let mut offered: Option<(Resource, Scalar)> = None;
    for held in offers {
        for resource in held.resources.iter().filter(|it| ask.identity.own_id(it) == Some(own.id.as_str())) {
            found.offers.insert(held.id.clone());
            found.consumed.insert(resource.clone());
            let amount = resource.amount().unwrap_or(Scalar::ZERO);
            offered = Some(match offered.take() {
                Some((first, sum)) => (first, sum + amount),
                None => (resource.clone(), amount),
            });
        }
    }
    let missing = || Obstacle::NotOffered { name: own.resource.clone(), id: own.id.clone() };
    let (resource, amount) = offered.ok_or_else(missing)?;
    let mut reservation = own.clone();
    let resources = found.resources.entry(need.owner.clone()).or_default();
    match &need.kind {
        NeedKind::Scalar { name, amount: needed } if amount < *needed => {
            let amount = *needed - amount;
            let grown = Some((reservation, resource));
            return Ok(Some(Extra { need, name: name.clone(), amount, grown }));
        }
        NeedKind::Scalar { amount: needed, .. } => {
            if amount > *needed {
                found.unreserve.push(resource.clone().with_value(Value::Scalar(amount - *needed)));
            }
            reservation.amount = needed.thousandths();
            resources.push(resource.with_value(Value::Scalar(*needed)));
        }
        NeedKind::Volume { path, .. } if !resource.is_persistent_volume() => {
            let id = own.volume.as_ref().map(|own| own.persistence_id.clone()).unwrap_or_default();
            let volume = ask.identity.volume(resource, &id, path);
            found.create.push(volume.clone());
            resources.push(volume);
        }
        NeedKind::Volume { .. } | NeedKind::Port { .. } => resources.push(resource),
    }
    found.reservations.push(reservation);
    Ok(None)
}

/// A need without a reservation. A whole disk is found here; the rest is taken together.
fn new_extra<'n>(
    ask: &Ask<'_>,
    offers: &[&Held],
    need: &'n Need,
    taken: &mut BTreeSet<(OfferId, String)>,
    found: &mut Match,
    ids: &mut dyn FnMut() -> String,
) -> Result<Option<Extra<'n>>, Obstacle> {
    let extra = |name: Name, amount: Scalar| Ok(Some(Extra { need, name, amount, grown: None }));
    match &need.kind {
        NeedKind::Scalar { name, amount } => extra(name.clone(), *amount),
        NeedKind::Port { .. } => extra(Name::Ports, Scalar::ZERO),
        NeedKind::Volume { size, kind: VolumeKind::Root, .. } => extra(Name::Disk, *size),
        NeedKind::Volume { path, size, kind: VolumeKind::Mount { profiles } } => {
            for held in offers {
                for disk in held.resources.iter().filter(|disk| ask.identity.is_free(disk)) {
                    let key = (held.id.clone(), disk.to_string());
                    if is_mount(disk, *size, profiles) && !taken.contains(&key) {
                        taken.insert(key);
                        found.offers.insert(held.id.clone());
                        add_volume(ask, found, need, disk.clone(), path, true, ids);
                        return Ok(None);
                    }
                }
            }
            Err(Obstacle::NoDisk { path: path.clone(), size: *size })
        }
    }
}

fn is_mount(disk: &Resource, size: Scalar, profiles: &[String]) -> bool {
    let Some(Disk { source: Some(source), persistence: None, .. }) = disk.disk() else { return false };
    let fits_profile = match &source.profile {
        Some(profile) => profiles.iter().any(|own| **own == **profile),
        None => profiles.is_empty(),
    };
    matches!(source.kind, DiskKind::Mount { .. })
        && fits_profile
        && disk.amount().is_some_and(|amount| amount >= size)
}

/// Reserves a disk and makes a volume of it.
fn add_volume(
    ask: &Ask<'_>,
    found: &mut Match,
    need: &Need,
    disk: Resource,
    path: &str,
    is_mount: bool,
    ids: &mut dyn FnMut() -> String,
) {
    let id = ids();
    found.consumed.insert(disk.clone());
    let reserved = ask.identity.reserve(disk, &id);
    let persistence_id = ids();
    let volume = ask.identity.volume(reserved.clone(), &persistence_id, path);
    found.reservations.push(Reservation {
        id,
        owner: need.owner.clone(),
        resource: Name::Disk.to_string(),
        amount: reserved.amount().unwrap_or(Scalar::ZERO).thousandths(),
        port: None,
        volume: Some(ReservedVolume { persistence_id, path: path.to_owned(), is_mount }),
        operation: None,
    });
    found.reserve.push(reserved);
    found.create.push(volume.clone());
    found.resources.entry(need.owner.clone()).or_default().push(volume);
}

impl Identity {
    fn volume(&self, disk: Resource, persistence_id: &str, path: &str) -> Resource {
        let source = disk.disk().and_then(|disk| disk.source.clone());
        let persistence =
            Persistence { id: persistence_id.into(), principal: Some(self.principal.as_str().into()) };
        let volume =
            Disk { source, persistence: Some(persistence), ..Disk::persistent(persistence_id, path) };
        disk.with_disk(Some(volume))
    }
}

/// Takes unreserved resources for all that is needed more, together.
fn take_free(
    ask: &Ask<'_>,
    offers: &[&Held],
    extras: Vec<Extra<'_>>,
    found: &mut Match,
    ids: &mut dyn FnMut() -> String,
) -> Result<(), Vec<Obstacle>> {
    if extras.is_empty() {
        return Ok(());
    }
    let is_usable = |it: &Resource| ask.identity.is_free(it) && it.disk().is_none();
    let free: Vec<HeldOffer> = offers
        .iter()
        .map(|held| HeldOffer { id: held.id.clone(), resources: held.resources.filter(is_usable) })
        .filter(|held| !held.resources.is_empty())
        .collect();
    let mut request = Request::default();
    for extra in &extras {
        match &extra.need.kind {
            NeedKind::Port { port: 0, ranges, .. } if ranges.is_empty() => request.ports.push(Port::Any),
            NeedKind::Port { port: 0, ranges, .. } => request.ports.push(Port::Within(ranges.clone())),
            NeedKind::Port { port, .. } => request.ports.push(Port::Exactly(*port)),
            NeedKind::Scalar { .. } | NeedKind::Volume { .. } => {
                request.amounts.increase(&extra.name, extra.amount)
            }
        }
    }
    let placement = fit(&request, Kind::Regular, &free).map_err(|misfit| short(&request, &free, misfit))?;
    found.offers.extend(placement.offers);
    let mut ports = placement.ports.into_iter();
    for extra in extras {
        let template = placement.resources.iter().find(|it| *it.name() == extra.name);
        let Some(template) = template.cloned() else { continue };
        reserve_extra(ask, found, extra, template, &mut ports, ids);
    }
    Ok(())
}

fn reserve_extra(
    ask: &Ask<'_>,
    found: &mut Match,
    extra: Extra<'_>,
    template: Resource,
    ports: &mut dyn Iterator<Item = u64>,
    ids: &mut dyn FnMut() -> String,
) {
    let owner = extra.need.owner.clone();
    if let Some((mut reservation, resource)) = extra.grown {
        let NeedKind::Scalar { amount: needed, .. } = extra.need.kind else { return };
        found.consumed.insert(template.with_value(Value::Scalar(extra.amount)));
        found.reserve.push(resource.clone().with_value(Value::Scalar(extra.amount)));
        found.resources.entry(owner).or_default().push(resource.with_value(Value::Scalar(needed)));
        reservation.amount = needed.thousandths();
        found.reservations.push(reservation);
        return;
    }
    if let NeedKind::Volume { path, .. } = &extra.need.kind {
        let disk = template.with_value(Value::Scalar(extra.amount));
        return add_volume(ask, found, extra.need, disk, path, false, ids);
    }
    let (value, port) = match &extra.need.kind {
        NeedKind::Port { name, .. } => {
            let number = ports.next().unwrap_or_default();
            let range: Ranges = [Range { begin: number, end: number }].into_iter().collect();
            (Value::Ranges(range), Some((name.clone(), number)))
        }
        NeedKind::Scalar { .. } | NeedKind::Volume { .. } => (Value::Scalar(extra.amount), None),
    };
    let id = ids();
    let source = template.with_value(value);
    found.consumed.insert(source.clone());
    let reserved = ask.identity.reserve(source, &id);
    found.reservations.push(Reservation {
        id,
        owner: owner.clone(),
        resource: extra.name.to_string(),
        amount: extra.amount.thousandths(),
        port,
        volume: None,
        operation: None,
    });
    found.reserve.push(reserved.clone());
    found.resources.entry(owner).or_default().push(reserved);
}

/// Everything that is short, not only the first.
fn short(request: &Request, free: &[HeldOffer], misfit: Misfit) -> Vec<Obstacle> {
    let have = tepui_placement::totals(free, Kind::Regular);
    let mut obstacles: Vec<Obstacle> = request
        .amounts
        .iter()
        .filter(|(name, requested)| have.get(name) < *requested)
        .map(|(name, requested)| Obstacle::Short {
            name: name.to_string(),
            requested,
            offered: have.get(name),
        })
        .collect();
    match misfit {
        Misfit::Port(port) => obstacles.push(Obstacle::Port(port)),
        Misfit::Ports { requested, .. } => obstacles.push(Obstacle::Ports(requested)),
        Misfit::NoOffers if obstacles.is_empty() => obstacles.push(Obstacle::Ports(request.ports.len())),
        Misfit::NoOffers | Misfit::Short { .. } => (),
    }
    obstacles
}

/// An offer of the master as it is held; resources that cannot be read are left out.
pub(super) fn hold(offer: &pb::Offer, number: u64) -> Held {
    let resources = offer.resources.iter().filter_map(|resource| Resource::from_proto(resource).ok());
    Held {
        id: OfferId::new(offer.id.value.as_str()),
        site: Site::of_offer(offer),
        resources: resources.collect(),
        executors: offer.executor_ids.iter().map(|id| id.value.clone()).collect(),
        role: offer.resources.iter().find_map(|own| own.allocation_info.role.clone()).unwrap_or_default(),
        number,
    }
}
