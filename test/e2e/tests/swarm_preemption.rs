//! Containers of `tepui swarm` on usage slack that a QoS controller of their agent preempts. Needs root.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use tepui_e2e::swarm::{Node, Ran, Swarm, exit_code};
use tepui_e2e::{patience, wait_for};

const REASON: &str = "preempted: Container preempted by QoS correction";

/// One node with a container on usage slack; its first line of output was read by a client that follows it.
fn start() -> Option<(Swarm, Child, BufReader<std::process::ChildStdout>)> {
    let agent_flags =
        ["--resource_estimator=fixed", "--fixed_estimator_resources=cpus:4"].map(str::to_owned).to_vec();
    let manage = ["--cluster-opt=mesos.enablerevocable=true", "--cluster-opt=mesos.tasktimeout=1m"];
    let swarm = Swarm::with(&[Node { agent_flags, ..Node::default() }], &[], &manage)?;
    let script = "echo begun; sleep 1000";
    swarm.ok(&format!(
        "run -d --name cheap -c 1 --net none -e constraint:res-type==revocable busybox sh -c '{script}'"
    ));
    swarm.ok(&format!("run -d --name firm -c 1 --net none busybox sh -c '{script}'"));
    let mut follow = swarm.manager.command(&["logs", "-f", "cheap"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut output = BufReader::new(follow.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("output");
    assert_eq!(line, "begun\n");
    Some((swarm, follow, output))
}

/// Every load is above the threshold: revocable executors are preempted as soon as the agent has recovered.
fn preempt(swarm: &mut Swarm) {
    let agent = &mut swarm.cluster.agents[0];
    agent.kill();
    agent.add_flag("--qos_controller=load");
    agent.add_flag("--load_threshold_5min=-1");
    agent.restart();
}

/// What a client sees of the preempted container.
fn check_reason(swarm: &Swarm) {
    let status = wait_for("the reason", || {
        let status = swarm.ok("ps -a --filter name=cheap --format '{{.Status}}'");
        status.contains(REASON).then_some(status)
    });
    assert!(status.starts_with("Exited (137)"), "{status}");
    let state = swarm.ok("inspect -f '{{.State.Status}} {{.State.ExitCode}} {{.State.Error}}' cheap");
    assert_eq!(state, format!("exited 137 {REASON}"));
    assert_eq!(swarm.ok("inspect -f {{.State.Running}} firm"), "true");
}

#[test]
fn preempted_container_ends_streams_and_shows_its_reason() {
    let Some((mut swarm, mut follow, mut output)) = start() else { return };
    let format = "{{.Action}} {{.Actor.Attributes.exitCode}} {{.Actor.Attributes.reason}}";
    let mut events = swarm.events(&["--filter", "container=cheap", "--format", format]);
    preempt(&mut swarm);
    assert_eq!(exit_code(&mut follow), Some(0));
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("output");
    assert_eq!(rest, "");
    check_reason(&swarm);
    let lines = BufReader::new(events.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let (sender, received) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|line: &String| !line.starts_with("preempted")) {
        seen.push(received.recv_timeout(patience()).unwrap_or_else(|error| panic!("{error} after {seen:?}")));
    }
    let has = |line: String| assert!(seen.contains(&line), "no {line:?} in {seen:?}");
    has("die 137 <no value>".to_owned());
    has(format!("preempted 137 {REASON}"));
    events.kill().expect("it runs");
    events.wait().expect("it was killed");
    reader.join().expect("it ends with the events");
    let ran: Ran = swarm.docker(&["wait", "cheap"]);
    assert_eq!(ran.stdout.trim(), "137");
}

#[test]
fn preempted_container_is_stopped_while_no_manager_runs() {
    let Some((mut swarm, mut follow, _)) = start() else { return };
    swarm.manager.kill();
    exit_code(&mut follow);
    assert!(swarm.engines[0].is_running("cheap"));
    preempt(&mut swarm);
    wait_for("the end of the container", || (!swarm.engines[0].is_running("cheap")).then_some(()));
    assert!(swarm.engines[0].is_running("firm"));
    swarm.manager.restart();
    swarm.wait_for_offers(1);
    check_reason(&swarm);
}
