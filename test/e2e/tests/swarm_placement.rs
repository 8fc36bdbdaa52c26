//! Strategies of `tepui swarm`, and many containers on many nodes, with real engines and the real docker CLI. Needs root.

use tepui_e2e::swarm::{Node, Ran, Swarm};

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
