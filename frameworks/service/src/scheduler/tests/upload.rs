//! Specs of files and of clients: which of them is the target.

use expect_test::expect;

use super::script::replay;

const ONE: &str =
    "{name: svc, pods: {node: {count: 1, tasks: {main: {goal: RUNNING, cmd: one, cpus: 1, memory: 100}}}}}";
const TWO: &str =
    "{name: svc, pods: {node: {count: 2, tasks: {main: {goal: RUNNING, cmd: one, cpus: 1, memory: 100}}}}}";
const THREE: &str =
    "{name: svc, pods: {node: {count: 3, tasks: {main: {goal: RUNNING, cmd: one, cpus: 1, memory: 100}}}}}";

#[test]
fn an_uploaded_spec_stays_until_the_files_change_or_are_read_by_request() {
    replay(
        &[("one", ONE), ("two", TWO), ("three", THREE)],
        expect![[r#"
            > start one
            record +configuration/#1 +target
            reply target #1
            > upload two
            record +configuration/#2 +target +property/uploaded-over
            reply target #2
            > show configurations
            #2 #1 target #2
            > restart
            > start one
            reply target #2 unchanged
            > restart
            > start two
            record -property/uploaded-over
            reply target #2 unchanged
            > restart
            > start one
            reply rejected: pods.node.count: 2 -> 1: instances cannot be removed unless allow-decommission is true
            > upload three
            record +configuration/#3 +target +property/uploaded-over
            record -configuration/#1
            reply target #3
            > show configurations
            #2 #3 target #3
            > upload one
            reply rejected: pods.node.count: 3 -> 1: instances cannot be removed unless allow-decommission is true
            > target two
            reply rejected: pods.node.count: 3 -> 2: instances cannot be removed unless allow-decommission is true
            > restart
            > start one
            reply rejected: pods.node.count: 3 -> 1: instances cannot be removed unless allow-decommission is true
        "#]],
    );
}
