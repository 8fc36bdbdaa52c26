//! An agent that is killed with SIGKILL at many moments, evenly spread over a launch and an end of a container with all that
//! we make in the kernel for one: cgroups, namespaces, mounts, a root file system of an image and the volume of a driver. The
//! next agent leaves nothing of it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::image::{self, Layer};
use crate::common::plugin::Plugin;
use crate::common::{Host, kernel, until};
use serde_json::json;
use tepui_container::{Backend, Containerizer, Isolation, Launcher, Options};
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec};
use tokio::sync::mpsc;

const ISOLATION: &str = "cgroups/all,filesystem/linux,namespaces/pid,namespaces/ipc,docker/volume";
const CONTAINER: &str = r#"{"type":"MESOS","mesos":{"image":{"type":"DOCKER","docker":{"name":"app"}}},"volumes":[
    {"mode":"RW","container_path":"v","source":{"type":"DOCKER_VOLUME","docker_volume":{"driver":"disk","name":"data"}}}]}"#;

/// How many moments are tried.
const MOMENTS: u32 = 32;

/// Where the agent of its own is to work, below which root it has its cgroups, and what its container is called.
const DIR: &str = "TEPUI_TEST_CRASH_DIR";
const ROOT: &str = "TEPUI_TEST_CRASH_ROOT";
const ID: &str = "TEPUI_TEST_CRASH_ID";

fn change(options: &mut Options, root: PathBuf) {
    let dir = options.work_dir.parent().unwrap().to_owned();
    options.launcher = Launcher::Linux;
    options.isolation = Isolation::parse(ISOLATION.split(',')).unwrap();
    options.cgroups.root = root;
    options.images.docker = true;
    options.images.docker_registry = dir.join("images").display().to_string();
    options.images.docker_store_dir = dir.join("store");
    options.images.backend = Some(Backend::Overlay);
    options.docker_volumes.plugin_dirs = vec![dir.join("plugins")];
}

/// The agent: says what it has done, line by line.
async fn be_an_agent(dir: &Path) {
    let variable = |name| std::env::var(name).unwrap();
    let mut options = crate::common::options(dir);
    change(&mut options, variable(ROOT).into());
    let (sender, mut events) = mpsc::channel(100);
    let containerizer = Containerizer::start(options, sender).unwrap();
    let id = ContainerId::root(variable(ID));
    let container = Some(tepui_proto::json::from_slice(CONTAINER.as_bytes()).unwrap());
    println!("begin");
    let spec = LaunchSpec { container, ..crate::common::spec_in(dir, &id, "exec sleep 1000") };
    containerizer.submit(ContainerOp::Launch(Box::new(spec)));
    loop {
        match events.recv().await.unwrap() {
            ContainerEvent::Launched { id, .. } => {
                println!("launched");
                containerizer.submit(ContainerOp::Destroy { id });
            }
            ContainerEvent::Exited { .. } => return println!("ended"),
            other => panic!("{other:?}"),
        }
    }
}

/// Starts the agent in a process of its own, and waits until it begins.
fn start_agent(host: &Host, id: &ContainerId) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::agent_killed_at_any_moment_leaves_no_resources_behind", "--nocapture"])
        .env(DIR, host.dir.path())
        .env(ROOT, &host.options.cgroups.root)
        .env(ID, id.value())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(agent.stdout.take().unwrap());
    let mut line = String::new();
    while line != "begin\n" {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it began");
    }
    (agent, said)
}

/// Ends the agent; how far it came.
fn kill(mut agent: Child, said: BufReader<std::process::ChildStdout>) -> Vec<String> {
    agent.kill().unwrap();
    agent.wait().unwrap();
    let lines = said.lines().map_while(Result::ok);
    lines.filter(|line| ["launched", "ended"].contains(&line.as_str())).collect()
}

/// Processes that work in a directory or for it, except this test.
fn processes_of(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command =
            String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?).into_owned();
        let link = |name: &str| std::fs::read_link(entry.path().join(name)).unwrap_or_default();
        let inside = link("cwd").starts_with(dir) || link("root").starts_with(dir);
        let is_of = (inside || command.contains(dir.to_str()?))
            && pid != std::process::id()
            && crate::common::lives(pid);
        is_of.then(|| format!("{pid} {command}"))
    };
    entries.filter_map(of).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The next agent takes over, with the container if its master still knows it; then that ends.
async fn take_over(mut host: Host, id: &ContainerId) -> Host {
    host = host.restart();
    let found = host.recover(&[id]).await.pop().unwrap();
    if found.ended.is_none() {
        host.submit(ContainerOp::Destroy { id: id.clone() }); // It may be about to end already.
        host.exit_of(id).await;
    }
    host
}

/// When agents are killed: evenly over the time that a whole life takes, and then earlier or later until one was killed before
/// and one after the launch. Machines are not always as fast as when the time was taken.
#[derive(Default)]
struct Moments {
    tried: u32,
    delay: Duration,
}

impl Moments {
    fn are_left(&self, reached: [u32; 3]) -> bool {
        assert!(self.tried <= 8 * MOMENTS, "killed before and after the launch: {reached:?}");
        self.tried <= MOMENTS || reached[0] == 0 || reached[1] == 0
    }

    /// How long the next agent lives; the first lives as long as it likes.
    fn next(&mut self, whole: Duration) -> Option<Duration> {
        if (1..=MOMENTS).contains(&self.tried) {
            self.delay = whole * (self.tried - 1) / MOMENTS;
        }
        self.tried += 1;
        (self.tried > 1).then_some(self.delay)
    }

    /// Takes in how many steps the last one did before it was killed.
    fn learn(&mut self, steps: usize, reached: [u32; 3]) {
        match steps.cmp(&usize::from(reached[0] > 0)) {
            std::cmp::Ordering::Less => self.delay = self.delay * 5 / 4 + Duration::from_millis(1),
            std::cmp::Ordering::Equal => (),
            std::cmp::Ordering::Greater => self.delay = self.delay * 3 / 4,
        }
    }
}

#[tokio::test]
async fn agent_killed_at_any_moment_leaves_no_resources_behind() {
    if let Some(dir) = std::env::var_os(DIR) {
        return be_an_agent(Path::new(&dir)).await;
    }
    let Some(layer) = Layer::busybox() else { return };
    let Some(mut host) = Host::linux_with(ISOLATION, |options| {
        let root = options.cgroups.root.clone();
        change(options, root);
    }) else {
        return;
    };
    let dir = host.dir.path().to_owned();
    image::docker_archive(&dir.join("images"), "app", &json!({}), &[layer.tar()]);
    let plugin = Plugin::start(&dir.join("plugins"), "disk");
    let (root, mounts) = (host.options.cgroups.root.clone(), kernel::mounts(&dir));
    let (mut reached, mut whole) = ([0, 0, 0], Duration::ZERO);
    let mut moments = Moments::default();
    while moments.are_left(reached) {
        let id = ContainerId::root(format!("c{}", moments.tried));
        let ((agent, mut said), began) = (start_agent(&host, &id), Instant::now());
        match moments.next(whole) {
            // The first is not killed, and measures the duration.
            None => {
                let mut line = String::new();
                while line != "ended\n" {
                    line.clear();
                    assert!(said.read_line(&mut line).unwrap() > 0, "it ended before its container");
                }
                whole = began.elapsed();
            }
            // No event is sent between two steps.
            Some(delay) => std::thread::sleep(delay),
        }
        let (lived, steps) = (began.elapsed(), kill(agent, said).len());
        if steps == 2 {
            whole = whole.min(lived);
        }
        moments.learn(steps, reached);
        reached[steps] += 1;
        host = take_over(host, &id).await;
        until(|| kernel::left_of(&root).is_empty().then_some(())).await;
        until(|| processes_of(&dir).is_empty().then_some(())).await;
        until(|| entries(&dir.join("work/provisioner/containers")).is_empty().then_some(())).await;
        let volumes = dir.join("run/isolators/docker/volume/containers");
        until(|| entries(&volumes).is_empty().then_some(())).await;
        let calls = plugin.calls();
        let is_use = |call: &&String| call.starts_with("Mount") || call.starts_with("Unmount");
        assert!(calls.iter().rfind(is_use).is_none_or(|last| last == "Unmount data"), "{id:?}: {calls:?}");
        assert_eq!(kernel::mounts(&dir), mounts, "{id:?}");
    }
    // No call names any of them any more.
    let mut host = host.restart();
    assert_eq!(host.recover(&[]).await, []);
    until(|| entries(&dir.join("run/containers")).is_empty().then_some(())).await;
}
