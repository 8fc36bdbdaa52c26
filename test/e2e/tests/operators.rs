//! What operators change, against real processes: durable when it is answered, followed by offers and agents.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Gate, Scheduler, binary, wait_for};

fn offered_cpus(cluster: &Cluster) -> Option<(f64, f64)> {
    let roles = cluster.http().get("/roles").json()?;
    let of = |name: &str| {
        let role = roles["roles"].as_array()?.iter().find(|role| role["name"] == name)?;
        role["offered"]["cpus"].as_f64()
    };
    Some((of("a")?, of("b")?))
}

#[test]
fn shares_follow_weights_that_change_while_the_cluster_runs() {
    let mut cluster = Cluster::without_agents(&["--allocation_interval=100ms"]);
    for _ in 0..4 {
        cluster.add_agent(&["--resources=cpus:1;mem:64"]);
    }
    let mut a = Scheduler::subscribe(&cluster.http(), Scheduler::info("a"));
    a.call(json!({"type": "SUPPRESS"}));
    let b = Scheduler::subscribe(&cluster.http(), Scheduler::info("b"));
    let give_back = |scheduler: &Scheduler| {
        let frameworks = cluster.http().get("/frameworks").json().expect("frameworks are JSON");
        let own = |framework: &&Value| framework["id"] == scheduler.framework_id.as_str();
        let framework = frameworks["frameworks"].as_array().into_iter().flatten().find(own).cloned();
        let offers = framework.map(|it| it["offers"].clone()).unwrap_or_default();
        let ids: Vec<Value> =
            offers.as_array().into_iter().flatten().map(|offer| json!({"value": offer["id"]})).collect();
        let decline = json!({"offer_ids": ids, "filters": {"refuse_seconds": 0.0}});
        scheduler.call(json!({"type": "DECLINE", "decline": decline}));
    };
    a.call(json!({"type": "REVIVE"}));
    wait_for("equal shares", || {
        give_back(&b);
        give_back(&a);
        wait_for("all to be offered", || offered_cpus(&cluster).filter(|(a, b)| a + b == 4.0));
        (offered_cpus(&cluster)? == (2.0, 2.0)).then_some(())
    });
    let put = cluster.http().send("PUT", "/weights", &[], br#"[{"role":"b","weight":3}]"#);
    assert_eq!(put.status, 200);
    assert_eq!(offered_cpus(&cluster), Some((2.0, 2.0)), "what is offered stays offered");
    give_back(&a);
    wait_for("shares of one to three", || (offered_cpus(&cluster)? == (1.0, 3.0)).then_some(()));
    assert!(a.event("an offer", |event| event["type"] == "OFFERS").is_some());
}

fn tepui(cluster: &Cluster, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(binary())
        .args(arguments)
        .env("TEPUI_MASTER", &cluster.master.address)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(format!("{out}{err}")) } else { Err(err.into_owned()) }
}

#[test]
fn maintenance_sends_inverse_offers_then_downs_and_ups_a_machine() {
    let mut cluster =
        Cluster::with(&["--allocation_interval=100ms"], &["--hostname=node1", "--resources=cpus:2;mem:256"]);
    let mut framework = Scheduler::subscribe(&cluster.http(), Scheduler::info("web"));
    let offer = framework.offer();
    assert!(offer.get("unavailability").is_none(), "{offer}");
    let gate = Gate::new(cluster.folder(), "gate");
    framework.launch(&offer, &[Scheduler::task(&offer, "t1", &gate.pass())]);
    framework.reach("t1", "TASK_RUNNING");

    let done = tepui(
        &cluster,
        &["maintenance", "schedule", "node1@127.0.0.1", "--start-in=10mins", "--duration=1hrs"],
    );
    assert!(done.as_ref().is_ok_and(|printed| printed.contains("scheduled node1@127.0.0.1")), "{done:?}");
    let inverse_offer =
        framework.event("a request to leave", |event| event["type"] == "INVERSE_OFFERS").expect("it comes");
    let inverse_offer = &inverse_offer["inverse_offers"]["inverse_offers"][0];
    assert_eq!(
        inverse_offer["unavailability"]["duration"]["nanoseconds"], 3_600_000_000_000u64,
        "{inverse_offer}"
    );
    let accept = json!({"inverse_offer_ids": [inverse_offer["id"]]});
    framework.call(json!({"type": "ACCEPT_INVERSE_OFFERS", "accept_inverse_offers": accept}));
    let listed = wait_for("the answer to be shown", || {
        tepui(&cluster, &["maintenance"]).ok().filter(|printed| printed.contains("AGREED"))
    });
    assert!(listed.contains("node1") && listed.contains("DRAINING"), "{listed}");

    let unsure = tepui(&cluster, &["maintenance", "down", "node1@127.0.0.1"]).expect_err("nobody confirms");
    assert!(unsure.contains("--yes"), "{unsure}");
    tepui(&cluster, &["maintenance", "down", "node1@127.0.0.1", "--yes"]).expect("it goes down");
    let lost = framework.update("t1", "TASK_LOST");
    assert_eq!(lost["reason"], "REASON_AGENT_REMOVED", "{lost}");
    cluster.agents[0].wait();
    cluster.agents[0].restart();
    cluster.agents[0].wait();
    assert_eq!(cluster.http().get("/slaves").json().expect("JSON")["slaves"], json!([]));

    // The registry remembers it.
    cluster.master.kill();
    cluster.master.restart();
    let status = cluster.http().get("/maintenance/status").json().expect("JSON");
    assert_eq!(status, json!({"down_machines": [{"hostname": "node1", "ip": "127.0.0.1"}]}));
    tepui(&cluster, &["maintenance", "up", "node1@127.0.0.1"]).expect("it comes up");
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
}

#[test]
fn agent_is_drained_and_reactivated() {
    let cluster = Cluster::with(&["--allocation_interval=100ms"], &["--resources=cpus:2;mem:256"]);
    let mut framework = Scheduler::subscribe(&cluster.http(), Scheduler::info("web"));
    let offer = framework.offer();
    let gate = Gate::new(cluster.folder(), "gate");
    framework.launch(&offer, &[Scheduler::task(&offer, "t1", &gate.pass())]);
    framework.reach("t1", "TASK_RUNNING");
    let unsure = tepui(&cluster, &["drain", "S0"]).expect_err("nobody confirms");
    assert!(unsure.contains("1 tasks on agent") && unsure.contains("--yes"), "{unsure}");
    tepui(&cluster, &["drain", "S0", "--yes", "--max-grace-period=1secs"]).expect("it drains");
    // Until the framework has received the terminal update.
    let explained = tepui(&cluster, &["explain", &framework.framework_id]).expect("it is explained");
    assert!(explained.contains("1 agent: not offered (1 draining)"), "{explained}");
    framework.reach("t1", "TASK_KILLED");
    let drained = || {
        let agents = cluster.http().get("/slaves").json()?;
        (agents["slaves"][0]["drain_info"]["state"] == "DRAINED").then_some(agents["slaves"][0].clone())
    };
    let agent = wait_for("the agent to be empty", drained);
    assert_eq!((&agent["deactivated"], &agent["active"]), (&json!(true), &json!(false)), "{agent}");
    tepui(&cluster, &["reactivate", "S0"]).expect("it is used again");
    wait_for("an offer", || {
        let roles = cluster.http().get("/roles").json()?;
        roles["roles"].as_array()?.iter().find(|role| role["offered"]["cpus"] == 2.0).cloned()
    });
    let again = tepui(&cluster, &["reactivate", "S0"]).expect_err("it is active");
    assert!(again.contains("Agent is not deactivated"), "{again}");
    tepui(&cluster, &["gone", "S0", "--yes"]).expect("it is gone");
    assert_eq!(cluster.http().get("/slaves").json().expect("JSON")["slaves"], json!([]));
}

#[test]
fn cli_reserves_creates_volumes_and_sets_quota() {
    let cluster = Cluster::with(&["--allocation_interval=100ms"], &["--resources=cpus:4;mem:256;disk:1000"]);
    let run = |arguments: &[&str]| {
        tepui(&cluster, arguments).unwrap_or_else(|reason| panic!("{arguments:?}: {reason}"))
    };
    run(&["reserve", "S0", "cpus:1,disk:100", "--role=eng"]);
    run(&["volumes", "create", "S0", "v1", "64", "--role=eng"]);
    assert!(run(&["volumes"]).contains("v1"));
    run(&["volumes", "grow", "S0", "v1", "16"]);
    wait_for("the volume to grow", || run(&["volumes"]).contains("80M").then_some(()));
    run(&["volumes", "shrink", "S0", "v1", "40"]);
    wait_for("the volume to shrink", || run(&["volumes"]).contains("40M").then_some(()));
    let much = tepui(&cluster, &["reserve", "S0", "cpus:9", "--role=eng"]).expect_err("so much is not there");
    assert!(much.contains("does not exist or is in use"), "{much}");
    run(&["volumes", "destroy", "S0", "v1", "--yes"]);
    assert!(run(&["volumes"]).contains("no persistent volumes"));
    run(&["unreserve", "S0", "cpus:1;disk:100", "--role=eng"]);

    run(&["weights", "set", "eng=2", "eng/web=3.5"]);
    run(&["quota", "set", "eng", "--guarantee=cpus:1", "--limit=cpus:1.5,mem:128"]);
    let roles = run(&["roles"]);
    assert!(
        roles.contains("eng") && roles.contains("  web") && roles.contains("cpus:1.5 mem:128M"),
        "{roles}"
    );
    let mut framework = Scheduler::subscribe(&cluster.http(), Scheduler::info("eng/web"));
    let offer = framework.offer();
    let cpus = offer["resources"].as_array().into_iter().flatten().find(|it| it["name"] == "cpus").cloned();
    assert_eq!(cpus.map(|cpus| cpus["scalar"]["value"].clone()), Some(json!(1.5)), "{offer}");
    let much = tepui(&cluster, &["quota", "set", "big", "--guarantee=cpus:100"]).expect_err("too much");
    assert!(much.contains("exceed cluster capacity"), "{much}");
    run(&["quota", "remove", "eng"]);
    assert!(run(&["quota"]).contains("no quotas"));
    let unsure = tepui(&cluster, &["teardown", "e2e"]).expect_err("nobody confirms");
    assert!(unsure.contains("--yes"), "{unsure}");
    run(&["teardown", "e2e", "--yes"]);
}

/// Every command that changes the cluster prints its result as JSON too, and confirms destruction.
#[test]
fn cli_prints_changes_as_json_and_confirms_destruction() {
    let cluster = Cluster::with(
        &["--allocation_interval=100ms"],
        &["--hostname=node1", "--resources=cpus:4;mem:256;disk:1000"],
    );
    let _framework = Scheduler::subscribe(&cluster.http(), Scheduler::info("web"));
    let destructive =
        ["volumes destroy S0 v1", "maintenance down node1@127.0.0.1", "drain S0", "gone S0", "teardown e2e"];
    for line in [
        "weights set eng=2 eng/web=3.5",
        "weights",
        "quota set eng --guarantee=cpus:1 --limit=cpus:2",
        "quota",
        "roles",
        "quota remove eng",
        "reserve S0 disk:100 --role=eng",
        "volumes create S0 v1 64 --role=eng",
        "volumes",
        "volumes grow S0 v1 16",
        "volumes shrink S0 v1 40",
        "volumes destroy S0 v1",
        "unreserve S0 disk:100 --role=eng",
        "teardown e2e",
        "drain S0",
        "reactivate S0",
        "maintenance schedule node1@127.0.0.1 --start_in=10mins",
        "maintenance",
        "gone S0",
        "maintenance down node1@127.0.0.1",
        "maintenance up node1@127.0.0.1",
    ] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.push("--json");
        if destructive.contains(&line) {
            let unsure = tepui(&cluster, &words).expect_err("nobody confirms");
            assert!(unsure.contains("--yes"), "{line}: {unsure}");
            words.push("--yes");
        }
        let printed = wait_for(line, || {
            // An earlier change may still be in flight to the agent.
            tepui(&cluster, &words).inspect_err(|reason| eprintln!("{line}: {reason}")).ok()
        });
        let document = serde_json::from_str::<Value>(&printed);
        assert!(document.is_ok_and(|it| it.is_object() || it.is_array()), "{line}: {printed}");
    }
}
