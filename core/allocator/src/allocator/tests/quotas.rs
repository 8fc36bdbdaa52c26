//! Scripts about quota: guarantees, limits, headroom, and when what they keep back is offered after all.

use super::*;

#[test]
fn quota_limit_shrinks_offers_then_stops_them() {
    check(
        "
        quota web most=cpus:3
        framework F role=web
        agent A cpus:2 mem:64
        at 0
        agent B cpus:2 mem:64
        at 1
        agent C cpus:2
        at 2
        deadline
        ",
        expect![[r#"
            #1 A -> F/web cpus:2; mem:64
            #2 B -> F/web cpus:1; mem:64
            deadline None
        "#]],
    );
}

#[test]
fn resources_withheld_by_a_limit_are_offered_below_it() {
    check(
        "
        quota web most=cpus:2
        framework F role=web
        agent A cpus:2
        at 0
        launch #1 cpus:2
        agent B cpus:4
        at 1
        release #1 cpus:1
        deactivate A
        at 1.001
        at 1.1
        deadline
        at 2
        quota web most=cpus:3
        at 2.5
        at 3
        quota web
        at 4
        ",
        expect![[r#"
            #1 A -> F/web cpus:2
            deadline Some(2.0)
            #2 B -> F/web cpus:1
            #3 B -> F/web cpus:1
            #4 B -> F/web cpus:2
        "#]],
    );
}

#[test]
fn quota_limit_includes_child_roles() {
    check(
        "
        quota eng most=cpus:3
        quota eng/web most=cpus:1
        framework F role=eng/web
        agent A cpus:2
        at 0
        launch #1 cpus:1
        framework G role=eng/db
        agent B cpus:4
        at 1
        launch #2 cpus:1
        launch #3 cpus:1
        suppress G
        framework H role=eng
        at 2
        ",
        expect![[r#"
            #1 A -> F/eng/web cpus:1
            #2 A -> G/eng/db cpus:1
            #3 B -> G/eng/db cpus:1
        "#]],
    );
}

#[test]
fn reservations_count_as_quota_consumption_even_if_unallocated() {
    check(
        "
        quota web most=cpus:3
        framework F role=web
        agent A cpus(web):2
        at 0
        agent B cpus:4 mem:32
        at 1
        reserve #2 cpus:1
        return #2
        at 2
        return #1
        agent C cpus(web):9
        at 3
        ",
        expect![[r#"
            #1 A -> F/web cpus(reservations: [(DYNAMIC,web)]):2
            #2 B -> F/web cpus:1; mem:32
            #3 B -> F/web cpus(reservations: [(DYNAMIC,web)]):1; mem:32
            #4 A -> F/web cpus(reservations: [(DYNAMIC,web)]):2
            #5 C -> F/web cpus(reservations: [(DYNAMIC,web)]):9
        "#]],
    );
}

#[test]
fn quota_limits_apply_only_to_named_nonrevocable_resources() {
    check(
        "
        quota web most=cpus:1+disk:1
        framework F role=web
        agent A cpus:2 cpus!:3 mem:64 ports:1-9 disk(web):7
        at 0
        ",
        expect![[r#"
            #1 A -> F/web cpus:1; cpus{REV}:3; mem:64; disk(reservations: [(DYNAMIC,web)]):7; ports:[1-9]
        "#]],
    );
}

#[test]
fn guaranteed_resources_are_withheld_from_other_roles() {
    check(
        "
        quota web least=cpus:3+mem:64
        framework F role=db
        agent A cpus:4 mem:128 ports:1-9
        at 0
        deadline
        framework G role=web
        at 0.1
        return #1
        at 1
        launch #2 cpus:3
        at 2
        ",
        expect![[r#"
            #1 A -> F/db cpus:1; mem:64; ports:[1-9]
            deadline None
            #2 A -> G/web cpus:3; mem:64
            #3 A -> F/db cpus:1; mem:64; ports:[1-9]
        "#]],
    );
}

#[test]
fn guarantees_are_satisfied_before_fair_shares() {
    check(
        "
        framework F role=web
        framework G role=db
        agent U cpus:10 mem:100 used=F/web/cpus:5
        deactivate U
        agent A cpus:2 mem:100
        at 0
        return #1
        quota web least=cpus:6
        at 1
        launch #2 cpus:1
        at 2
        ",
        expect![[r#"
            #1 A -> G/db cpus:2; mem:100
            #2 A -> F/web cpus:2; mem:100
            #3 A -> G/db cpus:1; mem:100
        "#]],
    );
}

#[test]
fn unused_guarantee_leaves_the_surplus_offered() {
    check(
        "
        quota web least=cpus:2
        framework F role=db
        agent A cpus:2 mem:64
        at 0
        agent B cpus:2 mem:64
        at 1
        remove B
        at 2
        agent C cpus:2 mem:64
        deadline
        at 2.1
        quota web least=cpus:1
        deadline
        at 3
        quota web
        at 4
        ",
        expect![[r#"
            #1 A -> F/db mem:64
            #2 B -> F/db cpus:2; mem:64
            deadline Some(0.0)
            #3 A -> F/db cpus:2
            #4 C -> F/db mem:64
            deadline Some(3.1)
            #5 C -> F/db cpus:2
        "#]],
    );
}

#[test]
fn resources_withheld_as_headroom_are_offered_as_surplus_grows() {
    check(
        "
        quota web least=cpus:2
        framework F role=db
        agent A cpus:2
        at 0
        agent B cpus:2
        at 1
        decline #1
        deadline
        at 2
        ",
        expect![[r#"
            #1 B -> F/db cpus:2
            deadline Some(2.0)
            #2 A -> F/db cpus:2
        "#]],
    );
}

#[test]
fn a_child_guarantee_counts_towards_its_parent() {
    check(
        "
        quota eng least=cpus:3
        quota eng/web least=cpus:2
        framework F role=eng/db
        framework G role=ops
        agent A cpus:4
        at 0
        framework H role=eng/web
        at 0.1
        return #1
        return #2
        at 1
        ",
        expect![[r#"
            #1 A -> F/eng/db cpus:2
            #2 A -> H/eng/web cpus:2
            #3 A -> F/eng/db cpus:2
            #4 A -> H/eng/web cpus:2
        "#]],
    );
}

#[test]
fn quota_and_fair_share_stages_make_one_offer() {
    check(
        "
        quota web least=cpus:1 most=cpus:2
        quota db least=cpus:1
        framework F role=web
        framework G role=db
        agent A cpus:1 mem:64
        agent B cpus:3 mem:64
        at 0
        ",
        expect![[r#"
            #1 A -> F/web cpus:1; mem:64
            #2 B -> G/db cpus:3; mem:64
        "#]],
    );
}

#[test]
fn mount_disks_are_offered_whole_or_not_at_all() {
    check(
        "
        quota web most=disk:10
        framework F role=web
        agent A cpus:1 disk%:8 disk%:6 disk:4
        at 0
        ",
        expect![[r#"
            #1 A -> F/web cpus:1; disk:4; disk[MOUNT]:6
        "#]],
    );
}

#[test]
fn recovering_master_with_quota_withholds_offers_until_agents_register() {
    check(
        "
        recover 4
        framework F role=web
        agent A cpus:1
        at 0
        recover 4
        quota db most=cpus:1
        agent B cpus:1
        at 1
        deadline
        agent C cpus:1
        deadline
        at 2
        remove C
        agent D cpus:1
        at 3
        ",
        expect![[r#"
            #1 A -> F/web cpus:1
            deadline Some(600.0)
            deadline Some(0.0)
            #2 B -> F/web cpus:1
            #3 C -> F/web cpus:1
            #4 D -> F/web cpus:1
        "#]],
    );
}

#[test]
fn recovering_master_stops_withholding_offers_after_a_timeout() {
    check(
        "
        quota db most=cpus:1
        recover 100
        framework F role=web
        agent A cpus:1
        at 599
        at 600
        ",
        expect![[r#"
            #1 A -> F/web cpus:1
        "#]],
    );
}

/// Agents equal to one without a taker are not shown again; every change that may affect this is noticed.
#[test]
fn declined_agents_are_offered_again_after_a_change() {
    check(
        "
        quota web most=cpus:4
        framework F role=web
        agent A cpus:4
        at 0
        agent B cpus:4
        agent C cpus:4
        agent D cpus:4
        at 1
        activate B
        activate C
        at 2
        quota web most=cpus:8
        remove B
        at 3
        activate C
        activate D
        at 4
        remove A
        at 5
        framework G role=other min=cpus:8
        agent E cpus:4
        agent H cpus:4
        at 6
        activate E
        activate H
        at 7
        change G role=other
        at 8
        ",
        expect![[r#"
            #1 A -> F/web cpus:4
            #2 C -> F/web cpus:4
            #3 D -> F/web cpus:4
            #4 E -> G/other cpus:4
            #5 H -> G/other cpus:4
        "#]],
    );
}

/// Their free resources are equal, but not their takers.
#[test]
fn agents_unlike_a_declined_agent_are_offered() {
    for (framework, unallocatable, wanted) in [
        ("", "cpus:4 plain", "cpus:4"),
        ("where=rack:a", "cpus:4 rack=b", "cpus:4 rack=a"),
        ("cannot=revocable", "cpus!:4", "cpus:4"),
    ] {
        let mut script = Script::new(Options::default());
        script.line(&format!("framework F role=web {framework}"));
        (0..8).for_each(|number| script.line(&format!("agent A{number} {unallocatable}")));
        script.line("agent B0 cpus:1");
        (1..4).for_each(|number| script.line(&format!("agent B{number} {wanted}")));
        script.line("at 0");
        script.allocator.audit().unwrap();
        let offered: Vec<&str> = script.grants.iter().map(|grant| grant.agent.as_str()).collect();
        let expected: &[&str] =
            if framework.starts_with("where") { &["B1", "B2", "B3"] } else { &["B0", "B1", "B2", "B3"] };
        assert_eq!(offered, expected, "{framework} {unallocatable}");
    }
}
