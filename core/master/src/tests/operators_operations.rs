//! What operators do to resources: reserved, made into volumes, resized, and back.

use alloc::format;
use alloc::string::String;

use expect_test::expect;

use super::check;

fn on(kind: &str, field: &str, body: &str) -> String {
    format!(r#"call {{"type":"{kind}","{field}":{{"agent_id":{{"value":"@A"}},{body}}}}}"#)
}

const RESERVED: &str = r#"{"name":"disk","type":"SCALAR","scalar":{"value":100},"reservations":[{"type":"DYNAMIC","role":"web"}]}"#;

fn volume(size: u32) -> String {
    format!(
        r#"{{"name":"disk","type":"SCALAR","scalar":{{"value":{size}}},"reservations":[{{"type":"DYNAMIC","role":"web"}}],"disk":{{"persistence":{{"id":"v1"}},"volume":{{"container_path":"data","mode":"RW"}}}}}}"#
    )
}

#[test]
fn offers_with_the_needed_resources_are_rescinded() {
    let reserve = on("RESERVE_RESOURCES", "reserve_resources", &format!(r#""resources":[{RESERVED}]"#));
    check(
        &format!(
            "agent A cpus:4 disk:150
             agent B cpus:4 disk:150
             framework F role:web
             settle
             {reserve}
             after 1s
             --
             {reserve}
             --
             after 10s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record admit agent B at B
            B <- SUBSCRIBED B
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; disk:150) #1 of B (cpus:4; disk:150)
            F <- RESCIND #0
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            F <- OFFERS #2 of A (cpus:4; disk:50; disk(web):100)
            --
            operator <- 409: disk:100 does not exist or is in use
            --
        "#]],
    );
}

#[test]
fn operator_creates_grows_shrinks_and_destroys_a_volume() {
    let reserve = on("RESERVE_RESOURCES", "reserve_resources", &format!(r#""resources":[{RESERVED}]"#));
    let create = on("CREATE_VOLUMES", "create_volumes", &format!(r#""volumes":[{}]"#, volume(50)));
    let addition = RESERVED.replace("100", "20");
    let grow = on("GROW_VOLUME", "grow_volume", &format!(r#""volume":{},"addition":{addition}"#, volume(50)));
    let shrink = on(
        "SHRINK_VOLUME",
        "shrink_volume",
        &format!(r#""volume":{},"subtract":{{"value":40}}"#, volume(70)),
    );
    let destroy = on("DESTROY_VOLUMES", "destroy_volumes", &format!(r#""volumes":[{}]"#, volume(30)));
    let unreserve = on("UNRESERVE_RESOURCES", "unreserve_resources", &format!(r#""resources":[{RESERVED}]"#));
    check(
        &format!(
            "agent A cpus:4 disk:150
             {create}
             {reserve}
             {create}
             {create}
             {unreserve}
             {grow}
             {shrink}
             {destroy}
             {destroy}
             {unreserve}
             framework F role:x
             settle"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            operator <- 409: disk(web):50 does not exist or is in use
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            A <- APPLY_OPERATION CREATE
            operator <- 202
            operator <- 400: Invalid CREATE operation on agent A at slave(1)@A:5051 (A): Persistence ID 'v1' is not unique: 'disk.persistence.id' is there twice in role 'web'
            operator <- 409: disk(web):100 does not exist or is in use
            A <- APPLY_OPERATION GROW_VOLUME
            operator <- 202
            A <- APPLY_OPERATION SHRINK_VOLUME
            operator <- 202
            A <- APPLY_OPERATION DESTROY
            operator <- 202
            operator <- 400: Invalid DESTROY operation on agent A at slave(1)@A:5051 (A): Persistent volume disk(web)[v1:data]:30 does not exist on the agent
            A <- APPLY_OPERATION UNRESERVE
            operator <- 202
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; disk:150)
        "#]],
    );
}

#[test]
fn used_or_missing_resources_conflict_and_invalid_ones_are_rejected() {
    let reserve = |resource: &str| {
        on("RESERVE_RESOURCES", "reserve_resources", &format!(r#""resources":[{resource}]"#))
    };
    let much = reserve(&RESERVED.replace("100", "1000"));
    let used = reserve(RESERVED);
    let plain = reserve(r#"{"name":"disk","type":"SCALAR","scalar":{"value":1}}"#);
    let allocated =
        reserve(&RESERVED.replace(r#""reservations""#, r#""allocation_info":{"role":"web"},"reservations""#));
    let stranger = used.replace("@A", "nope");
    check(
        &format!(
            "agent A cpus:4 disk:150
             framework F role:web
             settle
             F accept #0 : launch t1 cpus:1 disk:100
             {much}
             {used}
             {plain}
             {allocated}
             {stranger}"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; disk:150)
            A <- LAUNCH t1 (cpus:1; disk:100)
            operator <- 409: disk:1000 does not exist or is in use
            operator <- 409: disk:100 does not exist or is in use
            operator <- 400: Invalid RESERVE operation on agent A at slave(1)@A:5051 (A): Resource disk:1 is not dynamically reserved
            operator <- 400: Invalid RESERVE operation on agent A at slave(1)@A:5051 (A): Resource disk(web):100 is allocated; only unallocated resources can be changed
            operator <- 400: No agent found with specified ID
        "#]],
    );
}
