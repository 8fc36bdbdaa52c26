//! Property tests: the laws of the algebra and the round trip through protobuf.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::{
    Disk, DiskKind, DiskSource, Format, Labels, Limits, Name, Operation, Quantities, Range, Ranges,
    Reservation, Resource, Resources, Revocable, Role, Scalar, Set, Value, parse, validate,
};

fn amount() -> impl Strategy<Value = Scalar> {
    (1..5000_i64).prop_map(Scalar::from_thousandths)
}

fn ranges() -> impl Strategy<Value = Ranges> {
    let low = (0..40_u64, 0..6_u64).prop_map(|(begin, more)| Range { begin, end: begin + more });
    let high = (0..6_u64, 0..6_u64)
        .prop_map(|(a, b)| Range { begin: u64::MAX - a.max(b), end: u64::MAX - a.min(b) });
    vec(prop_oneof![4 => low, 1 => high], 0..6).prop_map(Ranges::from_iter)
}

fn set() -> impl Strategy<Value = Set> {
    vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..4).prop_map(Set::from_iter)
}

fn stack() -> impl Strategy<Value = Vec<Reservation>> {
    let labels = Labels::from_iter([("k".to_string(), Some("v".to_string())), ("a".to_string(), None)]);
    prop::sample::select(vec![
        vec![],
        vec![],
        vec![Reservation::fixed("eng")],
        vec![Reservation::dynamic("eng").by("ops")],
        vec![Reservation::fixed("eng"), Reservation::dynamic("eng/web")],
        vec![Reservation { labels: Some(labels), ..Reservation::dynamic("web") }],
    ])
}

fn source() -> impl Strategy<Value = DiskSource> {
    let root = || Some("/mnt/a".into());
    prop::sample::select(vec![
        DiskSource::new(DiskKind::Path { root: root() }),
        DiskSource::new(DiskKind::Mount { root: root() }),
        DiskSource::new(DiskKind::Mount { root: None }),
        DiskSource::new(DiskKind::Block),
        DiskSource::new(DiskKind::Raw),
        DiskSource {
            id: Some("raw-1".into()),
            profile: Some("fast".into()),
            ..DiskSource::new(DiskKind::Raw)
        },
    ])
}

/// A disk, and whether it is shared.
fn disk() -> impl Strategy<Value = (Option<Disk>, bool)> {
    let volume = prop::sample::select(vec!["v1", "v2"]);
    (option::of(source()), option::of((volume, any::<bool>()))).prop_map(|(source, volume)| {
        match (source, volume) {
            (None, None) => (None, false),
            (source, None) => (Some(Disk { source, ..Disk::default() }), false),
            (source, Some((id, shared))) => (Some(Disk { source, ..Disk::persistent(id, "data") }), shared),
        }
    })
}

fn resource() -> impl Strategy<Value = Resource> {
    let value = prop_oneof![
        3 => (prop::sample::select(vec!["cpus", "mem", "gpus", "foo"]), amount())
            .prop_map(|(name, amount)| Resource::scalar(name, amount)),
        2 => ranges().prop_map(|ranges| Resource::new("ports", Value::Ranges(ranges))),
        1 => set().prop_map(|set| Resource::new("zones", Value::Set(set))),
        2 => ((1..4_i64).prop_map(|n| Scalar::from_thousandths(n * 1000)), disk()).prop_map(|(amount, (disk, shared))| {
            Resource::scalar("disk", amount).with_disk(disk).with_shared(shared)
        }),
    ];
    let revocable = prop::sample::select(vec![
        Revocable::No,
        Revocable::No,
        Revocable::Plain,
        Revocable::UsageSlack,
        Revocable::AllocationSlack,
    ]);
    let allocation = option::of(prop::sample::select(vec![Role::from("eng"), Role::from("web")]));
    let provider = option::weighted(0.1, Just("provider".into()));
    (value, stack(), revocable, allocation, provider).prop_map(
        |(resource, stack, revocable, allocation, provider)| {
            resource
                .with_reservations(stack)
                .with_revocable(revocable)
                .with_allocation(allocation)
                .with_provider(provider)
        },
    )
}

/// Numbers that a peer may send and that are easy to get wrong.
fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        prop::sample::select(vec![
            0.0,
            -0.0,
            0.0004,
            1e-310,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
            2.251_799_813_685_248e12
        ]),
    ]
}

/// Messages that mostly break some rule.
fn odd_message() -> impl Strategy<Value = pb::Resource> {
    use pb::resource::{DiskInfo, ReservationInfo, disk_info, reservation_info};
    use pb::value::{Range, Ranges, Scalar, Set, Type};
    let name = prop::sample::select(vec!["cpus", "gpus", "disk", "ports", "x", ""]);
    let kind = prop::sample::select(vec![Type::SCALAR, Type::RANGES, Type::SET, Type::TEXT]);
    let scalar = option::of(odd_number().prop_map(|value| Scalar { value, ..Default::default() }));
    let end = || prop::sample::select(vec![0, 1, 5, u64::MAX - 1, u64::MAX]);
    let ranges = option::of(vec((end(), end()), 0..3).prop_map(|ranges| {
        let range =
            ranges.into_iter().map(|(begin, end)| Range { begin, end, ..Default::default() }).collect();
        Ranges { range, ..Default::default() }
    }));
    let set = option::of(vec("[ab]", 0..3).prop_map(|item| Set { item, ..Default::default() }));
    let role = || option::of(prop::sample::select(vec!["*", "a", "a/b", "", "/"]).prop_map(String::from));
    let level = || {
        let kinds = vec![None, Some(reservation_info::Type::STATIC), Some(reservation_info::Type::DYNAMIC)];
        (prop::sample::select(kinds), role()).prop_map(|(r#type, role)| ReservationInfo {
            r#type,
            role,
            ..Default::default()
        })
    };
    let disk = option::of((any::<bool>(), any::<bool>()).prop_map(|(persistent, mount)| {
        let source = disk_info::Source { r#type: disk_info::source::Type::MOUNT, ..Default::default() };
        let persistence = disk_info::Persistence { id: "v".into(), ..Default::default() };
        DiskInfo {
            persistence: persistent.then_some(persistence).into(),
            source: mount.then_some(source).into(),
            ..Default::default()
        }
    }));
    let reservations = (role(), option::of(level()), vec(level(), 0..3));
    (name, kind, scalar, ranges, set, reservations, disk, any::<bool>()).prop_map(
        |(name, r#type, scalar, ranges, set, (role, reservation, reservations), disk, shared)| pb::Resource {
            name: name.into(),
            r#type,
            scalar: scalar.into(),
            ranges: ranges.into(),
            set: set.into(),
            role,
            reservation: reservation.into(),
            reservations,
            disk: disk.into(),
            shared: shared.then(Default::default).into(),
            ..Default::default()
        },
    )
}

fn resources() -> impl Strategy<Value = Resources> {
    vec(resource(), 0..24).prop_map(Resources::from_iter)
}

/// Ranges and sets add up as unions, so their quantities add up only if they are disjoint.
fn scalars() -> impl Strategy<Value = Resources> {
    resources().prop_map(|resources| resources.scalars())
}

fn members(ranges: &Ranges) -> BTreeSet<u64> {
    ranges.values().collect()
}

proptest! {
    #[test]
    fn ranges_are_sets_of_numbers(a in ranges(), b in ranges(), count in 0..20_usize) {
        let (x, y) = (members(&a), members(&b));
        prop_assert_eq!(members(&a.union(&b)), &x | &y);
        prop_assert_eq!(members(&a.difference(&b)), &x - &y);
        prop_assert_eq!(members(&a.intersection(&b)), &x & &y);
        prop_assert_eq!(a.contains(&b), x.is_superset(&y));
        prop_assert_eq!(a.count(), x.len() as u128);
        prop_assert_eq!(members(&a.first(count as u128)), x.iter().copied().take(count).collect());
        for made in [a.union(&b), a.difference(&b), a.intersection(&b), a.first(count as u128)] {
            prop_assert_eq!(&made.iter().collect::<Ranges>(), &made, "sorted and coalesced");
        }
    }

    #[test]
    fn sums_do_not_depend_on_order(a in resources(), b in resources(), c in resources()) {
        prop_assert_eq!(&a + &b, &b + &a);
        prop_assert_eq!(&(&a + &b) + &c, &a + &(&b + &c));
        prop_assert_eq!(&a + &Resources::new(), a.clone());
        prop_assert_eq!([&a, &b, &c].into_iter().sum::<Resources>(), &(&c + &b) + &a);
    }

    #[test]
    fn subtraction_reverts_addition(a in scalars(), b in scalars()) {
        let sum = &a + &b;
        prop_assert!(sum.contains(&a) && sum.contains(&b));
        prop_assert_eq!(&sum - &b, a);
    }

    #[test]
    fn addition_reverts_subtraction(a in resources(), b in resources()) {
        let part = a.intersect(&b);
        prop_assert!(a.contains(&part) && b.contains(&part));
        prop_assert_eq!(&part, &b.intersect(&a));
        let rest = a.checked_sub(&part);
        prop_assert_eq!(rest.map(|rest| &rest + &part), Some(a));
    }

    #[test]
    fn contains_is_a_partial_order(a in resources(), b in resources(), c in resources()) {
        prop_assert!(a.contains(&a));
        let (ab, abc) = (&a + &b, &(&a + &b) + &c);
        prop_assert!(abc.contains(&ab) && ab.contains(&a) && abc.contains(&a));
        if a.contains(&b) && b.contains(&a) {
            prop_assert_eq!(&a, &b);
        }
        prop_assert_eq!(a.contains(&b), a.checked_sub(&b).is_some());
        prop_assert_eq!(a.contains(&b), a.intersect(&b) == b);
    }

    #[test]
    fn oversubtraction_never_goes_below_zero(a in resources(), b in resources()) {
        let rest = &a - &b;
        prop_assert!(a.contains(&rest));
        prop_assert!(rest.iter().all(|resource| !resource.is_empty()));
        prop_assert!((&a - &(&a + &b)).is_empty());
    }

    #[test]
    fn single_and_bulk_operations_agree(list in vec(resource(), 0..12)) {
        let all: Resources = list.iter().cloned().collect();
        let mut one_by_one = Resources::new();
        for resource in &list {
            one_by_one.insert(resource.clone());
        }
        prop_assert_eq!(&one_by_one, &all);
        for resource in &list {
            prop_assert!(all.contains_resource(resource));
            one_by_one.remove(resource);
        }
        prop_assert!(one_by_one.is_empty());
    }

    #[test]
    fn quantities_of_a_sum_are_the_sum_of_quantities(a in scalars(), b in scalars()) {
        // Copies of a shared volume are one volume.
        let (a, b) = (a.non_shared(), b.non_shared());
        prop_assert_eq!((&a + &b).quantities(), a.quantities() + &b.quantities());
        prop_assert_eq!((&a + &b).cpus(), a.cpus() + b.cpus());
        prop_assert_eq!(a.quantities(), a.scalar_quantities());
        prop_assert!(!a.contains(&b) || a.quantities().contains(&b.quantities()));
    }

    #[test]
    fn role_parts_sum_to_the_whole(a in resources()) {
        prop_assert_eq!(&a.reserved() + &a.unreserved(), a.clone());
        prop_assert_eq!(&a.revocable() + &a.non_revocable(), a.clone());
        prop_assert_eq!(&a.shared() + &a.non_shared(), a.clone());
        prop_assert_eq!(&a.scalars() + &a.non_scalars(), a.clone());
        prop_assert_eq!(&a.persistent_volumes() + &a.stateless(), a.clone());
        prop_assert_eq!(a.by_reservation().values().sum::<Resources>(), a.reserved());
        prop_assert!(a.allocatable_to(&"eng/web".into()).contains(&a.allocatable_to(&"eng".into())));
    }

    #[test]
    fn shrinking_meets_the_target(a in resources(), target in vec((0..6_usize, amount()), 0..6)) {
        let names = ["cpus", "mem", "disk", "gpus", "ports", "foo"];
        let target: Vec<(Name, Scalar)> = target.into_iter().map(|(i, amount)| (names[i].into(), amount)).collect();
        let quantities: Quantities = target.iter().cloned().collect();
        let limits: Limits = target.into_iter().collect();
        let shrunk = a.clone().shrink_to(&quantities);
        prop_assert!(a.contains(&shrunk) && quantities.contains(&shrunk.quantities()), "{}", shrunk);
        let limited = a.clone().shrink_to_limits(&limits);
        prop_assert!(a.contains(&limited) && limits.contains(&limited.quantities()), "{}", limited);
        prop_assert_eq!(&a.clone().shrink_to(&a.quantities()), &a);
    }

    #[test]
    fn protobuf_round_trips(list in vec(resource(), 0..8)) {
        let all = Resources::from_iter(list).single_copies();
        for format in [Format::Pre, Format::Post, Format::Endpoint] {
            let wire = all.to_proto(format);
            prop_assert_eq!(Resources::from_proto(&wire).map_err(|error| error.to_string()), Ok(all.clone()));
        }
    }

    #[test]
    fn operations_preserve_quantities(a in resources()) {
        let by = Reservation::dynamic("new").by("ops");
        for resource in a.single_copies().iter() {
            let pool = Resources::from(resource.clone());
            let reserved = resource.clone().push_reservation(by.clone());
            let reserve = Operation::Reserve { source: vec![], resources: vec![reserved.clone()] };
            let unreserve = Operation::Unreserve { resources: vec![reserved] };
            let after = pool.apply(&reserve).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(after.quantities(), pool.quantities());
            prop_assert!(!after.contains(&pool));
            prop_assert_eq!(after.apply(&unreserve), Ok(pool));
        }
    }

    #[test]
    fn create_and_destroy_cancel_out(size in 2..9_i64, other in 1..9_i64, stack in stack()) {
        let disk = |count: i64| Resource::scalar("disk", Scalar::from_thousandths(count * 1000)).with_reservations(stack.clone());
        let pool = Resources::from(disk(size + other));
        let volume = |count| disk(count).with_disk(Some(Disk::persistent("v", "data")));
        let steps = [
            Operation::Create { volumes: vec![volume(size)] },
            Operation::GrowVolume { volume: volume(size), addition: disk(other) },
            Operation::ShrinkVolume { volume: volume(size + other), subtract: Scalar::from_thousandths(1000) },
            Operation::Destroy { volumes: vec![volume(size + other - 1)] },
        ];
        let mut now = pool.clone();
        for step in &steps {
            prop_assert!(now.contains(&step.consumed()));
            now = now.apply(step).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(now.contains(&step.converted()));
            prop_assert_eq!(now.quantities(), pool.quantities());
        }
        prop_assert_eq!(now, pool);
    }

    #[test]
    fn arbitrary_messages_never_panic(list in vec(odd_message(), 0..4)) {
        let checked = validate::extended(&list).is_ok();
        match Resources::from_proto(&list) {
            Ok(all) => {
                let twice = &all + &all;
                prop_assert!(twice.contains(&all) && !twice.to_string().is_empty());
                prop_assert_eq!(Resources::from_proto(&all.to_proto(Format::Endpoint)), Ok(all.single_copies()));
            }
            Err(error) => prop_assert!(!checked && !error.to_string().is_empty()),
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[a-c(){}\\[\\]:;,.0-9 \n*/-]{0,24}") {
        let _ = parse::attributes(&text);
        if let Ok(list) = parse::resources(&text, "*") {
            let plain = list.into_iter().filter(|resource| !resource.is_reserved());
            let all: Resources = plain.collect();
            let again = parse::resources(&all.to_string(), "*").map(Resources::from_iter);
            prop_assert!(all.is_empty() || again == Ok(all));
        }
    }
}

proptest! {
    #[test]
    fn part_for_one_role_round_trips(
        all in resources(), more in resources(), role in option::of(prop::sample::select(vec!["eng", "web"])),
    ) {
        let (all, more) = (all.unallocate(), more.unallocate());
        let whole = &all + &more;
        let part = role.map_or(more.clone(), |role| more.clone().allocate(&role.into()));
        let mut left = whole.clone();
        prop_assert!(left.take(&part));
        prop_assert_eq!(&left, &(&whole - &more));
        left.put_back(&part);
        prop_assert_eq!(&left, &whole);
        let mut too_few = all.clone();
        prop_assert_eq!(too_few.take(&part), all.contains(&more));
        prop_assert_eq!(too_few, if all.contains(&more) { &all - &more } else { all });
    }

    #[test]
    fn part_for_many_roles_round_trips(all in resources(), mixed in resources()) {
        let mut whole = all.unallocate() + &mixed.clone().unallocate();
        let before = whole.clone();
        prop_assert!(whole.take(&mixed));
        whole.put_back(&mixed);
        prop_assert_eq!(whole, before);
    }
}
