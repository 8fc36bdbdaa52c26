//! Every reason once, from the smallest cluster that has it.

use alloc::format;
use alloc::string::String;

use expect_test::{Expect, expect};

use super::*;
use crate::Options;
use crate::allocator::tests::Script;

fn check(script: &str, expected: Expect) {
    check_with(Options::default(), script, expected);
}

fn check_with(options: Options, script: &str, expected: Expect) {
    let mut state = Script::new(options.clone());
    script.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| state.line(line));
    let mut inquiry = state.allocator.inquire(&FrameworkId::new("F")).expect("F is there");
    // One agent at a time.
    while !state.allocator.advance(&mut inquiry, &mut || false) {}
    let report = state.allocator.answer(inquiry).expect("F is there");
    let mut said = String::new();
    for client_report in report.roles {
        let place = client_report
            .place
            .map_or_else(|| "out of the order".into(), |it| format!("{} of {}", it.place, it.of));
        said += &format!("{}: {place}, share {:.3}\n", client_report.role, client_report.share);
        for Finding { reason, agents, example } in client_report.findings {
            said += &format!("  {agents} as {example}: {reason}\n", reason = show(&reason));
        }
        let Borrowing { borrowed, share, place } = client_report.borrowing;
        if !borrowed.is_empty() {
            said += &format!("  it borrows {borrowed}\n");
        }
        if let (true, Some(Place { place, of })) = (options.allocation_slack, place) {
            said += &format!("  {place} of {of} borrowers, share {share:.3}\n");
        }
        for Finding { reason, agents, example } in client_report.slack {
            if reason != Reason::NothingReserved {
                said += &format!("  slack of {agents} as {example}: {reason}\n", reason = show(&reason));
            }
        }
    }
    expected.assert_eq(&said);
}

fn show(reason: &Reason) -> String {
    let at = |at: &Mono| at.0 / 1_000_000_000;
    match reason {
        Reason::Offered { since } => format!("offered since {}", at(since)),
        Reason::HeldInOffer { by, since } => format!("held by {by} since {}", at(since)),
        Reason::Refused { until, refused } => format!("refused {refused} until {}", at(until)),
        Reason::QuotaLimit { role, consumed, limits } => {
            let limits: Quantities = limits.iter().map(|(name, limit)| (name.clone(), limit)).collect();
            format!("{role} has {consumed} of {limits}")
        }
        Reason::Headroom { required } => format!("{required} is kept"),
        Reason::ReservedFor(role) => format!("reserved for {role}"),
        Reason::LentTo(framework) => format!("lent to {framework}"),
        Reason::NotLent(role) => format!("not lent: {role:?}"),
        Reason::Borrows
        | Reason::OthersFirst
        | Reason::NothingReserved
        | Reason::Waiting
        | Reason::Suppressed
        | Reason::FrameworkInactive
        | Reason::AgentInactive
        | Reason::NotWhitelisted
        | Reason::LacksCapability(_)
        | Reason::OfferConstraint
        | Reason::InUse
        | Reason::BelowMinAllocatable => format!("{reason:?}"),
    }
}

#[test]
fn explanation_names_offered_declined_and_pending_agents() {
    check(
        "
        agent A cpus:1
        agent B cpus:2
        framework F role=web
        at 1
        decline #2
        agent C cpus:4
        ",
        expect![[r#"
            web: 1 of 1, share 0.143
              1 as C: Waiting
              1 as A: offered since 1
              1 as B: refused cpus:2 until 6
        "#]],
    );
}

#[test]
fn explanation_names_offered_and_allocated_resources() {
    check(
        "
        agent A cpus:1
        agent B cpus:2
        framework G role=ads
        at 3
        launch #1 cpus:1
        framework F role=web
        at 4
        ",
        expect![[r#"
            web: 1 of 2, share 0.000
              1 as B: held by G since 3
              1 as A: InUse
        "#]],
    );
}

#[test]
fn explanation_names_every_filter_of_an_agent() {
    check(
        "
        agent A cpus(ads):1
        agent B cpus:0.001
        agent C cpus:1 rack=a
        agent D cpus:1 gpus:1
        agent E cpus:1 domain=far/1
        agent G cpus!:1
        agent H cpus:1
        deactivate H
        framework F role=web where=!rack cannot=gpu,revocable
        at 0
        ",
        expect![[r#"
            web: 1 of 1, share 0.167
              1 as E: offered since 0
              1 as H: AgentInactive
              1 as D: LacksCapability(GpuResources)
              1 as G: LacksCapability(RevocableResources)
              1 as C: OfferConstraint
              1 as A: reserved for ads
              1 as B: BelowMinAllocatable
              slack of 1 as A: not lent: None
        "#]],
    );
}

#[test]
fn explanation_names_the_limiting_quota() {
    check(
        "
        quota web most=cpus:1
        agent A cpus:4 used=F/web/cpus:1
        framework F role=web
        at 0
        ",
        expect![[r#"
            web: 1 of 1, share 0.250
              1 as A: web has cpus:1 of cpus:1
        "#]],
    );
    check(
        "
        quota ads least=cpus:4
        agent A cpus:4
        framework F role=web
        at 0
        ",
        expect![[r#"
            web: 1 of 1, share 0.000
              1 as A: cpus:4 is kept
        "#]],
    );
}

#[test]
fn explanation_marks_roles_excluded_from_the_order() {
    check(
        "
        agent A cpus:4
        agent B cpus:4 used=G/ads/cpus:2
        framework G role=ads
        framework F role=web,ops suppressed=ops
        weight web 4
        at 0
        ",
        expect![[r#"
            ops: out of the order, share 0.000
              2 as A: offered since 0
            web: 1 of 2, share 0.750
              2 as A: offered since 0
        "#]],
    );
}

#[test]
fn explanation_names_suppressed_roles() {
    check(
        "
        agent A cpus:4
        framework F role=web suppressed=web
        at 0
        ",
        expect![[r#"
            web: out of the order, share 0.000
              1 as A: Suppressed
        "#]],
    );
    check(
        "
        framework F role=web
        deactivate F
        agent A cpus:4
        at 0
        ",
        expect![[r#"
            web: out of the order, share 0.000
              1 as A: FrameworkInactive
        "#]],
    );
}

#[test]
fn role_explanation_has_share_position_and_quota() {
    let mut state = Script::new(Options::default());
    for line in [
        "quota web least=cpus:3 most=cpus:4",
        "weight web 2",
        "agent A cpus:10 used=F/web/cpus:2",
        "framework F role=web",
        "framework G role=ads",
    ] {
        state.line(line);
    }
    let report = state.allocator.explain_role(&"web".into()).expect("web is there");
    let said = format!(
        "{} weight {} share {} {:?} holds {} consumes {} requires {} surplus {} frameworks {}",
        report.role,
        report.weight,
        report.share,
        report.place,
        report.held,
        report.consumed,
        report.required,
        report.surplus,
        report.frameworks.len(),
    );
    expect!["web weight 2 share 0.09999999999999999 Some(Place { place: 2, of: 2 }) holds cpus:2 consumes cpus:2 requires cpus:1 surplus cpus:7 frameworks 1"].assert_eq(&said);
    assert!(state.allocator.explain_role(&"other".into()).is_none());
}

#[test]
fn explanation_has_the_position_among_borrowers() {
    let lending = Options { allocation_slack: true, ..Options::default() };
    check_with(
        lending,
        "
        agent A cpus(web):1
        agent B cpus:0.001 cpus(web):3
        agent C cpus:4 disk(web):4
        framework F role=ads
        weight ads 2
        at 1
        launch #1 cpus~:1
        return #2
        return #3
        framework G role=ops
        framework H role=ads
        ",
        expect![[r#"
            ads: 3 of 3, share 0.000
              2 as B: Waiting
              1 as A: reserved for web
              it borrows cpus:1
              3 of 3 borrowers, share 0.250
              slack of 1 as C: Waiting
              slack of 1 as A: Borrows
              slack of 1 as B: OthersFirst
        "#]],
    );
}

#[test]
fn explanation_distinguishes_lent_from_unlendable_resources() {
    let lending = Options { allocation_slack: true, ..Options::default() };
    check_with(
        lending.clone(),
        "
        agent A cpus(web):4
        agent B cpus(web):2
        agent C cpus(web):2
        agent D cpus(ads):2
        agent E cpus:1
        framework F role=ads
        at 1
        launch #1 cpus~:4
        decline #2
        ",
        expect![[r#"
            ads: 1 of 1, share 0.273
              3 as A: reserved for web
              2 as D: offered since 1
              it borrows cpus:6
              1 of 1 borrowers, share 0.600
              slack of 1 as C: offered since 1
              slack of 1 as D: reserved for ads
              slack of 1 as B: refused cpus{REV: ALLOCATION_SLACK}:2 until 6
              slack of 1 as A: Borrows
        "#]],
    );
    check_with(
        lending.clone(),
        "
        agent A cpus(web):4
        agent B cpus(web):4
        agent C cpus(web):0.001
        agent D cpus(web):2
        framework G role=ops
        at 1
        framework F role=ads
        at 2
        ",
        expect![[r#"
            ads: 1 of 2, share 0.000
              3 as A: reserved for web
              1 as C: BelowMinAllocatable
              1 of 2 borrowers, share 0.000
              slack of 3 as A: lent to G
              slack of 1 as C: BelowMinAllocatable
        "#]],
    );
    let plain = "
        agent A cpus(web):4
        agent B cpus(web):4 used=W/web/cpus(web):4
        framework F role=ads,web cannot=revocable
        at 1
        ";
    check_with(
        lending.clone(),
        plain,
        expect![[r#"
        ads: 1 of 2, share 0.000
          1 as A: offered since 1
          1 as B: reserved for web
          slack of 2 as A: LacksCapability(RevocableResources)
        web: 2 of 2, share 0.500
          1 as A: offered since 1
          1 as B: InUse
          slack of 2 as A: LacksCapability(RevocableResources)
    "#]],
    );
    check_with(
        Options::default(),
        plain,
        expect![[r#"
        ads: 1 of 2, share 0.000
          1 as A: offered since 1
          1 as B: reserved for web
          slack of 2 as A: not lent: None
        web: 2 of 2, share 0.500
          1 as A: offered since 1
          1 as B: InUse
          slack of 2 as A: not lent: None
    "#]],
    );
    let opted_out = Options { allocation_slack_opt_out: ["web".into()].into(), ..lending };
    check_with(
        opted_out,
        plain,
        expect![[r#"
        ads: 1 of 2, share 0.000
          1 as A: offered since 1
          1 as B: reserved for web
          slack of 2 as A: not lent: Some(web)
        web: 2 of 2, share 0.500
          1 as A: offered since 1
          1 as B: InUse
          slack of 2 as A: not lent: Some(web)
    "#]],
    );
}
