//! Networks of `tepui swarm`: engines with a bridge each, published ports, and a project of docker-compose on its own network.
//! Needs root.

use std::process::Command;

use tepui_e2e::swarm::{Node, Ran, Swarm};
use tepui_e2e::wait_for;
use tepui_facilities::{Facility, available};

/// A web server with one page.
const SERVE: &str = "mkdir /tmp/w; echo page > /tmp/w/index.html; exec httpd -f -p 80 -h /tmp/w";
const ON: &str = "-m 20m -e constraint:node==";

fn with_bridges() -> Option<Swarm> {
    let node = Node { has_bridge: true, ..Node::default() };
    Swarm::with(&[node.clone(), node], &[], &["--cluster-opt=mesos.tasktimeout=1m"])
}

fn wait_for_page(swarm: &Swarm, node: usize, port: u16) {
    wait_for("the page", || swarm.engines[node].ask(port).ends_with("page\n").then_some(()));
}

/// The ports of the host that `docker port` shows.
fn ports(swarm: &Swarm, name: &str) -> Vec<u16> {
    let shown = swarm.ok(&format!("port {name} 80/tcp"));
    shown.lines().map(|line| line.rsplit(':').next().expect("a port").parse().expect("a number")).collect()
}

fn connected(swarm: &Swarm, network: &str) -> String {
    swarm.ok(&format!("network inspect -f '{{{{range .Containers}}}}{{{{.Name}}}} {{{{end}}}}' {network}"))
}

#[test]
fn containers_are_reached_by_ports_links_and_networks() {
    let Some(swarm) = with_bridges() else { return };
    swarm.ok(&format!("run -d {ON}node-0 --name web -p 31080:80 busybox sh -c '{SERVE}'"));
    wait_for_page(&swarm, 0, 31080);
    assert_eq!(ports(&swarm, "web"), [31080]);
    // Any port is one of the offer.
    swarm.ok(&format!("run -d {ON}node-1 --name any -p 80 busybox sh -c '{SERVE}'"));
    let port = ports(&swarm, "any")[0];
    assert!((31000..=32000).contains(&port), "{port}");
    wait_for_page(&swarm, 1, port);
    let get = "wget -q -O - http://web/";
    assert_eq!(
        swarm.ok(&format!("run --rm -m 20m --link web busybox {get}")),
        "page",
        "placed beside its link"
    );

    swarm.ok("network create app");
    assert_eq!(swarm.ok("network ls -q --filter name=app").lines().count(), 1, "one for all engines");
    swarm.ok("network connect app web");
    assert_eq!(connected(&swarm, "app"), "web");
    assert_eq!(swarm.ok(&format!("run --rm {ON}node-0 --net app busybox {get}")), "page");
    swarm.fails("network rm app", &["has active endpoints"]);
    swarm.ok("network disconnect app web");
    assert_eq!(connected(&swarm, "app"), "");
    swarm.fails(&format!("run --rm {ON}node-0 --net app busybox {get}"), &["bad address"]);
    swarm.ok("network rm app");
    assert_eq!(swarm.ok("network ls -q --filter name=app"), "");

    swarm.ok("network create node-1/own");
    swarm.fails("network connect node-1/own web", &["is not on node node-0 of container web"]);
    swarm.ok(&format!("run -d {ON}node-1 --net own --name peer busybox sleep 1000"));
    assert_eq!(connected(&swarm, "node-1/own"), "peer");
    swarm.ok("rm -f peer");
    swarm.ok("network rm node-1/own");

    let check = "--health-cmd true --health-interval 100ms";
    swarm.ok(&format!("run -d -m 20m --net none --name checked {check} busybox sleep 1000"));
    wait_for("the health of a container", || {
        let shown = swarm.ok("ps --filter health=healthy --format {{.Names}}");
        shown.ends_with("/checked").then_some(())
    });
}

const PROJECT: &str = "
version: '2.4'
services:
  web:
    image: busybox
    command: sh -c 'mkdir /tmp/w; echo page > /tmp/w/index.html; exec httpd -f -p 80 -h /tmp/w'
    mem_limit: 20m
    ports: ['31080:80']
    volumes: ['data:/data']
    environment: ['constraint:node==node-1']
  client:
    image: busybox
    command: sh -c 'until wget -q -O - http://web/; do sleep 0.1; done; exec sleep 1000'
    mem_limit: 20m
    depends_on: [web]
    environment: ['constraint:node==node-1']
  made:
    build:
      context: made
      args: {'constraint:node': '=node-1'}
    mem_limit: 20m
    network_mode: none
    environment: ['constraint:node==node-1']
volumes:
  data: {}
";

#[test]
fn compose_project_has_its_own_network_and_volumes() {
    if !available(&[Facility::Program("docker-compose")]) {
        return;
    }
    let Some(swarm) = with_bridges() else { return };
    let folder = swarm.cluster.folder().join("project");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::create_dir_all(folder.join("made")).expect("made");
    std::fs::write(folder.join("docker-compose.yml"), PROJECT).expect("written");
    std::fs::write(folder.join("made/Dockerfile"), "FROM busybox\nCOPY file /built\n").expect("written");
    std::fs::write(folder.join("made/file"), "built\n").expect("written");
    let compose = |arguments: &str| {
        let mut command = Command::new("docker-compose");
        command.args(["-p", "demo"]).args(arguments.split(' ')).current_dir(&folder);
        command.env("DOCKER_HOST", &swarm.manager.host).env("COMPOSE_HTTP_TIMEOUT", "120");
        command.env("DOCKER_BUILDKIT", "0");
        let ran = Ran::of(command.output().expect("docker-compose starts"));
        assert_eq!(ran.code, 0, "docker-compose {arguments}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    compose("up -d web client");
    wait_for_page(&swarm, 1, 31080);
    wait_for("the page at the client", || compose("logs client").contains("page").then_some(()));
    assert_eq!(swarm.ok("network ls -q --filter name=demo_default").lines().count(), 1);
    assert!(swarm.ok("volume ls -q").contains("node-1/demo_data"));
    let ids = swarm.ok("ps -q --no-trunc");
    compose("up -d web client");
    assert_eq!(swarm.ok("ps -q --no-trunc"), ids, "nothing has changed");
    compose("restart -t 0 web");
    wait_for_page(&swarm, 1, 31080);
    assert_eq!(compose("exec -T client wget -q -O - http://web/"), "page\n");
    assert_eq!(compose("run --rm -T client wget -q -O - http://web/"), "page\n");
    assert!(compose("port web 80").ends_with(":31080\n"));
    assert!(compose("top").contains("httpd"));
    compose("kill client");
    compose("rm -f client");
    assert!(!compose("ps").contains("client"));
    // Built on the node where its container is to be, as the image is there only.
    compose("build made");
    assert_eq!(compose("run --rm -T made cat /built"), "built\n");
    compose("down -t 0 -v");
    assert_eq!(swarm.ok("ps -qa"), "");
    assert_eq!(swarm.ok("network ls -q --filter name=demo_default"), "");
    assert!(!swarm.ok("volume ls -q").contains("demo_data"));
}
