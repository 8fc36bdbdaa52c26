//! The client against a real engine.

mod common;

use std::time::{Duration, SystemTime};

use common::{Dockerd, IMAGE, Networks, file_of};
use serde_json::{Value, json};
use tepui_docker::{Engine, Exec, Logs, Stream};
use tepui_facilities::{Facility, available};

fn shell(script: &str) -> Value {
    json!({"Image": IMAGE, "Entrypoint": ["/bin/sh"], "Cmd": ["-c", script]})
}

fn seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs()
}

async fn read(mut logs: Logs) -> (String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some((stream, piece)) = logs.next().await.expect("logs") {
        match stream {
            Stream::Stdout => stdout.extend(piece),
            Stream::Stderr => stderr.extend(piece),
        }
    }
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(stdout), text(stderr))
}

#[tokio::test]
async fn container_lifecycle() {
    if !available(&[Facility::Docker]) {
        return;
    }
    let dockerd = Dockerd::start(Networks::Host);
    let engine = Engine::at(&dockerd.socket());
    assert!(engine.version().await.expect("a version").starts_with("1."));

    let made = engine.create("mesos-a", &shell("echo out; echo err >&2; exit 3")).await.expect("made");
    let logs = engine.attach("mesos-a", false).await.expect("logs");
    let waiting = engine.wait("mesos-a").await.expect("waiting");
    engine.start("mesos-a").await.expect("started");
    assert_eq!(waiting.exit_code().await.expect("its end"), 3);
    assert_eq!(read(logs).await, ("out\n".into(), "err\n".into()));
    let inspected = engine.inspect("mesos-a").await.expect("inspected").expect("it is there");
    assert_eq!((inspected.id, inspected.state.exit_code), (made.id.clone(), 3));
    assert!(!inspected.state.running && !inspected.state.oom_killed);

    let listed = engine.list("mesos-").await.expect("a list");
    assert_eq!(listed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&made.id]);
    assert_eq!(engine.list("others-").await.expect("a list"), []);
    engine.remove("mesos-a").await.expect("removed");
    assert_eq!(engine.inspect("mesos-a").await.expect("asked"), None);
    for done in [
        engine.remove("mesos-a").await,
        engine.stop("mesos-a", Duration::ZERO).await,
        engine.kill("mesos-a", "KILL").await,
    ] {
        done.expect("nothing is left to do");
    }
}

#[tokio::test]
async fn limits_are_updated_commands_run_and_stop_kills() {
    if !available(&[Facility::Docker]) {
        return;
    }
    let dockerd = Dockerd::start(Networks::Host);
    let engine = Engine::at(&dockerd.socket());
    const MB: u64 = 1024 * 1024;
    let mut document = shell("trap 'exit 5' TERM; while :; do sleep 0.1; done");
    document["HostConfig"] = json!({"Memory": 64 * MB, "CpuShares": 204});
    engine.create("c-b", &document).await.expect("made");
    let waiting = engine.wait("c-b").await.expect("waiting");
    engine.start("c-b").await.expect("started");
    engine.start("c-b").await.expect("it runs already");
    let pid = engine.inspect("c-b").await.expect("inspected").expect("it is there").state.pid;
    assert_eq!(file_of(pid, "memory", "memory.limit_in_bytes"), (64 * MB).to_string());
    engine
        .update("c-b", &json!({"Memory": 128 * MB, "MemorySwap": -1, "CpuShares": 307}))
        .await
        .expect("updated");
    assert_eq!(file_of(pid, "memory", "memory.limit_in_bytes"), (128 * MB).to_string());
    assert_eq!(file_of(pid, "cpu", "cpu.shares"), "307");

    let exec = |script: &str| Exec {
        arguments: ["/bin/sh", "-c", script].map(String::from).to_vec(),
        environment: vec![String::from("CODE=7")],
    };
    let mut ended = engine.exec("c-b", &exec("echo said; exit $CODE")).await.expect("run");
    assert_eq!(ended.exit_code().await.expect("its end"), 7);
    assert_eq!(ended.pid().await.expect("asked"), None);
    let going = engine.exec("c-b", &exec("exec sleep 1000")).await.expect("run");
    let process = going.pid().await.expect("asked").expect("it runs");
    let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).expect("it is there");
    assert_eq!(namespace(process), namespace(pid));
    engine.kill("c-b", "SIGTERM").await.expect("signalled");
    assert_eq!(waiting.exit_code().await.expect("its end"), 5);

    let since = seconds();
    let mut document = shell("tail /dev/zero");
    document["HostConfig"] = json!({"Memory": 16 * MB, "MemorySwap": 16 * MB});
    engine.create("c-c", &document).await.expect("made");
    let waiting = engine.wait("c-c").await.expect("waiting");
    engine.start("c-c").await.expect("started");
    assert_eq!(waiting.exit_code().await.expect("its end"), 137);
    assert!(engine.was_out_of_memory("c-c", since, seconds()).await.expect("events"));
    assert!(!engine.was_out_of_memory("c-b", since, seconds()).await.expect("events"));
}

#[tokio::test]
async fn engine_errors_are_reported_with_their_message() {
    if !available(&[Facility::Docker]) {
        return;
    }
    let dockerd = Dockerd::start(Networks::Own);
    let engine = Engine::at(&dockerd.socket());
    assert!(engine.image(IMAGE).await.expect("asked").is_some());
    assert_eq!(engine.image("nobody/nothing:1").await.expect("asked"), None);
    let refused =
        engine.create("c-d", &json!({"Image": "nothing"})).await.expect_err("there is no such image");
    assert_eq!(refused.to_string(), "cannot create the container: No such image: nothing:latest");
    let refused = engine
        .exec("c-d", &Exec { arguments: vec![String::from("true")], ..Default::default() })
        .await
        .expect_err("there is no such container");
    assert_eq!(refused.to_string(), "cannot run a command in the container: No such container: c-d");
    // The engine's network has no way out.
    let refused = engine.pull("127.0.0.1:1/nothing", None).await.expect_err("there is no such registry");
    assert!(refused.to_string().starts_with("cannot pull the image: "), "{refused}");

    engine.create("c-d", &shell("exit 0")).await.expect("made");
    assert!(engine.create("c-d", &shell("exit 0")).await.expect_err("the name is taken").is_conflict());
    let mut document = shell("sleep 100");
    document["HostConfig"] = json!({"NetworkMode": "bridge"});
    engine.create("c-e", &document).await.expect("made");
    engine.start("c-e").await.expect("started");
    let addresses = engine.inspect("c-e").await.expect("inspected").expect("it is there").addresses();
    assert!(
        addresses.iter().any(|address| !address.is_ipv6 && address.ip.starts_with("172.")),
        "{addresses:?}"
    );
    engine.stop("c-e", Duration::ZERO).await.expect("stopped");

    let nobody = Engine::at(&dockerd.socket().with_extension("no"));
    let fault = nobody.inspect("c-d").await.expect_err("nobody is there").to_string();
    assert!(fault.contains("the Docker engine does not answer at"), "{fault}");
}
