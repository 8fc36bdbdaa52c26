//! What operators change by the classic endpoints and `/api/v1`, and what they are shown of it.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use tepui_core_master::Config;

use super::{Answer, SUBSCRIBE, Stream, ask, get, link_up, post, start};
use crate::{Options, ProcessOptions, RegistryAt, RunningMaster, run};

/// Lines of `METHOD path [body]`, each answered with its status, `Allow` and body.
async fn check(master: &RunningMaster, lines: &str, expected: Expect) {
    check_without(master, lines, "no id", expected).await;
}

/// The same, without the agent's id.
async fn check_without(master: &RunningMaster, lines: &str, id: &str, expected: Expect) {
    let mut said = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(3, ' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        // As curl does with data.
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let headers = if path.ends_with("/api/v1") { "Content-Type: application/json\r\n" } else { form };
        let answer = ask(master.address(), method, path, headers, words.next().unwrap_or_default()).await;
        said.push_str(&told(&answer).replace(id, "ID"));
    }
    expected.assert_eq(&said);
}

fn told(answer: &Answer) -> String {
    let allow = answer.head.lines().find(|line| line.starts_with("allow:")).unwrap_or_default();
    let line = format!("{} {} {}", answer.status, allow, answer.body);
    line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
}

#[tokio::test]
async fn weights_are_shown_and_set() {
    let master = start().await;
    check(
        &master,
        r#"
        GET /weights
        GET /weights/eng/web
        PUT /weights [{"role":"eng","weight":2},{"role":"eng/web","weight":3.5}]
        GET /weights
        GET /master/weights?jsonp=cb
        GET /weights/eng
        GET /weight/eng/web
        GET /master/weight/never
        GET /weights/-x
        PUT /weight [{"role":"eng","weight":1.0}]
        GET /weights
        POST /api/v1 {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":4.0}]}}
        POST /api/v1 {"type":"GET_WEIGHTS"}
        POST /weights []
        DELETE /weights/eng
        "#,
        expect![[r#"
            200 []
            200 {"role":"eng/web","weight":1.0}
            200
            200 [{"role":"eng","weight":2.0},{"role":"eng/web","weight":3.5}]
            200 cb([{"role":"eng","weight":2.0},{"role":"eng/web","weight":3.5}])
            200 {"role":"eng","weight":2.0}
            200 {"role":"eng/web","weight":3.5}
            200 {"role":"never","weight":1.0}
            400 Invalid role '-x': a role component cannot start with '-'
            200
            200 [{"role":"eng/web","weight":3.5}]
            200
            200 {"type":"GET_WEIGHTS","get_weights":{"weight_infos":[{"weight":4.0,"role":"a"},{"weight":3.5,"role":"eng/web"}]}}
            405 allow: get, put 405 Method Not Allowed. Expecting one of { 'GET', 'PUT' }, but received 'POST'.
            405 allow: get 405 Method Not Allowed. Expecting one of { 'GET' }, but received 'DELETE'.
        "#]],
    )
    .await;
    master.stop().await.unwrap();
}

#[tokio::test]
async fn invalid_weights_are_rejected_with_a_reason() {
    let master = start().await;
    check(
        &master,
        r#"
        PUT /weights [{"role":"kept","weight":2}]
        PUT /weights
        PUT /weights {
        PUT /weights [] x
        PUT /weights {"role":"a","weight":2}
        PUT /weights "a"
        PUT /weights [1]
        PUT /weights [{"role":"a","weight":2},{"role":"b"}]
        PUT /weights [{"role":"a","weight":2},{"weight":2}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":0}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":-1}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":NaN}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":"NaN"}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":"Infinity"}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":"3"}]
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":null}]
        PUT /weights [{"role":"a","weight":2},{"role":7,"weight":2}]
        PUT /weights [{"role":"a","weight":2},{"role":"a","weight":3}]
        PUT /weights [{"role":"a","weight":2},{"role":"","weight":3}]
        PUT /weights [{"role":"a","weight":2},{"role":"b//c","weight":3}]
        PUT /weights [{"role":"a","weight":2},{"role":"..","weight":3}]
        GET /weights
        "#,
        expect![[r#"
            200
            400 Failed to parse update weights request JSON '': syntax error at line 1 near:
            400 Failed to parse update weights request JSON '{': syntax error at line 1 near:
            400 Failed to parse update weights request JSON '[] x': syntax error at line 1 near: x
            400 Failed to parse update weights request JSON '{"role":"a","weight":2}': Expecting a JSON array
            400 Failed to parse update weights request JSON '"a"': Expecting a JSON object
            400 Failed to parse update weights request JSON '[1]': [0]: expected an object, found a number
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b"}]': Missing required fields: [1].weight
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"weight":2}]': [1].role: Expecting a string
            400 Failed to validate update weights request JSON for role 'b': Invalid weight '0': Weights must be positive
            400 Failed to validate update weights request JSON for role 'b': Invalid weight '-1': Weights must be positive
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b","weight":NaN}]': syntax error at line 1 near: NaN}]
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b","weight":"NaN"}]': [1].weight: expected a number, found the string "NaN"
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b","weight":"Infinity"}]': [1].weight: Expecting a number
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b","weight":"3"}]': [1].weight: Expecting a number
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":"b","weight":null}]': Missing required fields: [1].weight
            400 Failed to parse update weights request JSON '[{"role":"a","weight":2},{"role":7,"weight":2}]': [1].role: expected a string, found a number
            400 Failed to validate update weights request JSON: role 'a' is named twice
            400 Failed to validate update weights request JSON: Invalid role '': Empty role name is invalid
            400 Failed to validate update weights request JSON: Invalid role 'b//c': Role 'b//c' cannot contain two adjacent slashes
            400 Failed to validate update weights request JSON: Invalid role '..': Role '..' cannot contain '..' as a component
            200 [{"role":"kept","weight":2.0}]
        "#]],
    )
    .await;
    master.stop().await.unwrap();
}

#[tokio::test]
async fn roles_outside_the_whitelist_are_no_content() {
    let config = Config { roles: Some(vec!["a".to_owned()]), ..Config::default() };
    let master =
        run(Options { process: ProcessOptions::on_port(0), config, ..Options::default() }).await.unwrap();
    check(
        &master,
        r#"
        GET /weights/a
        GET /weights/b
        PUT /weights [{"role":"a","weight":2},{"role":"b","weight":2}]
        GET /weights
        "#,
        expect![[r#"
            200 {"role":"a","weight":1.0}
            204
            204
            200 []
        "#]],
    )
    .await;
    master.stop().await.unwrap();
}

#[tokio::test]
async fn weights_survive_restart_and_the_flag_applies_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = |weights: &[(&str, f64)]| {
        let weights: BTreeMap<_, _> = weights.iter().map(|(role, it)| ((*role).to_owned(), *it)).collect();
        let config = Config { weights, ..Config::default() };
        Options {
            process: ProcessOptions::on_port(0),
            registry: RegistryAt::WorkDir(folder.path().to_owned()),
            config,
            ..Options::default()
        }
    };
    let first = run(options(&[("a", 2.0), ("b", 1.0)])).await.unwrap();
    let lines = r#"
        GET /weights
        PUT /weights [{"role":"a","weight":1},{"role":"c","weight":5}]
        "#;
    check(
        &first,
        lines,
        expect![[r#"
        200 [{"role":"a","weight":2.0}]
        200
    "#]],
    )
    .await;
    first.stop().await.unwrap();
    let second = run(options(&[("a", 9.0)])).await.unwrap();
    check(
        &second,
        "GET /weights",
        expect![[r#"
        200 [{"role":"c","weight":5.0}]
    "#]],
    )
    .await;
    second.stop().await.unwrap();
}

#[tokio::test]
async fn quotas_are_shown_set_and_removed() {
    let master = start().await;
    let _agent = link_up(&master).await;
    check(
        &master,
        r#"
        GET /quota
        POST /quota {"role":"qr","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1.0}}]}
        POST /quota {"role":"qr","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1.0}}]}
        POST /quota {"role":"qr2","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1000000.0}}]}
        POST /quota {
        GET /quota
        POST /api/v1 {"type":"UPDATE_QUOTA","update_quota":{"quota_configs":[{"role":"uq","limits":{"cpus":{"value":1.0}}}]}}
        POST /api/v1 {"type":"GET_QUOTA"}
        GET /roles
        DELETE /quota/qr
        DELETE /quota/qr
        DELETE /quota
        PUT /quota
        "#,
        expect![[r#"
            200 {}
            200
            400 Failed to validate set quota request: Cannot set quota for role 'qr' which already has quota
            409 Quota guarantees overcommit the cluster (use 'force' to bypass this check): Total quota guarantees 'cpus:1000001' exceed cluster capacity 'cpus:4; mem:1024'
            400 Failed to parse set quota request JSON: syntax error at line 1 near:
            200 {"infos":[{"role":"qr","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1.0}}]}],"configs":[{"role":"qr","guarantees":{"cpus":{"value":1.0}},"limits":{"cpus":{"value":1.0}}}]}
            200
            200 {"type":"GET_QUOTA","get_quota":{"status":{"infos":[{"role":"qr","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1.0}}]},{"role":"uq"}],"configs":[{"role":"qr","guarantees":{"cpus":{"value":1.0}},"limits":{"cpus":{"value":1.0}}},{"role":"uq","limits":{"cpus":{"value":1.0}}}]}}}
            200 {"roles":[{"name":"qr","weight":1.0,"quota":{"role":"qr","guarantee":{"cpus":1.0},"limit":{"cpus":1.0},"consumed":{}},"resources":{},"allocated":{},"offered":{},"reserved":{},"frameworks":[]},{"name":"uq","weight":1.0,"quota":{"role":"uq","guarantee":{},"limit":{"cpus":1.0},"consumed":{}},"resources":{},"allocated":{},"offered":{},"reserved":{},"frameworks":[]}]}
            200
            400 Failed to remove quota: Role 'qr' has no quota set
            400 Failed to parse request path: name a role, as in DELETE /quota/role
            405 allow: get, post, delete 405 Method Not Allowed. Expecting one of { 'GET', 'POST', 'DELETE' }, but received 'PUT'.
        "#]],
    )
    .await;
    master.stop().await.unwrap();
}

const SCHEDULE: &str = r#"
    GET /maintenance/schedule
    GET /maintenance/status
    POST /maintenance/schedule {"windows":[{"machine_ids":[{"hostname":"a1"}]}]}
    POST /maintenance/schedule {"windows":[{"machine_ids":[{"hostname":"A1","ip":"127.0.0.1"}],"unavailability":{"start":{"nanoseconds":2000000000000000000}}}]}
    GET /maintenance/schedule
    "#;

#[tokio::test]
async fn machines_are_scheduled_taken_down_and_up() {
    let master = start().await;
    let _agent = link_up(&master).await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    events.event("OFFERS").await;
    check(&master, SCHEDULE, expect![[r#"
        200 {}
        200 {}
        400 Missing required fields: windows[0].unavailability
        200
        200 {"windows":[{"machine_ids":[{"hostname":"A1","ip":"127.0.0.1"}],"unavailability":{"start":{"nanoseconds":2000000000000000000}}}]}
    "#]]).await;
    let asked = events.event("INVERSE_OFFERS").await;
    assert!(asked.contains(r#""unavailability":{"start":{"nanoseconds":2000000000000000000}}"#), "{asked}");
    let id = |name: &str| {
        let behind = asked.split(&format!(r#""{name}":{{"value":""#)).nth(1).unwrap().to_owned();
        behind.split('"').next().unwrap().to_owned()
    };
    let decline = format!(
        r#"{{"type":"DECLINE_INVERSE_OFFERS","framework_id":{{"value":"{}"}},"decline_inverse_offers":{{"inverse_offer_ids":[{{"value":"{}"}}]}}}}"#,
        id("framework_id"),
        id("id")
    );
    let header = format!("Mesos-Stream-Id: {}\r\n", events.header("mesos-stream-id").unwrap());
    assert_eq!(post(&master, "/api/v1/scheduler", &header, &decline).await.status, 202);
    let status = get(&master, "/maintenance/status").await.body;
    assert!(status.contains(r#""statuses":[{"status":"DECLINE""#), "{status}");
    let lines = r#"
        POST /machine/down []
        POST /machine/down [{"hostname":"a1","ip":"127.0.0.1"}]
        GET /master/maintenance/status
        POST /api/v1 {"type":"GET_MAINTENANCE_STATUS"}
        GET /slaves
        POST /machine/up [{"hostname":"a1","ip":"127.0.0.1"}]
        POST /machine/up [{"hostname":"a1","ip":"127.0.0.1"}]
        POST /api/v1 {"type":"GET_MAINTENANCE_SCHEDULE"}
        GET /machine/up
        "#;
    check(&master, lines, expect![[r#"
        400 List of machines is empty
        200
        200 {"down_machines":[{"hostname":"A1","ip":"127.0.0.1"}]}
        200 {"type":"GET_MAINTENANCE_STATUS","get_maintenance_status":{"status":{"down_machines":[{"hostname":"A1","ip":"127.0.0.1"}]}}}
        200 {"slaves":[],"recovered_slaves":[]}
        200
        400 Machine 'a1@127.0.0.1' is not part of a maintenance schedule
        200 {"type":"GET_MAINTENANCE_SCHEDULE","get_maintenance_schedule":{"schedule":{}}}
        405 allow: post 405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.
    "#]]).await;
    assert!(events.event("FAILURE").await.contains("agent_id"));
    master.stop().await.unwrap();
}

/// `[{"name":"cpus","type":"SCALAR","scalar":{"value":1},"role":"ads","reservation":{}}]` in a form.
const RESERVED: &str = "%5B%7B%22name%22%3A%22cpus%22%2C%22type%22%3A%22SCALAR%22%2C%22scalar%22%3A%7B%22value%22%3A1%7D%2C%22role%22%3A%22ads%22%2C%22reservation%22%3A%7B%7D%7D%5D";

#[tokio::test]
async fn resources_are_reserved_and_agents_deactivated() {
    let master = start().await;
    let _agent = link_up(&master).await;
    let slaves = get(&master, "/slaves").await.body;
    let id = slaves.split(r#""id":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    let lines = format!(
        r#"
        POST /reserve slaveId={id}
        POST /reserve resources={RESERVED}
        POST /reserve slaveId=nope&resources={RESERVED}
        POST /reserve slaveId={id}&resources=x
        POST /reserve slaveId={id}&resources={RESERVED}
        POST /unreserve slaveId={id}&resources={RESERVED}
        POST /unreserve slaveId={id}&resources={RESERVED}
        POST /create-volumes slaveId={id}&volumes={RESERVED}
        POST /destroy-volumes slaveId={id}&volumes={RESERVED}
        PUT /destroy-volumes
        POST /api/v1 {{"type":"DEACTIVATE_AGENT","deactivate_agent":{{"agent_id":{{"value":"{id}"}}}}}}
        POST /api/v1 {{"type":"REACTIVATE_AGENT","reactivate_agent":{{"agent_id":{{"value":"{id}"}}}}}}
        POST /api/v1 {{"type":"DRAIN_AGENT","drain_agent":{{"agent_id":{{"value":"nope"}}}}}}
        POST /api/v1 {{"type":"DRAIN_AGENT","drain_agent":{{"agent_id":{{"value":"{id}"}},"max_grace_period":{{"seconds":5}}}}}}
        "#
    );
    check_without(&master, &lines, &id, expect![[r#"
        400 Missing 'resources' in the body of the request
        400 Missing 'slaveId' in the body of the request
        400 No agent found with specified ID
        400 Failed to parse 'resources' in the body of the request: syntax error at line 1 near: x
        202
        202
        409 cpus(reservations: [(DYNAMIC,ads)]):1 does not exist or is in use
        400 Invalid CREATE operation on agent ID at slave(1)@127.0.0.1:5051 (a1): Resource cpus(reservations: [(DYNAMIC,ads)]):1 is not a persistent volume: 'disk.persistence' must be set
        400 Invalid DESTROY operation on agent ID at slave(1)@127.0.0.1:5051 (a1): Resource cpus(reservations: [(DYNAMIC,ads)]):1 is not a persistent volume: 'disk.persistence' must be set
        405 allow: post 405 Method Not Allowed. Expecting one of { 'POST' }, but received 'PUT'.
        200
        200
        400 Unknown agent
        200
    "#]]).await;
    let agents = post(&master, "/api/v1", "", r#"{"type":"GET_AGENTS"}"#).await.body;
    assert!(agents.contains(r#""drain_info":{"state":"DRAIN"#), "{agents}");
    master.stop().await.unwrap();
}
