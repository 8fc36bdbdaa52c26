//! Bodies of create calls, right and wrong.

use alloc::vec;

use expect_test::expect;

use super::*;
use crate::testing::{body, spec, try_spec};

#[test]
fn amounts_become_requests_and_limits() {
    // cpus, limit of cpus, MiB, limit of MiB.
    for (options, expected) in [
        ("-c 2", ("2", None, 0, None)),
        ("--cpus 0.5", ("0.5", None, 0, None)),
        ("-c 1 --cpus 2.5", ("1", Some("2.5"), 0, None)),
        ("-m 20", ("0", None, 20, None)),
        ("--reserve 10", ("0", None, 10, None)),
        ("--reserve 10 -m 20", ("0", None, 10, Some(20))),
    ] {
        let amounts = spec(options).amounts;
        let cpus_limit = amounts.cpus_limit.map(|limit| limit.to_string());
        let got = (
            amounts.cpus.to_string(),
            cpus_limit,
            amounts.memory_bytes >> 20,
            amounts.memory_limit_bytes.map(|bytes| bytes >> 20),
        );
        assert_eq!((&*got.0, got.1.as_deref(), got.2, got.3), expected, "{options}");
    }
    let odd = Amounts { memory_bytes: (1 << 20) + 1, ..Amounts::default() };
    assert_eq!(odd.quantities().to_string(), "mem:1.001", "a byte more than a MiB needs more than a MiB");
}

#[test]
fn malformed_bodies_are_rejected_by_field() {
    for (body, status, message) in [
        ("{", 400, "the body is not valid JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", 400, "the body must be a JSON object"),
        ("{}", 400, "Image must name an image"),
        (r#"{"Image":1}"#, 400, "Image must be a string"),
        (r#"{"Image":"a","Env":{}}"#, 400, "Env must be a list of strings"),
        (r#"{"Image":"a","Env":[1]}"#, 400, "Env must be a list of strings"),
        (r#"{"Image":"a","Labels":[]}"#, 400, "Labels must be an object"),
        (r#"{"Image":"a","Labels":{"a":1}}"#, 400, "Labels must be an object of strings"),
        (r#"{"Image":"a","HostConfig":1}"#, 400, "HostConfig must be an object"),
        (r#"{"Image":"a"}"#, 500, "resources constraints (-c and/or -m) are required by mesos"),
        (
            r#"{"Image":"a","HostConfig":{"Memory":-1}}"#,
            400,
            "HostConfig.Memory must be a number from 0 to 9223372036854775807, not -1",
        ),
        (
            r#"{"Image":"a","HostConfig":{"CpuShares":99999999999}}"#,
            400,
            "HostConfig.CpuShares must be a number from 0 to 4294967296, not 99999999999",
        ),
        (
            r#"{"Image":"a","HostConfig":{"Memory":1048576,"MemoryReservation":2097152}}"#,
            400,
            "HostConfig.Memory is a limit of 1048576, less than the request of 2097152 by HostConfig.MemoryReservation",
        ),
        (
            r#"{"Image":"a","HostConfig":{"CpuShares":2,"NanoCpus":1000000000}}"#,
            400,
            "HostConfig.NanoCpus is a limit of 1, less than the request of 2 by HostConfig.CpuShares",
        ),
        (
            r#"{"Image":"a","HostConfig":{"Memory":1,"PortBindings":{"80/tcp":[{"HostPort":"8000-8010"}]}}}"#,
            400,
            "HostConfig.PortBindings[\"80/tcp\"]: host port \"8000-8010\" must be one number from 1 to 65535",
        ),
        (
            r#"{"Image":"a","HostConfig":{"Memory":1,"PortBindings":{"80/tcp":1}}}"#,
            400,
            "HostConfig.PortBindings[\"80/tcp\"] must be a list of bindings",
        ),
    ] {
        let rejection = ContainerSpec::parse(body.as_bytes(), true).expect_err(body);
        assert_eq!((rejection.status(), rejection.message()), (status, message), "{body}");
    }
}

#[test]
fn expressions_move_from_env_to_labels() {
    let spec = spec(
        "-e A=1 -e constraint:node==~a -e affinity:image==b -e constraint:res-type==revocable -e whitelist:node==n1|n2 \
         -e reschedule:on-node-failure -l com.docker.swarm.constraints=[\"storage==ssd\"]",
    );
    assert_eq!(spec.document["Env"], serde_json::json!(["A=1"]));
    let labels: Vec<String> = spec.labels.iter().map(|(key, value)| format!("{key} {value}")).collect();
    expect![[r#"
        com.docker.swarm.affinities ["image==b"]
        com.docker.swarm.constraints ["storage==ssd","node==~a","res-type==revocable"]
        com.docker.swarm.reschedule-policies ["on-node-failure"]
        com.docker.swarm.whitelists ["node==n1|n2"]"#]]
    .assert_eq(&labels.join("\n"));
    assert_eq!(spec.choice, Choice::Only(Kind::Revocable));
    assert_eq!(spec.reschedule, Reschedule::OnNodeFailure);

    let again = ContainerSpec::parse(spec.body().as_bytes(), true).expect("its own body");
    assert_eq!(again.labels, spec.labels, "stored and read again");
    assert_eq!(again.constraints.len(), 3);
}

#[test]
fn wrong_expressions_are_rejected_before_the_queue() {
    for (options, status, message) in [
        ("-e constraint:node=a", 400, "error from constraint filter: One of operator ==, != is expected"),
        ("-e constraint:node==/", 400, "error from constraint filter: Value '/' is invalid"),
        ("-e constraint:res-type==/", 400, "constraint res-type==/ is not a valid pattern"),
        ("-e affinity:a==b", 400, "error from affinity filter: Key 'a' is invalid"),
        ("-e whitelist:node==", 400, "error from whitelist filter: Value '' is invalid"),
        ("-e reschedule:false", 500, "invalid reschedule policy: false"),
        ("-e reschedule:off -e reschedule:off", 500, "too many reschedule policies"),
        (
            "-e constraint:res-type==regular -l com.docker.swarm.constraints=[\"res-type==*\"]",
            400,
            "only one constraint with key \"res-type\" is allowed, got 2: res-type==*, res-type==regular",
        ),
        (
            "-e constraint:res-type!=regular -e constraint:res-type==regular",
            400,
            "only one constraint with key \"res-type\" is allowed, got 2: res-type!=regular, res-type==regular",
        ),
    ] {
        let rejection = try_spec(&format!("-c 1 {options}")).expect_err(options);
        assert_eq!((rejection.status(), rejection.message()), (status, message), "{options}");
    }
    let revocable = body("-c 1 -e constraint:res-type==revocable").to_string();
    let rejection =
        ContainerSpec::parse(revocable.as_bytes(), false).expect_err("revocable resources are off");
    let message = "revocable resources are not enabled (cluster option mesos.enablerevocable)";
    assert_eq!((rejection.status(), rejection.message()), (400, message));
    let prefers = body("-c 1 -e constraint:res-type==~revocable").to_string();
    let spec = ContainerSpec::parse(prefers.as_bytes(), false).expect("falls back to regular");
    assert_eq!(spec.choice, Choice::Only(Kind::Regular));
}

#[test]
fn create_document_merges_user_fields_with_placement() {
    let spec = spec("-c 2 -m 20 -p 80:80 -p :443 -l res-type=mine -l a=b --link c1:x web:1");
    let labels = spec.placed_labels(Kind::Revocable, "F1", "web.1", "web");
    let document = spec.placed_document(&labels, &[80, 31005]);
    assert_eq!(document["Labels"]["res-type"], "revocable", "the type is the system's to say");
    assert_eq!(document["Labels"]["com.docker.swarm.mesos.task"], "web.1");
    assert_eq!(document["Labels"]["com.docker.swarm.mesos.name"], "web");
    assert_eq!(document["Labels"]["a"], "b");
    assert_eq!(document["HostConfig"]["CpuShares"], 2048, "whole cpus are the unit of clients only");
    assert_eq!(document["HostConfig"]["Memory"], 20 << 20);
    assert_eq!(document["HostConfig"]["Links"], serde_json::json!(["c1:x"]));
    let ports = spec.request().ports;
    assert_eq!(ports, vec![Port::Any, Port::Exactly(80)], "in the order of the document");
    let ports = spec.placed_document(&labels, &[31005, 80])["HostConfig"]["PortBindings"].to_string();
    assert_eq!(
        ports,
        r#"{"443/tcp":[{"HostIp":"","HostPort":"31005"}],"80/tcp":[{"HostIp":"","HostPort":"80"}]}"#
    );
}
