//! Real processes that outlive the agent: found again, found terminated, or killed as orphans.

use crate::common::{Host, exited, kernel, lives, until};
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec, LaunchStage, RecoveredContainer};

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

/// Its first process is gone, but not everything that belongs to it; its Exited will follow.
fn ending(id: &ContainerId) -> RecoveredContainer {
    RecoveredContainer { id: id.clone(), pid: None, ended: None }
}

fn alive(id: &ContainerId, pid: u32) -> RecoveredContainer {
    RecoveredContainer { id: id.clone(), pid: Some(pid), ended: None }
}

fn only(containers: Vec<RecoveredContainer>) -> RecoveredContainer {
    let [container] = <[_; 1]>::try_from(containers).unwrap();
    container
}

#[tokio::test]
async fn running_container_is_recovered() {
    let mut host = Host::new();
    let a = id("a");
    let pid = host.launch_script(&a, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done").await;
    host.line(&a, "stdout").await;
    let mut host = host.restart();
    assert_eq!(host.recover(&[&a]).await, [alive(&a, pid)]);
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGTERM });
    assert_eq!(host.exit_of(&a).await.status, exited(5));
}

#[tokio::test]
async fn exit_status_during_a_restart_is_recovered() {
    let mut host = Host::new();
    let a = id("a");
    let pid = host.launch_script(&a, "while ! [ -e go ]; do sleep 0.01; done; exit 6").await;
    let mut host = host.restart();
    std::fs::write(host.sandbox(&a).join("go"), "").unwrap();
    until(|| (!lives(pid)).then_some(())).await;
    let recovered = only(host.recover(&[&a]).await);
    assert_eq!(recovered.ended.unwrap().status, exited(6));
    // Nothing more is said of it.
    host.submit(ContainerOp::Signal { id: a.clone(), signal: 15 });
    assert_eq!(host.event().await, ContainerEvent::NoSuchContainer { id: a });
}

#[tokio::test]
async fn unacknowledged_exit_is_reported_again() {
    let mut host = Host::new();
    let a = id("a");
    let spec = host.spec(&a, "exit 9");
    host.run(spec).await;
    let mut host = host.restart();
    assert_eq!(only(host.recover(&[&a]).await).ended.unwrap().status, exited(9));
    // Known to have ended, so not asked for: forgotten.
    let mut host = host.restart();
    assert_eq!(host.recover(&[]).await, []);
    until(|| (!host.runtime(&a).exists()).then_some(())).await;
}

/// Starts a supervisor as an agent does. Its sandbox is `s`.
fn supervisor(
    host: &Host,
    id: &ContainerId,
    script: &str,
    stdout: std::process::Stdio,
) -> std::process::Child {
    let spec = format!(
        r#"{{"runtime":{:?},"work_dir":{:?},"sandbox":"s","program":"/bin/sh","arguments":["sh","-c",{script:?}],"environment":{{}},"identity":null}}"#,
        host.runtime(id),
        host.work_dir()
    );
    std::fs::create_dir_all(host.work_dir().join("s")).unwrap();
    let mut supervisor = std::process::Command::new(env!("CARGO_BIN_EXE_container-helper"))
        .args([tepui_container::HELPER_COMMAND, "supervise"])
        .stdin(std::process::Stdio::piped())
        .stdout(stdout)
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut supervisor.stdin.take().unwrap(), spec.as_bytes()).unwrap();
    supervisor
}

/// Its report has no reader: writing it makes the kernel send a SIGPIPE, which is not for the command.
#[tokio::test]
async fn command_survives_an_agent_crash_during_its_launch() {
    let host = Host::new();
    let a = id("a");
    std::fs::create_dir_all(host.runtime(&a)).unwrap();
    let (agents_end, its_end) = std::io::pipe().unwrap();
    drop(agents_end);
    let script = "until [ -e go ]; do sleep 0.01; done; touch ran";
    let mut supervisor = supervisor(&host, &a, script, its_end.into());
    let (fd, status) =
        (format!("/proc/{}/fd/1", supervisor.id()), format!("/proc/{}/status", supervisor.id()));
    until(|| std::fs::read_link(&fd).ok().filter(|target| target.ends_with("null"))).await;
    // It has taken the signal.
    let pending = |text: &str| {
        let masks = text.lines().filter_map(|line| line.split_once("Pnd:")?.1.trim().get(..));
        masks.filter_map(|mask| u64::from_str_radix(mask, 16).ok()).fold(0, |all, mask| all | mask)
    };
    let pipe = 1 << (libc::SIGPIPE - 1);
    until(|| (pending(&std::fs::read_to_string(&status).ok()?) & pipe == 0).then_some(())).await;
    std::fs::write(host.work_dir().join("s/go"), "").unwrap();
    assert!(supervisor.wait().unwrap().success());
    assert!(host.work_dir().join("s/ran").exists(), "it was killed");
}

#[tokio::test]
async fn container_that_never_started_is_not_started_after_recovery() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("b"));
    // The former agent died between making the directory and hearing of the supervisor.
    std::fs::create_dir_all(host.runtime(&a)).unwrap();
    for recovered in host.recover(&[&a, &b]).await {
        assert_eq!(recovered.ended.unwrap().status, None);
    }
    // The late supervisor, as it would have been told.
    let mut late = supervisor(&host, &a, "touch ran", std::process::Stdio::null());
    assert!(late.wait().unwrap().success());
    assert!(host.work_dir().join("s/stdout").exists(), "it came as far as the claim");
    assert!(!host.work_dir().join("s/ran").exists());
}

#[tokio::test]
async fn process_with_a_reused_pid_is_not_killed() {
    let mut host = Host::new();
    let a = id("a");
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::create_dir_all(host.runtime(&a)).unwrap();
    std::fs::write(host.runtime(&a).join("pid"), format!("{} 1 {boot}", stranger.id())).unwrap();
    // No status: its processes are looked for, and there are none of its own.
    assert_eq!(host.recover(&[&a]).await, [ending(&a)]);
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
    assert!(lives(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn container_of_an_earlier_boot_is_lost() {
    let mut host = Host::new();
    let a = id("a");
    let this = std::process::id();
    std::fs::create_dir_all(host.runtime(&a)).unwrap();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap().to_owned();
    std::fs::write(host.runtime(&a).join("pid"), format!("{this} {start} another-boot")).unwrap();
    assert_eq!(only(host.recover(&[&a]).await).ended.unwrap().status, None);
}

#[tokio::test]
async fn container_of_a_killed_supervisor_is_destroyed_on_recovery() {
    let mut host = Host::new();
    let a = id("a");
    let pid = host.launch_script(&a, "echo $$; sleep 1000; true").await;
    let command: u32 = host.line(&a, "stdout").await.parse().unwrap();
    let mut host = host.restart();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), nix::sys::signal::SIGKILL).unwrap();
    until(|| (!lives(pid)).then_some(())).await;
    assert!(lives(command));
    assert_eq!(host.recover(&[&a]).await, [ending(&a)]);
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
    assert!(!lives(command));
}

#[tokio::test]
async fn orphans_are_destroyed_and_removed() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("b"));
    let kept = host.launch_script(&a, "sleep 1000").await;
    let mut pids = Vec::new();
    for orphan in [&b, &b.child("x"), &a.child("y")] {
        pids.push(host.launch_script(orphan, "sleep 1000").await);
    }
    let mut host = host.restart();
    assert_eq!(host.recover(&[&a]).await, [alive(&a, kept)]);
    until(|| (!pids.iter().any(|pid| lives(*pid))).then_some(())).await;
    until(|| (!host.runtime(&b).exists() && !host.runtime(&a.child("y")).exists()).then_some(())).await;
    assert!(lives(kept));
    host.destroy(&a).await;
}

/// An executor may ask for a nested container before its own launch is reported.
#[tokio::test]
async fn a_nested_launch_waits_for_its_parent() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("a").child("b"));
    host.submit(ContainerOp::Launch(Box::new(host.spec(&a, "sleep 1000"))));
    host.submit(ContainerOp::Launch(Box::new(host.spec(&b, "exit 1"))));
    for expected in [&a, &b] {
        match host.event().await {
            ContainerEvent::Launched { id, .. } => assert_eq!(id, *expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(host.exit_of(&b).await.status, exited(1));
    host.destroy(&a).await;
}

#[tokio::test]
async fn a_nested_launch_fails_with_its_parent() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("a").child("b"));
    let mut parent = host.spec(&a, "sleep 1000");
    parent.sandbox = String::from("/outside");
    host.submit(ContainerOp::Launch(Box::new(parent)));
    host.submit(ContainerOp::Launch(Box::new(host.spec(&b, "exit 1"))));
    let mut failed = Vec::new();
    while failed.len() < 2 {
        match host.event().await {
            ContainerEvent::LaunchFailed { id, .. } => failed.push(id),
            other => panic!("{other:?}"),
        }
    }
    failed.sort();
    assert_eq!(failed, [a, b]);
}

#[tokio::test]
async fn a_nested_launch_is_destroyed_with_its_parent() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("a").child("b"));
    host.submit(ContainerOp::Launch(Box::new(host.spec(&a, "sleep 1000"))));
    host.submit(ContainerOp::Launch(Box::new(host.spec(&b, "sleep 1000"))));
    host.submit(ContainerOp::Destroy { id: a.clone() });
    let mut ended = Vec::new();
    while ended.last() != Some(&a) {
        match host.event().await {
            ContainerEvent::LaunchFailed { id, .. } | ContainerEvent::Exited { id, .. } => ended.push(id),
            ContainerEvent::Launched { .. } => (),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended, [b, a]);
}

#[tokio::test]
async fn nested_containers_are_destroyed_before_their_parent() {
    let mut host = Host::new();
    let a = id("a");
    let (b, c) = (a.child("b"), a.child("b").child("c"));
    for id in [&a, &b, &c] {
        host.launch_script(id, "sleep 1000").await;
    }
    assert_eq!(host.sandbox(&c), host.work_dir().join("containers/a/containers/b/containers/c"));
    host.submit(ContainerOp::Destroy { id: a.clone() });
    for id in [&c, &b, &a] {
        assert_eq!(host.exit_of(id).await.status, Some(libc::SIGKILL));
    }
    let late = host.spec(&a.child("d"), "true");
    assert_eq!(host.fail_to_launch(late).await.0, LaunchStage::Start);
}

#[tokio::test]
async fn exit_of_the_parent_destroys_nested_containers() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "while ! [ -e go ]; do sleep 0.01; done; exit 3").await;
    let nested = host.launch_script(&a.child("b"), "sleep 1000").await;
    std::fs::write(host.sandbox(&a).join("go"), "").unwrap();
    assert_eq!(host.exit_of(&a.child("b")).await.status, Some(libc::SIGKILL));
    assert_eq!(host.exit_of(&a).await.status, exited(3));
    assert!(!lives(nested));
}

#[tokio::test]
async fn exit_status_of_a_nested_container_is_kept_until_removal() {
    let mut host = Host::new();
    let a = id("a");
    let b = a.child("b");
    let pid = host.launch_script(&a, "sleep 1000").await;
    let spec = host.spec(&b, "exit 8");
    assert_eq!(host.run(spec.clone()).await, exited(8));
    let mut host = host.restart();
    let recovered = host.recover(&[&a, &b]).await;
    assert_eq!(recovered[0], alive(&a, pid));
    assert_eq!(recovered[1].ended.as_ref().unwrap().status, exited(8));
    assert_eq!(host.fail_to_launch(spec.clone()).await.1, "Container 'a.b' is already launched");

    let done = |error| ContainerEvent::PathDone { path: host.sandbox(&b).display().to_string(), error };
    let (removed, refused) = (done(None), Some(String::from("Container 'a' is still running")));
    let refused = ContainerEvent::PathDone { path: host.sandbox(&a).display().to_string(), error: refused };
    host.submit(ContainerOp::Remove { id: b.clone(), sandbox: host.sandbox(&b).display().to_string() });
    assert_eq!(host.event().await, removed);
    assert!(!host.sandbox(&b).exists() && !host.runtime(&b).exists());
    host.submit(ContainerOp::Remove { id: a.clone(), sandbox: host.sandbox(&a).display().to_string() });
    assert_eq!(host.event().await, refused);
    assert_eq!(host.run(spec).await, exited(8));
    host.destroy(&a).await;
}

#[tokio::test]
async fn child_of_an_exited_root_is_destroyed_before_it() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("a").child("b"));
    let root = host.launch_script(&a, "while ! [ -e go ]; do sleep 0.01; done; exit 2").await;
    let nested = host.launch_script(&b, "sleep 1000").await;
    let mut host = host.restart();
    std::fs::write(host.sandbox(&a).join("go"), "").unwrap();
    until(|| (!lives(root)).then_some(())).await;
    assert_eq!(host.recover(&[&b, &a]).await, [ending(&a), alive(&b, nested)]);
    assert_eq!(host.exit_of(&b).await.status, Some(libc::SIGKILL));
    assert_eq!(host.exit_of(&a).await.status, exited(2));
    assert!(!lives(nested));
}

#[tokio::test]
async fn child_of_an_unknown_root_is_destroyed() {
    let mut host = Host::new();
    let (a, b) = (id("a"), id("a").child("b"));
    let pids = [host.launch_script(&a, "sleep 1000").await, host.launch_script(&b, "sleep 1000").await];
    let mut host = host.restart();
    assert!(only(host.recover(&[&b]).await).ended.is_some());
    until(|| (!pids.iter().any(|pid| lives(*pid))).then_some(())).await;
}

fn wait(code: i32) -> String {
    format!("echo; until [ -e go ]; do sleep 0.01; done; exit {code}")
}

/// Starts a container with another in it, and cleans up `/run`.
async fn with_deleted_directories(mut host: Host, more: Option<(&ContainerId, &str)>) -> (Host, u32) {
    let (a, b) = (id("a"), id("a").child("b"));
    let pid = host.launch_script(&a, &wait(7)).await;
    host.launch_script(&b, &wait(8)).await;
    if let Some((id, script)) = more {
        host.launch_script(id, script).await;
        host.line(id, "stdout").await;
    }
    for id in [&a, &b] {
        host.line(id, "stdout").await;
    }
    std::fs::remove_dir_all(host.dir.path().join("run/containers")).unwrap();
    (host.restart(), pid)
}

async fn ends_of_both(host: &mut Host) {
    for (id, code) in [(id("a").child("b"), 8), (id("a"), 7)] {
        std::fs::write(host.sandbox(&id).join("go"), "").unwrap();
        assert_eq!(host.exit_of(&id).await.status, exited(code));
    }
}

#[tokio::test]
async fn container_without_runtime_directory_is_found_by_its_supervisor() {
    let (mut host, pid) = with_deleted_directories(Host::new(), None).await;
    let found = host.recover(&[&id("a"), &id("a").child("b")]).await;
    assert_eq!(found[0], alive(&id("a"), pid));
    assert!(found[1].pid.is_some());
    ends_of_both(&mut host).await;
}

#[tokio::test]
async fn container_without_runtime_directory_is_found_by_its_cgroups() {
    let isolation = "cgroups/cpu,cgroups/mem,filesystem/linux,namespaces/pid";
    let Some(host) = Host::linux(isolation) else { return };
    let (a, orphan, root) = (id("a"), id("orphan"), host.options.cgroups.root.clone());
    // A process of a container that says it were a supervisor.
    let runtime = host.runtime(&id("posing")).display().to_string();
    let pose =
        format!("echo 'echo; sleep 1000' > container-init; sh container-init supervise posing {runtime}");
    let (mut host, pid) = with_deleted_directories(host, Some((&orphan, &pose))).await;
    let orphaned = kernel::processes(&root, "freezer", &orphan);
    let found = host.recover(&[&a, &a.child("b"), &id("posing")]).await;
    let found: Vec<_> = found.into_iter().map(|one| (one.id, one.pid)).collect();
    assert_eq!(found[..2], [(a.clone(), Some(pid)), (id("posing"), None)]);
    assert!(found[2].1.is_some());
    until(|| orphaned.iter().all(|pid| !lives(*pid)).then_some(())).await;
    assert!(!orphaned.is_empty());
    // Others are nested in it as before, and see what it sees.
    let spec = host.spec(&a.child("s"), "readlink /proc/self/ns/pid > ns");
    assert_eq!(host.run(LaunchSpec { is_session: true, ..spec }).await, exited(0));
    let ours = std::fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    assert_ne!(host.read(&a, "ns").trim(), ours);
    ends_of_both(&mut host).await;
    until(|| kernel::left_of(&root).is_empty().then_some(())).await;
}

/// The directory was deleted and the supervisor was killed while no agent ran: only the cgroup is left.
#[tokio::test]
async fn process_left_in_a_known_cgroup_is_killed() {
    let Some(mut host) = Host::linux("posix/cpu") else { return };
    let (lost, root) = (id("lost"), host.options.cgroups.root.clone());
    let cgroup = kernel::cgroup(&root, "freezer", &lost);
    let inside = if kernel::v2_mount().is_some() { cgroup.join("leaf") } else { cgroup.clone() };
    std::fs::create_dir_all(&inside).unwrap();
    let mut left = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(inside.join("cgroup.procs"), left.id().to_string()).unwrap();
    assert_eq!(only(host.recover(&[&lost]).await), ending(&lost));
    assert_eq!(host.exit_of(&lost).await.status, Some(libc::SIGKILL));
    assert!(!lives(left.id()) && !cgroup.exists());
    left.wait().unwrap();
}

/// The same of an orphan; but what another agent has below the same root stays.
#[tokio::test]
async fn only_orphans_in_own_cgroups_are_killed() {
    let Some(mut host) = Host::linux("posix/cpu") else { return };
    let (orphan, root) = (id("orphan"), host.options.cgroups.root.clone());
    let supervisor = host.launch_script(&orphan, "echo $$; sleep 1000; true").await;
    let left: u32 = host.line(&orphan, "stdout").await.parse().unwrap();
    let others = kernel::cgroup(&root, "freezer", &id("others"));
    let inside = if kernel::v2_mount().is_some() { others.join("leaf") } else { others.clone() };
    std::fs::create_dir_all(&inside).unwrap();
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(inside.join("cgroup.procs"), stranger.id().to_string()).unwrap();
    let mut host = host.restart();
    let supervisor = nix::unistd::Pid::from_raw(supervisor.cast_signed());
    nix::sys::signal::kill(supervisor, nix::sys::signal::SIGKILL).unwrap();
    std::fs::remove_dir_all(host.dir.path().join("run/containers")).unwrap();
    assert!(lives(left));
    assert_eq!(host.recover(&[]).await, []);
    until(|| (!lives(left)).then_some(())).await;
    until(|| (!kernel::cgroup(&root, "freezer", &orphan).exists()).then_some(())).await;
    assert!(lives(stranger.id()) && others.exists());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    for cgroup in [&inside, &others] {
        std::fs::remove_dir(cgroup).ok(); // They may be the same one.
    }
}

/// The agent was killed after it had stopped the processes of a container and before it killed them.
#[tokio::test]
async fn interrupted_destroy_is_completed_on_recovery() {
    let Some(mut host) = Host::linux("posix/cpu") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch_script(&a, "sleep 1000").await;
    let (file, freeze) =
        if kernel::v2_mount().is_some() { ("cgroup.freeze", "1") } else { ("freezer.state", "FROZEN") };
    std::fs::write(kernel::cgroup(&root, "freezer", &a).join(file), freeze).unwrap();
    std::fs::write(host.runtime(&a).join("ending"), "").unwrap();
    let mut host = host.restart();
    assert!(only(host.recover(&[&a]).await).pid.is_some());
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}
