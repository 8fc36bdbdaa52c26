//! Reads a script, drives an agent with it, and prints the outbox. Uses the API; the scripts do not.
//!
//! Containers have their executor's id, random ids are replaced by names (`C1`, `C2`, …).

mod words;

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use expect_test::Expect;
use tepui_fsm::{Durable, Fsm, Item, Mono, Now, Outbox, Wall, Write, unlimited};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::tepui::agent::v1::event;
use tepui_proto::wire;
use tepui_types::{
    ConnId, ContainerEvent, ContainerId, ContainerOp, DiskRoom, ExecutorId, FrameworkId, LaunchSpec,
    LaunchStage, RecoveredContainer, TaskId, Termination,
};

use crate::{
    Agent, Config, Effect, Eviction, Input, LinkId, Load, MachineMemory, MemoryUse, Peer, SandboxUse, Sender,
    Used,
};

use words::*;

/// After so many characters the next word starts a new line.
const LINE_CHARS: usize = 84;

/// The commands before this line begin other transcripts as well; one of them has their output.
const BEGINNING_ENDS: &str = "...";

/// A new agent that the master has admitted.
const READY: &str = "start\nrecovered\ngo";

/// Plays the commands of a transcript, its lines with `> `, and compares everything that comes out.
pub(super) fn replay(transcript: Expect) {
    replay_after("", transcript);
}

pub(super) fn replay_ready(transcript: Expect) {
    replay_after(READY, transcript);
}

/// Plays commands without their output, then a transcript.
pub(super) fn replay_after(beginning: &str, transcript: Expect) {
    let lines = transcript.data().lines().map(str::trim);
    let script: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("> ").or((line == BEGINNING_ENDS).then_some(line)))
        .collect();
    assert!(!script.is_empty(), "a transcript without commands");
    let mut world = World::default().run(beginning);
    world.text.clear();
    transcript.assert_eq(&world.run(&script.join("\n")).text);
}

pub(super) struct World {
    pub(super) config: Config,
    pub(super) agent: Option<Agent>,
    pub(super) store: BTreeMap<String, Vec<u8>>,
    /// Records to put back, as if their removal had not been written.
    saved: BTreeMap<String, Vec<u8>>,
    pub(super) text: String,
    now: Now,
    link: u64,
    /// Further tries to connect are not written down while time passes.
    connects: u32,
    conn: u64,
    conns: BTreeMap<String, ConnId>,
    subscribing: Option<String>,
    names: Vec<(String, String)>,
    known: Vec<ContainerId>,
    /// Prints container operations, task groups of executors and messages to the master in full.
    pub(super) specs: Vec<LaunchSpec>,
    pub(super) grouped: Vec<pb::TaskInfo>,
    pub(super) statuses: Vec<pb::TaskStatus>,
    pub(super) subscribes: Vec<link::call::Subscribe>,
    sent: BTreeMap<String, Vec<u8>>,
    pub(super) frameworks: BTreeMap<String, pb::FrameworkInfo>,
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
            saved: BTreeMap::new(),
            text: String::new(),
            now: Now { mono: Mono(0), wall: Wall(1_000_000_000_000) },
            link: 0,
            connects: 0,
            conn: 0,
            conns: BTreeMap::new(),
            subscribing: None,
            names: Vec::new(),
            known: Vec::new(),
            specs: Vec::new(),
            grouped: Vec::new(),
            statuses: Vec::new(),
            subscribes: Vec::new(),
            sent: BTreeMap::new(),
            frameworks: BTreeMap::new(),
        };
        world.framework("F", true, true);
        world.framework("G", false, false);
        world
    }
}

/// `cpus:1;mem:32` as resources; `cpus(dev):1` is reserved, `cpus^:1` is lent, `cpus~:1` is revocable otherwise.
pub(crate) fn resources(text: &str) -> Vec<pb::Resource> {
    let scalar = |entry: &str| {
        let (name, value) = entry.split_once(':').expect("name:value");
        let role = name.split_once('(').map(|(_, role)| role.trim_end_matches(')'));
        pb::Resource {
            name: name.split(['(', '^', '~']).next().unwrap_or_default().into(),
            reservations: role.map(statically).into_iter().collect(),
            revocable: revocable(name).into(),
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
            if line == BEGINNING_ENDS {
                let commands = self.text.lines().filter(|line| line.starts_with("> "));
                self.text = commands.chain([BEGINNING_ENDS]).flat_map(|line| [line, "\n"]).collect();
                continue;
            }
            self.text.push_str(&format!("> {line}\n"));
            self.connects = 0;
            let words: Vec<&str> = line.split_whitespace().collect();
            self.command(&words);
        }
        self
    }

    pub(super) fn command(&mut self, words: &[&str]) {
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
            ["ping", "in", "order"] => self.event(event::Type::PING, |event| event.in_order = Some(true)),
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
            ["unregister"] => self.input(Input::Unregister),
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
            [_, ..] if self.more(words) => (),
            [executor, rest @ ..] => self.executor(executor, rest),
            [] => (),
        }
    }

    /// Rarer things: configuration, resources, draining, disks, calls about containers.
    fn more(&mut self, words: &[&str]) -> bool {
        match words {
            ["corrupt", key] => {
                self.store.insert((*key).into(), Vec::from([0xff, 0xff, 0xff]));
            }
            ["corrupt", key, "resources"] => {
                let stored = &self.store[*key];
                let mut executor: link::StoredExecutor = wire::decode_record(stored).expect("an executor");
                let info = executor.info.get_or_insert_default();
                info.resources.push(pb::Resource { name: "cpus".into(), ..Default::default() });
                self.store.insert((*key).into(), wire::encode(&executor));
            }
            ["save", start] => {
                let saved = self.store.iter().filter(|(key, _)| key.starts_with(start));
                self.saved = saved.map(|(key, value)| (key.clone(), value.clone())).collect();
            }
            // As if a crash had come before these were written.
            ["lose", start] => self.store.retain(|key, _| !key.starts_with(start)),
            ["put", "back"] => self.store.extend(core::mem::take(&mut self.saved)),
            ["lenient"] => self.config.strict = false,
            ["cleanup"] => self.config.recover = crate::Recover::Cleanup,
            ["boot", id] => self.config.boot_id = (*id).into(),
            ["additive"] => self.config.reconfiguration_additive = true,
            ["isolation", names @ ..] => {
                self.config.isolation = names.iter().map(|name| (*name).into()).collect()
            }
            ["group", "limits"] => self.config.task_group_limits = true,
            ["best", "effort"] => self.config.best_effort_tasks = true,
            ["has", given] => self.config.agent_info.resources = resources(given),
            ["estimator", kind, options @ ..] => self.config.estimator = estimator(kind, options),
            ["controller", kind, first, second] => {
                self.config.qos_controller = controller(kind, first.parse().ok(), second.parse().ok());
            }
            ["pause", time] => self.config.qos_correction_interval_min = duration(time),
            ["used", sample @ ..] => self.used(sample),
            ["eviction", "disk", available] => {
                self.config.eviction.disk_available_bytes =
                    available.parse::<u64>().ok().map(|left| left << 20);
            }
            ["eviction", available, pressure] => {
                let available_bytes = available.parse::<u64>().ok().map(|left| left << 20);
                self.config.eviction =
                    Eviction { available_bytes, pressure: pressure.parse().ok(), ..Default::default() };
            }
            ["sandboxes", available, samples @ ..] => self.sandboxes(available, samples),
            ["room", available] => self.input(Input::DiskRoom(DiskRoom {
                is_short: *available == "short",
                available_bytes: 3 << 20,
            })),
            ["memory", available, pressure, samples @ ..] => self.memory(available, pressure, samples),
            ["load", five, fifteen] => {
                let number = |text: &str| text.parse().expect("a number");
                let (five_minutes, fifteen_minutes) = (number(five), number(fifteen));
                self.input(Input::Load(Load { five_minutes, fifteen_minutes, ..Default::default() }));
            }
            ["pressure", cpu, memory] => {
                let (cpu_pressure, memory_pressure) = (cpu.parse().ok(), memory.parse().ok());
                self.input(Input::Load(Load { cpu_pressure, memory_pressure, ..Default::default() }));
            }
            ["disk", used] => self.input(Input::DiskUsage { used: used.parse().expect("a fraction") }),
            ["done", path, error @ ..] => {
                let error = (!error.is_empty()).then(|| error.join(" "));
                let path = self.real(path);
                self.input(Input::Container(ContainerEvent::PathDone { path, error }));
            }
            ["drain", options @ ..] => {
                let grace = option(options, "grace").map(|grace| duration_info(duration(grace)));
                let config = pb::DrainConfig {
                    max_grace_period: grace.into(),
                    mark_gone: options.contains(&"gone").then_some(true),
                    ..Default::default()
                };
                let call = event::Drain { config: config.into(), ..Default::default() };
                self.event(event::Type::DRAIN, |event| event.drain = call.into());
            }
            ["operation", name, kind, what] => self.operation(name, kind, what),
            ["operation", name, "ack"] => {
                let status_uuid = self.sent.get(*name).cloned().unwrap_or_default();
                let call = event::AcknowledgeOperation {
                    operation_uuid: pb::UUID { value: uuid(name), ..Default::default() }.into(),
                    status_uuid,
                    ..Default::default()
                };
                self.event(event::Type::ACKNOWLEDGE_OPERATION, |event| {
                    event.acknowledge_operation = call.into()
                });
            }
            ["container", id, rest @ ..] => self.container(id, rest),
            ["call", kind, id, options @ ..] => self.call(kind, id, options),
            ["hang", "up", conn] => {
                let conn = ConnId(conn.parse().expect("a connection"));
                self.input(Input::OperatorClosed { conn });
            }
            ["store"] => {
                let keys: Vec<String> = self.store.keys().map(|key| self.renamed(key.clone())).collect();
                keys.iter().for_each(|key| self.text.push_str(&format!("  {key}\n")));
            }
            _ => return false,
        }
        true
    }

    /// `RESERVE cpus:1`, `CREATE disk:64`, … for the role `dev`; volumes are called `v` and seen as `data`.
    fn operation(&mut self, name: &str, kind: &str, what: &str) {
        let resources = for_dev(resources(what));
        let volumes = || {
            let mut volumes = resources.clone();
            for volume in &mut volumes {
                volume.disk = volume_disk().into();
            }
            volumes
        };
        let mut operation = pb::offer::Operation {
            id: pb::OperationID { value: name.into(), ..Default::default() }.into(),
            ..Default::default()
        };
        use pb::offer::operation::{Create, Destroy, Reserve, Type, Unreserve};
        match kind {
            "RESERVE" => {
                operation.r#type = Some(Type::RESERVE);
                operation.reserve = Reserve { resources, ..Default::default() }.into();
            }
            "UNRESERVE" => {
                operation.r#type = Some(Type::UNRESERVE);
                operation.unreserve = Unreserve { resources, ..Default::default() }.into();
            }
            "CREATE" => {
                operation.r#type = Some(Type::CREATE);
                operation.create = Create { volumes: volumes(), ..Default::default() }.into();
            }
            _ => {
                operation.r#type = Some(Type::DESTROY);
                operation.destroy = Destroy { volumes: volumes(), ..Default::default() }.into();
            }
        }
        let call = event::ApplyOperation {
            framework_id: FrameworkId::new("F").to_proto().into(),
            operation_uuid: pb::UUID { value: uuid(name), ..Default::default() }.into(),
            operation: operation.into(),
            ..Default::default()
        };
        self.event(event::Type::APPLY_OPERATION, |event| event.apply_operation = call.into());
    }

    /// So many megabytes are left on the disk; `C1:100` holds 100 in its sandbox.
    fn sandboxes(&mut self, available: &str, samples: &[&str]) {
        let megabytes = |text: &str| text.parse::<u64>().expect("a number") << 20;
        let sample = |text: &&str| {
            let (id, used) = text.split_once(':').expect("id:used");
            SandboxUse { id: self.container_id(id), used_bytes: megabytes(used) }
        };
        let sandboxes = samples.iter().map(sample).collect();
        self.input(Input::Sandboxes { available_bytes: megabytes(available), sandboxes });
    }

    /// Available megabytes, stall time; `C1:100/64` uses 100 megabytes of a request of 64.
    fn memory(&mut self, available: &str, pressure: &str, samples: &[&str]) {
        let megabytes = |text: &str| text.parse::<u64>().ok().map(|amount| amount << 20);
        let sample = |text: &&str| {
            let (id, amounts) = text.split_once(':').expect("id:used/request");
            let (used, request) = amounts.split_once('/').expect("used/request");
            MemoryUse {
                id: self.container_id(id),
                used_bytes: megabytes(used).expect("a number"),
                request_bytes: megabytes(request).expect("a number"),
                limit_bytes: None,
            }
        };
        let containers = samples.iter().map(sample).collect();
        let machine =
            MachineMemory { available_bytes: megabytes(available), pressure: pressure.parse().ok() };
        self.input(Input::Memory { machine, containers });
    }

    /// `C1 30s 100`: so much cpu time and so many megabytes were used so far.
    fn used(&mut self, sample: &[&str]) {
        let used = |sample: &[&str]| Used {
            id: self.container_id(sample[0]),
            cpu_time: duration(sample[1]),
            mem_bytes: sample[2].parse::<u64>().expect("megabytes") << 20,
        };
        let samples = sample.chunks(3).map(used).collect();
        self.input(Input::Used { samples });
    }

    /// Something that happens to a container launched by a call.
    fn container(&mut self, id: &str, words: &[&str]) {
        let id = self.container_id(id);
        let event = match words {
            ["launched", pid] => ContainerEvent::Launched { id, pid: pid.parse().expect("a pid") },
            ["failed", message @ ..] => {
                ContainerEvent::LaunchFailed { id, stage: LaunchStage::Start, message: message.join(" ") }
            }
            ["examined"] => ContainerEvent::Examined { id, killed: None },
            ["examined", message @ ..] => {
                let killed = Termination {
                    state: Some(pb::TaskState::TASK_FAILED),
                    reason: Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY),
                    message: Some(message.join(" ")),
                    ..Default::default()
                };
                ContainerEvent::Examined { id, killed: Some(killed) }
            }
            ["exited", status] => {
                let termination = Termination { status: status.parse().ok(), ..Default::default() };
                ContainerEvent::Exited { id, termination }
            }
            other => std::panic!("what is {other:?}?"),
        };
        self.input(Input::Container(event));
    }

    fn call(&mut self, kind: &str, id: &str, options: &[&str]) {
        use tepui_proto::mesos::v1::agent::{Call, call};
        let container_id = self.container_id(id).to_proto();
        let mut call = Call::default();
        match kind {
            "launch" => {
                call.r#type = Some(call::Type::LAUNCH_CONTAINER);
                call.launch_container = call::LaunchContainer {
                    container_id: container_id.into(),
                    command: command_as("sleep 1", option(options, "user")).into(),
                    resources: resources(option(options, "needs").unwrap_or("")),
                    ..Default::default()
                }
                .into();
            }
            "launch-nested" => {
                call.r#type = Some(call::Type::LAUNCH_NESTED_CONTAINER);
                call.launch_nested_container =
                    call::LaunchNestedContainer { container_id: container_id.into(), ..Default::default() }
                        .into();
            }
            "session" => {
                call.r#type = Some(call::Type::LAUNCH_NESTED_CONTAINER_SESSION);
                call.launch_nested_container_session = call::LaunchNestedContainerSession {
                    container_id: container_id.into(),
                    ..Default::default()
                }
                .into();
            }
            "wait" => {
                call.r#type = Some(call::Type::WAIT_NESTED_CONTAINER);
                call.wait_nested_container =
                    call::WaitNestedContainer { container_id: container_id.into(), ..Default::default() }
                        .into();
            }
            "kill" => {
                call.r#type = Some(call::Type::KILL_CONTAINER);
                let signal = option(options, "signal").map(|signal| signal.parse().expect("a signal"));
                call.kill_container =
                    call::KillContainer { container_id: container_id.into(), signal, ..Default::default() }
                        .into();
            }
            "remove" => {
                call.r#type = Some(call::Type::REMOVE_CONTAINER);
                call.remove_container =
                    call::RemoveContainer { container_id: container_id.into(), ..Default::default() }.into();
            }
            _ => call.r#type = Some(call::Type::ATTACH_CONTAINER_OUTPUT),
        }
        self.conn += 1;
        let peer = options.contains(&"by=executor").then_some(Peer::Executor);
        let sender = Sender { peer, ..Sender::default() };
        self.input(Input::Operator { conn: ConnId(self.conn), sender, call: call.into() });
    }

    /// `C1.a.b`: what is called `b` in what is called `a` in the executor's container C1.
    fn container_id(&self, text: &str) -> ContainerId {
        let mut parts = text.split('.');
        let top = self.real(parts.next().unwrap_or_default());
        parts.fold(ContainerId::root(top), |outer, part| outer.child(part))
    }

    fn real(&self, text: &str) -> String {
        self.names.iter().fold(text.to_string(), |text, (id, name)| text.replace(name, id))
    }

    fn start(&mut self) {
        let stored = self.store.clone();
        match Agent::new(self.config.clone(), stored, self.now) {
            Ok(agent) => self.agent = Some(agent),
            Err(error) => {
                self.write(&format!("  refuses to start: {error}"));
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
            agent.settle(self.now, &mut unlimited, &mut out);
        }
        self.take(out);
    }

    pub(super) fn input(&mut self, input: Input) {
        std::assert!(!input.to_string().contains('\n'), "one line: {input}");
        let mut out = Outbox::new();
        let agent = self.agent.as_mut();
        if let Some(agent) = agent {
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
                Item::Effect(Effect::Publish { .. } | Effect::Transition(_)) => continue,
                Item::Effect(effect) => {
                    self.note(&effect);
                    if matches!(effect, Effect::Connect { .. }) {
                        self.connects += 1;
                        if self.connects > 1 {
                            continue;
                        }
                    }
                    effect.to_string()
                }
            };
            std::assert!(!line.contains('\n'), "one line: {line}");
            let line = self.renamed(line);
            self.write(&format!("  {line}"));
        }
    }

    /// Writes a line, over several if it is long.
    fn write(&mut self, line: &str) {
        let mut width = 0;
        for (i, word) in line.split(' ').enumerate() {
            if width > LINE_CHARS && i > 0 {
                self.text.push_str("\n     ");
                width = 0;
            }
            self.text.push_str(if i == 0 { "" } else { " " });
            self.text.push_str(word);
            width += word.len() + 1;
        }
        self.text.push('\n');
    }

    /// Remembers what later lines of a script refer to.
    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Connect { link } => self.link = link.0,
            Effect::Container(ContainerOp::Launch(spec)) => {
                self.specs.push((**spec).clone());
                if spec.id.parent().is_some() {
                    return;
                }
                self.names.push((spec.id.to_string(), format!("C{}", self.names.len() + 1)));
            }
            Effect::Container(ContainerOp::Recover { known }) => {
                self.known = known.iter().map(|known| known.id.clone()).collect();
            }
            Effect::Master { call, .. } => {
                self.subscribes.extend(call.subscribe.as_option().cloned());
                self.statuses.extend(call.update.as_option().map(|update| (*update.status).clone()));
                if let Some(update) = call.update.as_option() {
                    let uuid = update.status.uuid.clone().unwrap_or_default();
                    self.sent.insert(update.status.task_id.value.clone(), uuid);
                }
                if let Some(update) = call.update_operation.as_option() {
                    let name = String::from_utf8_lossy(&update.operation_uuid.value);
                    let name = name.trim_end_matches('\0').to_string();
                    self.sent.insert(name, update.status.uuid.value.clone());
                }
            }
            Effect::Executor { event, .. } | Effect::Kill { event, .. } => {
                self.grouped.extend(event.launch_group.task_group.tasks.iter().cloned());
            }
            Effect::OpenExecutor { conn } => {
                if let Some(id) = self.subscribing.clone() {
                    self.conns.insert(id, *conn);
                }
            }
            _ => (),
        }
    }

    pub(super) fn renamed(&self, line: String) -> String {
        self.names.iter().fold(line, |line, (id, name)| line.replace(id, name))
    }

    fn recovered(&mut self, ended: &[&str]) {
        let container = |id: &ContainerId| {
            let name = self.renamed(id.to_string());
            let termination = Termination { status: Some(9), ..Default::default() };
            RecoveredContainer {
                id: id.clone(),
                pid: None,
                ended: (ended == ["all"] || ended.contains(&name.as_str())).then_some(termination),
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
            acknowledged: options.contains(&"ended").then(|| self.sent[id].clone()),
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
            missing_operations: option(options, "operation")
                .map(|number| pb::UUID {
                    value: Vec::from([number.parse().expect("a byte"); 16]),
                    ..Default::default()
                })
                .into_iter()
                .collect(),
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
        if options.contains(&"reserved") || options.contains(&"volume") {
            info.resources = reserved(options.contains(&"volume"));
        }
        let executor = option(options, "executor");
        match executor {
            Some(executor) => info.executor = executor_info(executor, options).into(),
            None => {
                let user = option(options, "user");
                let command = command_as(option(options, "run").unwrap_or("sleep"), user);
                let environment = option(options, "set").map(variables);
                info.command = pb::CommandInfo { environment: environment.into(), ..command }.into();
            }
        }
        let launch = event::Launch {
            framework_info: self.frameworks[framework].clone().into(),
            task: info.into(),
            launch_executor: executor.map(|_| !options.contains(&"old")),
            no_root: options.contains(&"no-root").then_some(true),
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
            no_root: options.contains(&"no-root").then_some(true),
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
                let mut status = status(task, state, options);
                if let Some(container) = option(options, "in") {
                    let container_id = self.container_id(container).to_proto();
                    status.container_status =
                        pb::ContainerStatus { container_id: container_id.into(), ..Default::default() }
                            .into();
                }
                let update = executor_api::call::Update { status: status.into(), ..Default::default() };
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
                let conn = self.conns.remove(id).unwrap_or(ConnId(0));
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

    /// Its launch was reported before, unless it is `early`.
    fn executor_subscribe(&mut self, id: &str, options: &[&str]) {
        let container = self.container_of(id);
        let is_reported = |agent: &Agent| !agent.launching.contains_key(&container);
        if !options.contains(&"early") && !self.agent.as_ref().is_none_or(is_reported) {
            self.input(Input::Container(ContainerEvent::Launched { id: container, pid: 1 }));
        }
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
        self.subscribing = Some(id.into());
        self.request(call);
        self.subscribing = None;
        if options.contains(&"early") {
            self.conns.insert(id.into(), ConnId(self.conn));
        }
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
        let sender = Sender::default();
        self.input(Input::Executor { conn: ConnId(self.conn), sender, call: call.into() });
    }

    fn container_of(&self, executor: &str) -> ContainerId {
        let agent = self.agent.as_ref().expect("an agent");
        let mut all = agent.state().frameworks.values().flat_map(|framework| framework.executors.values());
        let known = all.find(|one| one.id.as_str() == executor).map(|one| one.container_id.clone());
        known.unwrap_or_else(|| ContainerId::root("nobody"))
    }
}
