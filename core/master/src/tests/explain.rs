//! Requests to explain offers: no other input waits for the answer.

use alloc::string::String;

use expect_test::expect;

use super::check;

#[test]
fn explanation_is_computed_over_several_turns() {
    check(
        "
        agent A cpus:1
        agent B cpus:1
        framework F role:web
        settle
        ...
        explain F
        turn
        --
        turn
        F suppress
        --
        turn
        turn
        ",
        expect![[r#"
            --
            --
            operator 4 <- an explanation
        "#]],
    );
}

#[test]
fn pending_explanations_are_limited() {
    let more = "explain F\n".repeat(64);
    let script = String::from("framework F role:web\n...\n") + &more + "--\nexplain F\n";
    check(
        &script,
        expect![[r#"
        --
        66 <- 503: Too many explanations in progress; retry later
    "#]],
    );
}
