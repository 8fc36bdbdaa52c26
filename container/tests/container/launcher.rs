//! Real processes: how commands run, end, are signalled and are destroyed.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::common::{Host, exited, lives, until};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchStage};

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

#[tokio::test]
async fn exit_codes_and_signals_are_raw_wait_statuses() {
    let mut host = Host::new();
    for (name, script, status) in [
        ("zero", "exit 0", exited(0)),
        ("seven", "exit 7", exited(7)),
        ("term", "kill -TERM $$", Some(libc::SIGTERM)),
        ("kill", "kill -KILL $$", Some(libc::SIGKILL)),
        ("nothing", "no-such-program-here", exited(127)),
    ] {
        let spec = host.spec(&id(name), script);
        assert_eq!(host.run(spec).await, status, "{name}");
    }
}

#[tokio::test]
async fn command_gets_its_output_directory_and_environment() {
    let mut host = Host::new();
    let a = id("a");
    let mut spec =
        host.spec(&a, "pwd; env | sort | grep -v '^_=\\|^PWD=\\|^OLDPWD=\\|^SHLVL='; echo bad >&2");
    spec.environment = BTreeMap::from([(String::from("COLOUR"), String::from("blue green"))]);
    spec.latest_link = Some(host.work_dir().join("containers/latest").display().to_string());
    assert_eq!(host.run(spec).await, exited(0));
    let sandbox = host.sandbox(&a);
    let lines = format!(
        "{}\nCOLOUR=blue green\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
        sandbox.display()
    );
    assert_eq!(host.read(&a, "stdout"), lines);
    assert_eq!(host.read(&a, "stderr"), "bad\n");
    assert_eq!(sandbox.metadata().unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::fs::read_link(host.work_dir().join("containers/latest")).unwrap(), sandbox);
}

#[tokio::test]
async fn latest_points_to_the_newest() {
    let mut host = Host::new();
    for name in ["a", "b"] {
        let mut spec = host.spec(&id(name), "true");
        spec.latest_link = Some(host.work_dir().join("latest").display().to_string());
        host.run(spec).await;
        assert_eq!(std::fs::read_link(host.work_dir().join("latest")).unwrap(), host.sandbox(&id(name)));
    }
}

#[tokio::test]
async fn command_without_shell_is_executed_directly() {
    let mut host = Host::new();
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut spec = host.spec(&id("a"), "sh");
    spec.command = pb::CommandInfo {
        shell: Some(false),
        value: Some(String::from("/bin/sh")),
        arguments: argv(&["own-name", "-c", "echo $0 \"$@\"", "zero", "one  two"]),
        ..Default::default()
    };
    assert_eq!(host.run(spec.clone()).await, exited(0));
    assert_eq!(host.read(&id("a"), "stdout"), "zero one  two\n");

    spec = host.spec(&id("b"), "no-such-program-here");
    spec.command.shell = Some(false);
    assert_eq!(host.run(spec).await, exited(127));
    assert!(
        host.read(&id("b"), "stderr").starts_with("Failed to execute 'no-such-program-here': No such file")
    );

    spec = host.spec(&id("c"), "/etc/passwd");
    spec.command.shell = Some(false);
    assert_eq!(host.run(spec).await, exited(126));
}

#[tokio::test]
async fn invalid_commands_are_rejected() {
    let mut host = Host::new();
    let mut nothing = host.spec(&id("a"), "");
    nothing.command.value = None;
    let mut evil = host.spec(&id("b"), "true");
    evil.environment.insert(String::from("A=B"), String::new());
    let nul = host.spec(&id("c"), "a\0b");
    for spec in [nothing, evil, nul] {
        assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Start);
    }
}

#[tokio::test]
async fn signals_reach_the_command() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.01; done").await;
    assert_eq!(host.line(&a, "stdout").await, "ready");
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGUSR1 });
    assert_eq!(host.exit_of(&a).await.status, exited(3));
    assert_eq!(host.read(&a, "stdout"), "ready\ngot it\n");
}

#[tokio::test]
async fn a_signal_right_after_the_launch_is_not_lost() {
    let mut host = Host::new();
    let a = id("a");
    let mut spec = host.spec(&a, "sleep");
    spec.command.shell = Some(false);
    spec.command.arguments = vec![String::from("sleep"), String::from("1000")];
    host.launch(spec).await;
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGTERM });
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGTERM));
}

#[tokio::test]
async fn kill_stop_and_continue_signals_are_delivered() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "echo $$; exec sleep 1000").await;
    let pid: u32 = host.line(&a, "stdout").await.parse().unwrap();
    let state = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGSTOP });
    until(|| state(pid).contains(") T ").then_some(())).await;
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGCONT });
    until(|| state(pid).contains(") S ").then_some(())).await;
    host.submit(ContainerOp::Signal { id: a.clone(), signal: libc::SIGKILL });
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
}

#[tokio::test]
async fn operations_on_unknown_containers_are_rejected() {
    let mut host = Host::new();
    let ghost = id("ghost");
    host.submit(ContainerOp::Destroy { id: ghost.clone() });
    let update = ContainerOp::Update {
        id: ghost.child("x"),
        resources: Vec::new(),
        limits: BTreeMap::new(),
        volumes: Vec::new(),
    };
    host.submit(update);
    host.submit(ContainerOp::Signal { id: ghost.clone(), signal: 15 });
    assert_eq!(host.event().await, ContainerEvent::NoSuchContainer { id: ghost.clone() });
    let orphan = host.spec(&ghost.child("y"), "true");
    let message = String::from("Parent container 'ghost' does not exist");
    assert_eq!(host.fail_to_launch(orphan).await, (LaunchStage::Start, message));
    let evil = host.spec(&id(".."), "true");
    assert_eq!(host.fail_to_launch(evil).await.1, "'..' is not a valid container id");
}

#[tokio::test]
async fn duplicate_container_id_is_rejected() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "sleep 1000").await;
    let again = host.spec(&a, "true");
    assert_eq!(host.fail_to_launch(again.clone()).await.1, "Container 'a' is already launched");
    host.destroy(&a).await;
    assert_eq!(host.fail_to_launch(again).await.1, "Container 'a' is already launched");
}

/// A grandchild that forked twice into a session of its own, and a child that ignores everything.
const RUNAWAYS: &str = "
    setsid sh -c 'echo $$ > daemon; exec sleep 1000' < /dev/null > /dev/null 2>&1 &
    (trap '' TERM INT HUP; sh -c 'echo $PPID > stubborn; sleep 1000'; true) &
    while ! [ -s daemon ] || ! [ -s stubborn ]; do sleep 0.01; done; echo ready;
";

async fn runaways(host: &Host, id: &ContainerId) -> [u32; 2] {
    assert_eq!(host.line(id, "stdout").await, "ready");
    ["daemon", "stubborn"].map(|file| host.read(id, file).trim().parse().unwrap())
}

#[tokio::test]
async fn destroy_kills_the_whole_process_tree() {
    let mut host = Host::new();
    let a = id("a");
    let supervisor = host.launch_script(&a, &format!("{RUNAWAYS} sleep 1000")).await;
    let pids = runaways(&host, &a).await;
    assert!(pids.iter().all(|pid| lives(*pid)));
    assert_eq!(host.destroy(&a).await.status, Some(libc::SIGKILL));
    assert!(!pids.iter().any(|pid| lives(*pid)));
    assert!(!lives(supervisor));
}

#[tokio::test]
async fn descendants_are_killed_when_the_command_exits() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, &format!("{RUNAWAYS} exit 4")).await;
    let pids = runaways(&host, &a).await;
    assert_eq!(host.exit_of(&a).await.status, exited(4));
    assert!(!pids.iter().any(|pid| lives(*pid)));
}

#[tokio::test]
async fn session_processes_die_with_a_killed_supervisor() {
    let mut host = Host::new();
    let a = id("a");
    let supervisor = host.launch_script(&a, "echo $$; sleep 1000; true").await;
    let pid: u32 = host.line(&a, "stdout").await.parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(supervisor.cast_signed()), nix::sys::signal::SIGKILL)
        .unwrap();
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
    assert!(!lives(pid));
}

#[tokio::test]
async fn supervisor_leads_its_own_session_without_terminal() {
    let mut host = Host::new();
    let a = id("a");
    let pid = host.launch_script(&a, "sleep 1000").await;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!((fields[2], fields[3]), (&*pid.to_string(), &*pid.to_string()), "leads its group and session");
    for fd in ["0", "1", "2"] {
        let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
    }
    host.destroy(&a).await;
}

#[tokio::test]
async fn concurrent_launches_report_their_own_status() {
    let mut host = Host::new();
    for n in 0..60 {
        let spec = host.spec(&id(&format!("c{n}")), &format!("exit {n}"));
        host.submit(ContainerOp::Launch(Box::new(spec)));
    }
    let mut statuses = BTreeMap::new();
    while statuses.len() < 60 {
        match host.event().await {
            ContainerEvent::Launched { .. } => (),
            ContainerEvent::Exited { id, termination } => {
                statuses.insert(id, termination.status);
            }
            other => panic!("{other:?}"),
        }
    }
    for n in 0..60 {
        assert_eq!(statuses[&id(&format!("c{n}"))], exited(n));
    }
}

#[tokio::test]
async fn an_unknown_user_fails_the_launch() {
    let mut host = Host::new();
    let mut spec = host.spec(&id("a"), "true");
    spec.user = Some(String::from("no-such-user-x"));
    let message = format!(
        "Failed to create executor directory '{}': Failed to chown directory to 'no-such-user-x': \
         No such user 'no-such-user-x'",
        spec.sandbox
    );
    assert_eq!(host.fail_to_launch(spec).await, (LaunchStage::Sandbox, message));
    assert!(!host.sandbox(&id("a")).exists());
}

#[tokio::test]
async fn a_command_runs_as_its_user() {
    if !available(&[Facility::Root]) {
        return;
    }
    let mut host = Host::new();
    let mut spec = host.spec(&id("b"), "id -un; id -Gn; touch mine");
    spec.user = Some(String::from("nobody"));
    assert_eq!(host.run(spec).await, exited(0));
    assert_eq!(host.read(&id("b"), "stdout"), "nobody\nnogroup\n");
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    for file in ["", "stdout", "stderr", "mine"] {
        let meta = host.sandbox(&id("b")).join(file).metadata().unwrap();
        assert_eq!((meta.uid(), meta.gid()), (nobody.uid.as_raw(), nobody.gid.as_raw()), "{file}");
    }
}

#[tokio::test]
async fn sandbox_outside_of_the_work_directory_is_rejected() {
    let mut host = Host::new();
    let outside = tempfile::tempdir().unwrap();
    for path in [outside.path().join("x"), host.work_dir().join("../x"), host.work_dir()] {
        let mut spec = host.spec(&id("a"), "true");
        spec.sandbox = path.display().to_string();
        assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Sandbox);
    }
}

#[tokio::test]
async fn symlink_in_place_of_output_is_rejected() {
    let mut host = Host::new();
    let a = id("a");
    let victim = host.dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::fs::create_dir_all(host.sandbox(&a)).unwrap();
    std::os::unix::fs::symlink(&victim, host.sandbox(&a).join("stdout")).unwrap();
    let spec = host.spec(&a, "echo overwritten");
    assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Sandbox);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}
