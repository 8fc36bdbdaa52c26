//! One script per behaviour of the allocator.

use super::*;

#[test]
fn new_agent_is_offered_immediately() {
    check(
        "
        deadline
        framework F role=web
        at 0
        agent A cpus:4 mem:1024 ports:31000-31009
        deadline
        at 0.1
        deadline
        free A
        ",
        expect![[r#"
            deadline None
            deadline Some(0.0)
            #1 A -> F/web cpus:4; mem:1024; ports:[31000-31009]
            deadline None
            A free: {}
        "#]],
    );
}

#[test]
fn returned_resources_wait_for_the_batch_and_filters_expire() {
    check(
        "
        framework F role=web
        agent A cpus:4 mem:1024
        at 0
        decline #1
        deadline
        at 0.5
        deadline
        at 4.9
        at 5
        launch #2 cpus:1
        at 7
        framework G role=web
        at 7.1
        return #3
        at 7.5
        deadline
        at 8
        ",
        expect![[r#"
            #1 A -> F/web cpus:4; mem:1024
            deadline Some(0.0)
            deadline Some(5.0)
            #2 A -> F/web cpus:4; mem:1024
            #3 A -> G/web cpus:3; mem:1024
            deadline Some(8.0)
            #4 A -> G/web cpus:3; mem:1024
        "#]],
    );
}

#[test]
fn filter_applies_only_to_resources_it_contains() {
    check(
        "
        framework F role=web
        agent A cpus:4 mem:1024
        at 0
        launch #1 cpus:2
        at 1
        release #1 cpus:1
        at 2
        decline #2
        at 3
        revive F
        at 3.1
        ",
        expect![[r#"
            #1 A -> F/web cpus:4; mem:1024
            #2 A -> F/web cpus:3; mem:1024
            #3 A -> F/web cpus:3; mem:1024
        "#]],
    );
}

#[test]
fn released_resources_are_merged_and_do_not_wait_for_a_batch() {
    check(
        "
        framework F role=web
        agent A cpus:4
        at 0
        launch #1 cpus:4
        at 1
        release #1 cpus:1
        deadline
        at 1.001
        release #1 cpus:1
        deadline
        at 1.002
        release #1 cpus:1
        deadline
        at 1.003
        deadline
        at 1.012
        deadline
        ",
        expect![[r#"
            #1 A -> F/web cpus:4
            deadline Some(0.0)
            deadline Some(1.010999999)
            deadline Some(1.010999999)
            deadline Some(1.010999999)
            #2 A -> F/web cpus:3
            deadline None
        "#]],
    );
}

#[test]
fn released_resources_go_to_the_lowest_share() {
    check(
        "
        framework F role=a
        agent A cpus:4
        at 0
        launch #1 cpus:4
        framework G role=b
        at 1
        release #1 cpus:1
        at 1.001
        at 1.011
        decline #2
        release #1 cpus:1
        at 1.1
        at 1.111
        return #3
        release #1 cpus:1
        at 1.2
        at 1.211
        deadline
        ",
        expect![[r#"
            #1 A -> F/a cpus:4
            #2 A -> G/b cpus:1
            #3 A -> G/b cpus:2
            #4 A -> G/b cpus:3
            deadline Some(2.0)
        "#]],
    );
}

#[test]
fn lowest_weighted_share_is_offered_first() {
    check(
        "
        framework F role=a
        framework G role=b
        agent A cpus:6 mem:60 used=F/a/cpus:2 used=G/b/cpus:3
        at 0
        return #1
        weight b 3
        at 2
        ",
        expect![[r#"
            #1 A -> F/a cpus:1; mem:60
            #2 A -> G/b cpus:1; mem:60
        "#]],
    );
}

#[test]
fn frameworks_of_a_role_share_it_and_agents_are_spread() {
    check(
        "
        framework F role=web
        framework G role=web
        framework H role=db
        agent A cpus:1 mem:100
        agent B cpus:1 mem:100
        agent C cpus:1 mem:100
        agent D cpus:1 mem:100
        at 0
        ",
        expect![[r#"
            #1 A -> H/db cpus:1; mem:100
            #2 B -> F/web cpus:1; mem:100
            #3 C -> G/web cpus:1; mem:100
            #4 D -> H/db cpus:1; mem:100
        "#]],
    );
}

#[test]
fn role_tree_is_allocated_by_subtree_share() {
    check(
        "
        framework F role=eng
        framework G role=eng/web
        framework H role=ops
        agent U cpus:10 mem:100 used=F/eng/cpus:1 used=G/eng.web/cpus:2 used=H/ops/cpus:4
        deactivate U
        agent A cpus:1 mem:100
        at 0
        launch #1 cpus:1 mem:100
        agent B cpus:2 mem:100
        at 1
        ",
        expect![[r#"
            #1 A -> F/eng cpus:1; mem:100
            #2 B -> H/ops cpus:2; mem:100
        "#]],
    );
}

#[test]
fn excluded_resources_do_not_affect_shares() {
    check_with(
        Options { fair_sharing_excluded: ["gpus".into()].into(), ..Options::default() },
        "
        framework F role=a
        framework G role=b
        agent A cpus:10 mem:100 gpus:2 used=F/a/gpus:2+cpus:1 used=G/b/cpus:2
        at 0
        ",
        expect![[r#"
            #1 A -> F/a cpus:7; mem:100
        "#]],
    );
}

#[test]
fn suppressed_roles_get_no_offers_until_revived() {
    check(
        "
        framework F role=a,b suppressed=b
        agent A cpus:1 mem:64
        at 0
        suppress F a
        return #1
        at 2
        revive F b
        at 2.1
        return #2
        suppress F
        at 4
        revive F
        at 4.1
        ",
        expect![[r#"
            #1 A -> F/a cpus:1; mem:64
            #2 A -> F/b cpus:1; mem:64
            #3 A -> F/a cpus:1; mem:64
        "#]],
    );
}

#[test]
fn reservations_are_for_the_role_and_its_children() {
    check(
        "
        framework F role=web
        framework G role=web/shop
        framework H role=db
        framework I role=web cannot=refinement
        agent A cpus(web):1 cpus(web,web/shop):2 mem(web/shop):64
        agent B cpus(db):1
        agent C cpus(web):1
        at 0
        ",
        expect![[r#"
            #1 A -> G/web/shop cpus(reservations: [(DYNAMIC,web),(DYNAMIC,web/shop)]):2; mem(reservations: [(DYNAMIC,web/shop)]):64
            #2 A -> I/web cpus(reservations: [(DYNAMIC,web)]):1
            #3 B -> H/db cpus(reservations: [(DYNAMIC,db)]):1
            #4 C -> F/web cpus(reservations: [(DYNAMIC,web)]):1
        "#]],
    );
}

#[test]
fn resources_require_the_framework_capability() {
    check(
        "
        framework F role=f cannot=revocable,shared,refinement,gpu
        agent A cpus:1 mem:64 cpus!:2 disk(f)@v&:10
        at 0
        agent B cpus:1 gpus:1
        at 1
        remove F
        at 2
        framework G role=f
        at 2.1
        ",
        expect![[r#"
            #1 A -> F/f cpus:1; mem:64
            #2 A -> G/f cpus:1; cpus{REV}:2; mem:64; disk(reservations: [(DYNAMIC,f)])[v:data]<SHARED>:10<1>
            #3 B -> G/f cpus:1; gpus:1
        "#]],
    );
}

#[test]
fn agents_are_filtered_by_capability_and_region() {
    check_with(
        Options { region: Some("eu".into()), ..Options::default() },
        "
        framework F role=a
        framework G role=b/c cannot=multi_role,region
        agent A cpus:1 plain
        agent B cpus:1 domain=us/1
        at 0
        remove F
        framework H role=d cannot=multi_role,region
        at 1
        agent C cpus:1 domain=eu/1
        at 1.1
        ",
        expect![[r#"
            #1 B -> F/a cpus:1
            #2 A -> H/d cpus:1
            #3 C -> G/b/c cpus:1
        "#]],
    );
}

#[test]
fn offers_below_the_minimum_are_not_made() {
    check(
        "
        framework F role=a
        agent A disk:1000 mem:31
        at 0
        framework G role=b min=disk:500
        at 0.1
        decline #1
        framework H role=c min=cpus:1|disk:2000
        at 1.1
        update A disk:2000 mem:31
        at 1.2
        ",
        expect![[r#"
            #1 A -> G/b mem:31; disk:1000
            #2 A -> H/c mem:31; disk:2000
        "#]],
    );
}

#[test]
fn inactive_frameworks_and_agents_get_no_offers() {
    check(
        "
        framework F role=a inactive
        agent A cpus:1
        at 0
        activate F
        at 0.1
        decline #1
        deactivate F
        at 2
        activate F
        at 2.1
        deactivate A
        return #2
        at 4
        activate A
        at 5
        remove A
        at 6
        deadline
        ",
        expect![[r#"
            #1 A -> F/a cpus:1
            #2 A -> F/a cpus:1
            #3 A -> F/a cpus:1
            deadline None
        "#]],
    );
}

#[test]
fn removed_framework_releases_all_resources() {
    check(
        "
        framework F role=a
        agent A cpus:4 mem:64
        at 0
        launch #1 cpus:1
        remove F
        free A
        framework G role=b
        at 0.1
        ",
        expect![[r#"
            #1 A -> F/a cpus:4; mem:64
            A free: cpus:4; mem:64
            #2 A -> G/b cpus:4; mem:64
        "#]],
    );
}

#[test]
fn changed_roles_of_a_framework_keep_old_allocations() {
    check(
        "
        framework F role=a
        agent A cpus:4 mem:64
        at 0
        launch #1 cpus:1
        change F role=b
        at 0.1
        release #1 cpus:1
        at 2
        ",
        expect![[r#"
            #1 A -> F/a cpus:4; mem:64
            #2 A -> F/b cpus:3; mem:64
            #3 A -> F/b cpus:1
        "#]],
    );
}

#[test]
fn shared_volumes_are_offered_once_a_run_and_stay_free() {
    check(
        "
        framework F role=web
        framework G role=web
        agent A cpus:2 mem:64 disk(web)@v&:10
        at 0
        launch #1 cpus:1 disk(web)@v&:10
        free A
        at 1
        launch #2 cpus:1 disk(web)@v&:10
        release #2 cpus:1 disk(web)@v&:10
        at 2
        ",
        expect![[r#"
            #1 A -> F/web cpus:2; mem:64; disk(reservations: [(DYNAMIC,web)])[v:data]<SHARED>:10<1>
            A free: cpus:1; mem:64; disk(reservations: [(DYNAMIC,web)])[v:data]<SHARED>:10<1>
            #2 A -> G/web cpus:1; mem:64; disk(reservations: [(DYNAMIC,web)])[v:data]<SHARED>:10<1>
            #3 A -> G/web cpus:1; mem:64; disk(reservations: [(DYNAMIC,web)])[v:data]<SHARED>:10<1>
        "#]],
    );
}

#[test]
fn removed_shared_volume_is_a_deficit_while_in_use() {
    check(
        "
        framework F role=web
        agent A cpus:2 disk(web)@v&:10
        at 0
        launch #1 cpus:1 disk(web)@v&:10
        update A cpus:2 disk:10
        free A
        release #1 cpus:1 disk(web)@v&:10
        free A
        ",
        expect![[r#"
            #1 A -> F/web cpus:2; disk(reservations: [(DYNAMIC,web)])[v:data]<SHARED>:10<1>
            A free: cpus:1
            A free: cpus:2; disk:10
        "#]],
    );
}

#[test]
fn reserving_offered_resources_changes_the_agent() {
    check(
        "
        framework F role=web
        framework G role=db inactive
        agent A cpus:4 mem:64
        at 0
        reserve #1 cpus:1
        return #1
        free A
        suppress F
        activate G
        at 2
        ",
        expect![[r#"
            #1 A -> F/web cpus:4; mem:64
            A free: cpus:3; cpus(reservations: [(DYNAMIC,web)]):1; mem:64
            #2 A -> G/db cpus:3; mem:64
        "#]],
    );
}

#[test]
fn overallocated_agent_recovers_its_deficit_first() {
    check(
        "
        framework F role=web
        agent A cpus:4 mem:64
        at 0
        launch #1 cpus:3
        update A cpus:2 mem:64
        free A
        release #1 cpus:2
        free A
        update A cpus:3 mem:64
        free A
        ",
        expect![[r#"
            #1 A -> F/web cpus:4; mem:64
            A free: mem:64
            A free: cpus:1; mem:64
            A free: cpus:2; mem:64
        "#]],
    );
}

#[test]
fn overallocated_resources_are_offered_to_no_role() {
    check(
        "
        framework F role=web
        agent A cpus:4 mem:64
        at 0
        launch #1 cpus:4
        update A cpus:3 cpus(web):1 mem:64
        free A
        release #1 cpus:1
        free A
        ",
        expect![[r#"
            #1 A -> F/web cpus:4; mem:64
            A free: mem:64
            A free: cpus(reservations: [(DYNAMIC,web)]):1; mem:64
        "#]],
    );
}

#[test]
fn unavailable_agents_cause_inverse_offers() {
    check(
        "
        framework F role=web
        framework G role=db inactive
        agent A cpus:4 mem:64 used=F/web/cpus:1 used=G/db/cpus:1
        at 0
        unavailable A
        at 0.1
        at 1
        stay F A
        at 2
        deadline
        at 6.1
        unavailable A
        at 6.2
        activate G
        at 6.3
        available A
        at 7
        ",
        expect![[r#"
            #1 A -> F/web cpus:2; mem:64
            inverse A -> F
            deadline Some(6.0)
            inverse A -> F
            inverse A -> F
            inverse A -> G
        "#]],
    );
}

#[test]
fn allocation_turn_stops_at_its_budget() {
    check(
        "
        framework F role=a
        agent A cpus:1
        agent B cpus:1
        agent C cpus:1
        at 0 2
        deadline
        at 0 2
        deadline
        ",
        expect![[r#"
            #1 A -> F/a cpus:1
            #2 B -> F/a cpus:1
            deadline Some(0.0)
            #3 C -> F/a cpus:1
            deadline None
        "#]],
    );
}

#[test]
fn simultaneous_filter_expirations_fit_the_turn_budget() {
    check(
        "
        framework F role=a
        agent A cpus:1
        agent B cpus:1
        agent C cpus:1
        at 0
        decline #1
        decline #2
        decline #3
        at 1
        at 5 1
        deadline
        at 5 1
        deadline
        at 5 1
        at 5
        deadline
        ",
        expect![[r#"
            #1 A -> F/a cpus:1
            #2 B -> F/a cpus:1
            #3 C -> F/a cpus:1
            deadline Some(0.0)
            deadline Some(0.0)
            #4 A -> F/a cpus:1
            #5 B -> F/a cpus:1
            #6 C -> F/a cpus:1
            deadline None
        "#]],
    );
}

#[test]
fn filter_outlives_a_late_batch() {
    check(
        "
        framework F role=a
        agent A cpus:4 mem:1024
        at 0
        framework G role=b min=cpus:4
        decline #1
        at 60
        decline #2
        deadline
        at 61
        at 120
        ",
        expect![[r#"
            #1 A -> F/a cpus:4; mem:1024
            #2 A -> G/b cpus:4; mem:1024
            deadline Some(61.0)
            #3 A -> F/a cpus:4; mem:1024
        "#]],
    );
}

#[test]
fn offer_constraints_choose_agents() {
    let agents = "
        agent A cpus:1 rack=a1 zone=z
        agent B cpus:1 rack=b1
        agent C cpus:1
        agent D cpus:1 rack=7
        agent E cpus:1 domain=eu/1
        ";
    for (wanted, offered) in [
        ("rack", "A B D"),
        ("!rack", "C E"),
        ("rack:a1", "A D"),
        ("rack!:a1", "B C D E"),
        ("rack~a", "D"),
        ("rack~[ab][0-9]", "A B D"),
        ("rack!~a.*", "B C D E"),
        ("rack~a.*&zone|REGION:eu", "A E"),
        ("HOSTNAME~h.*&!ZONE&rack", "A B D"),
        ("HOSTNAME:h", ""),
    ] {
        let mut script = Script::new(Options::default());
        let lines = format!("framework F role=a where={wanted}\n{agents}");
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| script.line(line));
        script.run(0.0, &mut unlimited);
        let names: Vec<_> = script.grants.iter().map(|grant| grant.agent.as_str()).collect();
        assert_eq!(names.join(" "), offered, "{wanted}");
    }
}

#[test]
fn offer_constraints_follow_agents_and_frameworks_that_change() {
    check(
        "
        framework F role=a where=rack:x
        agent A cpus:1 rack=y
        at 0
        update A cpus:1 rack=x
        at 0.1
        return #1
        update A cpus:1 rack=y
        at 2
        remove A
        agent B cpus:1 rack=x
        at 3
        return #2
        change F role=a where=rack:y
        at 5
        change F role=a
        at 6
        ",
        expect![[r#"
            #1 A -> F/a cpus:1
            #2 B -> F/a cpus:1
            #3 B -> F/a cpus:1
        "#]],
    );
}

#[test]
fn patterns_are_limited_and_match_whole_texts() {
    let long = "a".repeat(2000);
    for (pattern, wrong) in [
        ("a)(b", "unopened group"),
        ("(", "unclosed group"),
        (long.as_str(), "it is longer than 1024 bytes"),
        ("(a{1000}){1000}", "it takes more than 262144 bytes when compiled"),
    ] {
        let error = Pattern::new(pattern).unwrap_err().to_string();
        assert!(error.contains(wrong), "{pattern}: {error}");
    }
    assert!(Pattern::new("[a-z0-9.-]+\\d\\w*(x|y)?").is_ok());
}

#[test]
fn refuse_seconds_are_clamped() {
    let allocator =
        Allocator::new(Options { allocation_interval: Duration::from_secs(1), ..Options::default() });
    let now = Mono(1_000_000_000);
    for (given, seconds) in [
        (None, Some(5.0)),
        (Some(0.0), None),
        (Some(0.25), Some(1.0)),
        (Some(30.0), Some(30.0)),
        (Some(-3.0), Some(5.0)),
        (Some(f64::NAN), Some(5.0)),
        (Some(f64::INFINITY), Some(31_536_000.0)),
    ] {
        let until = allocator.refusal(now, given).map(|until| until.since(now).as_secs_f64());
        assert_eq!(until, seconds, "{given:?}");
    }
}

#[test]
fn only_whitelisted_hosts_are_offered() {
    let mut allocator = Allocator::new(Options::default());
    allocator.add_framework(FrameworkSpec::new(framework("F"), "a".into()));
    allocator.set_whitelist(Some(BTreeSet::from(["x".into()])));
    for (name, host) in [("A", "x"), ("B", "y")] {
        let spec = AgentSpec { hostname: host.into(), ..agent_spec(&["cpus:1"]).0 };
        allocator.add_agent(agent(name), spec, Vec::new());
    }
    let offered = |allocator: &mut Allocator, at| {
        let grants = allocator.allocate(Mono(at), &mut unlimited).grants;
        grants.iter().map(|grant| grant.agent.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(offered(&mut allocator, 0), ["A"]);
    allocator.set_whitelist(None);
    assert_eq!(offered(&mut allocator, 2_000_000_000), ["B"]);
}

#[test]
fn random_sorter_follows_weights() {
    let options =
        Options { role_sorter: Sorter::Random, framework_sorter: Sorter::Random, ..Options::default() };
    let mut allocator = Allocator::new(options);
    for (name, role) in [("F", "web"), ("G", "web"), ("H", "ads")] {
        allocator.add_framework(FrameworkSpec::new(framework(name), role.into()));
    }
    allocator.set_weights(&BTreeMap::from([("web".into(), 4.0)]));
    for n in 0..2_000 {
        allocator.add_agent(agent(&format!("A{n}")), agent_spec(&["cpus:1"]).0, Vec::new());
    }
    let mut given: BTreeMap<FrameworkId, usize> = BTreeMap::new();
    for grant in allocator.allocate(Mono(0), &mut unlimited).grants {
        *given.entry(grant.framework).or_default() += 1;
    }
    for (name, share) in [("F", 800), ("G", 800), ("H", 400)] {
        assert!(given[&framework(name)].abs_diff(share) < 100, "{given:?}");
    }
    allocator.audit().unwrap();
}
