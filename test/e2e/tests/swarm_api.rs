//! The Docker API of `tepui swarm` with real engines and the real docker CLI, call by call. Needs root.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::Value;
use tepui_e2e::dockerd::IMAGE;
use tepui_e2e::swarm::{Ran, Swarm};
use tepui_e2e::wait_for;
use tepui_facilities::{Facility, available};

/// What every container here asks for.
const SMALL: [&str; 4] = ["-m", "20m", "--net", "none"];
const SLEEP: [&str; 2] = ["sleep", "1000"];

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], arguments].concat()
}

/// Runs a container that sleeps, on a node.
fn start(swarm: &Swarm, name: &str, node: &str) -> String {
    let constraint = format!("constraint:node=={node}");
    let arguments = [&["-d", "--name", name, "-e", &constraint, IMAGE], &SLEEP[..]].concat();
    swarm.done(&run(&arguments))
}

fn inspect(swarm: &Swarm, name: &str) -> Value {
    let all: Value = serde_json::from_str(&swarm.done(&["inspect", name])).expect("JSON");
    all[0].clone()
}

/// Names that `docker ps` shows, sorted.
fn names(swarm: &Swarm, arguments: &[&str]) -> String {
    let listed = swarm.done(&[&["ps", "--format", "{{.Names}}"], arguments].concat());
    let mut names: Vec<&str> = listed.lines().collect();
    names.sort_unstable();
    names.join(" ")
}

/// The docker CLI with input.
fn with_input(swarm: &Swarm, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = swarm.manager.command(arguments);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("docker starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input).expect("docker reads its input");
    drop(stdin);
    Ran::of(child.wait_with_output().expect("docker ends"))
}

#[test]
fn attach_and_exec_stream_input_and_output() {
    let Some(swarm) = Swarm::start(2, &[]) else { return };
    // Half-close: `cat` ends when its input does, and its output still arrives, every byte of it.
    let large: Vec<u8> = (0..3_000_000u32).map(|number| b'a' + (number % 23) as u8).collect();
    let echoed = with_input(&swarm, &run(&["-i", "--rm", IMAGE, "cat"]), &large);
    assert_eq!((echoed.code, echoed.stdout.len(), echoed.stderr.as_str()), (0, large.len(), ""));
    assert!(echoed.stdout.as_bytes() == large, "the same bytes");
    start(&swarm, "web", "node-1");
    let echoed = with_input(&swarm, &["exec", "-i", "web", "cat"], b"to exec\n");
    assert_eq!((echoed.code, echoed.stdout.as_str()), (0, "to exec\n"));
    assert_eq!(swarm.docker(&["exec", "web", "sh", "-c", "echo out; echo err >&2; exit 5"]).code, 5);
    assert_eq!(swarm.docker(&["exec", "-d", "web", "touch", "/made"]).code, 0);
    wait_for("the detached command", || {
        (swarm.docker(&["exec", "web", "ls", "/made"]).code == 0).then_some(())
    });
    let terminal = "sh -c 'test -t 0 && echo terminal'";
    for line in
        [format!("run -it --rm -m 20m --net none {IMAGE} {terminal}"), format!("exec -it web {terminal}")]
    {
        let shown = swarm.in_terminal(&line);
        assert!(shown.contains("terminal"), "{line}: {shown}");
    }
    // Logs that are followed end with the container, and `wait` has its exit code.
    swarm.done(&run(&[
        "-d",
        "--name",
        "talk",
        IMAGE,
        "sh",
        "-c",
        "for i in 1 2 3; do echo $i; done; read x < /dev/null; sleep 2; exit 9",
    ]));
    assert_eq!(swarm.done(&["logs", "-f", "talk"]), "1\n2\n3");
    assert_eq!(swarm.done(&["wait", "talk"]), "9");
    // Attach to what runs.
    swarm.done(&run(&["-d", "-i", "--name", "reader", IMAGE, "sh", "-c", "read line; echo got $line"]));
    // An engine ends the output of such a stream with its input; the log has both.
    assert_eq!(with_input(&swarm, &["attach", "reader"], b"word\n").code, 0);
    wait_for("the output", || (swarm.done(&["logs", "reader"]) == "got word").then_some(()));
}

#[test]
fn containers_are_listed_and_changed() {
    let Some(swarm) = Swarm::start(2, &[]) else { return };
    start(&swarm, "web", "node-0");
    let other = start(&swarm, "db", "node-1");
    swarm.done(&run(&["--name", "job", "-e", "constraint:node==node-1", IMAGE, "true"]));
    for (arguments, expected) in [
        (&[][..], "node-0/web node-1/db"),
        (&["-a"], "node-0/web node-1/db node-1/job"),
        (&["-l"], "node-1/job"),
        (&["-n", "2"], "node-1/db node-1/job"),
        (&["--filter", "node=node-1"], "node-1/db"),
        (&["-a", "--filter", "node=node-1"], "node-1/db node-1/job"),
        (&["--filter", "name=we"], "node-0/web"),
        (&["--filter", "status=exited"], "node-1/job"),
        (&["-a", "--filter", "exited=0"], "node-1/job"),
        (&["-a", "--filter", "exited=1"], ""),
        (&["--filter", "label=res-type=regular"], "node-0/web node-1/db"),
        (&["--filter", "label=res-type=revocable"], ""),
        (&["-a", "--filter", "since=web", "--filter", "before=job"], "node-1/db"),
        (&["--filter", "network=none", "--filter", "name=db"], "node-1/db"),
        (&["-as", "--filter", "name=db"], "node-1/db"),
    ] {
        assert_eq!(names(&swarm, arguments), expected, "{arguments:?}");
    }
    assert_eq!(names(&swarm, &["--filter", &format!("id={}", &other[..6])]), "node-1/db");
    assert_eq!(inspect(&swarm, "node-1/db")["Node"]["Name"], "node-1");
    let running = |name: &str| inspect(&swarm, name)["State"].clone();
    swarm.done(&["pause", "web"]);
    assert_eq!(running("web")["Paused"], true);
    assert!(swarm.done(&["info"]).contains("Paused: 1"));
    swarm.done(&["unpause", "web"]);
    let before = running("web")["StartedAt"].clone();
    swarm.done(&["restart", "-t", "0", "web"]);
    assert_ne!(running("web")["StartedAt"], before);
    swarm.done(&["rename", "web", "shop"]);
    assert_eq!(names(&swarm, &["--filter", "name=shop"]), "node-0/shop");
    let taken = swarm.docker(&["rename", "shop", "db"]);
    assert!(taken.code != 0 && taken.stderr.contains("Conflict"), "{}", taken.stderr);
    assert!(
        swarm
            .docker(&["update", "-m", "100m", "--memory-swap", "100m", "shop"])
            .stderr
            .contains("is more than")
    );
    assert_eq!(swarm.done(&["update", "-m", "15m", "--memory-swap", "15m", "shop"]), "shop");
    // The engine answers a restart before the new process has replaced its runtime.
    wait_for("the command among the processes", || {
        swarm.done(&["top", "shop"]).contains("sleep 1000").then_some(())
    });
    assert!(swarm.done(&["stats", "--no-stream"]).contains("db"));
    swarm.done(&["kill", "shop"]);
    assert_eq!(running("shop")["ExitCode"], 137);
    let refused = swarm.docker(&["rm", "db"]);
    assert!(refused.code != 0 && refused.stderr.contains("running"), "{}", refused.stderr);
    swarm.done(&["rm", "-f", "db"]);
    assert_eq!(swarm.done(&["container", "prune", "-f"]).lines().filter(|line| line.len() == 64).count(), 2);
    assert_eq!(names(&swarm, &["-a"]), "");
    for _ in 0..3 {
        assert_eq!(swarm.done(&run(&["--rm", "--name", "same", IMAGE, "echo", "again"])), "again");
    }
    assert_eq!(names(&swarm, &["-a"]), "");
}

#[test]
fn files_are_copied_into_and_out_of_containers() {
    let Some(swarm) = Swarm::start(2, &[]) else { return };
    start(&swarm, "web", "node-1");
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let bytes: Vec<u8> = (0..1_000_000u32).map(|number| (number * 7 % 251) as u8).collect();
    std::fs::write(&from, &bytes).expect("a file");
    swarm.done(&["cp", from.to_str().expect("a path"), "web:/copied"]);
    swarm.done(&["cp", "web:/copied", to.to_str().expect("a path")]);
    assert!(std::fs::read(&to).expect("a file") == bytes, "the same bytes");
    assert!(swarm.done(&["diff", "web"]).contains("A /copied"));
    let id = swarm.done(&["commit", "-m", "with a file", "web", "kept:1"]);
    assert_eq!(swarm.done(&["images", "-q", "--no-trunc", "kept"]), id);
    assert_eq!(
        swarm.done(&["images", "-q", "--filter", "node=node-0", "kept"]),
        "",
        "committed where it runs"
    );
    let exported = directory.path().join("exported.tar");
    swarm.done(&["export", "-o", exported.to_str().expect("a path"), "web"]);
    assert!(std::fs::metadata(&exported).expect("a file").len() > 1_000_000);
    // An image of one engine, saved and loaded, is on all of them.
    let saved = directory.path().join("saved.tar");
    swarm.done(&["save", "-o", saved.to_str().expect("a path"), "kept:1"]);
    swarm.done(&["rmi", "kept:1"]);
    assert_eq!(swarm.done(&["images", "-q", "kept"]), "");
    let loaded = swarm.done(&["load", "-i", saved.to_str().expect("a path")]);
    assert!(loaded.contains("node-0") && loaded.contains("node-1"), "{loaded}");
    for node in ["node=node-0", "node=node-1"] {
        assert_eq!(swarm.done(&["images", "-q", "--no-trunc", "--filter", node, "kept"]), id, "{node}");
    }
    assert!(swarm.done(&["history", "kept:1"]).contains("with a file"));
    swarm.done(&["tag", "kept:1", "again:2"]);
    assert_eq!(swarm.done(&["images", "-q", "--no-trunc", "again"]), id);
    let missing = swarm.docker(&["rmi", "nothing:1"]);
    assert!(missing.stderr.contains("No such image: nothing:1"), "{}", missing.stderr);
    std::fs::write(directory.path().join("Dockerfile"), "FROM scratch\nCOPY from /file\n").expect("a file");
    let context = directory.path().to_str().expect("a path");
    let mut build =
        swarm.manager.command(&["build", "-t", "built:1", "--build-arg", "constraint:node==node-1", context]);
    let built = Ran::of(build.env("DOCKER_BUILDKIT", "0").output().expect("docker starts"));
    assert_eq!(built.code, 0, "{}{}", built.stdout, built.stderr);
    assert_ne!(swarm.done(&["images", "-q", "--filter", "node=node-1", "built"]), "");
    assert_eq!(swarm.done(&["images", "-q", "--filter", "node=node-0", "built"]), "");
}

#[test]
fn volumes_and_networks_are_addressed_by_node() {
    let Some(swarm) = Swarm::start(2, &[]) else { return };
    assert_eq!(swarm.done(&["volume", "create", "data"]), "data");
    assert_eq!(swarm.done(&["volume", "create", "node-1/extra"]), "extra");
    let listed = swarm.done(&["volume", "ls", "-q"]);
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["node-0/data", "node-1/data", "node-1/extra"]);
    assert_eq!(swarm.ok("volume inspect -f {{.Name}} data"), "data", "those created together are one");
    swarm.ok("volume create --label a=b node-0/extra");
    swarm.fails("volume inspect extra", &["volume extra is ambiguous: it is on node-0, node-1"]);
    swarm.ok("volume rm node-0/extra");
    assert!(swarm.done(&["volume", "inspect", "node-1/data"]).contains("node-1/data"));
    swarm.done(&["volume", "rm", "data"]);
    assert_eq!(swarm.done(&["volume", "ls", "-q"]), "node-1/extra");
    let networks = swarm.done(&["network", "ls", "--format", "{{.Name}}"]);
    assert!(
        networks.lines().any(|line| line == "node-0/none")
            && networks.lines().any(|line| line == "node-1/host"),
        "{networks}"
    );
    assert!(swarm.docker(&["network", "inspect", "none"]).stderr.contains("No such network"));
    assert!(
        swarm
            .docker(&["network", "create", "node-9/x"])
            .stderr
            .contains("cannot find node to create network")
    );
    let usage = swarm.done(&["system", "df", "--format", "{{.Type}} {{.TotalCount}}"]);
    assert!(usage.contains("Local Volumes 1") && usage.contains("Images 2"), "{usage}");
    assert!(swarm.done(&["volume", "prune", "-f"]).contains("node-1/extra"));
    for (arguments, expected) in [
        (&["service", "ls"][..], "Not supported in clustering mode: services of swarm mode"),
        (&["plugin", "ls"], "Not supported in clustering mode: plugins"),
        (&["logs", "nobody"], "No such container: nobody"),
    ] {
        let ran = swarm.docker(arguments);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
    let version = swarm.done(&["version"]);
    assert!(version.contains("swarm/") && version.contains("1.41 (minimum version 1.12)"), "{version}");
}

#[test]
fn events_of_all_engines_are_one_stream() {
    let Some(swarm) = Swarm::start(2, &[]) else { return };
    let mut follow = swarm.manager.command(&["events", "--format", "{{json .}}"]);
    let mut child = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let into = seen.clone();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut buffer) {
            into.lock().expect("a text").push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    let has = |node: &str, action: &str| {
        let text = seen.lock().expect("a text").clone();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .any(|event| event["Action"] == action && event["Actor"]["Attributes"]["node.name"] == node)
    };
    // The subscription is there when a first event arrives.
    wait_for("the stream of events", || {
        swarm.done(&run(&["--rm", IMAGE, "true"]));
        (has("node-0", "die") || has("node-1", "die")).then_some(())
    });
    for node in ["node-0", "node-1"] {
        let constraint = format!("constraint:node=={node}");
        swarm.done(&run(&["-e", &constraint, "--name", node, IMAGE, "true"]));
        for action in ["create", "start", "die"] {
            wait_for(&format!("{action} on {node}"), || has(node, action).then_some(()));
        }
    }
    child.kill().expect("docker can be killed");
    child.wait().expect("docker can be waited for");
    reader.join().expect("the reader ends");
    // `--until 0s` is the beginning of this second.
    wait_for("past events", || {
        let filter = ["events", "--since", "1h", "--until", "0s", "--filter", "container=node-1"];
        let past =
            swarm.done(&[&filter[..], &["--filter", "type=container", "--format", "{{.Action}}"]].concat());
        (past.lines().collect::<Vec<_>>() == ["create", "attach", "start", "die"]).then_some(())
    });
}

#[test]
fn lost_engine_is_unhealthy_until_it_reconnects() {
    let Some(mut swarm) = Swarm::start(2, &[]) else { return };
    start(&swarm, "web", "node-0");
    swarm.done(&run(&["--name", "job", "-e", "constraint:node==node-1", IMAGE, "echo", "done"]));
    let events = [
        "events",
        "--since",
        "1h",
        "--format",
        "{{.Type}} {{.Action}} {{index .Actor.Attributes \"node.name\"}}",
    ];
    let mut follow = swarm.manager.command(&events).stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut lines =
        BufReader::new(follow.stdout.take().expect("stdout is piped")).lines().map_while(Result::ok);
    assert!(lines.next().is_some(), "the stream has begun");
    swarm.engines[1].stop();
    wait_for("the loss of the engine", || swarm.done(&["info"]).contains("Unhealthy").then_some(()));
    assert_eq!(names(&swarm, &["-a"]), "node-0/web node-1/job");
    assert_eq!(swarm.done(&["ps", "-a", "--filter", "name=job", "--format", "{{.Status}}"]), "Host Down");
    let ran = swarm.docker(&["logs", "job"]);
    assert!(
        ran.code != 0 && ran.stderr.contains("Container job running on unhealthy node node-1"),
        "{}",
        ran.stderr
    );
    swarm.engines[1].restart();
    wait_for("the engine to be back", || (!swarm.done(&["info"]).contains("Unhealthy")).then_some(()));
    assert_eq!(swarm.done(&["logs", "job"]), "done");
    for action in ["engine_disconnect", "engine_reconnect"] {
        assert!(lines.any(|line| line == format!("swarm {action} node-1")), "{action}");
    }
    follow.kill().expect("docker can be killed");
    follow.wait().expect("docker can be waited for");
}

#[test]
fn older_and_newer_clients_negotiate() {
    let Some(swarm) = Swarm::start(1, &[]) else { return };
    // Debian's own and one beside it; the API version of each is the lower of its own and the manager's.
    for program in ["/usr/bin/docker", "/usr/local/bin/docker"] {
        if !available(&[Facility::Program(program)]) {
            continue; // Recorded as a skip, whatever the other shows.
        }
        let docker = |arguments: &[&str]| {
            let mut command = std::process::Command::new(program);
            command
                .arg("-H")
                .arg(&swarm.manager.host)
                .args(arguments)
                .stdin(Stdio::null())
                .env_remove("DOCKER_HOST");
            Ran::of(command.output().expect("docker starts"))
        };
        let version = docker(&["version", "--format", "{{.Client.APIVersion}} {{.Server.APIVersion}}"]);
        assert_eq!(version.stdout.trim(), "1.41 1.41", "{program}");
        let ran = docker(&run(&["--name", "old", IMAGE, "sh", "-c", "echo out; echo err >&2; exit 4"]));
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (4, "out\n", "err\n"), "{program}");
        assert_eq!(docker(&["logs", "old"]).stdout, "out\n", "{program}");
        assert_eq!(docker(&["ps", "-a", "--format", "{{.Names}}"]).stdout, "node-0/old\n", "{program}");
        assert_eq!(docker(&["rm", "old"]).code, 0, "{program}");
        let once = docker(&run(&["--rm", IMAGE, "echo", "once"]));
        assert_eq!((once.code, once.stdout.as_str()), (0, "once\n"), "{program}: {}", once.stderr);
    }
}
