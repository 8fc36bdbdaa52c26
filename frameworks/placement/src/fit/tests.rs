//! Requests against offers, as tables.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use tepui_resources::{Name, Revocable, Scalar, parse};

use super::*;
use crate::{Port, totals};

/// `O1 ROLE: cpus:1;mem:2 + usage cpus:1 + allocation cpus:1 + plain cpus:1`.
fn offer(text: &str) -> HeldOffer {
    let (head, body) = text.split_once(": ").expect("head: resources");
    let (id, role) = head.split_once(' ').expect("id role");
    let parts = body.split(" + ").map(|part| match part.split_once(' ') {
        Some(("usage", text)) => read(text).flatten(Revocable::UsageSlack),
        Some(("allocation", text)) => read(text).flatten(Revocable::AllocationSlack),
        Some(("plain", text)) => read(text).flatten(Revocable::Plain),
        _ => read(part),
    });
    let resources = parts.fold(Resources::new(), |sum, part| sum + &part);
    HeldOffer { id: OfferId::new(id), resources: resources.allocate(&Role::from(role)) }
}

fn read(text: &str) -> Resources {
    parse::resources(text, "*").expect("resources").into_iter().collect()
}

/// `cpus:1;mem:20;port:80;port:*`.
fn request(text: &str) -> Request {
    let mut request = Request::default();
    for item in text.split(';').filter(|item| !item.is_empty()) {
        match item.split_once(':').expect("name:value") {
            ("port", "*") => request.ports.push(Port::Any),
            ("port", number) => request.ports.push(Port::Exactly(number.parse().expect("a port"))),
            (name, amount) => {
                let amount = Scalar::from_f64(amount.parse().expect("a number")).expect("an amount");
                request.amounts.increase(&Name::new(name), amount);
            }
        }
    }
    request
}

fn outcome(wanted: &str, kind: Kind, offers: &[&str]) -> String {
    let offers: Vec<HeldOffer> = offers.iter().map(|text| offer(text)).collect();
    match fit(&request(wanted), kind, &offers) {
        Ok(Placement { offers, resources, ports }) => {
            let ids: Vec<&str> = offers.iter().map(OfferId::as_str).collect();
            let ports = if ports.is_empty() { String::new() } else { format!(" ports {ports:?}") };
            format!("{} <- {resources}{ports}", ids.join(","))
        }
        Err(misfit) => misfit.to_string(),
    }
}

#[test]
fn requests_take_resources_of_one_kind() {
    use Kind::{Regular, Revocable};
    let both = ["O1 r: cpus:2;mem:100 + usage cpus:4;mem:200"];
    for (wanted, kind, expected) in [
        ("cpus:2;mem:100", Regular, "O1 <- cpus(allocated: r):2; mem(allocated: r):100"),
        ("cpus:3;mem:10", Regular, "requested 3 regular cpus, offered 2"),
        ("cpus:1;mem:101", Regular, "requested 101 regular mem, offered 100"),
        (
            "cpus:4;mem:200",
            Revocable,
            "O1 <- cpus(allocated: r){REV: USAGE_SLACK}:4; mem(allocated: r){REV: USAGE_SLACK}:200",
        ),
        ("cpus:5", Revocable, "requested 5 revocable cpus, offered 4"),
        // Six cpus are offered in all, four at most of one kind.
        ("cpus:6", Regular, "requested 6 regular cpus, offered 2"),
        ("gpus:1", Regular, "requested 1 regular gpus, offered 0"),
        ("cpus:0.5", Regular, "O1 <- cpus(allocated: r):0.5"),
    ] {
        assert_eq!(outcome(wanted, kind, &both), expected, "{wanted} {kind}");
    }
    assert_eq!(outcome("cpus:1", Regular, &[]), "no offers");
    let cpus_only = ["O1 r: mem:100 + usage cpus:4"];
    assert_eq!(
        outcome("cpus:1;mem:10", Revocable, &cpus_only),
        "requested 10 revocable mem, offered 0",
        "regular memory is no help"
    );
    assert_eq!(
        outcome("cpus:1", Revocable, &cpus_only),
        "O1 <- cpus(allocated: r){REV: USAGE_SLACK}:1",
        "a container with cpus alone needs no memory"
    );
}

#[test]
fn both_slacks_are_revocable_and_one_of_them_is_preferred() {
    let offers = ["O1 r: cpus:1 + usage cpus:2 + allocation cpus:3"];
    for (wanted, expected) in [
        ("cpus:2", "O1 <- cpus(allocated: r){REV: USAGE_SLACK}:2"),
        ("cpus:3", "O1 <- cpus(allocated: r){REV: ALLOCATION_SLACK}:3"),
        (
            "cpus:5",
            "O1 <- cpus(allocated: r){REV: USAGE_SLACK}:2; cpus(allocated: r){REV: ALLOCATION_SLACK}:3",
        ),
        ("cpus:6", "requested 6 revocable cpus, offered 5"),
    ] {
        assert_eq!(outcome(wanted, Kind::Revocable, &offers), expected, "{wanted}");
    }
    let plain = ["O1 r: plain cpus:2"];
    assert_eq!(outcome("cpus:1", Kind::Revocable, &plain), "O1 <- cpus(allocated: r){REV}:1");
}

#[test]
fn few_offers_are_accepted() {
    for (why, wanted, kind, offers, expected) in [
        (
            "one that holds it alone",
            "cpus:3",
            Kind::Regular,
            vec!["O1 r: cpus:2", "O2 r: cpus:3"],
            "O2 <- cpus(allocated: r):3",
        ),
        (
            "without revocable parts",
            "cpus:1",
            Kind::Regular,
            vec!["O1 r: cpus:2 + usage cpus:2", "O2 r: cpus:2"],
            "O2 <- cpus(allocated: r):1",
        ),
        (
            "two of three",
            "cpus:4",
            Kind::Regular,
            vec!["O1 r: cpus:2", "O2 r: cpus:2", "O3 r: cpus:2"],
            "O1,O2 <- cpus(allocated: r):4",
        ),
        (
            "with revocable parts if there is no other way",
            "cpus:4",
            Kind::Regular,
            vec!["O1 r: cpus:2 + usage cpus:2", "O2 r: cpus:2"],
            "O1,O2 <- cpus(allocated: r):4",
        ),
        (
            "cpus from one, ports from another",
            "cpus:1;port:80",
            Kind::Revocable,
            vec!["O1 r: usage cpus:2", "O2 r: ports:[80-90]"],
            "O1,O2 <- cpus(allocated: r){REV: USAGE_SLACK}:1; ports(allocated: r):[80-80] ports [80]",
        ),
    ] {
        assert_eq!(outcome(wanted, kind, &offers), expected, "{why}");
    }
}

#[test]
fn reserved_resources_are_used_first_and_roles_are_not_mixed() {
    let reserved = ["O1 web: cpus(web):2;cpus:2;mem:64"];
    for (wanted, expected) in [
        ("cpus:1", "O1 <- cpus(allocated: web)(reservations: [(STATIC,web)]):1"),
        (
            "cpus:3;mem:64",
            "O1 <- cpus(allocated: web):1; cpus(allocated: web)(reservations: [(STATIC,web)]):2; mem(allocated: web):64",
        ),
    ] {
        assert_eq!(outcome(wanted, Kind::Regular, &reserved), expected, "{wanted}");
    }
    let two_roles = ["O1 a: cpus:2", "O2 b: cpus:2", "O3 b: cpus:1"];
    assert_eq!(outcome("cpus:3", Kind::Regular, &two_roles), "O2,O3 <- cpus(allocated: b):3");
    assert_eq!(outcome("cpus:4", Kind::Regular, &two_roles), "requested 4 regular cpus, offered 3");
}

#[test]
fn ports_are_exact_or_the_lowest_free() {
    let offers = ["O1 r: cpus:1;ports:[31000-31002]"];
    for (wanted, expected) in [
        ("port:31001", "O1 <- ports(allocated: r):[31001-31001] ports [31001]"),
        ("port:80", "port 80 is not offered"),
        ("port:*;port:*", "O1 <- ports(allocated: r):[31000-31001] ports [31000, 31001]"),
        ("port:*;port:31000", "O1 <- ports(allocated: r):[31000-31001] ports [31001, 31000]"),
        ("port:31000;port:31000", "O1 <- ports(allocated: r):[31000-31000] ports [31000, 31000]"),
        ("port:*;port:*;port:*;port:*", "requested 4 ports, offered 3"),
    ] {
        assert_eq!(outcome(wanted, Kind::Regular, &offers), expected, "{wanted}");
    }
}

#[test]
fn totals_add_up_by_kind() {
    let offers =
        ["O1 a: cpus:2;mem:10;ports:[1-9] + usage cpus:1", "O2 b: cpus:0.5 + allocation cpus:2;mem:5"];
    let offers: Vec<HeldOffer> = offers.iter().map(|text| offer(text)).collect();
    assert_eq!(totals(&offers, Kind::Regular).to_string(), "cpus:2.5; mem:10");
    assert_eq!(totals(&offers, Kind::Revocable).to_string(), "cpus:3; mem:5");
}
