//! Strategies of `tepui swarm`, and many containers on many nodes, with real engines and the real docker CLI. Needs root.

use serde_json::{Value, json};
use tepui_e2e::dockerd::IMAGE;
use tepui_e2e::swarm::{Manager, Node, Ran, Swarm, docker_command};
use tepui_e2e::wait_for;

/// Creates a container; the node that it is on.
fn place(swarm: &Swarm, options: &str) -> String {
    let id = swarm.ok(&format!("create --net none {options} busybox true"));
    swarm.ok(&format!("inspect -f {{{{.Node.Name}}}} {id}"))
}

fn with_cpus(cpus: u32) -> Node {
    Node { resources: Some(format!("cpus:{cpus};mem:1024;disk:64;ports:[31000-31001]")), ..Node::default() }
}

#[test]
fn binpack_fills_one_node_first() {
    let manage = ["--strategy=binpack", "--cluster-opt=mesos.tasktimeout=1m"];
    let Some(swarm) = Swarm::start(2, &manage) else { return };
    assert!(swarm.ok("info").contains("Strategy: binpack"));
    // The offers of both nodes are there again before the next choice is made.
    let first = place(&swarm, "-c 1");
    for _ in 0..2 {
        swarm.wait_for_offers(2);
        assert_eq!(place(&swarm, "-c 1"), first);
    }
}

#[test]
fn random_strategy_skips_nodes_with_insufficient_resources() {
    let manage = ["--strategy=random", "--cluster-opt=mesos.tasktimeout=1m"];
    let Some(swarm) = Swarm::with(&[with_cpus(1), with_cpus(16)], &[], &manage) else { return };
    for _ in 0..8 {
        assert_eq!(place(&swarm, "-c 2"), "node-1");
    }
}

/// An image of several engines is one row, and an engine without it is known.
#[test]
fn images_are_grouped_and_filtered_by_engine() {
    let empty = Node { is_empty: true, ..Node::default() };
    let Some(swarm) = Swarm::with(&[empty.clone(), Node::default(), empty], &[], &[]) else { return };
    let archive = swarm.cluster.folder().join("image.tar").display().to_string();
    for (node, arguments) in [(1, ["save", "-o", &archive, IMAGE].as_slice()), (2, &["load", "-i", &archive])]
    {
        let host = format!("unix://{}", swarm.engines[node].socket().display());
        let ran = Ran::of(docker_command(&host, arguments).output().expect("docker starts"));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let rows = |options: &str| swarm.ok(&format!("images -q {options}")).lines().count();
    wait_for("the image on both engines", || (rows("--filter node=node-2") == 1).then_some(()));
    assert_eq!((rows("--filter node=node-0"), rows("--filter node=node-1")), (0, 1));
    assert_eq!(rows(""), 1);
}

/// The role of the reservation of each of a task's cpus, and how many.
fn cpus(swarm: &Swarm, name: &str) -> Vec<(Option<String>, f64)> {
    let tasks = swarm.cluster.http().post("/api/v1", &json!({"type": "GET_TASKS"})).json().expect("tasks");
    let tasks = tasks["get_tasks"]["tasks"].as_array().expect("a list");
    let task = tasks.iter().find(|it| it["name"] == name).expect("a task");
    let cpus = task["resources"].as_array().into_iter().flatten().filter(|it| it["name"] == "cpus");
    let role = |it: &Value| it["reservations"][0]["role"].as_str().map(str::to_owned);
    cpus.map(|it| (role(it), it["scalar"]["value"].as_f64().unwrap_or_default())).collect()
}

#[test]
fn reserved_resources_of_own_roles_are_used() {
    let resources =
        "cpus(web):2;mem(web):128;cpus(db):4;mem(db):128;cpus(other):8;mem(other):512;cpus:1;mem:64";
    let node = Node { resources: Some(resources.to_owned()), ..Node::default() };
    // A manager without the option is offered what is not reserved.
    let Some(swarm) = Swarm::with(&[node], &[], &[]) else { return };
    let Swarm { manager, cluster, engines } = swarm;
    drop(manager);
    let manage = ["--cluster-opt=mesos.role=web,db", "--cluster-opt=mesos.tasktimeout=2s"];
    let manager = Manager::start(&cluster.master.address, &cluster.folder().join("roles"), &manage, &[]);
    let swarm = Swarm { manager, cluster, engines };
    wait_for("offers to both roles", || swarm.ok("info").contains("Offers: 2").then_some(()));
    let create = |name: &str, cpus: u32| {
        swarm.sh(&format!("create --name {name} -c {cpus} -m 64m --net none busybox true"))
    };
    for (name, amount, role) in [("large", 4, "db"), ("small", 2, "web")] {
        let ran = create(name, amount);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(cpus(&swarm, name), [(Some(role.to_owned()), f64::from(amount))]);
    }
    let ran = create("third", 2);
    assert!(ran.code != 0 && ran.stderr.contains("container failed to start after 2s"), "{ran:?}");
}

/// Ten engines and a hundred containers, eight clients at a time.
#[test]
fn hundred_containers_run_on_ten_engines() {
    let Some(swarm) = Swarm::start(10, &["--cluster-opt=mesos.tasktimeout=3m"]) else { return };
    let failed: Vec<Ran> = std::thread::scope(|scope| {
        let client = |client: usize| {
            let numbers = (0..100).filter(move |number| number % 8 == client);
            let runs = numbers.map(|number| {
                swarm.sh(&format!("run -d -m 20m --net none --name c{number} busybox sleep 1000"))
            });
            runs.filter(|ran| ran.code != 0).collect::<Vec<Ran>>()
        };
        let clients: Vec<_> = (0..8).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().flat_map(|it| it.join().expect("a client")).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(swarm.ok("ps -aq").lines().count(), 100);
    assert_eq!(swarm.ok("ps -q --filter status=running").lines().count(), 100);
    // Spread: nodes differ by what was under way at the same time.
    for node in 0..10 {
        let count = swarm.ok(&format!("ps -q --filter node=node-{node}")).lines().count();
        assert!(count > 0, "node-{node} has none");
    }
    swarm.clean();
    assert_eq!(swarm.ok("ps -aq"), "");
}
