//! The cases of classic Swarm's own suite that apply, with three real engines and the real docker CLI. Needs root.
//!
//! One swarm for all of them: engines are slow to start. The image `other` is on `node-2` only.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tepui_e2e::swarm::{Node, Ran, Swarm, docker_command, exit_code};
use tepui_e2e::{Http, wait_for};

/// What a container asks for, and no network: engines here have no bridge.
const RUN: &str = "run -m 20m --net none";

#[test]
fn classic_cases_pass() {
    let node = |labels: &[&str]| Node {
        labels: labels.iter().map(|it| (*it).to_owned()).collect(),
        ..Node::default()
    };
    let nodes = [
        node(&["foo=a", "group=A", "res-type=gold"]),
        node(&["foo=b", "group=B", "node=x", "containerslots=many"]),
        node(&["foo=c", "containerslots=2"]),
    ];
    // Cases compare what nodes offer: the manager holds every offer, however slow the machine is.
    let manage = ["--cluster-opt=mesos.tasktimeout=3s", "--cluster-opt=mesos.offertimeout=1h"];
    let Some(swarm) = Swarm::with(&nodes, &[], &manage) else { return };
    swarm.engines[2].import("other");
    wait_for("the image to be seen", || swarm.ok("images -q other").lines().next().map(drop));
    swarm.play(&[
        ("version and info", version_and_info),
        ("run and ps", run_and_ps),
        ("rejections", rejections),
        ("inspect", inspect),
        ("logs", logs),
        ("events", events),
        ("stats and top", stats_and_top),
        ("exec", exec),
        ("attach", attach),
        ("cp", cp),
        ("signals", signals),
        ("signals of a client in the foreground", foreground_signals),
        ("restart policies", restart_policies),
        ("rm", rm),
        ("names", names),
        ("ps filters", ps_filters),
        ("two creates with one name", two_creates_with_one_name),
        ("nonsense", nonsense),
        ("constraints", constraints),
        ("affinities", affinities),
        ("labels keep containers apart", labels_keep_apart),
        ("ports", ports),
        ("slots", slots),
        ("info details", info_details),
        ("dependencies", dependencies),
        ("commit and build", commit_and_build),
        ("update", update),
        ("networks and volumes", networks_and_volumes),
        ("strategies", strategies),
        ("images", images),
        ("import and prune", import_and_prune),
        ("no connection is left behind", connections),
    ]);
}

fn version_and_info(swarm: &Swarm) {
    assert!(swarm.ok("version").contains("swarm/"));
    let info = swarm.ok("info");
    for text in [
        "Role: primary",
        "Strategy: spread",
        "Filters: health, port, containerslots, dependency, affinity, constraint, whitelist",
        "Offers: 3",
        "Nodes: 3",
        "node-0",
        "res-type=regular",
        "foo=a",
    ] {
        assert!(info.contains(text), "no {text:?} in {info}");
    }
    assert!(!info.contains("gold") && !info.contains("node=x"), "{info}");
    assert!(swarm.manager.log().contains("label res-type of the engine is replaced"), "of node-0");
}

fn run_and_ps(swarm: &Swarm) {
    let id = swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    assert_eq!(swarm.ok("ps -q --no-trunc --filter name=c1 --filter status=running"), id);
    // A short command leaves one container, and runs once.
    assert_eq!(swarm.ok(&format!("{RUN} --name c2 busybox echo once")), "once");
    assert_eq!(swarm.ok("logs c2"), "once");
    assert_eq!(swarm.ok("ps -qa").lines().count(), 2);
    // What others have on the engine is not shown.
    swarm.engines[0].create("foreign", "x");
    assert_eq!(swarm.ok("ps -qa").lines().count(), 2);
    for _ in 0..3 {
        assert_eq!(swarm.ok(&format!("{RUN} --rm busybox echo gone")), "gone");
    }
    wait_for("removal by the engine", || (swarm.ok("ps -qa").lines().count() == 2).then_some(()));
    // The exit code is that of the command.
    let ran = swarm.sh(&format!("{RUN} --rm busybox sh -c 'exit 7'"));
    assert_eq!(ran.code, 7, "{ran:?}");
}

fn rejections(swarm: &Swarm) {
    swarm.fails("run busybox true", &["resources constraints (-c and/or -m) are required by mesos"]);
    swarm.fails(
        &format!("{RUN} -d -m 1000g busybox true"),
        &["container failed to start after 3s", "no resources available to schedule container", "node-0"],
    );
    swarm.fails(
        &format!("{RUN} -d --cpu-shares 10240 busybox true"),
        &["no resources available to schedule container"],
    );
    swarm.fails(
        &format!("{RUN} -d -e constraint:node==node-9 busybox true"),
        &["Unable to find a node that satisfies the following conditions", "[node==node-9]"],
    );
    swarm.fails(
        &format!("{RUN} -d -e constraint:node=node-0 busybox true"),
        &["One of operator ==, != is expected"],
    );
    swarm.fails(&format!("{RUN} -d -e reschedule:false busybox true"), &["invalid reschedule policy: false"]);
    swarm
        .fails(&format!("{RUN} -d {} true", "a".repeat(64)), &["cannot specify 64-byte hexadecimal strings"]);
    swarm.fails(&format!("{RUN} -d --pull never nothing/of/the/kind true"), &["cannot pull the image"]);
    swarm.fails("inspect nobody", &["o such object: nobody"]);
    assert_eq!(swarm.ok("ps -qa"), "");
}

fn inspect(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 -e TEST=true -h hostname.test busybox sleep 100"));
    let text = swarm.ok("inspect c1");
    for part in [
        "NetworkSettings",
        "\"TEST=true\"",
        "\"Node\": {",
        "\"Name\": \"node-",
        "hostname.test",
        "\"Domainname\": \"\"",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let node = swarm.ok("inspect -f {{.Node.Name}} c1");
    assert_eq!(swarm.ok(&format!("inspect -f {{{{.Name}}}} {node}/c1")), swarm.ok("inspect -f {{.Name}} c1"));
    assert_eq!(swarm.ok("inspect -f '{{index .Config.Labels \"res-type\"}}' c1"), "regular");
}

fn logs(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox sh -c 'echo hello; echo world; echo !; sleep 100'"));
    wait_for("three lines", || (swarm.ok("logs c1") == "hello\nworld\n!").then_some(()));
    let mut follow = swarm.manager.command(&["logs", "-f", "c1"]);
    let follow = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
    swarm.ok("stop -t 0 c1");
    let output = Ran::of(follow.wait_with_output().expect("it ends with the container"));
    assert_eq!((output.code, output.stdout.as_str()), (0, "hello\nworld\n!\n"));
}

fn events(swarm: &Swarm) {
    let mut follow = swarm.events(&[]);
    swarm.ok(&format!("{RUN} --rm -e constraint:node==node-0 busybox true"));
    let mut reader = std::io::BufReader::new(follow.stdout.take().expect("piped"));
    let (mut text, wanted) = (String::new(), [" create ", " start ", " die ", "node-0"]);
    while !wanted.iter().all(|word| text.contains(word)) {
        let mut line = String::new();
        let read = std::io::BufRead::read_line(&mut reader, &mut line).expect("events");
        assert_ne!(read, 0, "events end with {text}");
        text += &line;
    }
    follow.kill().expect("it runs");
    follow.wait().expect("it ended");
}

fn stats_and_top(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    let stats = swarm.ok("stats --no-stream c1");
    assert!(
        stats.contains("CPU %") && stats.contains("MEM USAGE / LIMIT") && stats.contains("20MiB"),
        "{stats}"
    );
    assert!(swarm.ok("top c1").contains("sleep 100"));
}

fn exec(swarm: &Swarm) {
    swarm.ok("create -m 20m --net none --name c1 busybox sleep 100");
    swarm.fails("exec c1 true", &["is not running"]);
    swarm.ok("start c1");
    assert_eq!(swarm.ok("exec c1 echo foobar"), "foobar");
    assert_eq!(swarm.sh("exec c1 sh -c 'exit 5'").code, 5);
    swarm.ok("exec -d c1 touch /tmp/made");
    wait_for("the detached command", || (swarm.sh("exec c1 ls /tmp/made").code == 0).then_some(()));
    let mut piped = swarm.manager.command(&["exec", "-i", "c1", "cat"]);
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("docker starts");
    piped.stdin.take().expect("piped").write_all(b"through\n").expect("written");
    assert_eq!(Ran::of(piped.wait_with_output().expect("it ends")).stdout, "through\n");
}

fn attach(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d -i --name c1 busybox sh -c 'read line; echo got $line'"));
    let mut attached = swarm.manager.command(&["attach", "c1"]);
    let attached = attached.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut attached = attached.expect("docker starts");
    attached.stdin.take().expect("piped").write_all(b"input\n").expect("written");
    assert_eq!(Ran::of(attached.wait_with_output().expect("it ends")).code, 0);
    assert_eq!(swarm.ok("wait c1"), "0");
    assert_eq!(swarm.ok("logs c1"), "got input");
    // A foreground run passes its input on, to the end of it.
    let mut run =
        swarm.manager.command(&["run", "-m", "20m", "--net", "none", "--rm", "-i", "busybox", "cat"]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("docker starts");
    run.stdin.take().expect("piped").write_all(b"all of it\n").expect("written");
    assert_eq!(Ran::of(run.wait_with_output().expect("it ends")).stdout, "all of it\n");
}

fn cp(swarm: &Swarm) {
    let folder = swarm.cluster.folder().join("cp");
    std::fs::create_dir_all(&folder).expect("made");
    let (there, back) = (folder.join("there"), folder.join("back"));
    let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&there, &bytes).expect("written");
    swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    swarm.ok(&format!("cp {} c1:/tmp/file", there.display()));
    swarm.ok(&format!("cp c1:/tmp/file {}", back.display()));
    assert!(std::fs::read(&back).expect("it came back") == bytes, "the file has changed on its way");
    assert!(swarm.ok("diff c1").contains("/tmp/file"));
}

fn signals(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    let started = swarm.ok("inspect -f {{.State.StartedAt}} c1");
    swarm.ok("restart -t 0 c1");
    assert_ne!(swarm.ok("inspect -f {{.State.StartedAt}} c1"), started);
    assert_eq!(swarm.ok("inspect -f {{.State.Running}} c1"), "true");
    swarm.ok("pause c1");
    assert!(swarm.ok("ps").contains("(Paused)"));
    swarm.ok("unpause c1");
    swarm.ok("kill c1");
    assert_eq!(swarm.ok("wait c1"), "137");
    assert_eq!(swarm.ok("inspect -f {{.State.ExitCode}} c1"), "137");
    swarm
        .ok(&format!("{RUN} -d --name c2 busybox sh -c 'trap \"exit 3\" TERM; while :; do sleep 0.1; done'"));
    swarm.ok("stop -t 20 c2");
    assert_eq!(swarm.ok("wait c2"), "3");
    // A container that has ended can be started again.
    swarm.ok("start c1");
    assert_eq!(swarm.ok("inspect -f {{.State.Running}} c1"), "true");
}

fn foreground_signals(swarm: &Swarm) {
    let script = "trap 'exit 7' INT; echo ready; while :; do sleep 0.1; done";
    let arguments = ["run", "-m", "20m", "--net", "none", "busybox", "sh", "-c", script];
    let mut client = swarm.manager.command(&arguments);
    let mut client = client.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(client.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("output");
    assert_eq!(line, "ready\n");
    let pid = client.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    assert_eq!(exit_code(&mut client), Some(7), "the exit code of the command");
}

/// The engine starts the container again, and the task goes on with it.
fn restart_policies(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --restart on-failure:2 --name again busybox sh -c 'echo run; exit 3'"));
    wait_for("the last exit", || {
        let state = swarm.ok("inspect -f '{{.RestartCount}} {{.State.Status}}' again");
        (state == "2 exited").then_some(())
    });
    assert_eq!(swarm.ok("logs again"), "run\nrun\nrun");
    assert_eq!(swarm.ok("wait again"), "3");
    let state = || {
        let http = Http::new(&swarm.cluster.master.address);
        let tasks = http.post("/api/v1", &json!({"type": "GET_TASKS"})).json().expect("tasks");
        let all = ["tasks", "completed_tasks"].map(|key| tasks["get_tasks"][key].as_array().cloned());
        let task = all.into_iter().flatten().flatten().find(|it| it["name"] == "again");
        task.map(|it| it["state"].clone())
    };
    wait_for("the task to terminate", || (state()? == "TASK_FAILED").then_some(()));
}

fn rm(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    swarm.fails("rm c1", &["running"]);
    swarm.ok("rm -f c1");
    assert_eq!(swarm.ok("ps -qa"), "");
    // Its resources are free again, and its name.
    swarm.ok(&format!("{RUN} -d --name c1 busybox true"));
}

fn names(swarm: &Swarm) {
    let id = swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    let conflict = "Conflict: The name c1 is already assigned or in pending tasks";
    swarm.fails(&format!("{RUN} -d --name c1 busybox true"), &[conflict]);
    // A name may look like the beginning of an id, and is found first.
    swarm.ok(&format!("create -m 20m --net none --name {} busybox true", &id[..4]));
    assert_eq!(swarm.ok(&format!("inspect -f {{{{.Name}}}} {}", &id[..4])), format!("/{}", &id[..4]));
    swarm.fails(&format!("rename {} c1", &id[..4]), &["Conflict: The name c1"]);
    swarm.ok("rename c1 c2");
    assert_eq!(swarm.ok("ps -q --no-trunc --filter name=c2"), id);
    swarm.ok(&format!("{RUN} -d --name c1 busybox true"));
    for name in ["../x", "a b", "-x", "ü"] {
        let ran = swarm.docker(&[
            "create",
            "-m",
            "20m",
            "--net",
            "none",
            &format!("--name={name}"),
            "busybox",
            "true",
        ]);
        assert!(ran.code != 0 && ran.stderr.contains("Invalid container name"), "{name}: {}", ran.stderr);
    }
}

fn ps_filters(swarm: &Swarm) {
    let running = swarm.ok(&format!(
        "{RUN} -d --name running -v kept:/kept -l kind=a -l and=1 -e constraint:node==node-0 busybox sleep 100"
    ));
    let exited = swarm
        .ok(&format!("{RUN} -d --name exited -l kind=a -e constraint:node==node-1 busybox sh -c 'exit 2'"));
    let created = swarm.ok("create -m 20m --net none --name created -l kind=b busybox true");
    swarm.ok("wait exited");
    for (filters, expected) in [
        ("", vec![&running]),
        ("-a", vec![&running, &exited, &created]),
        ("-a --filter status=exited", vec![&exited]),
        ("--filter status=exited", vec![&exited]),
        ("-a --filter status=created", vec![&created]),
        ("-a --filter exited=2", vec![&exited]),
        ("-a --filter exited=0", vec![]),
        ("-a --filter name=exit", vec![&exited]),
        ("-a --filter label=kind=a", vec![&running, &exited]),
        ("-a --filter label=kind=a --filter label=and=1", vec![&running]),
        ("-a --filter label=kind", vec![&running, &exited, &created]),
        ("-a --filter node=node-1", vec![&exited]),
        ("-a --filter node=node-9", vec![]),
        ("-a --filter volume=kept", vec![&running]),
        ("-a --filter volume=/kept", vec![&running]),
        ("-a --filter network=none", vec![&running, &exited, &created]),
        ("-a --filter network=host", vec![]),
        ("-a --filter health=healthy", vec![]),
        ("-n 2", vec![&created, &exited]),
        ("-l", vec![&created]),
    ] {
        let shown = swarm.ok(&format!("ps -q --no-trunc {filters}"));
        let shown: BTreeSet<&str> = shown.lines().collect();
        let expected: BTreeSet<&str> = expected.into_iter().map(String::as_str).collect();
        assert_eq!(shown, expected, "ps {filters}");
    }
    assert!(swarm.ok("ps -a").contains("node-0/running"));
}

/// Runs and says where.
fn place(swarm: &Swarm, options: &str) -> String {
    let id = swarm.ok(&format!("create -m 20m --net none {options} true"));
    swarm.ok(&format!("inspect -f {{{{.Node.Name}}}} {id}"))
}

fn constraints(swarm: &Swarm) {
    for (options, node) in [
        ("-e constraint:node==node-0 busybox", "node-0"),
        ("-e constraint:node==node-1 busybox", "node-1"),
        ("-e constraint:node==/node-[19]/ busybox", "node-1"),
        ("-e constraint:foo==a busybox", "node-0"),
        ("-e constraint:foo!=/[ac]/ busybox", "node-1"),
        ("-l 'com.docker.swarm.constraints=[\"foo==b\"]' busybox", "node-1"),
        (
            "-e constraint:storagedriver==~not_exist -l 'com.docker.swarm.constraints=[\"node==node-0\"]' busybox",
            "node-0",
        ),
        ("-e whitelist:node==node-1|node-9 busybox", "node-1"),
        (
            "-e constraint:ostype==linux -l 'com.docker.swarm.constraints=[\"node==node-1\"]' busybox",
            "node-1",
        ),
    ] {
        assert_eq!(place(swarm, options), node, "{options}");
    }
}

fn affinities(swarm: &Swarm) {
    let host = format!("unix://{}", swarm.engines[1].socket().display());
    let tagged = docker_command(&host, &["tag", "busybox", "localhost:5000/test"]).status();
    assert!(tagged.expect("docker starts").success());
    wait_for("the image to be seen", || swarm.ok("images -q localhost:5000/test").lines().next().map(drop));
    assert_eq!(place(swarm, "--name c1 -l test.label=true -e constraint:node==node-1 busybox"), "node-1");
    for (options, node) in [
        ("-e affinity:container==c1 busybox", "node-1"),
        ("-e affinity:container!=c1 -e constraint:node!=node-2 busybox", "node-0"),
        ("-e affinity:test.label==true busybox", "node-1"),
        ("-e affinity:test.label!=true -e constraint:node!=node-2 busybox", "node-0"),
        ("-e affinity:image==other other", "node-2"),
        ("-e affinity:image==~nothing -e constraint:foo==a busybox", "node-0"),
        ("-e affinity:image==localhost:5000/test localhost:5000/test", "node-1"),
        ("-e affinity:image==localhost:5000/test:latest busybox", "node-1"),
        ("-e affinity:container==~c1 -e constraint:group==A busybox", "node-0"),
        ("-l 'com.docker.swarm.affinities=[\"container==c1\"]' busybox", "node-1"),
    ] {
        assert_eq!(place(swarm, options), node, "{options}");
    }
    swarm.fails(
        "create -m 20m --net none -e affinity:container==nobody busybox true",
        &["[container==nobody (soft=false)]"],
    );
}

fn ports(swarm: &Swarm) {
    let on = "-e constraint:node!=node-2";
    let mut nodes = BTreeSet::new();
    for _ in 0..2 {
        nodes.insert(place(swarm, &format!("{on} -p 31080:80 busybox")));
    }
    assert_eq!(nodes.len(), 2);
    let conditions = "Unable to find a node that satisfies the following conditions";
    swarm.fails(
        &format!("create -m 20m --net none {on} -p 31080:80 busybox true"),
        &[conditions, "[port 31080 (Bridge mode)]"],
    );
    for _ in 0..2 {
        swarm.ok(&format!("create -m 20m --net host {on} --expose 81 busybox true"));
    }
    swarm.fails(
        &format!("create -m 20m --net host {on} --expose 81 busybox true"),
        &[conditions, "[port 81/tcp (Host mode)]"],
    );
    // A port that is not offered, and one that the manager chooses.
    swarm.fails("create -m 20m --net none -p 99:80 busybox true", &["port 99 is not offered"]);
    let id = swarm.ok("create -m 20m --net none -p 80 busybox true");
    let port = swarm.ok(&format!(
        "inspect -f '{{{{(index (index .HostConfig.PortBindings \"80/tcp\") 0).HostPort}}}}' {id}"
    ));
    assert!((31000..=32000).contains(&port.parse::<u16>().expect("a number")), "{port}");
}

fn slots(swarm: &Swarm) {
    let on = "-m 20m --net none -e constraint:node==node-2 other true";
    swarm.ok(&format!("create {on}"));
    swarm.ok(&format!("create {on}"));
    swarm.fails(&format!("create {on}"), &["[available container slots]"]);
    // Without a number, or without the label, there is no limit.
    for node in ["node-0", "node-1"] {
        for _ in 0..5 {
            assert_eq!(place(swarm, &format!("-e constraint:node=={node} busybox")), node);
        }
    }
}

/// Three at once that want no other of their label beside them, and two nodes.
fn labels_keep_apart(swarm: &Swarm) {
    let run = "run -d -m 20m --net none -l test.label=true -e affinity:test.label!=true -e constraint:node!=node-2 busybox sleep 100";
    let all: Vec<Child> = (0..3).map(|_| start(swarm, run)).collect();
    let ended: Vec<Ran> = all.into_iter().map(end).collect();
    let failed: Vec<&Ran> = ended.iter().filter(|ran| ran.code != 0).collect();
    assert_eq!(failed.len(), 1, "{ended:?}");
    assert!(failed[0].stderr.contains("[test.label!=true (soft=false)]"), "{ended:?}");
    assert_eq!(swarm.ok("ps -q --filter label=test.label=true").lines().count(), 2);
}

/// Counts of each node and of the whole cluster.
fn info_details(swarm: &Swarm) {
    let shows = |running: u32, paused: u32, stopped: u32| {
        let all = running + paused + stopped;
        let node = format!("Containers: {all} ({running} Running, {paused} Paused, {stopped} Stopped)");
        let total =
            format!("Containers: {all}\n  Running: {running}\n  Paused: {paused}\n  Stopped: {stopped}");
        wait_for(&node, || {
            let info = swarm.ok("info");
            (info.contains(&node) && info.contains(&total)).then_some(())
        });
    };
    let node = "-e constraint:node==node-1";
    swarm.ok(&format!("{RUN} -d --name c1 {node} busybox sleep 100"));
    swarm.ok(&format!("{RUN} -d --name c2 {node} busybox sleep 100"));
    shows(2, 0, 0);
    swarm.ok("pause c1");
    shows(1, 1, 0);
    swarm.ok("unpause c1");
    shows(2, 0, 0);
    swarm.ok("kill c1");
    shows(1, 0, 1);
    swarm.ok("rm -f c1 c2");
    shows(0, 0, 0);
}

fn dependencies(swarm: &Swarm) {
    assert_eq!(place(swarm, "--name b1 -v /data -e constraint:node==node-1 busybox"), "node-1");
    swarm.ok(&format!("{RUN} -d --name b2 -e constraint:node==node-1 busybox sleep 100"));
    assert_eq!(place(swarm, "--volumes-from b1 busybox"), "node-1");
    assert_eq!(place(swarm, "--volumes-from /b1:ro busybox"), "node-1");
    // Older clients reject links together with `--net none`.
    swarm.ok("create -m 20m --name b3 --link=/b1:foo busybox true");
    assert_eq!(swarm.ok("inspect -f {{.Node.Name}} b3"), "node-1");
    assert_eq!(swarm.ok("inspect -f {{.HostConfig.Links}} b3"), "[/b1:/b3/foo]");
    let id = swarm.ok("create -m 20m --net container:b2 busybox true");
    assert_eq!(swarm.ok(&format!("inspect -f {{{{.Node.Name}}}} {id}")), "node-1");
    swarm.fails("create -m 20m --net none --volumes-from nobody busybox true", &["--volumes-from=nobody"]);
}

fn images(swarm: &Swarm) {
    assert_eq!(swarm.ok("images -q --filter node=node-0 other"), "");
    assert_eq!(swarm.ok("images -q --filter node=node-2 other").lines().count(), 1);
    swarm.ok("tag other other:second");
    assert!(swarm.ok("images --format {{.Tag}} other").contains("second"));
    swarm.ok("rmi other:second");
    assert!(!swarm.ok("images --format {{.Tag}} other").contains("second"));
    assert!(swarm.ok("history busybox").contains("IMAGE"));
    let archive = swarm.cluster.folder().join("other.tar");
    swarm.ok(&format!("save -o {} other", archive.display()));
    swarm.ok(&format!("load -i {}", archive.display()));
    wait_for("the image on all engines", || {
        (swarm.ok("images -q --filter node=node-0 other").lines().count() == 1).then_some(())
    });
    assert_eq!(swarm.ok("images -q other").lines().count(), 1, "one row for three engines");
    swarm.ok("rmi other");
    assert_eq!(swarm.ok("images -q other"), "");
}

fn import_and_prune(swarm: &Swarm) {
    let folder = swarm.cluster.folder().join("import");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("file"), "imported").expect("written");
    let archive = swarm.cluster.folder().join("import.tar");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&folder).arg("-cf").arg(&archive).arg("file");
    assert!(tar.status().expect("tar runs").success());
    swarm.ok(&format!("import {} imported", archive.display()));
    for node in 0..swarm.engines.len() {
        let listed = swarm.ok(&format!("images -q --filter node=node-{node} imported"));
        assert_eq!(listed.lines().count(), 1, "node-{node}");
    }
    swarm.ok("rmi imported");
    // Containers that run, images with a name and what belongs to others on the engines are left.
    let running = swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    swarm.ok(&format!("{RUN} --name c2 busybox true"));
    swarm.engines[1].create("others", "x");
    let pruned = swarm.ok("system prune -f");
    assert!(pruned.contains("Deleted Containers"), "{pruned}");
    assert_eq!(swarm.ok("ps -qa --no-trunc"), running);
    assert!(swarm.engines[1].inspect("others").is_some());
    assert!(!swarm.ok("images -q busybox").is_empty());
}

fn commit_and_build(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox touch /tmp/made"));
    swarm.ok("wait c1");
    swarm.ok("commit c1 committed");
    wait_for("the image", || (swarm.ok("images -q committed").lines().count() == 1).then_some(()));
    assert_eq!(
        swarm.ok(&format!("{RUN} --rm -e affinity:image==committed committed ls /tmp/made")),
        "/tmp/made"
    );
    let folder = swarm.cluster.folder().join("build");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("Dockerfile"), "FROM scratch\nCOPY Dockerfile /\n").expect("written");
    let mut build = swarm.manager.command(&["build", "-t", "built", &folder.display().to_string()]);
    let built = Ran::of(build.env("DOCKER_BUILDKIT", "0").output().expect("docker starts"));
    assert_eq!(built.code, 0, "{}{}", built.stdout, built.stderr);
    wait_for("the image", || (swarm.ok("images -q built").lines().count() == 1).then_some(()));
    swarm.ok("rmi -f committed built");
}

fn update(swarm: &Swarm) {
    swarm.ok(&format!("{RUN} -d --name c1 busybox sleep 100"));
    let ran = swarm.sh("update -m 10m --memory-swap 10m c1");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(swarm.ok("inspect -f {{.HostConfig.Memory}} c1"), (10 << 20).to_string());
}

fn networks_and_volumes(swarm: &Swarm) {
    let networks = swarm.ok("network ls");
    for text in ["node-0/none", "node-1/host", "node-2/none"] {
        assert!(networks.contains(text), "no {text} in {networks}");
    }
    swarm.ok("volume create node-1/data");
    let volumes = swarm.ok("volume ls -q");
    assert!(volumes.contains("node-1/data") && !volumes.contains("node-0/data"), "{volumes}");
    swarm.ok("volume rm node-1/data");
    assert!(!swarm.ok("volume ls -q").contains("data"));
    assert!(swarm.ok("system df").contains("Images"));
}

fn strategies(swarm: &Swarm) {
    let on = "-e constraint:node!=node-2 busybox";
    // Nodes are compared by what they offer: an offer of each has to be held.
    let place_next = |_| {
        wait_for("all nodes to offer memory", || {
            let info = swarm.ok("info");
            let offers =
                info.lines().filter(|line| line.contains("Reserved Memory") && !line.ends_with("/ 0 B"));
            (offers.count() == swarm.engines.len()).then_some(())
        });
        place(swarm, on)
    };
    let nodes: BTreeSet<String> = (0..2).map(place_next).collect();
    assert_eq!(nodes.len(), 2, "spread");
}

/// Files that the manager has open do not grow with the calls that it served.
fn connections(swarm: &Swarm) {
    let open = || std::fs::read_dir(format!("/proc/{}/fd", swarm.manager.id())).expect("it runs").count();
    let turn = |swarm: &Swarm| {
        swarm.ok(&format!("{RUN} --name c1 busybox echo x"));
        swarm.ok("inspect c1");
        swarm.ok("logs c1");
        swarm.ok("rm c1");
    };
    turn(swarm);
    let before = open();
    (0..5).for_each(|_| turn(swarm));
    wait_for("connections to be closed", || (open() <= before + 6).then_some(()));
}

fn two_creates_with_one_name(swarm: &Swarm) {
    let both: Vec<Child> =
        (0..2).map(|_| start(swarm, "create -m 20m --net none --name one busybox true")).collect();
    let ended: Vec<Ran> = both.into_iter().map(end).collect();
    let failed: Vec<&Ran> = ended.iter().filter(|ran| ran.code != 0).collect();
    assert_eq!(failed.len(), 1, "{ended:?}");
    assert!(failed[0].stderr.contains("Conflict: The name one is already assigned"), "{ended:?}");
}

fn start(swarm: &Swarm, line: &str) -> Child {
    let arguments: Vec<&str> = line.split(' ').collect();
    let mut command = swarm.manager.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("docker starts")
}

fn end(child: Child) -> Ran {
    Ran::of(child.wait_with_output().expect("docker ends"))
}

fn nonsense(swarm: &Swarm) {
    let http = Http::new(swarm.manager.host.trim_start_matches("tcp://"));
    let create = "/v1.41/containers/create";
    let json = [("Content-Type", "application/json")];
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("{\"Image\": 7}", 400),
        ("{\"Image\": \"busybox\", \"HostConfig\": []}", 400),
        ("{\"Image\": \"busybox\", \"HostConfig\": {\"Memory\": -1}}", 400),
        ("{\"Image\": \"busybox\", \"HostConfig\": {\"Memory\": 1e99}}", 400),
        ("{\"Image\": \"busybox\", \"HostConfig\": {\"CpuShares\": 1}, \"Env\": [7]}", 400),
        ("{\"Image\": \"busybox\", \"HostConfig\": {\"CpuShares\": 1}, \"Labels\": {\"a\": 1}}", 400),
    ] {
        let answer = http.send("POST", create, &json, body.as_bytes());
        let message = answer.json().map(|it| it["message"].to_string()).unwrap_or_default();
        assert!(answer.status == status && message.len() > 2, "{body}: {} {}", answer.status, answer.text());
    }
    let huge = vec![b' '; 64 << 20];
    // Rejected before it is read to its end; the answer may be lost with the rest of it.
    assert!(!(1..400).contains(&http.send("POST", create, &json, &huge).status));
    assert_eq!(http.get("/v1.41/containers/%2e%2e%2fx/json").status, 400);
    assert_eq!(http.get("/v1.41/nothing/of/the/kind").status, 404);
    assert_eq!(http.send("GET", "/v1.41/containers/json?filters=%7B", &[], &[]).status, 400);
    // Unknown fields are passed on, and hostile labels are only text.
    let label = "\u{0}\n\"';--<script>".repeat(10);
    let body = json!({
        "Image": "busybox", "Cmd": ["true"], "Unknown": {"a": [1]},
        "Labels": {"hostile": label}, "HostConfig": {"CpuShares": 1, "NetworkMode": "none"},
    });
    let answer = http.post(create, &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let id = answer.json().expect("a document")["Id"].as_str().expect("an id").to_owned();
    let shown = http.get(&format!("/v1.41/containers/{id}/json")).json().expect("a document");
    assert_eq!(shown["Config"]["Labels"]["hostile"], label);
}
