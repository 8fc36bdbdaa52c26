//! Whole lives of containers on a real kernel: nested to any depth, ended at any moment, and nothing is left of them.

use std::time::Duration;

use crate::common::{Host, kernel, lives, plugin, until};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec, LaunchStage};

const ALL: &str = "filesystem/linux,namespaces/pid,namespaces/ipc,cgroups/all";

/// How many moments of a launch are tried, and how far they lie apart: together longer than a launch takes.
const MOMENTS: u32 = 40;
const APART: Duration = Duration::from_micros(750);

/// Every one is in the cgroup and the pid namespace of the one around it, and all of them end with the outermost, the
/// innermost first.
#[tokio::test]
async fn deeply_nested_containers_are_destroyed_innermost_first() {
    const DEPTH: usize = 7;
    let Some(mut host) = Host::linux(ALL) else { return };
    let root = host.options.cgroups.root.clone();
    let outermost = ContainerId::root("c");
    let ids: Vec<ContainerId> =
        std::iter::successors(Some(outermost.clone()), |id| Some(id.child("c"))).take(DEPTH).collect();
    for id in &ids {
        host.launch_script(id, "echo ready; exec sleep 1000").await;
        host.line(id, "stdout").await;
    }
    let commands: Vec<u32> =
        ids.iter().map(|id| *kernel::processes(&root, "freezer", id).last().unwrap()).collect();
    let seen = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap().split_whitespace().count()
    };
    // In our own namespace, and in one more for each container around it and its own.
    let depths: Vec<usize> = commands.iter().map(seen).collect();
    assert_eq!(depths, (2..2 + DEPTH).collect::<Vec<_>>());
    host.submit(ContainerOp::Destroy { id: outermost });
    for id in ids.iter().rev() {
        host.exit_of(id).await;
    }
    assert!(!commands.into_iter().any(lives));
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

/// Whatever a launch is doing when it is given up: it says so once, and leaves nothing behind.
#[tokio::test]
async fn destroy_at_any_moment_of_a_launch_leaves_no_cgroup_or_mount() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let (root, mounts) = (host.options.cgroups.root.clone(), kernel::mounts(host.dir.path()));
    let mut given_up = 0;
    for moment in 0..MOMENTS {
        let id = ContainerId::root(format!("c{moment}"));
        host.submit(ContainerOp::Launch(Box::new(host.spec(&id, "exec sleep 1000"))));
        if moment > 0 {
            tokio::time::sleep(APART * moment).await; // No event is sent between two steps of a launch.
        }
        host.submit(ContainerOp::Destroy { id: id.clone() });
        match host.event().await {
            ContainerEvent::LaunchFailed { message, .. } => {
                assert!(message.starts_with("Container destroyed while "), "{message}");
                given_up += 1;
            }
            ContainerEvent::Launched { pid, .. } => {
                host.exit_of(&id).await;
                assert!(!lives(pid));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default(), "{moment}");
    }
    assert!(given_up > 0, "the first is given up before it has begun");
    assert_eq!(kernel::mounts(host.dir.path()), mounts);
}

/// A driver that does not answer holds up its container's launch, not its end.
#[tokio::test]
async fn destroy_cancels_a_launch_blocked_by_a_volume_driver() {
    let Some((mut host, plugin)) = plugin::host(Duration::from_secs(600)) else { return };
    let id = ContainerId::root("c");
    let volume = r#"{"type":"MESOS","volumes":[{"mode":"RW","container_path":"v","source":
        {"type":"DOCKER_VOLUME","docker_volume":{"driver":"disk","name":"hanging-1"}}}]}"#;
    let container = tepui_proto::json::from_slice::<pb::ContainerInfo>(volume.as_bytes()).unwrap();
    let spec = LaunchSpec { container: Some(container), ..host.spec(&id, "true") };
    host.submit(ContainerOp::Launch(Box::new(spec)));
    let mut calls = Vec::new();
    until(|| {
        calls.extend(plugin.calls());
        calls.contains(&String::from("Mount hanging-1")).then_some(())
    })
    .await;
    host.submit(ContainerOp::Destroy { id: id.clone() });
    let message = String::from("Container destroyed while starting");
    let event = ContainerEvent::LaunchFailed { id, stage: LaunchStage::Start, message };
    assert_eq!(host.event().await, event);
}

/// A directory of secrets on a file system that does not answer holds up the launch alone.
#[test]
fn destroy_cancels_a_launch_blocked_by_secrets() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(1).build().unwrap().block_on(async {
        let mut host = Host::new();
        let (go, hold) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || hold.recv());
        let id = ContainerId::root("c");
        let mut spec = host.spec(&id, "true");
        spec.secrets.variables.insert("PASSWORD".into(), Default::default());
        host.submit(ContainerOp::Launch(Box::new(spec)));
        host.submit(ContainerOp::Examine { id: id.clone() });
        assert_eq!(host.event().await, ContainerEvent::Examined { id: id.clone(), killed: None });
        host.submit(ContainerOp::Destroy { id: id.clone() });
        drop(go); // A terminated launch removes its files.
        let message = String::from("Container destroyed while starting");
        let event = ContainerEvent::LaunchFailed { id, stage: LaunchStage::Start, message };
        assert_eq!(host.event().await, event);
        busy.await.unwrap().unwrap_err();
    });
}
