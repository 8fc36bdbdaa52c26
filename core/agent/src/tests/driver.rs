//! Reads a script, drives an agent with it, and writes down what comes out. Knows the API; the scripts do not.
//!
//! Containers are called by their executor's id, random ids are replaced by names (`C1`, `C2`, …).

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use expect_test::Expect;
use tepui_fsm::{Durable, Fsm, Item, Mono, Now, Outbox, Wall, Write};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::tepui::agent::v1::event;
use tepui_types::{
    ConnId, ContainerEvent, ContainerId, ContainerOp, ExecutorId, FrameworkId, LaunchStage,
    RecoveredContainer, TaskId, Termination,
};

use crate::{Agent, Config, Effect, Input, LinkId};

/// Runs the script and compares everything that came out.
pub(super) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&World::default().run(script).text);
}

pub(super) struct World {
    pub(super) config: Config,
    pub(super) agent: Option<Agent>,
    pub(super) store: BTreeMap<String, Vec<u8>>,
    pub(super) text: String,
    now: Now,
    link: u64,
    conn: u64,
    conns: BTreeMap<String, ConnId>,
    names: Vec<(String, String)>,
    known: Vec<ContainerId>,
    sent: BTreeMap<String, Vec<u8>>,
    frameworks: BTreeMap<String, pb::FrameworkInfo>,
}

impl Default for World {
    fn default() -> Self {
        let agent_info = pb::AgentInfo {
            hostname: "host".into(),
            port: Some(5051),
            resources: resources("cpus:4;mem:1024;disk:2048"),
            ..Default::default()
        };
        let config = Config {
            agent_info,
            pid: "slave(1)@10.0.0.1:5051".into(),
            endpoint: "10.0.0.1:5051".into(),
            version: "1.0".into(),
            work_dir: "/w".into(),
            runtime_dir: "/r".into(),
            executor_program: "/tepui".into(),
            boot_id: "boot-1".into(),
            ..Default::default()
        };
        let mut world = World {
            config,
            agent: None,
            store: BTreeMap::new(),
            text: String::new(),
            now: Now { mono: Mono(0), wall: Wall(1_000_000_000_000) },
            link: 0,
            conn: 0,
            conns: BTreeMap::new(),
            names: Vec::new(),
            known: Vec::new(),
            sent: BTreeMap::new(),
            frameworks: BTreeMap::new(),
        };
        world.framework("F", true, true);
        world.framework("G", false, false);
        world
    }
}

/// `cpus:1;mem:32` as resources.
pub(super) fn resources(text: &str) -> Vec<pb::Resource> {
    let scalar = |entry: &str| {
        let (name, value) = entry.split_once(':').expect("name:value");
        pb::Resource {
            name: name.into(),
            r#type: pb::value::Type::SCALAR,
            scalar: pb::value::Scalar { value: value.parse().expect("a number"), ..Default::default() }
                .into(),
            ..Default::default()
        }
    };
    text.split(';').filter(|entry| !entry.is_empty()).map(scalar).collect()
}

impl World {
    fn framework(&mut self, id: &str, checkpoint: bool, aware: bool) {
        let capability = pb::framework_info::Capability {
            r#type: Some(pb::framework_info::capability::Type::PARTITION_AWARE),
            ..Default::default()
        };
        let info = pb::FrameworkInfo {
            id: FrameworkId::new(id).to_proto().into(),
            user: "nobody".into(),
            name: id.into(),
            role: Some("dev".into()),
            checkpoint: Some(checkpoint),
            capabilities: if aware { Vec::from([capability]) } else { Vec::new() },
            ..Default::default()
        };
        self.frameworks.insert(id.into(), info);
    }

    pub(super) fn run(mut self, script: &str) -> Self {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.text.push_str(&format!("> {line}\n"));
            let words: Vec<&str> = line.split_whitespace().collect();
            self.command(&words);
        }
        self
    }

    fn command(&mut self, words: &[&str]) {
        match words {
            ["start"] => self.start(),
            ["restart"] => {
                self.agent = None;
                self.start();
            }
            ["crash"] => self.agent = None,
            ["wait", time] => self.wait(duration(time)),
            ["recovered", ended @ ..] => self.recovered(ended),
            ["up"] => self.input(Input::LinkUp { link: LinkId(self.link) }),
            ["down"] => self.input(Input::LinkDown { link: LinkId(self.link), reason: "closed".into() }),
            ["go"] => {
                // The usual way until the agent is subscribed.
                self.wait(Duration::from_secs(5));
                self.command(&["up"]);
                self.command(&["subscribed"]);
            }
            ["subscribed", options @ ..] => self.subscribed(options),
            ["ping"] => self.event(event::Type::PING, |_| ()),
            ["launch", task, options @ ..] => self.launch(task, options),
            ["group", executor, tasks, options @ ..] => self.group(executor, tasks, options),
            ["kill", task, options @ ..] => self.kill(task, options),
            ["ack", task, options @ ..] => self.ack(task, options),
            ["shutdown", "executor", id] => {
                let call = event::ShutdownExecutor {
                    framework_id: FrameworkId::new("F").to_proto().into(),
                    executor_id: ExecutorId::new(*id).to_proto().into(),
                    ..Default::default()
                };
                self.event(event::Type::SHUTDOWN_EXECUTOR, |event| event.shutdown_executor = call.into());
            }
            ["shutdown", "framework", id] => {
                let framework_id = FrameworkId::new(*id).to_proto().into();
                let call = event::ShutdownFramework { framework_id, ..Default::default() };
                self.event(event::Type::SHUTDOWN_FRAMEWORK, |event| event.shutdown_framework = call.into());
            }
            ["shutdown"] => {
                let call = event::Shutdown { message: "gone".into(), ..Default::default() };
                self.event(event::Type::SHUTDOWN, |event| event.shutdown = call.into());
            }
            ["framework", id, name] => {
                let info = self.frameworks.get_mut(*id).expect("a known framework");
                info.name = (*name).into();
                let call =
                    event::UpdateFramework { framework_info: info.clone().into(), ..Default::default() };
                self.event(event::Type::UPDATE_FRAMEWORK, |event| event.update_framework = call.into());
            }
            ["message", executor, text] => {
                let call = event::Message {
                    framework_id: FrameworkId::new("F").to_proto().into(),
                    executor_id: ExecutorId::new(*executor).to_proto().into(),
                    data: text.as_bytes().into(),
                    ..Default::default()
                };
                self.event(event::Type::MESSAGE, |event| event.message = call.into());
            }
            [executor, rest @ ..] => self.executor(executor, rest),
            [] => (),
        }
    }

    fn start(&mut self) {
        let stored = self.store.clone();
        match Agent::new(self.config.clone(), stored, self.now) {
            Ok(agent) => self.agent = Some(agent),
            Err(error) => {
                self.text.push_str(&format!("refuses to start: {error}\n"));
                return;
            }
        }
        self.conns.clear();
        self.input(Input::Start);
    }

    /// Moves time on, stopping at each deadline on the way.
    fn wait(&mut self, time: Duration) {
        let end = self.now.mono + time;
        loop {
            let Some(agent) = &self.agent else { return };
            let next = agent.deadline().filter(|at| *at <= end).unwrap_or(end);
            let passed = next.since(self.now.mono);
            self.now.mono = self.now.mono + passed;
            self.now.wall = Wall(self.now.wall.0 + passed.as_nanos() as u64);
            self.settle();
            if next == end {
                return;
            }
        }
    }

    fn settle(&mut self) {
        let mut out = Outbox::new();
        if let Some(agent) = &mut self.agent {
            agent.settle(self.now, &mut out);
        }
        self.take(out);
    }

    pub(super) fn input(&mut self, input: Input) {
        std::assert!(!input.to_string().contains('\n'), "one line: {input}");
        let mut out = Outbox::new();
        if let Some(agent) = &mut self.agent {
            agent.step(self.now, input, &mut out);
        }
        self.take(out);
        self.settle();
    }

    fn take(&mut self, mut out: Outbox<Agent>) {
        for item in out.take() {
            let line = match item {
                Item::Record(record) => {
                    let mut writes = Vec::new();
                    record.writes(&mut writes);
                    for Write { key, value } in writes {
                        match value {
                            Some(value) => self.store.insert(key, value),
                            None => self.store.remove(&key),
                        };
                    }
                    format!("= {record}")
                }
                Item::Effect(Effect::Publish { .. }) => continue,
                Item::Effect(effect) => {
                    self.note(&effect);
                    effect.to_string()
                }
            };
            std::assert!(!line.contains('\n'), "one line: {line}");
            let line = self.renamed(line);
            self.text.push_str(&format!("  {line}\n"));
        }
    }

    /// Remembers what later lines of a script refer to.
    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Connect { link } => self.link = link.0,
            Effect::Container(ContainerOp::Launch(spec)) if spec.id.parent().is_none() => {
                self.names.push((spec.id.to_string(), format!("C{}", self.names.len() + 1)));
            }
            Effect::Container(ContainerOp::Recover { known }) => {
                self.known = known.iter().map(|known| known.id.clone()).collect();
            }
            Effect::Master { call, .. } => {
                if let Some(update) = call.update.as_option() {
                    let uuid = update.status.uuid.clone().unwrap_or_default();
                    self.sent.insert(update.status.task_id.value.clone(), uuid);
                }
            }
            Effect::OpenExecutor { conn } => {
                std::assert!(conn.0 <= self.conn);
            }
            _ => (),
        }
    }

    fn renamed(&self, line: String) -> String {
        self.names.iter().fold(line, |line, (id, name)| line.replace(id, name))
    }

    fn recovered(&mut self, ended: &[&str]) {
        let container = |id: &ContainerId| {
            let name = self.renamed(id.to_string());
            let termination = Termination { status: Some(9), ..Default::default() };
            RecoveredContainer {
                id: id.clone(),
                pid: None,
                ended: ended.contains(&name.as_str()).then_some(termination),
            }
        };
        let containers = self.known.iter().map(container).collect();
        self.input(Input::Container(ContainerEvent::Recovered { containers }));
    }

    fn subscribed(&mut self, options: &[&str]) {
        let missing = |id: &str| event::MissingTask {
            framework_id: FrameworkId::new("F").to_proto().into(),
            task_id: TaskId::new(id).to_proto().into(),
            partition_aware: true,
            ..Default::default()
        };
        let subscribed = event::Subscribed {
            agent_id: pb::AgentID {
                value: option(options, "id").unwrap_or("S0").into(),
                ..Default::default()
            }
            .into(),
            silence_timeout_seconds: 75.0,
            missing_tasks: option(options, "missing").map(missing).into_iter().collect(),
            ..Default::default()
        };
        self.event(event::Type::SUBSCRIBED, |event| event.subscribed = subscribed.into());
    }

    pub(super) fn event(&mut self, kind: event::Type, fill: impl FnOnce(&mut link::Event)) {
        let mut event = link::Event { r#type: Some(kind), ..Default::default() };
        fill(&mut event);
        self.input(Input::LinkEvent { link: LinkId(self.link), event: event.into() });
    }

    fn launch(&mut self, task: &str, options: &[&str]) {
        let framework = option(options, "framework").unwrap_or("F");
        let mut info = task_info(task, options);
        let executor = option(options, "executor");
        match executor {
            Some(executor) => info.executor = executor_info(executor, options).into(),
            None => info.command = command("sleep 1000").into(),
        }
        let launch = event::Launch {
            framework_info: self.frameworks[framework].clone().into(),
            task: info.into(),
            launch_executor: executor.map(|_| !options.contains(&"old")),
            ..Default::default()
        };
        self.event(event::Type::LAUNCH, |event| event.launch = launch.into());
    }

    fn group(&mut self, executor: &str, tasks: &str, options: &[&str]) {
        let tasks = tasks.split(',').map(|task| task_info(task, options)).collect();
        let mut executor = executor_info(executor, options);
        executor.command = None.into();
        executor.r#type = Some(pb::executor_info::Type::DEFAULT);
        let group = event::LaunchGroup {
            framework_info: self.frameworks[option(options, "framework").unwrap_or("F")].clone().into(),
            executor: executor.into(),
            task_group: pb::TaskGroupInfo { tasks, ..Default::default() }.into(),
            launch_executor: !options.contains(&"old"),
            ..Default::default()
        };
        self.event(event::Type::LAUNCH_GROUP, |event| event.launch_group = group.into());
    }

    fn kill(&mut self, task: &str, options: &[&str]) {
        let grace = option(options, "grace").map(|grace| pb::KillPolicy {
            grace_period: duration_info(duration(grace)).into(),
            ..Default::default()
        });
        let kill = event::Kill {
            framework_id: FrameworkId::new(option(options, "framework").unwrap_or("F")).to_proto().into(),
            task_id: TaskId::new(task).to_proto().into(),
            kill_policy: grace.into(),
            ..Default::default()
        };
        self.event(event::Type::KILL, |event| event.kill = kill.into());
    }

    /// Acknowledges the update last sent about the task, or another uuid.
    fn ack(&mut self, task: &str, options: &[&str]) {
        let uuid = match option(options, "uuid") {
            Some(name) => uuid(name),
            None => self.sent.get(task).cloned().unwrap_or_default(),
        };
        let acknowledge = event::Acknowledge {
            framework_id: FrameworkId::new(option(options, "framework").unwrap_or("F")).to_proto().into(),
            task_id: TaskId::new(task).to_proto().into(),
            uuid,
            ..Default::default()
        };
        self.event(event::Type::ACKNOWLEDGE, |event| event.acknowledge = acknowledge.into());
    }

    /// Something an executor, or its container, does.
    fn executor(&mut self, id: &str, words: &[&str]) {
        match words {
            ["subscribe", options @ ..] => self.executor_subscribe(id, options),
            ["update", task, state, options @ ..] => {
                let update = executor_api::call::Update {
                    status: status(task, state, options).into(),
                    ..Default::default()
                };
                let mut call = executor_call(id, executor_api::call::Type::UPDATE, options);
                call.update = update.into();
                self.request(call);
            }
            ["message", text, options @ ..] => {
                let mut call = executor_call(id, executor_api::call::Type::MESSAGE, options);
                let message =
                    executor_api::call::Message { data: text.as_bytes().into(), ..Default::default() };
                call.message = message.into();
                self.request(call);
            }
            ["heartbeat"] => self.request(executor_call(id, executor_api::call::Type::HEARTBEAT, &[])),
            ["close"] => {
                let conn = self.conns.remove(id).expect("an open stream");
                self.input(Input::ExecutorClosed { conn });
            }
            ["launched", pid] => {
                let pid = pid.parse().expect("a pid");
                let id = self.container_of(id);
                self.input(Input::Container(ContainerEvent::Launched { id, pid }));
            }
            ["failed", stage, message @ ..] => {
                let stage = match *stage {
                    "sandbox" => LaunchStage::Sandbox,
                    "fetch" => LaunchStage::Fetch,
                    _ => LaunchStage::Start,
                };
                let (id, message) = (self.container_of(id), message.join(" "));
                self.input(Input::Container(ContainerEvent::LaunchFailed { id, stage, message }));
            }
            ["unfit", message @ ..] => {
                let (id, message) = (self.container_of(id), message.join(" "));
                self.input(Input::Container(ContainerEvent::UpdateFailed { id, message }));
            }
            ["exited", status, options @ ..] => self.exited(id, status, options),
            other => std::panic!("what is {other:?}?"),
        }
    }

    fn executor_subscribe(&mut self, id: &str, options: &[&str]) {
        let tasks = option(options, "tasks").unwrap_or_default().split(',').filter(|task| !task.is_empty());
        let update = |text: &str| {
            let (task, rest) = text.split_once(':').expect("task:STATE:uuid");
            let (state, name) = rest.split_once(':').expect("task:STATE:uuid");
            let mut status = status(task, state, &[]);
            status.uuid = Some(uuid(name));
            executor_api::call::Update { status: status.into(), ..Default::default() }
        };
        let updates =
            option(options, "updates").unwrap_or_default().split(',').filter(|text| !text.is_empty());
        let subscribe = executor_api::call::Subscribe {
            unacknowledged_tasks: tasks.map(|task| task_info(task, &[])).collect(),
            unacknowledged_updates: updates.map(update).collect(),
            ..Default::default()
        };
        let mut call = executor_call(id, executor_api::call::Type::SUBSCRIBE, options);
        call.subscribe = subscribe.into();
        self.conns.insert(id.into(), ConnId(self.conn + 1));
        self.request(call);
    }

    fn exited(&mut self, id: &str, status: &str, options: &[&str]) {
        let termination = Termination {
            status: status.parse().ok(),
            state: option(options, "state").map(task_state),
            reason: options
                .contains(&"oom")
                .then_some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY),
            message: option(options, "message").map(Into::into),
            ..Default::default()
        };
        let id = self.container_of(id);
        self.input(Input::Container(ContainerEvent::Exited { id, termination }));
    }

    fn request(&mut self, call: executor_api::Call) {
        self.conn += 1;
        self.input(Input::Executor { conn: ConnId(self.conn), call: call.into() });
    }

    fn container_of(&self, executor: &str) -> ContainerId {
        let agent = self.agent.as_ref().expect("an agent");
        let mut all = agent.state().frameworks.values().flat_map(|framework| framework.executors.values());
        all.find(|one| one.id.as_str() == executor).expect("a known executor").container_id.clone()
    }
}

fn executor_call(id: &str, kind: executor_api::call::Type, options: &[&str]) -> executor_api::Call {
    executor_api::Call {
        executor_id: ExecutorId::new(id).to_proto().into(),
        framework_id: FrameworkId::new(option(options, "framework").unwrap_or("F")).to_proto().into(),
        r#type: Some(kind),
        ..Default::default()
    }
}

fn status(task: &str, state: &str, options: &[&str]) -> pb::TaskStatus {
    let name = option(options, "uuid").map_or_else(|| format!("{task}{state}"), Into::into);
    pb::TaskStatus {
        task_id: TaskId::new(task).to_proto().into(),
        state: task_state(state),
        source: Some(pb::task_status::Source::SOURCE_EXECUTOR),
        uuid: Some(uuid(&name)),
        ..Default::default()
    }
}

fn task_state(name: &str) -> pb::TaskState {
    use pb::TaskState;
    match name {
        "STAGING" => TaskState::TASK_STAGING,
        "STARTING" => TaskState::TASK_STARTING,
        "RUNNING" => TaskState::TASK_RUNNING,
        "KILLING" => TaskState::TASK_KILLING,
        "KILLED" => TaskState::TASK_KILLED,
        "FINISHED" => TaskState::TASK_FINISHED,
        "FAILED" => TaskState::TASK_FAILED,
        other => std::panic!("what is {other}?"),
    }
}

/// Sixteen bytes made of a name.
fn uuid(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}

fn task_info(task: &str, options: &[&str]) -> pb::TaskInfo {
    pb::TaskInfo {
        name: task.into(),
        task_id: TaskId::new(task).to_proto().into(),
        agent_id: pb::AgentID { value: "S0".into(), ..Default::default() }.into(),
        resources: resources(option(options, "needs").unwrap_or("cpus:1;mem:64")),
        ..Default::default()
    }
}

fn executor_info(id: &str, options: &[&str]) -> pb::ExecutorInfo {
    pb::ExecutorInfo {
        executor_id: ExecutorId::new(id).to_proto().into(),
        r#type: Some(pb::executor_info::Type::CUSTOM),
        command: command("./executor").into(),
        resources: resources(option(options, "own").unwrap_or("cpus:0.5;mem:32")),
        ..Default::default()
    }
}

fn command(value: &str) -> pb::CommandInfo {
    pb::CommandInfo { value: Some(value.into()), ..Default::default() }
}

fn option<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().expect("milliseconds")),
        None => Duration::from_secs(text.trim_end_matches('s').parse().expect("seconds")),
    }
}

fn duration_info(duration: Duration) -> pb::DurationInfo {
    pb::DurationInfo { nanoseconds: duration.as_nanos() as i64, ..Default::default() }
}
