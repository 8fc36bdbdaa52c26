//! `docker-compose` (Debian's) on a swarm: a project of three services, two of them on revocable resources. Needs root.

use std::process::Command;

use tepui_e2e::swarm::{Node, Ran, Swarm};
use tepui_e2e::wait_for;
use tepui_facilities::{Facility, available};

const PROJECT: &str = "
version: '2.4'
services:
  front:
    image: busybox
    command: sh -c 'echo front is up; sleep 1000'
    mem_limit: 20m
    network_mode: none
  batch:
    image: busybox
    command: sh -c 'echo batch is up; sleep 1000'
    cpu_shares: 1
    network_mode: none
    environment: ['constraint:res-type==revocable']
  best:
    image: busybox
    command: sh -c 'echo best is up; sleep 1000'
    cpu_shares: 1
    network_mode: none
    environment: ['constraint:res-type==~revocable']
";

#[test]
fn compose_project_is_started_scaled_and_removed() {
    if !available(&[Facility::Program("docker-compose")]) {
        return;
    }
    let node = Node {
        agent_flags: vec![
            "--resource_estimator=fixed".to_owned(),
            "--fixed_estimator_resources=cpus:3".to_owned(),
        ],
        ..Node::default()
    };
    let manage = ["--cluster-opt=mesos.enablerevocable=true", "--cluster-opt=mesos.tasktimeout=20s"];
    let Some(swarm) = Swarm::with(&[node.clone(), node.clone(), node], &[], &manage) else { return };
    let folder = swarm.cluster.folder().join("project");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("docker-compose.yml"), PROJECT).expect("written");
    let compose = |arguments: &str| {
        let mut command = Command::new("docker-compose");
        command.args(["-p", "demo"]).args(arguments.split(' ')).current_dir(&folder);
        command.env("DOCKER_HOST", &swarm.manager.host).env("COMPOSE_HTTP_TIMEOUT", "120");
        let ran = Ran::of(command.output().expect("docker-compose starts"));
        assert_eq!(ran.code, 0, "docker-compose {arguments}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let count = |filter: &str| swarm.ok(&format!("ps -q --filter label={filter}")).lines().count();

    compose("up -d");
    assert_eq!(count("com.docker.compose.project=demo"), 3);
    assert_eq!(count("res-type=revocable"), 2);
    assert_eq!(count("res-type=regular"), 1);
    let shown = compose("ps");
    for service in ["front", "batch", "best"] {
        assert!(shown.contains(service) && shown.contains("Up"), "{shown}");
        wait_for("output", || compose("logs").contains(&format!("{service} is up")).then_some(()));
    }
    compose("up -d --scale batch=3");
    assert_eq!(count("com.docker.compose.service=batch"), 3);
    assert_eq!(count("com.docker.compose.project=demo"), 5);
    // What is stopped is started again, with its resources.
    compose("stop -t 0 front");
    assert_eq!(count("com.docker.compose.service=front"), 0);
    compose("start front");
    assert_eq!(count("com.docker.compose.service=front"), 1);
    compose("down -t 0");
    assert_eq!(swarm.ok("ps -qa"), "");
}
