//! BuildKit builds through `tepui swarm`, by the docker CLI of Debian, which has a client of BuildKit built in. Needs root.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tepui_e2e::swarm::{Ran, Swarm, exit_code};
use tepui_e2e::{patience, wait_for};
use tepui_facilities::{Facility, skip};

const CLI: &str = "/usr/bin/docker";
const FACILITY: Facility = Facility::Program("docker-with-buildkit");

/// Two nodes, and a container on the one whose engine serves BuildKit: `run` prefers the other.
fn start() -> Option<Swarm> {
    let version = Command::new(CLI).arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !version.contains(" 20.10.") {
        skip(FACILITY, &format!("{CLI} is not of version 20.10: {version:?}"));
        return None;
    }
    let swarm = Swarm::start(2, &[])?;
    swarm.ok("run -d -m 20m --net none -e constraint:node==node-0 busybox sleep 1000");
    Some(swarm)
}

/// A context with this Dockerfile, busybox and a text.
fn context(swarm: &Swarm, name: &str, dockerfile: &str) -> PathBuf {
    let folder = swarm.cluster.folder().join(name);
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::copy("/bin/busybox", folder.join("cat")).expect("busybox-static is installed");
    std::fs::write(folder.join("text"), format!("text of {name}\n")).expect("written");
    std::fs::write(folder.join("Dockerfile"), dockerfile).expect("written");
    folder
}

fn build(swarm: &Swarm, name: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(CLI);
    command.args(["-H", &swarm.manager.host, "build", "-t", name]).args(arguments).arg(folder);
    command.env("DOCKER_BUILDKIT", "1").env("BUILDKIT_PROGRESS", "plain").env_remove("DOCKER_HOST");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const COPY: &str = "FROM scratch\nCOPY cat /bin/cat\nCOPY text /text\n";

#[test]
fn buildkit_images_are_built_on_one_engine_and_run_there() {
    let Some(swarm) = start() else { return };
    let names = ["one", "two"];
    let both = names.map(|name| {
        let folder = context(&swarm, name, COPY);
        build(&swarm, name, &folder, &["--no-cache"]).spawn().expect("docker starts")
    });
    for (name, child) in names.iter().zip(both) {
        let built = Ran::of(child.wait_with_output().expect("docker ends"));
        assert_eq!(built.code, 0, "{name}: {}{}", built.stdout, built.stderr);
    }
    for name in names {
        assert_ne!(swarm.ok(&format!("images -q --filter node=node-0 {name}")), "", "{name}");
        assert_eq!(swarm.ok(&format!("images -q --filter node=node-1 {name}")), "", "{name}");
        // No registry has it, and the other engine has fewer containers.
        let run = format!("run --name run-{name} -m 20m --net none {name} /bin/cat /text");
        assert_eq!(swarm.ok(&run), format!("text of {name}"));
        assert_eq!(swarm.ok(&format!("inspect -f {{{{.Node.Name}}}} run-{name}")), "node-0");
    }
    // Constraints choose no engine for BuildKit.
    let folder = context(&swarm, "three", COPY);
    let mut constrained = build(&swarm, "three", &folder, &["--build-arg", "constraint:node==node-1"]);
    let ran = Ran::of(constrained.output().expect("docker starts"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_ne!(swarm.ok("images -q --filter node=node-0 three"), "");
    assert!(swarm.ok("builder prune -f").contains("Total"));
}

/// A server that answers nothing: a build that loads a file from it goes on. Reports connections and their ends.
fn silent_server() -> (u16, Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let (reports, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, reports) = (stream.expect("a connection"), reports.clone());
            std::thread::spawn(move || {
                let _ = reports.send("opened"); // The test may have ended.
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
                let _ = reports.send("closed");
            });
        }
    });
    (port, received)
}

fn endless(swarm: &Swarm) -> (Command, Receiver<&'static str>) {
    let (port, reports) = silent_server();
    let folder =
        context(swarm, "endless", &format!("FROM scratch\nADD http://127.0.0.1:{port}/file /file\n"));
    (build(swarm, "endless", &folder, &[]), reports)
}

#[test]
fn interrupted_buildkit_build_is_cancelled_at_its_engine() {
    let Some(swarm) = start() else { return };
    let (mut command, reports) = endless(&swarm);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("docker starts");
    assert_eq!(reports.recv_timeout(patience()), Ok("opened"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    assert_ne!(exit_code(&mut child), Some(0));
    assert_eq!(reports.recv_timeout(patience()), Ok("closed"), "the engine goes on with the build");
    assert_eq!(swarm.ok("images -q endless"), "");
}

#[test]
fn buildkit_moves_to_another_engine_when_its_own_is_lost() {
    let Some(mut swarm) = start() else { return };
    let (mut command, reports) = endless(&swarm);
    let child = command.spawn().expect("docker starts");
    assert_eq!(reports.recv_timeout(patience()), Ok("opened"));
    swarm.engines[0].kill();
    let broken = Ran::of(child.wait_with_output().expect("docker ends"));
    let text = format!("{}{}", broken.stdout, broken.stderr);
    assert!(broken.code != 0 && text.contains("engine node-0 was lost during the build"), "{text}");
    wait_for("the loss of the engine", || swarm.ok("info").contains("Unhealthy").then_some(()));
    let folder = context(&swarm, "after", COPY);
    let built_on = |swarm: &Swarm, name: &str, node: &str| {
        let built = Ran::of(build(swarm, name, &folder, &[]).output().expect("docker starts"));
        assert_eq!(built.code, 0, "{}{}", built.stdout, built.stderr);
        assert_ne!(swarm.ok(&format!("images -q --filter node={node} {name}")), "", "{name} on {node}");
    };
    built_on(&swarm, "after", "node-1");
    swarm.engines[0].restart();
    wait_for("the engine to be back", || (!swarm.ok("info").contains("Unhealthy")).then_some(()));
    built_on(&swarm, "later", "node-1");
}
