//! What offers mean to `tepui swarm`: the type of a node's resources, and offers that are rescinded unseen. Needs root.

use std::process::{Command, Stdio};

use serde_json::json;
use tepui_e2e::swarm::{Manager, Node, Ran, Swarm};
use tepui_e2e::{Wire, wait_for};

/// The type of the only node in `docker info`, if it has one.
fn res_type(swarm: &Swarm) -> Option<String> {
    let info = swarm.ok("info");
    let labels = info.lines().find_map(|line| line.trim().strip_prefix("└ Labels: "))?.to_owned();
    labels.split(", ").find_map(|label| label.strip_prefix("res-type=").map(str::to_owned))
}

fn wait_for_type(swarm: &Swarm, expected: Option<&str>) {
    wait_for(&format!("the type {expected:?}"), || (res_type(swarm).as_deref() == expected).then_some(()));
}

#[test]
fn res_type_label_of_a_node_follows_its_offers() {
    let folder = tempfile::tempdir().expect("a directory");
    let config = folder.path().join("daemon.json");
    let configure = |zone: &str| {
        std::fs::write(&config, json!({"labels": [format!("zone={zone}")]}).to_string()).expect("written");
    };
    configure("a");
    let node = Node {
        resources: Some("cpus:2;mem:64;disk:64;ports:[31000-31001]".to_owned()),
        agent_flags: ["--resource_estimator=fixed", "--fixed_estimator_resources=cpus:3"]
            .map(str::to_owned)
            .to_vec(),
        engine_arguments: vec![format!("--config-file={}", config.display())],
        ..Node::default()
    };
    let manage = [
        "--cluster-opt=mesos.enablerevocable=true",
        "--cluster-opt=mesos.tasktimeout=1m",
        "--cluster-opt=mesos.offertimeout=1s",
        "--cluster-opt=mesos.offerrefusetimeout=10ms",
    ];
    let Some(swarm) = Swarm::with(&[node], &[], &manage) else { return };
    wait_for_type(&swarm, Some("any"));
    // An engine that reads its configuration again has other labels and the same type.
    configure("b");
    let pid = std::fs::read_to_string(swarm.engines[0].socket().with_file_name("pid")).expect("a pid");
    assert!(Command::new("kill").args(["-HUP", pid.trim()]).status().expect("kill runs").success());
    wait_for("the labels of the engine", || swarm.ok("info").contains("zone=b").then_some(()));
    wait_for_type(&swarm, Some("any"));
    // Containers that hold all of one kind leave the other; what they held comes back with them. Offers are declined after
    // a second, and the type is that of the next ones.
    let create = |name: &str, amounts: &str, kind: &str| {
        swarm.ok(&format!(
            "create --name {name} {amounts} --net none -e constraint:res-type=={kind} busybox true"
        ));
    };
    create("precious", "-c 2 -m 64m", "regular");
    wait_for_type(&swarm, Some("revocable"));
    create("cheap", "-c 3", "revocable");
    wait_for_type(&swarm, None);
    swarm.ok("rm precious");
    wait_for_type(&swarm, Some("regular"));
    swarm.ok("rm cheap");
    wait_for_type(&swarm, Some("any"));
    // An engine that is down has no offers.
    let mut swarm = swarm;
    swarm.engines[0].stop();
    wait_for_type(&swarm, None);
    swarm.engines[0].restart();
    wait_for_type(&swarm, Some("any"));
}

/// The master rescinds offers, and the manager accepts one before it can learn of that.
#[test]
fn create_succeeds_after_its_offer_is_rescinded() {
    let Some(swarm) = Swarm::with(&[Node::default()], &["--offer_timeout=3secs"], &[]) else { return };
    // Another manager, over a wire; the first one leaves it the offers.
    let Swarm { manager, cluster, engines } = swarm;
    drop(manager);
    let wire = Wire::to(&cluster.master.address);
    let manage = ["--cluster-opt=mesos.tasktimeout=2m", "--cluster-opt=mesos.offertimeout=10m"];
    let manager = Manager::start(&wire.address, &cluster.folder().join("swarm"), &manage, &[]);
    let swarm = Swarm { manager, cluster, engines };
    swarm.wait_for_offers(1);
    let offers = || {
        let frameworks = swarm.cluster.http().get("/frameworks").json().expect("frameworks");
        let own =
            frameworks["frameworks"].as_array().and_then(|all| all.first()).expect("a framework").clone();
        own["offers"].as_array().into_iter().flatten().map(|it| it["id"].to_string()).collect::<String>()
    };
    wire.cut_back();
    let held = offers();
    wait_for("the offer to be rescinded", || (offers() != held).then_some(()));
    let mut create = swarm.manager.command(&["run", "-m", "20m", "--net", "none", "busybox", "echo", "done"]);
    let create = create.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("docker starts");
    wait_for("the accept", || swarm.manager.log().contains("effect=\"accept").then_some(()));
    wire.mend();
    let ran = Ran::of(create.wait_with_output().expect("docker ends"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    let log = swarm.manager.log();
    assert!(log.contains("REASON_INVALID_OFFERS"), "{log}");
    assert!(log.matches("effect=\"accept").count() >= 2, "{log}");
}
