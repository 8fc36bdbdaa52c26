//! Each operation on a small pool: what becomes of it, or the words of the refusal.

use alloc::format;
use alloc::string::{String, ToString};

use expect_test::{Expect, expect};

use super::*;
use crate::{Disk, DiskKind, DiskSource, Reservation, parse};

fn pool(text: &str) -> Resources {
    parse::resources(text, "*").expect("a valid pool").into_iter().collect()
}

fn operation(json: &str) -> Result<Option<Operation>, ResourceError> {
    let message = tepui_proto::json::from_slice(json.as_bytes()).expect("a valid message");
    Operation::from_proto(&message)
}

fn outcome(pool: &Resources, json: &str) -> String {
    let applied = operation(json).and_then(|operation| pool.apply(&operation.expect("a conversion")));
    applied.map_or_else(|error| format!("error: {error}"), |pool| pool.to_string())
}

/// Applies each to the same pool. The usual reservation is shortened to `(web)`, long lines are broken.
fn check(pool: &Resources, cases: &[String], want: Expect) {
    let lines = cases.iter().map(|json| format!("{}\n", outcome(pool, json)));
    let lines = lines.collect::<String>().replace("(reservations: [(DYNAMIC,web,ops)])", "(web)");
    want.assert_eq(&lines.replace(" does not contain", "\n  does not contain").replace(": '", ":\n  '"));
}

fn scalar(name: &str, amount: f64, rest: &str) -> String {
    format!(r#"{{"name":"{name}","type":"SCALAR","scalar":{{"value":{amount}}}{rest}}}"#)
}

const WEB: &str = r#","reservations":[{"type":"DYNAMIC","role":"web","principal":"ops"}]"#;
const VOLUME: &str = r#""persistence":{"id":"v"},"volume":{"container_path":"data","mode":"RW"}"#;

/// A persistent volume named `v` on a disk that the web role reserved.
fn volume(amount: f64, more: &str) -> String {
    scalar("disk", amount, &format!(r#"{WEB},"disk":{{{VOLUME}}}{more}"#))
}

#[test]
fn reserve_adds_a_reservation() {
    let reserve =
        |resources: &str| format!(r#"{{"type":"RESERVE","reserve":{{"resources":[{resources}]}}}}"#);
    let refined = r#","reservations":[{"type":"STATIC","role":"eng"},{"type":"DYNAMIC","role":"eng/web"}]"#;
    check(
        &pool("cpus:4;cpus(eng):2;mem:64"),
        &[
            reserve(&scalar("cpus", 1.5, WEB)),
            reserve(&scalar("cpus", 1.5, r#","role":"web","reservation":{"principal":"ops"}"#)),
            reserve(&format!("{},{}", scalar("cpus", 1.0, WEB), scalar("mem", 64.0, WEB))),
            reserve(&scalar("cpus", 1.0, refined)),
            reserve(&scalar("cpus", 5.0, WEB)),
            reserve(&scalar("cpus", 1.0, "")),
            reserve(&scalar("cpus", 1.0, r#","role":"web""#)),
            reserve(&scalar("cpus", f64::MAX, WEB)),
            reserve(&scalar("cpus", 1.0, &format!(r#"{WEB},"revocable":{{}}"#))),
            reserve(&format!(
                "{},{}",
                scalar("cpus", 1.0, WEB),
                scalar("mem", 1.0, &format!(r#"{WEB},"provider_id":{{"value":"p"}}"#))
            )),
            reserve(""),
            r#"{"type":"RESERVE"}"#.into(),
        ],
        expect![[r#"
            cpus:2.5; cpus(reservations: [(STATIC,eng)]):2; cpus(web):1.5; mem:64
            cpus:2.5; cpus(reservations: [(STATIC,eng)]):2; cpus(web):1.5; mem:64
            cpus:3; cpus(reservations: [(STATIC,eng)]):2; cpus(web):1; mem(web):64
            cpus:4; cpus(reservations: [(STATIC,eng)]):1; cpus(reservations: [(STATIC,eng),(DYNAMIC,eng/web)]):1; mem:64
            error: cpus:4; cpus(reservations: [(STATIC,eng)]):2; mem:64
              does not contain cpus:5
            error: Resource cpus:1 is not dynamically reserved
            error: Resource cpus(reservations: [(STATIC,web)]):1 is not dynamically reserved
            error: Resource 'cpus' is invalid: Invalid scalar resource:
              'scalar.value' is larger than 2251799813685.248
            error: Resource 'cpus(web){REV}:1' is invalid: Dynamically reserved resources cannot be revocable
            error: The resources have multiple resource providers:
              'reserve.resources' must have one 'provider_id'
            error:
              'reserve.resources' must not be empty
            error: Expecting 'reserve' to be present
        "#]],
    );
}

#[test]
fn reserve_with_source_replaces_reservations() {
    let reserve = |source: &str, resources: &str| {
        format!(r#"{{"type":"RESERVE","reserve":{{"source":[{source}],"resources":[{resources}]}}}}"#)
    };
    let eng = r#","reservations":[{"type":"STATIC","role":"eng"}]"#;
    let cpus = |amount, rest| scalar("cpus", amount, rest);
    check(
        &pool("cpus:4;cpus(eng):2"),
        &[
            reserve(&cpus(1.0, eng), &cpus(1.0, WEB)),
            reserve(&cpus(1.0, eng), &cpus(2.0, WEB)),
            reserve(&format!("{},{}", cpus(1.0, eng), cpus(1.0, "")), &cpus(2.0, WEB)),
            reserve(&cpus(3.0, eng), &cpus(3.0, WEB)),
            reserve(&cpus(1.0, eng), ""),
        ],
        expect![[r#"
            cpus:4; cpus(reservations: [(STATIC,eng)]):1; cpus(web):1
            error:
              'reserve.source' and 'reserve.resources' must have the same quantities
            error: All resources in 'reserve.source' must have the same 'reservations'
            error: cpus:4; cpus(reservations: [(STATIC,eng)]):2
              does not contain cpus(reservations: [(STATIC,eng)]):3
            error:
              'reserve.resources' must not be empty
        "#]],
    );
}

#[test]
fn unreserve_removes_the_innermost_reservation() {
    let unreserve =
        |resources: &str| format!(r#"{{"type":"UNRESERVE","unreserve":{{"resources":[{resources}]}}}}"#);
    let web = Reservation::dynamic("web").by("ops");
    check(
        &(pool("cpus:1;cpus(eng):1") + &pool("cpus:2").push_reservation(&web)),
        &[
            unreserve(&scalar("cpus", 1.5, WEB)),
            unreserve(&scalar("cpus", 3.0, WEB)),
            unreserve(&scalar("cpus", 1.0, r#","reservations":[{"type":"DYNAMIC","role":"web"}]"#)),
            unreserve(&scalar("cpus", 1.0, r#","role":"eng""#)),
            unreserve(&volume(1.0, "")),
        ],
        expect![[r#"
            cpus:2.5; cpus(reservations: [(STATIC,eng)]):1; cpus(web):0.5
            error: cpus:1; cpus(reservations: [(STATIC,eng)]):1; cpus(web):2
              does not contain cpus(web):3
            error: cpus:1; cpus(reservations: [(STATIC,eng)]):1; cpus(web):2
              does not contain cpus(reservations: [(DYNAMIC,web)]):1
            error: Resource cpus(reservations: [(STATIC,eng)]):1 is not dynamically reserved
            error: A dynamically reserved persistent volume disk(web)[v:data]:1 cannot be unreserved directly: destroy it first
        "#]],
    );
}

#[test]
fn create_turns_reserved_disk_into_a_volume() {
    let create = |volumes: &str| format!(r#"{{"type":"CREATE","create":{{"volumes":[{volumes}]}}}}"#);
    let web = Reservation::dynamic("web").by("ops");
    let mount = DiskSource::new(DiskKind::Mount { root: Some("/m".into()) });
    let mount = Resource::scalar("disk", Scalar::ONE)
        .with_disk(Some(Disk { source: Some(mount), ..Disk::default() }));
    let pool = (pool("disk:64") + &mount.into()).push_reservation(&web);
    let on_mount =
        format!(r#"{WEB},"disk":{{{VOLUME},"source":{{"type":"MOUNT","mount":{{"root":"/m"}}}}}}"#);
    check(
        &pool,
        &[
            create(&volume(16.0, "")),
            create(&volume(16.0, r#","shared":{}"#)),
            create(&scalar("disk", 1.0, &on_mount)),
            create(&scalar("disk", 0.5, &on_mount)),
            create(&volume(65.0, "")),
            create(&format!("{},{}", volume(1.0, ""), volume(2.0, ""))),
            create(&scalar("disk", 1.0, WEB)),
            create(&volume(16.0, "").replace("RW", "RO")),
            create(&volume(16.0, r#","revocable":{}"#)),
            create(&volume(16.0, "").replace(WEB, "")),
            create(&volume(16.0, "").replace("\"v\"", "\"a/b\"")),
            create(&volume(0.0, "")),
        ],
        expect![[r#"
            disk(web):48; disk(web)[v:data]:16; disk(web)[MOUNT:/m]:1
            disk(web):48; disk(web)[v:data]<SHARED>:16<1>; disk(web)[MOUNT:/m]:1
            disk(web):64; disk(web)[MOUNT:/m,v:data]:1
            error: disk(web):64; disk(web)[MOUNT:/m]:1
              does not contain disk(web)[MOUNT:/m]:0.5
            error: disk(web):64; disk(web)[MOUNT:/m]:1
              does not contain disk(web):65
            error: Persistence ID 'v' is not unique:
              'disk.persistence.id' is there twice in role 'web'
            error: Resource disk(web):1 is not a persistent volume:
              'disk.persistence' must be set
            error: Resource disk(web)[v:data]:16 cannot be created read-only:
              'disk.volume.mode' must be RW
            error: Resource 'disk(web)[v:data]{REV}:16' is invalid: Persistent volumes cannot be created from revocable resources
            error: Resource 'disk[v:data]:16' is invalid: Persistent volumes cannot be created from unreserved resources
            error: Resource 'disk(web)[a/b:data]:16' is invalid: Persistence ID for persistent volume is invalid:
              'disk.persistence.id': ID contains the invalid character '/'
            error: The size of 'create.volumes' must be greater than zero
        "#]],
    );
}

#[test]
fn destroy_restores_the_disk() {
    let destroy = |volumes: &str| format!(r#"{{"type":"DESTROY","destroy":{{"volumes":[{volumes}]}}}}"#);
    let web = Reservation::dynamic("web").by("ops");
    let disk = Resource::scalar("disk", Scalar::from_count(8)).push_reservation(web);
    let own = disk.clone().with_disk(Some(Disk::persistent("v", "elsewhere")));
    let shared = disk.with_disk(Some(Disk::persistent("s", "data"))).with_shared(true);
    let one: Resources = [own.clone(), shared.clone()].into_iter().collect();
    let shared_volume = volume(8.0, r#","shared":{}"#).replace("\"v\"", "\"s\"");
    check(
        &one,
        &[
            destroy(&volume(8.0, "")),
            destroy(&volume(4.0, "")),
            destroy(&shared_volume),
            destroy(&volume(0.0, "")),
        ],
        expect![[r#"
            disk(web):8; disk(web)[s:data]<SHARED>:8<1>
            error: disk(web)[s:data]<SHARED>:8<1>; disk(web)[v:elsewhere]:8
              does not contain disk(web)[v:data]:4
            disk(web):8; disk(web)[v:elsewhere]:8
            error: The size of 'destroy.volumes' must be greater than zero
        "#]],
    );
    let two = [own, shared.clone(), shared].into_iter().collect();
    check(
        &two,
        &[destroy(&shared_volume)],
        expect![[r#"
            error: Persistent volume 'disk(web)[s:data]<SHARED>:8<1>' cannot be removed due to additional shared copies
        "#]],
    );
}

#[test]
fn grow_and_shrink_resize_volumes() {
    let grow = |volume: &str, addition: &str| {
        format!(r#"{{"type":"GROW_VOLUME","grow_volume":{{"volume":{volume},"addition":{addition}}}}}"#)
    };
    let shrink = |volume: &str, subtract: f64| {
        format!(
            r#"{{"type":"SHRINK_VOLUME","shrink_volume":{{"volume":{volume},"subtract":{{"value":{subtract:?}}}}}}}"#
        )
    };
    let web = Reservation::dynamic("web").by("ops");
    let disk = Resource::scalar("disk", Scalar::from_count(8)).push_reservation(web);
    let pool = [disk.clone(), disk.with_disk(Some(Disk::persistent("v", "data")))].into_iter().collect();
    let on_mount = format!(r#"{WEB},"disk":{{{VOLUME},"source":{{"type":"MOUNT"}}}}"#);
    check(
        &pool,
        &[
            grow(&volume(8.0, ""), &scalar("disk", 2.0, WEB)),
            grow(&volume(8.0, ""), &scalar("disk", 9.0, WEB)),
            grow(&volume(8.0, ""), &scalar("disk", 2.0, "")),
            grow(&volume(8.0, ""), &scalar("disk", 0.0, WEB)),
            grow(&volume(8.0, ""), &scalar("mem", 1.0, WEB)),
            grow(&volume(0.0, ""), &scalar("disk", 2.0, WEB)),
            grow(&volume(8.0, r#","shared":{}"#), &scalar("disk", 2.0, WEB)),
            grow(&volume(8.0, r#","provider_id":{"value":"p"}"#), &scalar("disk", 2.0, WEB)),
            shrink(&volume(8.0, ""), 3.0),
            shrink(&volume(8.0, ""), 8.0),
            shrink(&volume(8.0, ""), 0.0),
            shrink(&volume(8.0, ""), -1.0),
            shrink(&volume(7.0, ""), 1.0),
            shrink(&scalar("disk", 8.0, WEB), 1.0),
            shrink(&scalar("disk", 8.0, &on_mount), 1.0),
        ],
        expect![[r#"
            disk(web):6; disk(web)[v:data]:10
            error: disk(web):8; disk(web)[v:data]:8
              does not contain disk(web):9; disk(web)[v:data]:8
            error: Volume disk(web)[v:data]:8 cannot grow by disk:2:
              'grow_volume.addition' must be divisible disk of the same source, reservations and allocation
            error: The size of 'grow_volume.addition' must be greater than zero
            error: Volume disk(web)[v:data]:8 cannot grow by mem(web):1:
              'grow_volume.addition' must be divisible disk of the same source, reservations and allocation
            error: The size of 'grow_volume.volume' must be greater than zero
            error: Volume disk(web)[v:data]<SHARED>:8 cannot be resized while it is shared:
              'shared' must not be set
            error: Volume disk(web)[v:data]:8 of a resource provider cannot be resized:
              'provider_id' must not be set
            disk(web):11; disk(web)[v:data]:5
            error: Volume disk(web)[v:data]:8 must be larger than 'shrink_volume.subtract'
            error: The size of 'shrink_volume.subtract' must be greater than zero
            error:
              'shrink_volume.subtract.value' is negative
            error: disk(web):8; disk(web)[v:data]:8
              does not contain disk(web)[v:data]:7
            error: Resource disk(web):8 is not a persistent volume:
              'disk.persistence' must be set
            error: Volume disk(web)[MOUNT,v:data]:8 cannot be divided: its disk is used as a whole or not at all
        "#]],
    );
}

#[test]
fn allocation_follows_the_operation() {
    let json = format!(r#"{{"type":"RESERVE","reserve":{{"resources":[{}]}}}}"#, scalar("cpus", 1.0, WEB));
    let reserve = operation(&json).expect("valid").expect("a conversion");
    let role = Role::from("web");
    let allocated = reserve.clone().allocate_missing(&role);
    assert_eq!(allocated.consumed(), pool("cpus:1").allocate(&role));
    assert_eq!(allocated.converted().unallocate(), reserve.converted());
    assert_eq!(allocated.clone().unallocate(), reserve);
    assert!(pool("cpus:1").apply(&allocated).is_err());
}

#[test]
fn other_operations_are_ignored() {
    for kind in ["LAUNCH", "LAUNCH_GROUP", "UNKNOWN", "CREATE_DISK", "DESTROY_DISK"] {
        assert_eq!(operation(&format!(r#"{{"type":"{kind}"}}"#)), Ok(None));
    }
}
