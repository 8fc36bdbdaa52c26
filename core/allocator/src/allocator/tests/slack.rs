//! Slack: what is reserved but idle is lent beside the ordinary offers, and never more of it than there is.

use super::*;

fn lending() -> Options {
    Options { allocation_slack: true, ..Options::default() }
}

fn check(script: &str, expected: Expect) {
    check_with(lending(), script, expected);
}

#[test]
fn slack_is_offered_with_ordinary_resources() {
    check(
        "
        agent A cpus:2 cpus(web):4 mem(web):64
        framework F role=ads
        at 0
        slack A
        ",
        expect![[r#"
            #1 A -> F/ads cpus:2; cpus{REV: ALLOCATION_SLACK}:4; mem{REV: ALLOCATION_SLACK}:64
            A slack: cpus:4; mem:64 of cpus:4; mem:64 is idle, cpus:4; mem:64 is lent
        "#]],
    );
}

#[test]
fn resources_offered_to_their_owner_stay_lendable() {
    check(
        "
        agent A cpus(web):4
        framework W role=web
        at 0
        framework F role=ads
        at 1
        slack A
        ",
        expect![[r#"
            #1 A -> W/web cpus(reservations: [(DYNAMIC,web)]):4
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            A slack: cpus:4 of cpus:4 is idle, cpus:4 is lent
        "#]],
    );
}

#[test]
fn only_reservations_unused_by_the_owner_are_lent() {
    check(
        "
        agent A cpus(web):4
        framework W role=web
        at 0
        launch #1 cpus(web):3
        framework F role=ads
        at 1
        slack A
        release #1 cpus(web):3
        at 2
        slack A
        ",
        expect![[r#"
            #1 A -> W/web cpus(reservations: [(DYNAMIC,web)]):4
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:1
            A slack: cpus:1 of cpus:4 is idle, cpus:1 is lent
            #3 A -> F/ads cpus{REV: ALLOCATION_SLACK}:3
            #4 A -> W/web cpus(reservations: [(DYNAMIC,web)]):4
            A slack: cpus:4 of cpus:4 is idle, cpus:4 is lent
        "#]],
    );
}

#[test]
fn own_and_ancestor_reservations_are_not_borrowed() {
    check(
        "
        agent A cpus(web):1 cpus(web,web/eu):2 cpus(ads):4
        framework E role=web/eu
        at 0
        ",
        expect![[r#"
            #1 A -> E/web/eu cpus(reservations: [(DYNAMIC,web)]):1; cpus(reservations: [(DYNAMIC,web),(DYNAMIC,web/eu)]):2; cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn borrowing_requires_the_revocable_resources_capability() {
    check(
        "
        agent A cpus(web):4
        framework F role=ads cannot=revocable
        at 0
        change F role=ads
        at 1
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn volumes_shared_and_revocable_resources_are_not_slack() {
    check(
        "
        agent A disk(web)@v:10 disk(web)@w&:10 cpus!:3 mem(web):64
        framework F role=ads
        at 0
        slack A
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV}:3; mem{REV: ALLOCATION_SLACK}:64
            A slack: mem:64 of mem:64 is idle, mem:64 is lent
        "#]],
    );
}

#[test]
fn slack_of_an_agent_is_offered_to_one_framework_per_turn() {
    check(
        "
        agent A cpus(web):4
        framework F role=ads
        framework G role=ads
        at 0
        decline #1
        at 1
        ",
        expect![[r#"
            #1 A -> G/ads cpus{REV: ALLOCATION_SLACK}:4
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn slack_is_excluded_from_shares_and_totals() {
    check(
        "
        agent A cpus(web):4
        framework F role=ads
        at 0
        launch #1 cpus~:4
        framework G role=ops
        agent B cpus:2
        at 2
        agent C cpus:1
        at 3
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            #2 B -> G/ops cpus:2
            #3 C -> F/ads cpus:1
        "#]],
    );
}

#[test]
fn quota_neither_counts_nor_limits_slack() {
    check(
        "
        quota ads least=cpus:1 most=cpus:1
        agent A cpus:3 cpus(web):4
        framework F role=ads
        at 0
        framework O role=ops cannot=revocable
        at 1
        ",
        expect![[r#"
            #1 A -> F/ads cpus:1; cpus{REV: ALLOCATION_SLACK}:4
            #2 A -> O/ops cpus:2
        "#]],
    );
}

#[test]
fn a_role_at_its_limit_is_still_lent_slack() {
    check(
        "
        quota ads most=nothing
        agent A cpus:3 cpus(web):4
        framework F role=ads
        at 0
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn either_part_above_the_minimum_makes_an_offer_of_both() {
    check(
        "
        agent A cpus:0.001 cpus(web):4
        agent B cpus:4 disk(web):10
        agent C cpus:4 mem(web):8
        agent D cpus:0.001 disk(web):10
        framework F role=ads
        at 0
        ",
        expect![[r#"
            #1 A -> F/ads cpus:0.001; cpus{REV: ALLOCATION_SLACK}:4
            #2 B -> F/ads cpus:4; disk{REV: ALLOCATION_SLACK}:10
            #3 C -> F/ads cpus:4; mem{REV: ALLOCATION_SLACK}:8
        "#]],
    );
}

#[test]
fn filter_applies_only_if_ordinary_and_slack_parts_match() {
    check(
        "
        agent A cpus:2 cpus(web):4
        framework F role=ads
        at 0
        decline #1
        at 2
        update A cpus:3 cpus(web):4
        at 3
        decline #2
        update A cpus:3 cpus(web):5
        at 4
        ",
        expect![[r#"
            #1 A -> F/ads cpus:2; cpus{REV: ALLOCATION_SLACK}:4
            #2 A -> F/ads cpus:3; cpus{REV: ALLOCATION_SLACK}:4
            #3 A -> F/ads cpus:3; cpus{REV: ALLOCATION_SLACK}:5
        "#]],
    );
}

#[test]
fn slack_below_the_minimum_joins_an_ordinary_offer() {
    check(
        "
        agent A cpus:4 disk(web):10
        framework O role=ops cannot=revocable
        framework F role=ads suppressed=ads
        at 0
        decline #1
        revive F
        at 1
        slack A
        ",
        expect![[r#"
            #1 A -> O/ops cpus:4
            #2 A -> F/ads cpus:4; disk{REV: ALLOCATION_SLACK}:10
            A slack: disk:10 of disk:10 is idle, disk:10 is lent
        "#]],
    );
}

#[test]
fn slack_below_the_minimum_goes_to_the_smallest_share() {
    check(
        "
        agent L cpus(web):4
        framework F role=ads
        at 0
        launch #1 cpus~:4
        framework G role=ops
        agent A cpus:1 cpus(ads):1 disk(web):10
        agent B cpus:1 cpus(ops):1 disk(web):10
        at 1
        ",
        expect![[r#"
            #1 L -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            #2 A -> F/ads cpus(reservations: [(DYNAMIC,ads)]):1
            #3 A -> G/ops cpus:1; cpus{REV: ALLOCATION_SLACK}:1; disk{REV: ALLOCATION_SLACK}:10
            #4 B -> F/ads cpus{REV: ALLOCATION_SLACK}:1; disk{REV: ALLOCATION_SLACK}:10
            #5 B -> G/ops cpus:1; cpus(reservations: [(DYNAMIC,ops)]):1
        "#]],
    );
}

#[test]
fn borrowers_without_an_offer_precede_decliners() {
    check(
        "
        agent A cpus(web):4
        agent L cpus(web):4
        framework F role=ads
        at 0
        launch #1 cpus~:1
        launch #2 cpus~:4
        at 6
        at 7
        framework G role=ops
        return #3
        at 8
        return #4
        at 9
        return #5
        at 10
        launch #6 cpus~:1
        at 16
        at 17
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            #2 L -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            #3 A -> F/ads cpus{REV: ALLOCATION_SLACK}:3
            #4 A -> G/ops cpus{REV: ALLOCATION_SLACK}:3
            #5 A -> G/ops cpus{REV: ALLOCATION_SLACK}:3
            #6 A -> F/ads cpus{REV: ALLOCATION_SLACK}:3
            #7 A -> G/ops cpus{REV: ALLOCATION_SLACK}:2
        "#]],
    );
}

#[test]
fn revive_clears_filters_on_slack() {
    check(
        "
        agent A cpus(web):4
        framework F role=ads
        at 0
        decline #1
        at 2
        revive F
        at 3
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn reserve_adds_slack_and_unreserve_removes_it() {
    check(
        "
        agent A cpus:4 disk:10
        framework W role=web cannot=revocable
        at 0
        framework F role=ads
        reserve #1 cpus:4 disk:10
        slack A
        at 2
        slack A
        unreserve #1 cpus(web):1
        slack A
        create #1 disk(web):4
        slack A
        ",
        expect![[r#"
            #1 A -> W/web cpus:4; disk:10
            A slack: cpus:4; disk:10 of cpus:4; disk:10 is idle, nothing is lent
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4; disk{REV: ALLOCATION_SLACK}:10
            A slack: cpus:4; disk:10 of cpus:4; disk:10 is idle, cpus:4; disk:10 is lent
            A slack: cpus:3; disk:10 of cpus:3; disk:10 is idle, cpus:4; disk:10 is lent, cpus:1 too much
            A slack: cpus:3; disk:6 of cpus:3; disk:6 is idle, cpus:4; disk:10 is lent, cpus:1; disk:4 too much
        "#]],
    );
}

#[test]
fn owner_reclaims_lent_resources_at_any_time() {
    check(
        "
        agent A cpus(web):4 mem(web):64
        framework F role=ads
        at 0
        launch #1 cpus~:3 mem~:10
        framework W role=web
        at 1
        launch #2 cpus(web):2
        slack A
        at 2
        release #1 cpus~:3 mem~:10
        slack A
        at 12
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4; mem{REV: ALLOCATION_SLACK}:64
            #2 A -> W/web cpus(reservations: [(DYNAMIC,web)]):4; mem(reservations: [(DYNAMIC,web)]):64
            A slack: cpus:2; mem:64 of cpus:4; mem:64 is idle, cpus:3; mem:10 is lent, cpus:1 too much
            A slack: cpus:2; mem:64 of cpus:4; mem:64 is idle, nothing is lent
            #3 A -> F/ads cpus{REV: ALLOCATION_SLACK}:2; mem{REV: ALLOCATION_SLACK}:64
            #4 A -> W/web cpus(reservations: [(DYNAMIC,web)]):2; mem(reservations: [(DYNAMIC,web)]):64
        "#]],
    );
}

#[test]
fn loans_of_all_roles_stay_within_the_idle_total() {
    check(
        "
        agent A cpus(web):2 cpus(ads):3
        framework W role=web
        at 0
        launch #1 cpus~:3
        framework F role=ads
        at 2
        framework O role=ops
        at 4
        slack A
        ",
        expect![[r#"
            #1 A -> W/web cpus(reservations: [(DYNAMIC,web)]):2; cpus{REV: ALLOCATION_SLACK}:3
            #2 A -> F/ads cpus(reservations: [(DYNAMIC,ads)]):3
            #3 A -> O/ops cpus{REV: ALLOCATION_SLACK}:2
            A slack: cpus:5 of cpus:5 is idle, cpus:5 is lent
        "#]],
    );
}

#[test]
fn agent_reregistration_restores_loan_accounting() {
    check(
        "
        agent A cpus(web):4 used=F/ads/cpus~:3 used=W/web/cpus(web):1
        slack A
        framework G role=ops
        at 0
        remove A
        agent A cpus(web):4 used=F/ads/cpus~:3 used=W/web/cpus(web):2
        slack A
        at 1
        ",
        expect![[r#"
            A slack: cpus:3 of cpus:4 is idle, cpus:3 is lent
            A slack: cpus:2 of cpus:4 is idle, cpus:3 is lent, cpus:1 too much
        "#]],
    );
}

#[test]
fn shrunk_agent_has_a_deficit_of_lent_resources() {
    check(
        "
        agent A cpus(web):4
        framework F role=ads
        at 0
        update A cpus(web):1
        slack A
        return #1
        slack A
        at 2
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4
            A slack: cpus:1 of cpus:1 is idle, cpus:4 is lent, cpus:3 too much
            A slack: cpus:1 of cpus:1 is idle, nothing is lent
            #2 A -> F/ads cpus{REV: ALLOCATION_SLACK}:1
        "#]],
    );
}

#[test]
fn reservations_of_opted_out_roles_are_not_lent() {
    let options = Options { allocation_slack_opt_out: ["web".into()].into(), ..lending() };
    check_with(
        options,
        "
        agent A cpus(web):1 cpus(web,web/eu):2 cpus(ads):4
        framework O role=ops
        at 0
        ",
        expect![[r#"
            #1 A -> O/ops cpus{REV: ALLOCATION_SLACK}:4
        "#]],
    );
}

#[test]
fn slack_is_not_lent_by_default() {
    check_with(
        Options::default(),
        "
        agent A cpus(web):1 used=F/ads/cpus~:1
        framework O role=ops
        at 0
        slack A
        ",
        expect![[r#"
            A slack: nothing of nothing is idle, cpus:1 is lent, cpus:1 too much
        "#]],
    );
}

#[test]
fn slack_unusable_by_the_first_borrower_goes_to_the_next() {
    check(
        "
        agent A cpus(web):4 mem(ads):64
        framework F role=web,ads,ops suppressed=ops
        at 0
        revive F ops
        at 2
        at 4
        ",
        expect![[r#"
            #1 A -> F/ads cpus{REV: ALLOCATION_SLACK}:4; mem(reservations: [(DYNAMIC,ads)]):64
            #2 A -> F/web cpus(reservations: [(DYNAMIC,web)]):4
            #3 A -> F/web mem{REV: ALLOCATION_SLACK}:64
        "#]],
    );
}
