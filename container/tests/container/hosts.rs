//! Odd hosts: no cgroups, a full disk, an agent that is killed at the worst moment.

use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Host, exited, lives, options, until, with_own_mounts};
use tepui_container::Containerizer;
use tepui_proto::mesos::v1::command_info::URI;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchStage};
use tokio::sync::mpsc;

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

#[tokio::test]
async fn containers_run_on_a_host_without_cgroups() {
    if !with_own_mounts(
        "hosts::containers_run_on_a_host_without_cgroups",
        "mount -t tmpfs none /sys/fs/cgroup",
    ) {
        return;
    }
    assert_eq!(std::fs::read_dir("/sys/fs/cgroup").unwrap().count(), 0);
    let mut host = Host::new();
    let spec = host.spec(&id("a"), "exit 3");
    assert_eq!(host.run(spec).await, exited(3));
}

#[tokio::test]
async fn containers_run_on_a_hybrid_cgroup_host() {
    let script = "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory /sys/fs/cgroup/unified && \
         mount -t cgroup2 none /sys/fs/cgroup/unified";
    if !with_own_mounts("hosts::containers_run_on_a_hybrid_cgroup_host", script) {
        return;
    }
    let mut host = Host::new();
    let spec = host.spec(&id("a"), "exit 3");
    assert_eq!(host.run(spec).await, exited(3));
    let b = id("b");
    host.launch_script(&b, "sleep 1000").await;
    assert_eq!(host.destroy(&b).await.status, Some(libc::SIGKILL));
}

#[tokio::test]
async fn full_disk_fails_the_launch_with_a_reason() {
    if !with_own_mounts(
        "hosts::full_disk_fails_the_launch_with_a_reason",
        "mount -t tmpfs -o size=64k,nr_inodes=8 none /mnt",
    ) {
        return;
    }
    let mut host = Host::with(|options| options.work_dir = Path::new("/mnt/work").to_owned());
    let mut fetching = host.spec(&id("a"), "true");
    fetching.sandbox = String::from("/mnt/work/a");
    let large = host.dir.path().join("large");
    std::fs::write(&large, vec![b'x'; 100_000]).unwrap();
    fetching.command.uris = vec![URI { value: large.display().to_string(), ..Default::default() }];
    let (stage, message) = host.fail_to_launch(fetching.clone()).await;
    assert!(stage == LaunchStage::Fetch && message.contains("No space left"), "{message}");
    // The disk stays full, now also for a new sandbox.
    let mut next = fetching.clone();
    (next.id, next.sandbox) = (id("b"), String::from("/mnt/work/b/c/d"));
    let (stage, message) = host.fail_to_launch(next).await;
    assert!(stage == LaunchStage::Sandbox && message.contains("No space left"), "{message}");
    // Room again: the process lives on.
    host.submit(ContainerOp::RemovePath { path: fetching.sandbox.clone() });
    let done = ContainerEvent::PathDone { path: fetching.sandbox, error: None };
    assert_eq!(host.event().await, done);
    let mut last = host.spec(&id("c"), "exit 4");
    last.sandbox = String::from("/mnt/work/c");
    assert_eq!(host.run(last).await, exited(4));
}

#[tokio::test]
async fn file_in_place_of_a_directory_fails_the_launch() {
    let mut host = Host::new();
    std::fs::write(host.work_dir().join("containers"), "").unwrap();
    let spec = host.spec(&id("a"), "true");
    let (stage, message) = host.fail_to_launch(spec).await;
    assert!(stage == LaunchStage::Sandbox && message.contains("Not a directory"), "{message}");
    let (sender, _events) = mpsc::channel(1);
    let mut wrong = options(host.dir.path());
    wrong.runtime_dir = host.work_dir().join("containers/run");
    assert!(Containerizer::start(wrong, sender).is_err());
}

/// Where the agent of the next test works; set only in its process.
const AGENT_DIR: &str = "TEPUI_TEST_AGENT_DIR";

/// Not a test by itself: the agent that the next test kills.
#[tokio::test]
async fn agent_to_be_killed() {
    let Some(dir) = std::env::var_os(AGENT_DIR) else { return };
    let (sender, mut events) = mpsc::channel(100);
    let containerizer = Containerizer::start(options(Path::new(&dir)), sender).unwrap();
    let spec = crate::common::spec_in(
        Path::new(&dir),
        &id("a"),
        "trap '' INT; while ! [ -e go ]; do sleep 0.01; done; exit 5",
    );
    containerizer.submit(ContainerOp::Launch(Box::new(spec)));
    match events.recv().await {
        Some(ContainerEvent::Launched { pid, .. }) => println!("pid {pid}"),
        other => panic!("{other:?}"),
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn containers_survive_sigint_and_sigkill_of_the_agent() {
    use nix::sys::signal::{SIGINT, SIGKILL, killpg};
    use std::os::unix::process::CommandExt;
    let mut host = Host::new();
    let a = id("a");
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hosts::agent_to_be_killed", "--nocapture"])
        .env(AGENT_DIR, host.dir.path())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(agent.stdout.take().unwrap()).lines();
    let pid =
        lines.map_while(Result::ok).find_map(|line| line.split_once("pid ").map(|(_, pid)| pid.to_owned()));
    let pid: u32 = pid.unwrap().parse().unwrap();
    // As Ctrl-C at its terminal does, and then the worst.
    let group = nix::unistd::Pid::from_raw(agent.id().cast_signed());
    killpg(group, SIGINT).unwrap();
    killpg(group, SIGKILL).ok();
    agent.wait().unwrap();
    assert!(lives(pid));
    let recovered = host.recover(&[&a]).await;
    assert_eq!((recovered[0].pid, &recovered[0].ended), (Some(pid), &None));
    std::fs::write(host.sandbox(&a).join("go"), "").unwrap();
    assert_eq!(host.exit_of(&a).await.status, exited(5));
    until(|| (!lives(pid)).then_some(())).await;
}
