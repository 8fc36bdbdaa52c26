//! Input and output of real containers: terminals, sessions, listeners, rotated files, and who outlives the agent.

use std::collections::BTreeMap;

use crate::common::{Host, exited, until};
use tepui_container::{AttachFault, ContainerLogger, Output, Piece, Rotation};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, ContainerOp, LaunchSpec};

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

fn terminal(rows: u32, columns: u32) -> Option<pb::ContainerInfo> {
    let window_size = pb::tty_info::WindowSize { rows, columns, ..Default::default() };
    let tty_info = pb::TTYInfo { window_size: window_size.into(), ..Default::default() };
    let r#type = pb::container_info::Type::MESOS;
    Some(pb::ContainerInfo { r#type, tty_info: tty_info.into(), ..Default::default() })
}

fn session(host: &Host, id: &ContainerId, script: &str) -> LaunchSpec {
    LaunchSpec { is_session: true, ..host.spec(id, script) }
}

/// Listens until the text has come; all that came.
async fn hear(output: &mut Output, text: &str) -> String {
    let mut heard = String::new();
    let hearing = async {
        while !heard.contains(text) {
            match output.next().await.unwrap().expect("more") {
                Piece::Stdout(piece) | Piece::Stderr(piece) => heard += &String::from_utf8_lossy(&piece),
            }
        }
    };
    let in_time = tokio::time::timeout(tepui_facilities::patience(), hearing).await;
    assert!(in_time.is_ok(), "'{text}' never came, only '{heard}'");
    heard
}

/// Listens to the end: stdout and stderr.
async fn hear_all(output: &mut Output) -> (String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(piece) = output.next().await.unwrap() {
        match piece {
            Piece::Stdout(piece) => stdout.extend(piece),
            Piece::Stderr(piece) => stderr.extend(piece),
        }
    }
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn terminal_has_size_echo_and_a_controlled_command() {
    let mut host = Host::new();
    let a = id("a");
    let script = "read go; stty size; trap 'stty size; exit 7' WINCH; ps -o tty= -p $$ >tty; echo ready; while :; do read line; echo got $line; done";
    host.launch(LaunchSpec { container: terminal(25, 80), ..host.spec(&a, script) }).await;
    let mut output = host.containerizer.attach_output(&a).await.unwrap();
    let mut input = host.containerizer.attach_input(&a).await.unwrap();
    input.writer.type_in(b"go\n").await.unwrap();
    let heard = hear(&mut output, "ready").await;
    assert!(heard.starts_with("go\r\n") && heard.contains("25 80\r\n"), "{heard:?}");
    assert!(host.read(&a, "tty").starts_with("pts/"));
    input.writer.type_in(b"hello\n").await.unwrap();
    let heard = hear(&mut output, "got hello").await;
    assert!(heard.contains("hello\r\n"), "what is typed is echoed: {heard:?}");
    assert!(matches!(host.containerizer.attach_input(&a).await, Err(AttachFault::Busy)));
    input.writer.resize(40, 132).await.unwrap();
    assert!(hear_all(&mut output).await.0.contains("40 132\r\n"));
    assert_eq!(host.exit_of(&a).await.status, exited(7));
    assert!(input.ended().await.is_ok());
    assert!(host.read(&a, "stdout").contains("40 132"), "all of it is in the sandbox too");
}

#[tokio::test]
async fn session_inherits_environment_and_directory_of_its_parent() {
    let mut host = Host::new();
    let a = id("a");
    let environment =
        [("NAME", "parent"), ("OTHER", "kept")].map(|(name, value)| (name.into(), value.into()));
    let parent = host.spec(&a, "echo ready; exec sleep 1000");
    host.launch(LaunchSpec { environment: BTreeMap::from(environment), ..parent }).await;
    host.line(&a, "stdout").await;
    let looks = a.child("looks");
    let script = "echo $NAME $OTHER; pwd; echo to stderr >&2; cat; exit 3";
    let environment = BTreeMap::from([(String::from("NAME"), String::from("session"))]);
    host.launch(LaunchSpec { environment, ..session(&host, &looks, script) }).await;
    let mut output = host.containerizer.attach_output(&looks).await.unwrap();
    let mut input = host.containerizer.attach_input(&looks).await.unwrap();
    input.writer.type_in(&b"x".repeat(100_000)).await.unwrap();
    input.writer.end().await.unwrap();
    let (stdout, stderr) = hear_all(&mut output).await;
    let began = format!("session kept\n{}\n", host.sandbox(&a).display());
    assert_eq!(stdout, began + &"x".repeat(100_000));
    assert_eq!(stderr, "to stderr\n");
    assert_eq!(host.exit_of(&looks).await.status, exited(3));
    assert_eq!(host.read(&looks, "stderr"), "to stderr\n");
    assert_eq!(host.read(&looks, "stdout"), stdout);
    assert!(matches!(host.containerizer.attach_output(&a).await, Err(AttachFault::Disabled)));
    host.destroy(&a).await;
}

#[tokio::test]
async fn session_output_is_held_until_the_first_subscriber() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "exec sleep 1000").await;
    let (quick, missing) = (a.child("quick"), a.child("missing"));
    host.launch(session(&host, &quick, "echo quick")).await;
    until(|| host.runtime(&quick).join("status").exists().then_some(())).await;
    let mut output = host.containerizer.attach_output(&quick).await.unwrap();
    assert_eq!(hear_all(&mut output).await.0, "quick\n");
    assert_eq!(host.exit_of(&quick).await.status, exited(0));
    let mut spec = session(&host, &missing, "/no/such/program");
    spec.command.shell = Some(false);
    host.launch(spec).await;
    let mut output = host.containerizer.attach_output(&missing).await.unwrap();
    assert!(hear_all(&mut output).await.1.starts_with("Failed to execute '/no/such/program'"));
    assert_eq!(host.exit_of(&missing).await.status, exited(127));
    host.destroy(&a).await;
}

#[tokio::test]
async fn subscribers_reattach_after_an_agent_restart() {
    let mut host = Host::new();
    let a = id("a");
    let script = "while read line; do echo got $line; done";
    host.launch(LaunchSpec { container: terminal(25, 80), ..host.spec(&a, script) }).await;
    let mut first = host.containerizer.attach_output(&a).await.unwrap();
    let mut second = host.containerizer.attach_output(&a).await.unwrap();
    let mut input = host.containerizer.attach_input(&a).await.unwrap();
    input.writer.type_in(b"one\n").await.unwrap();
    for output in [&mut first, &mut second] {
        hear(output, "got one").await;
    }
    drop((first, second, input));
    let mut host = host.restart();
    host.recover(&[&a]).await;
    let mut output = host.containerizer.attach_output(&a).await.unwrap();
    let mut input = host.containerizer.attach_input(&a).await.unwrap();
    input.writer.type_in(b"two\n").await.unwrap();
    hear(&mut output, "got two").await;
    input.writer.type_in(b"\x04").await.unwrap();
    assert!(output.next().await.is_ok());
    assert_eq!(host.exit_of(&a).await.status, exited(0));
}

#[tokio::test]
async fn slow_subscriber_is_disconnected_and_others_receive_all_output() {
    let mut host = Host::new();
    let a = id("a");
    let script = "read go; head -c 4000000 /dev/zero | tr '\\0' x; echo; echo over";
    host.launch(LaunchSpec { container: terminal(25, 80), ..host.spec(&a, script) }).await;
    let mut idle = host.containerizer.attach_output(&a).await.unwrap();
    let mut output = host.containerizer.attach_output(&a).await.unwrap();
    let mut input = host.containerizer.attach_input(&a).await.unwrap();
    input.writer.type_in(b"go\n").await.unwrap();
    let (stdout, _) = hear_all(&mut output).await;
    assert_eq!(stdout.matches('x').count(), 4_000_000);
    assert!(stdout.ends_with("over\r\n"));
    assert_eq!(host.exit_of(&a).await.status, exited(0));
    let end = loop {
        match idle.next().await {
            Ok(Some(_)) => (),
            end => break end,
        }
    };
    assert!(matches!(end, Err(AttachFault::Lost(_))), "it is told that it missed something");
}

#[tokio::test]
async fn output_of_a_killed_session_is_complete() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "exec sleep 1000").await;
    let talks = a.child("talks");
    host.launch(session(&host, &talks, "echo last words; sleep 1000; echo never")).await;
    let mut output = host.containerizer.attach_output(&talks).await.unwrap();
    hear(&mut output, "words").await;
    host.submit(ContainerOp::Signal { id: talks.clone(), signal: libc::SIGKILL });
    assert_eq!(host.exit_of(&talks).await.status, Some(libc::SIGKILL));
    assert_eq!(output.next().await.unwrap(), None, "the end was told, not only noticed");
    host.destroy(&a).await;
}

#[tokio::test]
async fn window_resize_requires_a_terminal() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "exec sleep 1000").await;
    let cat = a.child("cat");
    host.launch(session(&host, &cat, "cat")).await;
    let _output = host.containerizer.attach_output(&cat).await.unwrap();
    let mut input = host.containerizer.attach_input(&cat).await.unwrap();
    input.writer.resize(1, 1).await.unwrap();
    assert!(matches!(input.ended().await, Err(AttachFault::NoTerminal)));
    let mut again = host.containerizer.attach_input(&cat).await.unwrap();
    again.writer.end().await.unwrap();
    assert_eq!(host.exit_of(&cat).await.status, exited(0));
    host.destroy(&a).await;
}

#[tokio::test]
async fn rotated_container_output_loses_no_byte() {
    let rotation = Rotation { bytes_max: 8192, kept_max: 100 };
    let logger = ContainerLogger::Rotate {
        stdout: rotation,
        stderr: rotation,
        prefix: String::from("CONTAINER_LOGGER_"),
    };
    let mut host = Host::with(|options| options.container_logger = logger);
    let (a, b) = (id("a"), id("b"));
    assert_eq!(host.run(host.spec(&a, "seq 1 20000; echo why >&2; exit 5")).await, exited(5));
    let names = (1..100).rev().map(|number| format!("stdout.{number}")).chain([String::from("stdout")]);
    let files: Vec<String> =
        names.filter_map(|name| std::fs::read_to_string(host.sandbox(&a).join(name)).ok()).collect();
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(files.concat(), expected);
    assert!(files.len() > 10 && files.iter().all(|file| file.len() <= 8192));
    assert_eq!(host.read(&a, "stderr"), "why\n");
    assert!(matches!(host.containerizer.attach_output(&a).await, Err(AttachFault::Disabled)));

    let own = [
        ("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "1MB"),
        ("CONTAINER_LOGGER_LOGROTATE_STDERR_OPTIONS", "rotate 1"),
    ];
    let environment: BTreeMap<String, String> =
        own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let spec = host.spec(&b, "seq 1 20000 | tee /dev/stderr");
    assert_eq!(host.run(LaunchSpec { environment, ..spec }).await, exited(0));
    assert_eq!(host.read(&b, "stdout"), expected);
    assert!(host.sandbox(&b).join("stderr.1").exists() && !host.sandbox(&b).join("stderr.2").exists());

    let bad = BTreeMap::from([(String::from("CONTAINER_LOGGER_MAX_STDERR_SIZE"), String::from("much"))]);
    let spec = LaunchSpec { environment: bad, ..host.spec(&id("c"), "true") };
    let (_, why) = host.fail_to_launch(spec).await;
    assert_eq!(why, "CONTAINER_LOGGER_MAX_STDERR_SIZE is not a size: 'much'");
}
