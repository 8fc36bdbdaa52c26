//! Between the protobuf `Resource` and ours: the only place where the three reservation formats are known.
//!
//! Inside, reservations are a stack; PRE and ENDPOINT exist at the edge only.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::disk::{Disk, DiskKind, DiskSource, Persistence};
use crate::error::{Fault, ResourceError};
use crate::labels::Labels;
use crate::name::Name;
use crate::quantities::{Limits, Quantities};
use crate::ranges::{Range, Ranges};
use crate::reservation::{Reservation, ReservationKind};
use crate::resource::{Resource, Revocable, Value};
use crate::resources::Resources;
use crate::role::Role;
use crate::scalar::Scalar;
use crate::validate;

use pb::resource::disk_info::source::Type as SourceType;
use pb::resource::reservation_info::Type as ReservationType;
use pb::resource::revocable_info::Type as RevocableType;

/// How reservations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `role` and `reservation`, for clients without the capability RESERVATION_REFINEMENT. A refined resource, which
    /// it cannot express, is written as `Post`; clients that must not see one do not receive one.
    Pre,
    /// `reservations` only.
    Post,
    /// Both where both can express it; for operators' endpoints.
    Endpoint,
}

impl Resources {
    /// Checks the basic rules of each and adds them up.
    pub fn from_proto(resources: &[pb::Resource]) -> Result<Resources, ResourceError> {
        resources.iter().map(Resource::from_proto).collect()
    }

    pub fn to_proto(&self, format: Format) -> Vec<pb::Resource> {
        self.iter().map(|resource| resource.to_proto(format)).collect()
    }
}

impl Resource {
    pub fn from_proto(resource: &pb::Resource) -> Result<Resource, ResourceError> {
        validate::resource(resource)?;
        let text = |text: &String| Arc::from(text.as_str());
        let allocation = resource.allocation_info.role.as_deref().map(Role::from);
        let plain = Resource::new(Name::new(&resource.name), value_from(resource))
            .with_allocation(allocation)
            .with_revocable(revocable_from(resource));
        let ordinary = resource.role.as_deref().is_none_or(|role| role == "*")
            && resource.reservations.is_empty()
            && !resource.disk.is_set()
            && !resource.provider_id.is_set();
        if ordinary {
            return Ok(plain);
        }
        Ok(plain
            .with_reservations(reservations_from(resource))
            .with_disk(resource.disk.as_option().map(disk_from))
            .with_shared(resource.shared.is_set())
            .with_provider(resource.provider_id.as_option().map(|id| text(&id.value))))
    }

    pub fn to_proto(&self, format: Format) -> pb::Resource {
        let mut resource = pb::Resource { name: self.name().to_string(), ..Default::default() };
        value_to(self.value(), &mut resource);
        if let Some(role) = self.allocation() {
            let role = Some(role.to_string());
            resource.allocation_info = pb::resource::AllocationInfo { role, ..Default::default() }.into();
        }
        resource.revocable = revocable_to(self.revocable()).into();
        resource.disk = self.disk().map(disk_to).into();
        resource.shared = self.is_shared().then(pb::resource::SharedInfo::default).into();
        let provider =
            self.provider().map(|id| pb::ResourceProviderID { value: id.to_string(), ..Default::default() });
        resource.provider_id = provider.into();
        reservations_to(self.reservations(), format, &mut resource);
        resource
    }
}

/// Amounts by name as quota and offer filters have them.
type Amounts = BTreeMap<String, pb::value::Scalar>;

impl Quantities {
    /// Each must be an amount as a resource may have it.
    pub fn from_proto(amounts: &Amounts) -> Result<Quantities, ResourceError> {
        amounts.iter().map(amount_from).collect()
    }

    pub fn to_proto(&self) -> Amounts {
        self.iter().map(amount_to).collect()
    }
}

impl Limits {
    /// Each must be an amount as a resource may have it.
    pub fn from_proto(amounts: &Amounts) -> Result<Limits, ResourceError> {
        amounts.iter().map(amount_from).collect()
    }

    pub fn to_proto(&self) -> Amounts {
        self.iter().map(amount_to).collect()
    }
}

fn amount_from((name, amount): (&String, &pb::value::Scalar)) -> Result<(Name, Scalar), ResourceError> {
    let invalid = |fault| ResourceError::Invalid { resource: name.clone(), fault };
    validate::scalar(amount.value).map_err(invalid)?;
    let scalar = Scalar::from_f64(amount.value).map_err(|error| invalid(Fault::Scalar(error)))?;
    Ok((Name::new(name), scalar))
}

fn amount_to((name, amount): (&Name, Scalar)) -> (String, pb::value::Scalar) {
    (name.to_string(), pb::value::Scalar { value: amount.to_f64(), ..Default::default() })
}

fn value_from(resource: &pb::Resource) -> Value {
    match resource.r#type {
        pb::value::Type::RANGES => {
            let ranges = resource.ranges.range.iter();
            Value::Ranges(
                ranges.map(|range| Range { begin: range.begin, end: range.end }).collect::<Ranges>(),
            )
        }
        pb::value::Type::SET => Value::Set(resource.set.item.iter().map(String::as_str).collect()),
        // TEXT is refused by the validation; a bad number too.
        pb::value::Type::SCALAR | pb::value::Type::TEXT => {
            Value::Scalar(Scalar::from_f64(resource.scalar.value).unwrap_or_default())
        }
    }
}

fn value_to(value: &Value, resource: &mut pb::Resource) {
    match value {
        Value::Scalar(amount) => {
            resource.r#type = pb::value::Type::SCALAR;
            resource.scalar = pb::value::Scalar { value: amount.to_f64(), ..Default::default() }.into();
        }
        Value::Ranges(ranges) => {
            let range = |Range { begin, end }| pb::value::Range { begin, end, ..Default::default() };
            resource.r#type = pb::value::Type::RANGES;
            resource.ranges =
                pb::value::Ranges { range: ranges.iter().map(range).collect(), ..Default::default() }.into();
        }
        Value::Set(set) => {
            resource.r#type = pb::value::Type::SET;
            resource.set =
                pb::value::Set { item: set.iter().map(String::from).collect(), ..Default::default() }.into();
        }
    }
}

fn revocable_from(resource: &pb::Resource) -> Revocable {
    match resource.revocable.as_option().map(|info| info.r#type.unwrap_or(RevocableType::UNKNOWN)) {
        None => Revocable::No,
        Some(RevocableType::UNKNOWN) => Revocable::Plain,
        Some(RevocableType::USAGE_SLACK) => Revocable::UsageSlack,
        Some(RevocableType::ALLOCATION_SLACK) => Revocable::AllocationSlack,
    }
}

fn revocable_to(revocable: Revocable) -> Option<pb::resource::RevocableInfo> {
    let kind = match revocable {
        Revocable::No => return None,
        Revocable::Plain => None,
        Revocable::UsageSlack => Some(RevocableType::USAGE_SLACK),
        Revocable::AllocationSlack => Some(RevocableType::ALLOCATION_SLACK),
    };
    Some(pb::resource::RevocableInfo { r#type: kind, ..Default::default() })
}

fn reservations_from(resource: &pb::Resource) -> Vec<Reservation> {
    if !resource.reservations.is_empty() {
        let level = |info: &pb::resource::ReservationInfo| {
            let kind = match info.r#type {
                Some(ReservationType::DYNAMIC) => ReservationKind::Dynamic,
                Some(ReservationType::STATIC | ReservationType::UNKNOWN) | None => ReservationKind::Static,
            };
            reservation_from(kind, info.role.as_deref().unwrap_or("*"), info)
        };
        return resource.reservations.iter().map(level).collect();
    }
    match (resource.role.as_deref(), resource.reservation.as_option()) {
        (None | Some("*"), _) => Vec::new(),
        (Some(role), None) => vec![Reservation::fixed(role)],
        (Some(role), Some(info)) => vec![reservation_from(ReservationKind::Dynamic, role, info)],
    }
}

fn reservation_from(kind: ReservationKind, role: &str, info: &pb::resource::ReservationInfo) -> Reservation {
    let principal = info.principal.as_deref().map(Arc::from);
    Reservation { kind, role: role.into(), principal, labels: info.labels.as_option().map(Labels::from) }
}

fn reservations_to(reservations: &[Reservation], format: Format, resource: &mut pb::Resource) {
    match reservations {
        [] if format != Format::Post => resource.role = Some("*".into()),
        [only] if format != Format::Post => {
            resource.role = Some(only.role.to_string());
            resource.reservation = only.is_dynamic().then(|| info_without_role(only)).into();
        }
        _ => (),
    }
    if format != Format::Pre || reservations.len() > 1 {
        resource.reservations = reservations.iter().map(info_with_role).collect();
    }
}

fn info_without_role(reservation: &Reservation) -> pb::resource::ReservationInfo {
    pb::resource::ReservationInfo {
        principal: reservation.principal.as_deref().map(String::from),
        labels: reservation.labels.as_ref().map(Labels::to_proto).into(),
        ..Default::default()
    }
}

fn info_with_role(reservation: &Reservation) -> pb::resource::ReservationInfo {
    let kind = match reservation.kind {
        ReservationKind::Static => ReservationType::STATIC,
        ReservationKind::Dynamic => ReservationType::DYNAMIC,
    };
    let role = Some(reservation.role.to_string());
    pb::resource::ReservationInfo { r#type: Some(kind), role, ..info_without_role(reservation) }
}

fn disk_from(info: &pb::resource::DiskInfo) -> Disk {
    let persistence = info.persistence.as_option().map(|persistence| Persistence {
        id: persistence.id.as_str().into(),
        principal: persistence.principal.as_deref().map(Arc::from),
    });
    Disk {
        source: info.source.as_option().map(source_from),
        persistence,
        volume: info.volume.as_option().cloned().map(Into::into),
    }
}

fn disk_to(disk: &Disk) -> pb::resource::DiskInfo {
    let persistence = disk.persistence.as_ref().map(|persistence| pb::resource::disk_info::Persistence {
        id: persistence.id.to_string(),
        principal: persistence.principal.as_deref().map(String::from),
        ..Default::default()
    });
    pb::resource::DiskInfo {
        persistence: persistence.into(),
        volume: disk.volume.as_deref().cloned().into(),
        source: disk.source.as_ref().map(source_to).into(),
        ..Default::default()
    }
}

fn source_from(source: &pb::resource::disk_info::Source) -> DiskSource {
    let text = |text: &Option<String>| text.as_deref().map(Arc::from);
    let kind = match source.r#type {
        SourceType::PATH => DiskKind::Path { root: text(&source.path.root) },
        SourceType::MOUNT => DiskKind::Mount { root: text(&source.mount.root) },
        SourceType::BLOCK => DiskKind::Block,
        // UNKNOWN is refused by the validation.
        SourceType::RAW | SourceType::UNKNOWN => DiskKind::Raw,
    };
    DiskSource {
        kind,
        vendor: text(&source.vendor),
        id: text(&source.id),
        metadata: source.metadata.as_option().map(Labels::from),
        profile: text(&source.profile),
    }
}

fn source_to(source: &DiskSource) -> pb::resource::disk_info::Source {
    use pb::resource::disk_info::source::{Mount, Path};
    let text = |text: &Option<Arc<str>>| text.as_deref().map(String::from);
    let (kind, path, mount) = match &source.kind {
        DiskKind::Path { root } => (SourceType::PATH, root.as_ref(), None),
        DiskKind::Mount { root } => (SourceType::MOUNT, None, root.as_ref()),
        DiskKind::Block => (SourceType::BLOCK, None, None),
        DiskKind::Raw => (SourceType::RAW, None, None),
    };
    pb::resource::disk_info::Source {
        r#type: kind,
        path: path.map(|root| Path { root: Some(root.to_string()), ..Default::default() }).into(),
        mount: mount.map(|root| Mount { root: Some(root.to_string()), ..Default::default() }).into(),
        vendor: text(&source.vendor),
        id: text(&source.id),
        metadata: source.metadata.as_ref().map(Labels::to_proto).into(),
        profile: text(&source.profile),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reservation_format_uses_its_own_fields() {
        let cpus = Resource::scalar("cpus", Scalar::ONE);
        let fixed = cpus.clone().push_reservation(Reservation::fixed("a"));
        let dynamic = cpus.clone().push_reservation(Reservation::dynamic("a").by("p"));
        let refined = fixed.clone().push_reservation(Reservation::dynamic("a/b"));
        // The old role, whether the old reservation is there, how many new ones.
        for (resource, format, want) in [
            (&cpus, Format::Pre, (Some("*"), false, 0)),
            (&cpus, Format::Post, (None, false, 0)),
            (&cpus, Format::Endpoint, (Some("*"), false, 0)),
            (&fixed, Format::Pre, (Some("a"), false, 0)),
            (&fixed, Format::Post, (None, false, 1)),
            (&fixed, Format::Endpoint, (Some("a"), false, 1)),
            (&dynamic, Format::Pre, (Some("a"), true, 0)),
            (&dynamic, Format::Post, (None, false, 1)),
            (&dynamic, Format::Endpoint, (Some("a"), true, 1)),
            (&refined, Format::Pre, (None, false, 2)),
            (&refined, Format::Post, (None, false, 2)),
            (&refined, Format::Endpoint, (None, false, 2)),
        ] {
            let wire = resource.to_proto(format);
            let got = (wire.role.as_deref(), wire.reservation.is_set(), wire.reservations.len());
            assert_eq!(got, want, "{resource} {format:?}");
            assert!(wire.reservation.role.is_none() && wire.reservation.r#type.is_none());
        }
    }

    #[test]
    fn volume_round_trips() {
        let volume = pb::Volume {
            container_path: "data".into(),
            mode: pb::volume::Mode::RW,
            source: pb::volume::Source {
                r#type: Some(pb::volume::source::Type::SANDBOX_PATH),
                ..Default::default()
            }
            .into(),
            ..Default::default()
        };
        let disk = Disk { volume: Some(volume.clone().into()), ..Disk::persistent("v", "elsewhere") };
        let wire = Resource::scalar("disk", Scalar::ONE).with_disk(Some(disk)).to_proto(Format::Post);
        assert_eq!(wire.disk.volume.as_option(), Some(&volume));
        let again = Resource::from_proto(&wire).map(|resource| resource.to_proto(Format::Post));
        assert_eq!(again, Ok(wire));
    }

    #[test]
    fn amounts_round_trip_and_invalid_ones_are_rejected() {
        let amounts =
            |value: f64| Amounts::from([("cpus".into(), pb::value::Scalar { value, ..Default::default() })]);
        let zero = Limits::from_proto(&amounts(0.0)).expect("zero is a limit");
        assert_eq!(zero.to_proto(), amounts(0.0));
        let half = Quantities::from_proto(&amounts(0.5)).expect("an amount");
        assert_eq!((half.get(&Name::Cpus), half.to_proto()), (Scalar::from_thousandths(500), amounts(0.5)));
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e-310] {
            let error = Quantities::from_proto(&amounts(bad)).expect_err("no amount").to_string();
            assert!(error.starts_with("Resource 'cpus' is invalid"), "{error}");
        }
    }
}
