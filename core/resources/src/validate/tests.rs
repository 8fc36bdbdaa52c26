//! Each rule broken once, and the words for it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use expect_test::{Expect, expect};

use super::*;

fn messages(json: &str) -> Vec<pb::Resource> {
    tepui_proto::json::list_from_slice(json.as_bytes()).expect("valid messages")
}

/// The first error of each.
fn check(rule: impl Fn(&[pb::Resource]) -> Result<(), ResourceError>, cases: &[String], want: Expect) {
    let line = |json: &String| match rule(&messages(json)) {
        Ok(()) => String::from("ok\n"),
        Err(error) => format!("{error}\n"),
    };
    want.assert_eq(&cases.iter().map(line).collect::<String>().replace("invalid: ", "invalid:\n  "));
}

fn cpus(rest: &str) -> String {
    format!(r#"{{"name":"cpus","type":"SCALAR","scalar":{{"value":1}}{rest}}}"#)
}

fn amount(value: f64) -> Vec<pb::Resource> {
    let mut resources = messages(&cpus(""));
    resources[0].scalar = pb::value::Scalar { value, ..Default::default() }.into();
    resources
}

fn ports(ranges: &[(u64, u64)]) -> String {
    let ranges: Vec<String> =
        ranges.iter().map(|(begin, end)| format!(r#"{{"begin":{begin},"end":{end}}}"#)).collect();
    format!(r#"{{"name":"ports","type":"RANGES","ranges":{{"range":[{}]}}}}"#, ranges.join(","))
}

fn disk(rest: &str) -> String {
    format!(r#"{{"name":"disk","type":"SCALAR","scalar":{{"value":1}}{rest}}}"#)
}

#[test]
fn values_match_their_type() {
    check(
        basic,
        &[
            cpus(""),
            cpus("").replace("cpus", ""),
            cpus("").replace("SCALAR", "TEXT"),
            cpus("").replace("SCALAR", "RANGES"),
            cpus(r#","set":{}"#),
            r#"{"name":"x","type":"SET"}"#.into(),
            ports(&[(5, 6), (1, 4)]),
            ports(&[(2, 1)]),
            ports(&[(5, 9), (1, 5)]),
            ports(&[(0, u64::MAX), (u64::MAX, u64::MAX)]),
            r#"{"name":"x","type":"SET","set":{"item":["a","b","a"]}}"#.into(),
        ],
        expect![[r#"
            ok
            Resource '' is invalid:
              Empty resource name: 'name' must be set
            Resource 'cpus' is invalid:
              Unsupported resource type: 'type' must be SCALAR, RANGES or SET
            Resource 'cpus' is invalid:
              Invalid ranges resource: 'ranges' and no other value must be set
            Resource 'cpus' is invalid:
              Invalid scalar resource: 'scalar' and no other value must be set
            Resource 'x' is invalid:
              Invalid set resource: 'set' and no other value must be set
            ok
            Resource 'ports' is invalid:
              Invalid ranges resource: begin > end in 'ranges' (2-1)
            Resource 'ports' is invalid:
              Invalid ranges resource: overlapping ranges, 5 is in 'ranges' twice
            Resource 'ports' is invalid:
              Invalid ranges resource: overlapping ranges, 18446744073709551615 is in 'ranges' twice
            Resource 'x' is invalid:
              Invalid set resource: duplicated elements, 'a' is in 'set' twice
        "#]],
    );
    let fault = |value| match basic(&amount(value)) {
        Err(ResourceError::Invalid { fault, .. }) => Some(fault),
        _ => None,
    };
    for (value, want) in [
        (0.0, None),
        (0.001, None),
        (0.0001, Some(Fault::RoundsToZero)),
        (-1.0, Some(Fault::Scalar(crate::ScalarError::Negative))),
        (f64::NAN, Some(Fault::Scalar(crate::ScalarError::NotANumber))),
        (f64::INFINITY, Some(Fault::Scalar(crate::ScalarError::Infinite))),
        (1e300, Some(Fault::Scalar(crate::ScalarError::TooLarge))),
    ] {
        assert_eq!(fault(value), want, "{value}");
    }
}

#[test]
fn disks_are_validated() {
    let source = |source: &str| disk(&format!(r#","disk":{{"source":{source}}}"#));
    check(
        basic,
        &[
            cpus(r#","disk":{}"#),
            source(r#"{"type":"PATH"}"#),
            source(r#"{"type":"MOUNT","mount":{"root":"/m"}}"#),
            source(r#"{"type":"BLOCK","mount":{}}"#),
            source(r#"{"type":"RAW","path":{}}"#),
            source(r#"{"type":"RAW","id":"x"}"#),
            source(r#"{"type":"UNKNOWN"}"#),
            disk(r#","shared":{}"#),
            cpus(r#","shared":{}"#),
        ],
        expect![[r#"
            Resource 'cpus' is invalid:
              DiskInfo should not be set: 'disk' is for the resource 'disk' only
            ok
            ok
            Resource 'disk' is invalid:
              'disk.source.mount' should not be set for BLOCK disk source
            Resource 'disk' is invalid:
              'disk.source.path' should not be set for RAW disk source
            ok
            Resource 'disk' is invalid:
              Unsupported 'disk.source.type': it must be PATH, MOUNT, BLOCK or RAW
            Resource 'disk' is invalid:
              Only persistent volumes can have 'shared' set
            Resource 'cpus' is invalid:
              Only persistent volumes can have 'shared' set
        "#]],
    );
}

#[test]
fn reservations_are_validated_in_both_formats() {
    let stack = |levels: &str, rest: &str| cpus(&format!(r#","reservations":[{levels}]{rest}"#));
    let a = r#"{"type":"DYNAMIC","role":"a","principal":"p","labels":{"labels":[{"key":"x"},{"key":"y"}]}}"#;
    let fixed = r#"{"type":"STATIC","role":"a"}"#;
    let refined = format!(r#"{fixed},{{"type":"DYNAMIC","role":"a/b"}}"#);
    check(
        basic,
        &[
            // Before refinement.
            cpus(r#","role":"*""#),
            cpus(r#","role":"a","reservation":{}"#),
            cpus(r#","role":"a b""#),
            cpus(r#","role":"a","reservation":{"type":"DYNAMIC"}"#),
            cpus(r#","role":"a","reservation":{"role":"a"}"#),
            cpus(r#","reservation":{}"#),
            // After.
            stack(a, ""),
            stack(&refined, ""),
            stack(r#"{"role":"a"}"#, ""),
            stack(r#"{"type":"UNKNOWN","role":"a"}"#, ""),
            stack(r#"{"type":"STATIC"}"#, ""),
            stack(r#"{"type":"STATIC","role":"*"}"#, ""),
            stack(r#"{"type":"STATIC","role":"/a"}"#, ""),
            stack(&format!(r#"{fixed},{{"type":"STATIC","role":"a/b"}}"#), ""),
            stack(&format!(r#"{fixed},{{"type":"DYNAMIC","role":"a"}}"#), ""),
            stack(&format!(r#"{fixed},{{"type":"DYNAMIC","role":"ab"}}"#), ""),
            // Both.
            stack(fixed, r#","role":"a""#),
            stack(fixed, r#","role":"b""#),
            stack(fixed, r#","role":"a","reservation":{}"#),
            stack(
                a,
                r#","role":"a","reservation":{"principal":"p","labels":{"labels":[{"key":"y"},{"key":"x"}]}}"#,
            ),
            stack(a, r#","role":"a","reservation":{"principal":"q"}"#),
            stack(a, r#","role":"a""#),
            stack(a, r#","reservation":{"principal":"p"}"#),
            stack(&refined, r#","role":"a""#),
            stack(&refined, r#","reservation":{}"#),
        ],
        expect![[r#"
            ok
            ok
            Resource 'cpus' is invalid:
              Invalid reservation: role 'a b': a role cannot contain the character ' '
            Resource 'cpus' is invalid:
              Invalid reservation: 'Resource.ReservationInfo.type' must not be set for the 'Resource.reservation' field
            Resource 'cpus' is invalid:
              Invalid reservation: 'Resource.ReservationInfo.role' must not be set for the 'Resource.reservation' field
            Resource 'cpus' is invalid:
              Invalid reservation: role '*' cannot be reserved
            ok
            ok
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservations[0].type' must be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservations[0].type' must be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservations[0].role' must be set
            Resource 'cpus' is invalid:
              Invalid reservation: role '*' cannot be reserved
            Resource 'cpus' is invalid:
              Invalid reservation: role '/a': a role cannot start with a slash
            Resource 'cpus' is invalid:
              Invalid reservation: a refined reservation cannot be STATIC: 'reservations[1].type' must be DYNAMIC
            Resource 'cpus' is invalid:
              Invalid reservation: role 'a' is not a refinement of 'a': it must be below 'a/'
            Resource 'cpus' is invalid:
              Invalid reservation: role 'ab' is not a refinement of 'a': it must be below 'a/'
            ok
            Resource 'cpus' is invalid:
              Invalid reservation: 'role' must agree with 'reservations' or not be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservation' must not be set together with these 'reservations'
            ok
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservation' must agree with 'reservations' or not be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'role' must agree with 'reservations' or not be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservation' must agree with 'reservations' or not be set
            Resource 'cpus' is invalid:
              Invalid reservation: 'role' must not be set together with these 'reservations'
            Resource 'cpus' is invalid:
              Invalid reservation: 'reservation' must not be set together with these 'reservations'
        "#]],
    );
}

#[test]
fn gpus_and_persistent_volumes_are_validated() {
    let volume = |persistence: &str, rest: &str| disk(&format!(r#","disk":{{{persistence}}}{rest}"#));
    let good = r#""persistence":{"id":"v"},"volume":{"container_path":"c","mode":"RW"}"#;
    let gpus = |value: &str| format!(r#"{{"name":"gpus","type":"SCALAR","scalar":{{"value":{value}}}}}"#);
    check(
        extended,
        &[
            format!("[{},{}]", gpus("0.5"), gpus("1.5")),
            gpus("0.5"),
            volume(good, r#","role":"a""#),
            volume(good, r#","role":"a","revocable":{}"#),
            volume(good, ""),
            volume(r#""persistence":{"id":"v"}"#, r#","role":"a""#),
            volume(&good.replace("\"mode\"", "\"host_path\":\"/h\",\"mode\""), r#","role":"a""#),
            volume(&good.replace("\"v\"", "\"..\""), r#","role":"a""#),
            volume(r#""volume":{"container_path":"c","mode":"RW"}"#, r#","role":"a""#),
            volume("", ""),
            cpus(r#","role":"a","reservation":{},"revocable":{}"#),
            cpus(r#","role":"a","revocable":{}"#),
            cpus("").replace("cpus", ""),
        ],
        expect![[r#"
            ok
            The 'gpus' resource must be an unsigned integer
            ok
            Resource 'disk(reservations: [(STATIC,a)])[v:c]{REV}:1' is invalid:
              Persistent volumes cannot be created from revocable resources
            Resource 'disk[v:c]:1' is invalid:
              Persistent volumes cannot be created from unreserved resources
            Resource 'disk(reservations: [(STATIC,a)])[v]:1' is invalid:
              Expecting 'disk.volume' to be set for persistent volume
            Resource 'disk(reservations: [(STATIC,a)])[v:c]:1' is invalid:
              Expecting 'disk.volume.host_path' to be unset for persistent volume
            Resource 'disk(reservations: [(STATIC,a)])[..:c]:1' is invalid:
              Persistence ID for persistent volume is invalid:
              'disk.persistence.id': '.' and '..' are disallowed as IDs
            Resource 'disk(reservations: [(STATIC,a)])[:c]:1' is invalid:
              Non-persistent volume not supported: 'disk.volume' needs 'disk.persistence'
            Resource 'disk[]:1' is invalid:
              DiskInfo is set but empty: 'disk' needs 'persistence' or 'source'
            Resource 'cpus(reservations: [(DYNAMIC,a)]){REV}:1' is invalid:
              Dynamically reserved resources cannot be revocable
            ok
            Resource '' is invalid:
              Empty resource name: 'name' must be set
        "#]],
    );
}

#[test]
fn combinations_are_validated() {
    let volume =
        |id: &str, role: &str| disk(&format!(r#","role":"{role}","disk":{{"persistence":{{"id":"{id}"}}}}"#));
    check(
        |resources| unique_persistence_ids(resources),
        &[
            format!("[{},{},{}]", volume("v", "a"), volume("v", "b"), volume("w", "a")),
            format!("[{},{}]", volume("v", "a"), volume("v", "a")),
        ],
        expect![[r#"
            ok
            Persistence ID 'v' is not unique: 'disk.persistence.id' is there twice in role 'a'
        "#]],
    );
    let revocable = cpus(r#","revocable":{}"#);
    check(
        |resources| no_revocable_mix(resources),
        &[format!("[{revocable},{}]", disk("")), format!("[{revocable},{}]", cpus(""))],
        expect![[r#"
            ok
            Cannot use both revocable and non-revocable 'cpus' at the same time
        "#]],
    );
    let allocated = |role: &str| cpus(&format!(r#","allocation_info":{{"role":"{role}"}}"#));
    check(
        |resources| single_allocation_role(resources).map(drop),
        &[
            "[]".into(),
            format!("[{},{}]", allocated("a"), allocated("a")),
            format!("[{},{}]", allocated("a"), allocated("b")),
            format!("[{},{}]", allocated("a"), cpus("")),
        ],
        expect![[r#"
            ok
            ok
            The resources are allocated to multiple roles, 'a' and 'b': there must be one
            The resource 'cpus' is not allocated to a role: 'allocation_info.role' must be set
        "#]],
    );
}

#[test]
fn duplicate_ports_are_rejected() {
    let port = |begin, end| Resources::from_proto(&messages(&ports(&[(begin, end)]))).expect("valid");
    assert_eq!(disjoint(&port(1, 4), &port(5, 9)), Ok(()));
    assert_eq!(disjoint(&port(1, 4), &Resources::new()), Ok(()));
    let error = disjoint(&port(1, 5).allocate(&"a".into()), &port(5, 9)).expect_err("5 is in both");
    assert!(error.to_string().contains("'ports'"), "{error}");
}
