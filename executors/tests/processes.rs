//! The executors as real processes, against a pretend agent: this test binary starts itself as an executor.

#[path = "../../client/tests/server/mod.rs"]
mod server;

use std::process::{Child, Command, ExitCode};

use server::{Answer, Asked, Server, Stream};
use tempfile::TempDir;
use tepui_client::shorthand::{duration_info, shell, task_id};
use tepui_client::v1::executor::event::Acknowledged;
use tepui_client::v1::executor::{Call, Event, call, event};
use tepui_client::v1::{CommandInfo, TaskInfo, TaskState, TaskStatus, agent};
use tepui_client::{Format, v1};
use tepui_proto::json;

const KIND: &str = "TEPUI_TEST_EXECUTOR";

/// Not a test by itself: runs an executor when one of the tests below starts this binary.
#[test]
fn as_executor() {
    let code = match std::env::var(KIND).as_deref() {
        Ok("command") => tepui_executors::command::main(&[]),
        Ok("default") => tepui_executors::default::main(&[]),
        _ => return,
    };
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code);
    std::process::exit(i32::from(number.expect("one of them")));
}

/// An agent with one executor.
struct Agent {
    server: Server,
    sandbox: TempDir,
    executor: Child,
    stream: Option<Stream>,
}

impl Agent {
    async fn start(kind: &str) -> Self {
        let server = Server::start(Format::Protobuf).await;
        let sandbox = TempDir::new().expect("a directory");
        let log = std::fs::File::create(sandbox.path().join("stderr")).expect("a file");
        let executor = Command::new(std::env::current_exe().expect("known"))
            .args(["--exact", "as_executor", "--nocapture"])
            .env(KIND, kind)
            .env("MESOS_SLAVE_PID", format!("slave(1)@{}", server.address()))
            .env("MESOS_FRAMEWORK_ID", "F")
            .env("MESOS_EXECUTOR_ID", "e")
            .env("MESOS_SANDBOX", sandbox.path())
            .env("MESOS_CHECKPOINT", "1")
            .env("MESOS_RECOVERY_TIMEOUT", "30secs")
            .env("MESOS_SUBSCRIPTION_BACKOFF_MAX", "10ms")
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("it starts");
        Self { server, sandbox, executor, stream: None }
    }

    /// Accepts a subscription and returns its call.
    async fn subscribe(&mut self) -> Call {
        let asked = self.server.asked().await;
        let call: Call = asked.message();
        assert_eq!(call.r#type, Some(call::Type::SUBSCRIBE));
        let stream = asked.stream::<Event>(&[]);
        stream.send(
            r#"{"type":"SUBSCRIBED","subscribed":{"executor_info":{"executor_id":{"value":"e"}},
            "framework_info":{"user":"u","name":"n","capabilities":[{"type":"TASK_KILLING_STATE"}]},
            "agent_info":{"hostname":"h"},"container_id":{"value":"root"}}}"#,
        );
        self.stream = Some(stream);
        call
    }

    fn send(&self, event: &Event) {
        let text = String::from_utf8(json::to_vec(event)).expect("JSON is text");
        self.stream.as_ref().expect("subscribed").send(&text);
    }

    fn launch(&self, id: &str, command: CommandInfo) {
        let launch = event::Launch { task: task(id, command).into(), ..Default::default() };
        self.send(&Event { r#type: Some(event::Type::LAUNCH), launch: launch.into(), ..Default::default() });
    }

    /// The next update, taken but not acknowledged.
    async fn update(&mut self) -> TaskStatus {
        let asked = self.server.asked().await;
        let call: Call = asked.message();
        assert_eq!(call.r#type, Some(call::Type::UPDATE));
        asked.answer(Answer::status(202));
        (*call.update.status).clone()
    }

    fn acknowledge(&self, status: &TaskStatus) {
        let acknowledged = Acknowledged {
            task_id: status.task_id.clone(),
            uuid: status.uuid.clone().expect("every update has one"),
            ..Default::default()
        };
        self.send(&Event {
            r#type: Some(event::Type::ACKNOWLEDGED),
            acknowledged: acknowledged.into(),
            ..Default::default()
        });
    }

    /// Acknowledges the next update and returns its state and message.
    async fn state(&mut self) -> (TaskState, String) {
        let status = self.update().await;
        self.acknowledge(&status);
        (status.state, status.message.unwrap_or_default())
    }

    /// A named pipe in the sandbox; the future returns its content.
    fn pipe(&self, name: &str) -> impl Future<Output = String> + use<> {
        let path = self.sandbox.path().join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path));
        async move { read.await.expect("not cancelled").expect("text").trim().to_owned() }
    }

    /// The next call to the agent's own API.
    async fn called(&mut self) -> (agent::Call, Asked) {
        let asked = self.server.asked().await;
        assert_eq!(asked.path, "/slave(1)/api/v1");
        (asked.message(), asked)
    }

    async fn exit_code(mut self) -> Option<i32> {
        let waited = tokio::task::spawn_blocking(move || self.executor.wait()).await;
        waited.expect("not cancelled").expect("waited").code()
    }
}

fn task(id: &str, command: CommandInfo) -> TaskInfo {
    TaskInfo {
        name: id.into(),
        task_id: task_id(id).into(),
        agent_id: v1::AgentID { value: "A".into(), ..Default::default() }.into(),
        command: command.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_command_runs_in_its_own_session_and_is_killed() {
    let mut agent = Agent::start("command").await;
    agent.subscribe().await;
    let said = agent.pipe("said");
    let script = "read -r _ _ _ _ _ sid _ < /proc/$$/stat; \
        test $sid = $$ && echo $(pwd -P) ${TEPUI_BECOME_TASK-gone} > said; sleep 1000";
    agent.launch("t", shell(script));
    assert_eq!(agent.state().await, (TaskState::TASK_STARTING, String::new()));
    assert_eq!(agent.state().await, (TaskState::TASK_RUNNING, String::new()));
    let sandbox = agent.sandbox.path().canonicalize().expect("it exists");
    assert_eq!(said.await, format!("{} gone", sandbox.display()));

    let kill = event::Kill { task_id: task_id("t").into(), ..Default::default() };
    agent.send(&Event { r#type: Some(event::Type::KILL), kill: kill.into(), ..Default::default() });
    assert_eq!(agent.state().await, (TaskState::TASK_KILLING, String::new()));
    let killed = (TaskState::TASK_KILLED, "Command terminated with signal Terminated".into());
    assert_eq!(agent.state().await, killed);
    assert_eq!(agent.exit_code().await, Some(0));
}

#[tokio::test]
async fn unacknowledged_updates_survive_agent_restart() {
    let mut agent = Agent::start("command").await;
    agent.subscribe().await;
    let said = agent.pipe("said");
    let go = agent.sandbox.path().join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    agent.launch("t", shell("read -r line < go; echo $line > said; exit 3"));
    let starting = agent.update().await;
    let running = agent.update().await;
    agent.acknowledge(&starting);

    agent.stream = None;
    let carried = agent.subscribe().await.subscribe;
    // The acknowledgement may or may not have been read before the stream closed; RUNNING was never acknowledged.
    let uuids: Vec<_> =
        carried.unacknowledged_updates.iter().map(|update| update.status.uuid.clone()).collect();
    assert!(uuids.ends_with(std::slice::from_ref(&running.uuid)) && uuids.len() <= 2, "{uuids:?}");
    agent.acknowledge(&running);
    tokio::task::spawn_blocking(move || std::fs::write(go, "still here\n"));
    assert_eq!(said.await, "still here");
    let failed = (TaskState::TASK_FAILED, "Command exited with status 3".into());
    assert_eq!(agent.state().await, failed);
    assert_eq!(agent.exit_code().await, Some(0));
}

#[tokio::test]
async fn missing_command_is_task_failed() {
    let mut agent = Agent::start("command").await;
    agent.subscribe().await;
    let arguments = vec!["no-such".into()];
    let command = CommandInfo {
        shell: Some(false),
        value: Some("/no/such/command".into()),
        arguments,
        ..Default::default()
    };
    agent.launch("t", command);
    let mut states = Vec::new();
    for _ in 0..3 {
        states.push(agent.state().await);
    }
    assert_eq!(states[2], (TaskState::TASK_FAILED, "Command exited with status 127".into()));
    let log = std::fs::read_to_string(agent.sandbox.path().join("stderr")).expect("text");
    assert!(log.contains("cannot execute '/no/such/command'"), "{log}");
    assert_eq!(agent.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_group_runs_in_nested_containers() {
    let mut agent = Agent::start("default").await;
    agent.subscribe().await;
    let limit = duration_info(std::time::Duration::from_secs(3600));
    let tasks = vec![TaskInfo { max_completion_time: limit.into(), ..task("t", shell("work")) }];
    let task_group = v1::TaskGroupInfo { tasks, ..Default::default() };
    let launch_group = event::LaunchGroup { task_group: task_group.into(), ..Default::default() };
    agent.send(&Event {
        r#type: Some(event::Type::LAUNCH_GROUP),
        launch_group: launch_group.into(),
        ..Default::default()
    });

    // The update and the launch travel on connections of their own.
    let (first, second) = (agent.server.asked().await, agent.server.asked().await);
    let (update, launch) = match first.path.ends_with("/executor") {
        true => (first, second),
        false => (second, first),
    };
    let starting: Call = update.message();
    update.answer(Answer::status(202));
    assert_eq!(starting.update.status.state, TaskState::TASK_STARTING);
    let call: agent::Call = launch.message();
    let container = (*call.launch_container.container_id).clone();
    assert_eq!(container.parent.value, "root");
    assert_eq!(starting.update.status.container_status.container_id.as_option(), Some(&container));
    launch.answer(Answer::status(503)); // The agent restarts; the launch is repeated.
    let (again, launch) = agent.called().await;
    assert_eq!(again, call);
    launch.answer(Answer::status(202));

    let (first, second) = (agent.server.asked().await, agent.server.asked().await);
    let (update, wait) = match first.path.ends_with("/executor") {
        true => (first, second),
        false => (second, first),
    };
    let running: Call = update.message();
    update.answer(Answer::status(202));
    assert_eq!(running.update.status.state, TaskState::TASK_RUNNING);
    let link = std::fs::read_link(agent.sandbox.path().join("tasks/t")).expect("a link");
    assert_eq!(link, agent.sandbox.path().join("containers").join(&container.value));
    let call: agent::Call = wait.message();
    assert_eq!(*call.wait_nested_container.container_id, container);
    wait.answer_message::<agent::Response>(
        r#"{"type":"WAIT_NESTED_CONTAINER","wait_nested_container":{"exit_status":0}}"#,
    );
    let finished = (TaskState::TASK_FINISHED, "Command exited with status 0".into());
    assert_eq!(agent.state().await, finished);
    assert_eq!(agent.exit_code().await, Some(0));
}
