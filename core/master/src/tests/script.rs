//! The player: one line in, what came of it out. The allocator's books are audited after every line.
//!
//! ```text
//! agent A cpus:4 mem:512 [host:h] [no-feedback]       a new agent connects
//! framework F role:web [multi] [pa] [refine] [checkpoint] [failover:60] [id:x] [principal:p] [user:u] [suppress:r] [new]
//! settle                                     the end of a turn
//! after 15s                                  time passes; everything due happens
//! skip 15s                                   the same, without heartbeats and pings
//! F accept #0 [#1] [refuse:0] : launch t1 cpus:1 ; launch t2 cpus:1 exec:e cpus:0.1 ; group g1 e cpus:1 ...
//! F decline #0 [refuse:60]    F kill t1   F ack t1   F reconcile [t1@A]   F teardown   F close   F revive   F suppress
//! A update t1 RUNNING [latest:FINISHED]      A exited e   A pong   A close   A back   A lost t1   A leave
//! operator subscribe | gone A | teardown F
//! master restarts
//! F shows                                    the last event F heard, as JSON
//! post [stream:F] [principal:p] {"type":"KILL",...}   a scheduler call as it came over the wire
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Fsm, Item, Mono, Now, Outbox, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_proto::mesos::v1::master;
use tepui_proto::mesos::v1::scheduler::{Call, call};
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::{Operation as Record, Registry};
use tepui_resources::{Format, parse};
use tepui_types::{ConnId, TaskStateExt};

use super::audit::audit;
use crate::{Config, Effect, Input, Master};

/// Where the wall clock stands when a script begins: 2001-09-09T01:46:40Z.
const START: Wall = Wall(1_000_000_000_000_000_000);

pub(super) struct Script {
    config: Config,
    master: Master,
    registry: Registry,
    now: Now,
    next_conn: u64,
    agents: BTreeMap<String, Agent>,
    frameworks: BTreeMap<String, Framework>,
    /// Names of what the master calls by ids or connections.
    names: BTreeMap<String, String>,
    conns: BTreeMap<u64, String>,
    uuids: u64,
    /// The last event each player heard, as JSON.
    last: BTreeMap<String, String>,
    said: String,
}

#[derive(Default)]
struct Agent {
    conn: u64,
    id: String,
    subscribe: link::call::Subscribe,
    tasks: BTreeMap<String, pb::Task>,
}

#[derive(Default)]
struct Framework {
    conn: u64,
    stream_id: String,
    info: pb::FrameworkInfo,
    suppressed: Vec<String>,
    /// The last update of each task that wants an acknowledgement: agent, uuid.
    updates: BTreeMap<String, (String, Vec<u8>)>,
    /// The last status of each operation that wants an acknowledgement.
    operations: BTreeMap<String, pb::OperationStatus>,
}

impl Script {
    pub(super) fn new(mut config: Config) -> Self {
        config.master_info.id = "m".into();
        let now = Now { mono: Mono(0), wall: START };
        Self {
            master: Master::new(config.clone(), Registry::default(), now),
            config,
            registry: Registry::default(),
            now,
            next_conn: 0,
            agents: BTreeMap::new(),
            frameworks: BTreeMap::new(),
            names: BTreeMap::new(),
            conns: BTreeMap::new(),
            uuids: 0,
            last: BTreeMap::new(),
            said: String::new(),
        }
    }

    pub(super) fn said(self) -> String {
        self.said
    }

    pub(super) fn play(&mut self, script: &str) {
        // A line that begins with `;` goes on with the one before.
        let script = script.lines().map(str::trim).collect::<Vec<_>>().join("\n").replace("\n;", " ;");
        for line in script.lines().filter(|line| !line.is_empty()) {
            if line == "--" {
                self.said.push_str("--\n");
                continue;
            }
            self.line(line);
            audit(&self.master).unwrap_or_else(|wrong| panic!("after '{line}': {wrong}\n{}", self.said));
        }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["settle"] => self.settle(),
            ["post", ..] => self.post(line),
            [name, "shows"] => {
                let json = self.last[*name].clone();
                self.say(&json);
            }
            ["after", time] => self.pass(time),
            ["skip", time] => self.skip(time),
            ["agent", name, rest @ ..] => self.agent(name, rest),
            ["framework", name, rest @ ..] => self.framework(name, rest),
            ["operator", rest @ ..] => self.operator(rest),
            ["master", "restarts"] => self.restart(),
            [name, verb, rest @ ..] if self.agents.contains_key(*name) => self.agent_does(name, verb, rest),
            [name, verb, rest @ ..] if self.frameworks.contains_key(*name) => {
                self.framework_does(name, verb, rest)
            }
            _ => panic!("what is '{line}'?"),
        }
    }

    fn settle(&mut self) {
        let mut out = Outbox::new();
        self.master.settle(self.now, &mut out);
        self.hear(out);
    }

    /// Runs every deadline on the way.
    fn pass(&mut self, time: &str) {
        let seconds: f64 = time.trim_end_matches('s').parse().expect("seconds");
        let end = self.now.mono + Duration::from_secs_f64(seconds);
        while let Some(due) = self.master.deadline().filter(|due| *due <= end) {
            self.set_time(due.max(self.now.mono));
            self.settle();
        }
        self.set_time(end);
        self.settle();
    }

    /// As `after`, but heartbeats and pings on the way are not worth telling.
    fn skip(&mut self, time: &str) {
        let before = self.said.len();
        self.pass(time);
        let told = self.said.split_off(before);
        let worth = told.lines().filter(|line| !line.ends_with("<- HEARTBEAT") && !line.ends_with("<- PING"));
        worth.for_each(|line| self.said += &format!("{line}\n"));
    }

    fn set_time(&mut self, mono: Mono) {
        self.now = Now { mono, wall: Wall(START.0 + mono.0) };
    }

    fn restart(&mut self) {
        self.config.master_info.id.push('1');
        self.master = Master::new(self.config.clone(), self.registry.clone(), self.now);
        self.conns.clear();
    }

    fn step(&mut self, input: Input) {
        let mut out = Outbox::new();
        self.master.step(self.now, input, &mut out);
        self.hear(out);
    }

    fn connect(&mut self, name: &str) -> u64 {
        self.next_conn += 1;
        self.conns.insert(self.next_conn, name.into());
        self.next_conn
    }
}

/// What is there, for those who write lines by chance.
impl Script {
    pub(super) fn agent_names(&self) -> Vec<&str> {
        self.agents.keys().map(String::as_str).collect()
    }

    pub(super) fn framework_names_or<'a>(&'a self, others: &[&'a str]) -> Vec<&'a str> {
        match self.frameworks.is_empty() {
            true => others.to_vec(),
            false => self.frameworks.keys().map(String::as_str).collect(),
        }
    }

    pub(super) fn has_framework(&self, name: &str) -> bool {
        self.frameworks.contains_key(name)
    }

    pub(super) fn tasks_of(&self, agent: &str) -> Vec<&str> {
        self.agents[agent].tasks.keys().map(String::as_str).collect()
    }

    pub(super) fn has_operation(&self, agent: &str) -> bool {
        let id = tepui_types::AgentId::new(self.agents[agent].id.as_str());
        self.master.agent(&id).is_some_and(|agent| agent.conn().is_some() && !agent.operations.is_empty())
    }

    /// As they are written in lines, and whose they are.
    pub(super) fn offers(&self) -> Vec<(String, &str)> {
        let owner = |id: &str| self.frameworks.iter().find(|(_, it)| it.info.id.value == id);
        let offers = self.master.state().offers.iter();
        offers
            .filter_map(|(id, offer)| {
                Some((format!("#{id}"), owner(offer.framework_id.as_str())?.0.as_str()))
            })
            .collect()
    }

    pub(super) fn unacknowledged(&self, framework: &str) -> Vec<&str> {
        self.frameworks[framework].updates.keys().map(String::as_str).collect()
    }
}

/// What the master decided, as lines and as what the players learn from it.
impl Script {
    fn hear(&mut self, mut out: Outbox<Master>) {
        for item in out.take() {
            match item {
                Item::Record(record) => {
                    self.registry.apply(&record);
                    self.learn_agent(&record);
                    self.say(&format!("record {record}"));
                }
                Item::Effect(effect) => self.see(effect),
            }
        }
    }

    fn see(&mut self, effect: Effect) {
        match &effect {
            Effect::OpenScheduler { conn, stream_id } => {
                let stream_id = stream_id.clone();
                self.framework_on(*conn).stream_id = stream_id;
                return;
            }
            Effect::Publish { .. } | Effect::OpenAgent { .. } => return,
            Effect::Scheduler { conn, event } => {
                self.last.insert(self.conns[&conn.0].clone(), json(&**event));
                if event.subscribed.is_set() {
                    let id = event.subscribed.framework_id.value.clone();
                    let name = self.conns[&conn.0].clone();
                    self.names.insert(id.clone(), name);
                    self.framework_on(*conn).info.id =
                        pb::FrameworkID { value: id, ..Default::default() }.into();
                }
                self.note_update(*conn, event);
            }
            Effect::Agent { conn, event } => {
                self.last.insert(self.conns[&conn.0].clone(), json(&**event));
                self.play_agent(*conn, event);
            }
            Effect::Operator { event } => {
                if let Some(added) = event.framework_added.as_option() {
                    let info = &added.framework.framework_info;
                    self.names.insert(info.id.value.clone(), info.name.clone());
                }
            }
            Effect::CloseAgent { .. }
            | Effect::CloseScheduler { .. }
            | Effect::Answer { .. }
            | Effect::OpenOperator { .. }
            | Effect::CloseOperator { .. } => (),
        }
        self.say(&effect.to_string());
    }

    fn learn_agent(&mut self, record: &Record) {
        if let Record::AdmitAgent(info) = record {
            self.names.insert(info.id.value.clone(), info.hostname.clone());
        }
    }

    fn note_update(&mut self, conn: ConnId, event: &tepui_proto::mesos::v1::scheduler::Event) {
        let framework = self.framework_on(conn);
        if let Some(status) = event.update.as_option().map(|update| &update.status)
            && let Some(uuid) = &status.uuid
        {
            let update = (status.agent_id.value.clone(), uuid.clone());
            framework.updates.insert(status.task_id.value.clone(), update);
        }
        if let Some(update) = event.update_operation_status.as_option() {
            let id = update.status.operation_id.value.clone();
            framework.operations.insert(id, (*update.status).clone());
        }
    }

    fn play_agent(&mut self, conn: ConnId, event: &link::Event) {
        let name = self.conns[&conn.0].clone();
        let agent = self.agents.get_mut(&name).expect("an agent");
        if event.subscribed.is_set() {
            agent.id = event.subscribed.agent_id.value.clone();
            agent.subscribe.agent_info.get_or_insert_default().id =
                (*event.subscribed.agent_id).clone().into();
            self.names.insert(agent.id.clone(), name);
            return;
        }
        let groups = event.launch_group.task_group.tasks.iter();
        for task in event.launch.as_option().map(|launch| &*launch.task).into_iter().chain(groups) {
            let framework =
                event.launch.framework_info.as_option().unwrap_or(&event.launch_group.framework_info);
            agent.take_task(task, framework);
        }
        if event.acknowledge.is_set() {
            let id = &event.acknowledge.task_id.value;
            let reported = agent.tasks.get(id).and_then(|task| task.status_update_state);
            if reported.is_some_and(|state| state.is_terminal()) {
                agent.tasks.remove(id);
            }
        }
    }

    fn framework_on(&mut self, conn: ConnId) -> &mut Framework {
        let name = &self.conns[&conn.0];
        self.frameworks.get_mut(name).expect("a framework")
    }

    /// Ids and connections become names, amounts lose what is the same everywhere.
    fn say(&mut self, line: &str) {
        let mut line = line.to_string();
        for (id, name) in self.names.iter().rev() {
            line = replace_word(&line, id, name);
        }
        for (conn, name) in self.conns.iter().rev() {
            for what in ["scheduler", "agent", "operator"] {
                if let Some(rest) = line.strip_prefix(&format!("{what} {conn} ")) {
                    line = format!("{name} {rest}");
                }
            }
            if let Some(rest) = line.strip_prefix(&format!("{conn} <- ")) {
                line = format!("{name} <- {rest}");
            }
        }
        line = line.replace("m-O", "#").replace("m1-O", "#1.");
        while let (Some(begin), Some(_)) = (line.find("(allocated: "), line.find(')')) {
            let end = begin + line[begin..].find(')').expect("it closes");
            line.replace_range(begin..=end, "");
        }
        while let Some(begin) = line.find("(reservations: [") {
            let end = begin + line[begin..].find("])").expect("it closes");
            let roles =
                line[begin..end].replace("(reservations: [", "").replace("(DYNAMIC,", "").replace(')', "");
            line.replace_range(begin..end + 2, &format!("({roles})"));
        }
        self.said.push_str(&line);
        self.said.push('\n');
    }
}

/// Replaces an id where it stands for itself, not as the beginning of another.
fn replace_word(line: &str, id: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(id) {
        let after = &rest[at + id.len()..];
        let whole = !after.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(&rest[..at]);
        out.push_str(if whole { name } else { id });
        rest = after;
    }
    out + rest
}

/// Agents.
impl Script {
    fn agent(&mut self, name: &str, words: &[&str]) {
        use pb::agent_info::capability::Type;
        let resources: Vec<&str> = words.iter().copied().filter(|word| is_resource(word)).collect();
        let mut capabilities = std::vec![
            Type::MULTI_ROLE,
            Type::HIERARCHICAL_ROLE,
            Type::RESERVATION_REFINEMENT,
            Type::RESIZE_VOLUME,
            Type::AGENT_OPERATION_FEEDBACK,
            Type::TASK_RESOURCE_LIMITS,
        ];
        if words.contains(&"no-feedback") {
            capabilities.retain(|it| *it != Type::AGENT_OPERATION_FEEDBACK);
        }
        let info = pb::AgentInfo {
            hostname: option(words, "host").unwrap_or(name).into(),
            resources: list(&resources),
            ..Default::default()
        };
        let capability = |r#type| pb::agent_info::Capability { r#type: Some(r#type), ..Default::default() };
        let subscribe = link::call::Subscribe {
            agent_info: info.into(),
            version: "1.12.0".into(),
            pid: format!("slave(1)@{}:5051", option(words, "ip").unwrap_or(name)),
            capabilities: capabilities.into_iter().map(capability).collect(),
            total_resources: list(&resources),
            ..Default::default()
        };
        self.agents.insert(name.into(), Agent { subscribe, ..Default::default() });
        self.subscribe_agent(name);
    }

    fn subscribe_agent(&mut self, name: &str) {
        let conn = self.connect(name);
        let frameworks: Vec<pb::FrameworkInfo> = self.frameworks.values().map(|it| it.info.clone()).collect();
        let agent = self.agents.get_mut(name).expect("an agent");
        agent.conn = conn;
        let tasks: Vec<pb::Task> = agent.tasks.values().cloned().collect();
        let frameworks =
            frameworks.into_iter().filter(|it| tasks.iter().any(|task| *task.framework_id == *it.id));
        let subscribe = link::call::Subscribe {
            frameworks: frameworks.collect(),
            tasks,
            executors: agent.executors(),
            ..agent.subscribe.clone()
        };
        self.agent_calls(
            name,
            link::Call {
                r#type: Some(link::call::Type::SUBSCRIBE),
                subscribe: subscribe.into(),
                ..Default::default()
            },
        );
    }

    fn agent_calls(&mut self, name: &str, call: link::Call) {
        let conn = ConnId(self.agents[name].conn);
        self.step(Input::Agent { conn, call: Box::new(call) });
    }

    fn agent_does(&mut self, name: &str, verb: &str, words: &[&str]) {
        use link::call::Type;
        let of = |r#type| link::Call { r#type: Some(r#type), ..Default::default() };
        match (verb, words) {
            ("close", []) => {
                let conn = ConnId(self.agents[name].conn);
                self.step(Input::AgentClosed { conn });
            }
            ("back", []) => self.subscribe_agent(name),
            ("moves", words) => {
                let agent = self.agents.get_mut(name).expect("an agent");
                agent.subscribe.agent_info.get_or_insert_default().hostname =
                    option(words, "host").expect("host").into();
            }
            ("pong", []) => self.agent_calls(name, of(Type::PONG)),
            ("leave", []) => self.agent_calls(name, of(Type::UNREGISTER)),
            // The agent never got it, or forgot it.
            // It remembers the operations that the master knows on it.
            ("keeps", []) => {
                let id = tepui_types::AgentId::new(self.agents[name].id.as_str());
                let operations = self.master.agent(&id).expect("it is registered").operations.clone();
                let operations = operations.values().map(|it| it.operation.clone()).collect();
                self.agents.get_mut(name).expect("an agent").subscribe.operations = operations;
            }
            ("lost", [task]) => drop(self.agents.get_mut(name).and_then(|agent| agent.tasks.remove(*task))),
            ("update", [task, state, rest @ ..]) => self.update(name, task, state, rest),
            ("exited", [framework, executor]) => {
                let exited = link::call::ExitedExecutor {
                    framework_id: (*self.frameworks[*framework].info.id).clone().into(),
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    status: 0,
                    ..Default::default()
                };
                self.agents.get_mut(name).expect("an agent").subscribe.executors.clear();
                self.agent_calls(
                    name,
                    link::Call { exited_executor: exited.into(), ..of(Type::EXITED_EXECUTOR) },
                );
            }
            ("resources", resources) => {
                let update =
                    link::call::UpdateResources { total_resources: list(resources), ..Default::default() };
                let agent = self.agents.get_mut(name).expect("an agent");
                agent.subscribe.total_resources = update.total_resources.clone();
                self.agent_calls(
                    name,
                    link::Call { update_resources: update.into(), ..of(Type::UPDATE_RESOURCES) },
                );
            }
            ("operation", [state]) => self.update_operation(name, state),
            ("says", [framework, executor]) => {
                let message = link::call::Message {
                    framework_id: (*self.frameworks[*framework].info.id).clone().into(),
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    ..Default::default()
                };
                self.agent_calls(name, link::Call { message: message.into(), ..of(Type::MESSAGE) });
            }
            _ => panic!("what does agent {name} do with '{verb}'?"),
        }
    }

    fn update(&mut self, name: &str, task: &str, state: &str, words: &[&str]) {
        let uuid = self.uuid();
        let agent = self.agents.get_mut(name).expect("an agent");
        let latest = task_state(option(words, "latest").unwrap_or(state));
        let known = agent.tasks.get_mut(task);
        let framework_id = match (&known, option(words, "of")) {
            (Some(known), _) => known.framework_id.value.clone(),
            (None, Some(framework)) => self.frameworks[framework].info.id.value.clone(),
            (None, None) => panic!("whose task is {task}?"),
        };
        if let Some(known) = known {
            known.state = latest;
            known.status_update_state = Some(task_state(state));
        }
        let status = pb::TaskStatus {
            task_id: pb::TaskID { value: task.into(), ..Default::default() }.into(),
            state: task_state(state),
            source: Some(pb::task_status::Source::SOURCE_EXECUTOR),
            uuid: Some(uuid),
            ..Default::default()
        };
        let update = link::call::Update {
            framework_id: pb::FrameworkID { value: framework_id, ..Default::default() }.into(),
            status: status.into(),
            latest_state: latest,
            ..Default::default()
        };
        let r#type = Some(link::call::Type::UPDATE);
        self.agent_calls(name, link::Call { r#type, update: update.into(), ..Default::default() });
    }

    /// The state of the oldest operation on an agent.
    fn update_operation(&mut self, name: &str, state: &str) {
        let id = tepui_types::AgentId::new(self.agents[name].id.as_str());
        let agent = self.master.agent(&id).expect("it is registered");
        let operation = agent.operations.values().next().expect("an operation").operation.clone();
        let uuid = pb::UUID { value: self.uuid(), ..Default::default() };
        let state = operation_state(state);
        let status = pb::OperationStatus {
            state,
            operation_id: operation.info.id.clone(),
            uuid: uuid.into(),
            ..Default::default()
        };
        let update = link::call::UpdateOperation {
            framework_id: operation.framework_id.clone(),
            operation_uuid: (*operation.uuid).clone().into(),
            status: status.into(),
            latest_state: state,
            ..Default::default()
        };
        let r#type = Some(link::call::Type::UPDATE_OPERATION);
        self.agent_calls(name, link::Call { r#type, update_operation: update.into(), ..Default::default() });
    }

    fn uuid(&mut self) -> Vec<u8> {
        self.uuids += 1;
        u128::from(self.uuids).to_be_bytes().to_vec()
    }
}

impl Agent {
    fn take_task(&mut self, info: &pb::TaskInfo, framework: &pb::FrameworkInfo) {
        let task = pb::Task {
            name: info.name.clone(),
            task_id: info.task_id.clone(),
            framework_id: (*framework.id).clone().into(),
            executor_id: info.executor.as_option().map(|it| (*it.executor_id).clone()).into(),
            agent_id: info.agent_id.clone(),
            state: pb::TaskState::TASK_STAGING,
            resources: info.resources.clone(),
            ..Default::default()
        };
        self.tasks.insert(info.task_id.value.clone(), task);
        if let Some(executor) = info.executor.as_option()
            && !self.subscribe.executors.iter().any(|known| known.executor_id == executor.executor_id)
        {
            self.subscribe.executors.push(executor.clone());
        }
    }

    fn executors(&self) -> Vec<pb::ExecutorInfo> {
        self.subscribe.executors.clone()
    }
}

/// Frameworks.
impl Script {
    fn framework(&mut self, name: &str, words: &[&str]) {
        let mut capabilities = Vec::new();
        for (word, capability) in [
            ("multi", Capability::MULTI_ROLE),
            ("pa", Capability::PARTITION_AWARE),
            ("refine", Capability::RESERVATION_REFINEMENT),
        ] {
            if words.contains(&word) {
                capabilities
                    .push(pb::framework_info::Capability { r#type: Some(capability), ..Default::default() });
            }
        }
        let roles: Vec<String> = options(words, "role").map(String::from).collect();
        let multi = words.contains(&"multi");
        let id = option(words, "id").map(|id| pb::FrameworkID { value: id.into(), ..Default::default() });
        let old = self.frameworks.get(name).filter(|_| !words.contains(&"new"));
        let known = old.and_then(|known| known.info.id.as_option().cloned());
        let info = pb::FrameworkInfo {
            user: option(words, "user").unwrap_or("me").into(),
            name: name.into(),
            id: id.or(known).into(),
            failover_timeout: option(words, "failover").map(|seconds| seconds.parse().expect("seconds")),
            checkpoint: words.contains(&"checkpoint").then_some(true),
            role: (!multi).then(|| roles.first().cloned()).flatten(),
            roles: if multi { roles } else { Vec::new() },
            principal: option(words, "principal").map(String::from),
            capabilities,
            ..Default::default()
        };
        let suppressed = options(words, "suppress").map(String::from).collect();
        self.frameworks.insert(name.into(), Framework { info, suppressed, ..Default::default() });
        self.subscribe_framework(name);
    }

    fn subscribe_framework(&mut self, name: &str) {
        let conn = self.connect(name);
        let framework = self.frameworks.get_mut(name).expect("a framework");
        framework.conn = conn;
        let subscribe = call::Subscribe {
            framework_info: framework.info.clone().into(),
            suppressed_roles: framework.suppressed.clone(),
            ..Default::default()
        };
        let call = Call {
            framework_id: framework.info.id.clone(),
            r#type: Some(call::Type::SUBSCRIBE),
            subscribe: subscribe.into(),
            ..Default::default()
        };
        self.step(Input::Scheduler {
            conn: ConnId(conn),
            stream_id: None,
            principal: None,
            call: Box::new(call),
        });
    }

    /// A call on the framework's newest stream; the answer is told only if it is not 202.
    pub(super) fn call(&mut self, name: &str, r#type: call::Type, change: impl FnOnce(&mut Call)) {
        let conn = self.connect(name);
        let framework = &self.frameworks[name];
        let stream_id = Some(framework.stream_id.clone());
        let mut call =
            Call { framework_id: framework.info.id.clone(), r#type: Some(r#type), ..Default::default() };
        change(&mut call);
        let before = self.said.len();
        self.step(Input::Scheduler { conn: ConnId(conn), stream_id, principal: None, call: Box::new(call) });
        let accepted = format!("{name} <- 202\n");
        if let Some(rest) = self.said[before..].strip_prefix(&accepted).map(String::from) {
            self.said.replace_range(before.., &rest);
        }
        self.conns.remove(&conn);
    }

    /// A call as it came over the wire: `post [stream:id] [principal:p] {json}`.
    fn post(&mut self, line: &str) {
        let (head, body) = line.split_at(line.find('{').expect("a JSON object"));
        let head: Vec<&str> = head.split_whitespace().collect();
        let call: Call = tepui_proto::json::from_slice(body.as_bytes()).expect("a call");
        let known = |name: &str| self.frameworks.get(name).map(|framework| framework.stream_id.clone());
        let stream_id = option(&head, "stream").map(|id| known(id).unwrap_or_else(|| id.into()));
        let principal = option(&head, "principal").map(String::from);
        let conn = ConnId(self.connect("caller"));
        self.frameworks.entry("caller".into()).or_default();
        self.step(Input::Scheduler { conn, stream_id, principal, call: Box::new(call) });
    }

    fn framework_does(&mut self, name: &str, verb: &str, words: &[&str]) {
        use call::Type;
        match (verb, words) {
            ("close", []) => {
                let conn = ConnId(self.frameworks[name].conn);
                self.step(Input::SchedulerClosed { conn });
            }
            ("back", []) => self.subscribe_framework(name),
            ("accept", words) => self.accept(name, words),
            ("decline", words) => {
                let decline = call::Decline {
                    offer_ids: offer_ids(words),
                    filters: filters(words).into(),
                    ..Default::default()
                };
                self.call(name, Type::DECLINE, |call| call.decline = decline.into());
            }
            ("ack", [task]) => self.ack(name, task),
            ("ack-operation", [id]) => self.ack_operation(name, id),
            ("kill", [task]) => {
                let (task_id, agent_id) = self.task_at(task);
                let kill =
                    call::Kill { task_id: task_id.into(), agent_id: agent_id.into(), ..Default::default() };
                self.call(name, Type::KILL, |call| call.kill = kill.into());
            }
            ("reconcile", tasks) => {
                let tasks = tasks.iter().map(|task| {
                    let (task_id, agent_id) = self.task_at(task);
                    call::reconcile::Task {
                        task_id: task_id.into(),
                        agent_id: agent_id.into(),
                        ..Default::default()
                    }
                });
                let reconcile = call::Reconcile { tasks: tasks.collect(), ..Default::default() };
                self.call(name, Type::RECONCILE, |call| call.reconcile = reconcile.into());
            }
            ("shutdown", [executor, agent]) => {
                let shutdown = call::Shutdown {
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    agent_id: self.agent_id(agent).into(),
                    ..Default::default()
                };
                self.call(name, Type::SHUTDOWN, |call| call.shutdown = shutdown.into());
            }
            ("says", [executor, agent]) => {
                let message = call::Message {
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    agent_id: self.agent_id(agent).into(),
                    ..Default::default()
                };
                self.call(name, Type::MESSAGE, |call| call.message = message.into());
            }
            ("suppress", roles) => {
                let roles = roles.iter().map(|role| String::from(*role)).collect();
                self.call(name, Type::SUPPRESS, |call| {
                    call.suppress = call::Suppress { roles, ..Default::default() }.into();
                });
            }
            ("revive", roles) => {
                let roles = roles.iter().map(|role| String::from(*role)).collect();
                self.call(name, Type::REVIVE, |call| {
                    call.revive = call::Revive { roles, ..Default::default() }.into();
                });
            }
            ("roles", roles) => self.update_framework(name, roles),
            ("lists", []) => self.list(name),
            ("reconcile-operations", operations) => self.reconcile_operations(name, operations),
            ("teardown", []) => self.call(name, Type::TEARDOWN, |_| ()),
            _ => panic!("what does framework {name} do with '{verb}'?"),
        }
    }

    /// What the master remembers of a framework's tasks.
    fn list(&mut self, name: &str) {
        let id = tepui_types::FrameworkId::new(self.frameworks[name].info.id.value.as_str());
        let framework = self.master.framework(&id).expect("it is registered").clone();
        let live = framework.tasks.values().map(|task| ("live", task));
        let unreachable = framework.unreachable_tasks.iter().map(|task| ("unreachable", task));
        let completed = framework.completed_tasks.iter().map(|task| ("completed", task));
        for (what, task) in live.chain(unreachable).chain(completed) {
            self.say(&format!("{what} {} {:?}", task.id, task.state()));
        }
    }

    fn reconcile_operations(&mut self, name: &str, operations: &[&str]) {
        let operations = operations.iter().map(|operation| {
            let (id, agent_id) = self.task_at(operation);
            let operation_id = pb::OperationID { value: id.value, ..Default::default() };
            call::reconcile_operations::Operation {
                operation_id: operation_id.into(),
                agent_id: agent_id.into(),
                ..Default::default()
            }
        });
        let reconcile = call::ReconcileOperations { operations: operations.collect(), ..Default::default() };
        self.call(name, call::Type::RECONCILE_OPERATIONS, |call| {
            call.reconcile_operations = reconcile.into()
        });
    }

    fn update_framework(&mut self, name: &str, roles: &[&str]) {
        let framework = self.frameworks.get_mut(name).expect("a framework");
        framework.info.roles = roles.iter().map(|role| String::from(*role)).collect();
        let update =
            call::UpdateFramework { framework_info: framework.info.clone().into(), ..Default::default() };
        self.call(name, call::Type::UPDATE_FRAMEWORK, |call| call.update_framework = update.into());
    }

    fn ack(&mut self, name: &str, task: &str) {
        let (agent_id, uuid) = self.frameworks[name].updates[task].clone();
        let acknowledge = call::Acknowledge {
            agent_id: pb::AgentID { value: agent_id, ..Default::default() }.into(),
            task_id: pb::TaskID { value: task.into(), ..Default::default() }.into(),
            uuid,
            ..Default::default()
        };
        self.call(name, call::Type::ACKNOWLEDGE, |call| call.acknowledge = acknowledge.into());
    }

    fn ack_operation(&mut self, name: &str, id: &str) {
        let status = self.frameworks[name].operations[id].clone();
        let acknowledge = call::AcknowledgeOperationStatus {
            agent_id: status.agent_id.clone(),
            operation_id: (*status.operation_id).clone().into(),
            uuid: status.uuid.value.clone(),
            ..Default::default()
        };
        self.call(name, call::Type::ACKNOWLEDGE_OPERATION_STATUS, |call| {
            call.acknowledge_operation_status = acknowledge.into();
        });
    }

    /// `t1` or `t1@A`.
    fn task_at(&self, text: &str) -> (pb::TaskID, Option<pb::AgentID>) {
        let (task, agent) = text.split_once('@').map_or((text, None), |(task, agent)| (task, Some(agent)));
        (pb::TaskID { value: task.into(), ..Default::default() }, agent.map(|agent| self.agent_id(agent)))
    }

    fn agent_id(&self, name: &str) -> pb::AgentID {
        let value = self.agents.get(name).map_or(name, |agent| &agent.id).into();
        pb::AgentID { value, ..Default::default() }
    }
}

/// ACCEPT.
impl Script {
    fn accept(&mut self, name: &str, words: &[&str]) {
        let mut parts = words.split(|word| *word == ":");
        let head = parts.next().expect("offers");
        let rest: Vec<&str> = parts.flatten().copied().collect();
        let agent = self.offered_agent(head);
        let operations = rest.split(|word| *word == ";").filter(|words| !words.is_empty());
        let accept = call::Accept {
            offer_ids: offer_ids(head),
            operations: operations.map(|words| operation(words, &agent)).collect(),
            filters: filters(head).into(),
            ..Default::default()
        };
        self.call(name, call::Type::ACCEPT, |call| call.accept = accept.into());
    }

    fn offered_agent(&self, head: &[&str]) -> pb::AgentID {
        let ids = offer_ids(head);
        let offer = ids.iter().find_map(|id| self.master.state().offers.get(&id.into()));
        offer.map_or_else(
            || pb::AgentID { value: "m-S0".into(), ..Default::default() },
            |it| it.agent_id.to_proto(),
        )
    }
}

fn operation(words: &[&str], agent: &pb::AgentID) -> pb::offer::Operation {
    use pb::offer::operation::{self, Type};
    let of = |r#type| pb::offer::Operation { r#type: Some(r#type), ..Default::default() };
    let id = option(words, "id").map(|id| pb::OperationID { value: id.into(), ..Default::default() });
    let made = match words {
        ["launch", task, rest @ ..] => {
            let launch = operation::Launch {
                task_infos: std::vec![task_info(task, rest, agent)],
                ..Default::default()
            };
            pb::offer::Operation { launch: launch.into(), ..of(Type::LAUNCH) }
        }
        ["group", executor, rest @ ..] => {
            let tasks =
                rest.iter().filter(|word| !word.contains(':')).map(|task| task_info(task, rest, agent));
            let tasks = tasks.map(|task| pb::TaskInfo { command: task.command, ..task }).collect();
            let group = operation::LaunchGroup {
                executor: default_executor(executor, option(rest, "fw")).into(),
                task_group: pb::TaskGroupInfo { tasks, ..Default::default() }.into(),
                ..Default::default()
            };
            pb::offer::Operation { launch_group: group.into(), ..of(Type::LAUNCH_GROUP) }
        }
        ["reserve", rest @ ..] => {
            let reserve = operation::Reserve { resources: list(rest), ..Default::default() };
            pb::offer::Operation { reserve: reserve.into(), ..of(Type::RESERVE) }
        }
        ["unreserve", rest @ ..] => {
            let unreserve = operation::Unreserve { resources: list(rest), ..Default::default() };
            pb::offer::Operation { unreserve: unreserve.into(), ..of(Type::UNRESERVE) }
        }
        ["create", rest @ ..] => {
            let create = operation::Create { volumes: list(rest), ..Default::default() };
            pb::offer::Operation { create: create.into(), ..of(Type::CREATE) }
        }
        ["destroy", rest @ ..] => {
            let destroy = operation::Destroy { volumes: list(rest), ..Default::default() };
            pb::offer::Operation { destroy: destroy.into(), ..of(Type::DESTROY) }
        }
        ["grow", volume, addition, ..] => {
            let (volume, addition) = (list(&[volume]).remove(0), list(&[addition]).remove(0));
            let grow = operation::GrowVolume {
                volume: volume.into(),
                addition: addition.into(),
                ..Default::default()
            };
            pb::offer::Operation { grow_volume: grow.into(), ..of(Type::GROW_VOLUME) }
        }
        ["shrink", volume, by, ..] => {
            let subtract = pb::value::Scalar { value: by.parse().expect("an amount"), ..Default::default() };
            let volume = list(&[volume]).remove(0);
            let shrink = operation::ShrinkVolume {
                volume: volume.into(),
                subtract: subtract.into(),
                ..Default::default()
            };
            pb::offer::Operation { shrink_volume: shrink.into(), ..of(Type::SHRINK_VOLUME) }
        }
        _ => panic!("what operation is {words:?}?"),
    };
    pb::offer::Operation { id: id.into(), ..made }
}

fn task_info(id: &str, words: &[&str], agent: &pb::AgentID) -> pb::TaskInfo {
    let resources: Vec<&str> = words.iter().copied().filter(|word| is_resource(word)).collect();
    let executor = option(words, "exec").map(custom_executor);
    let command = pb::CommandInfo { value: Some("true".into()), ..Default::default() };
    pb::TaskInfo {
        name: id.into(),
        task_id: pb::TaskID { value: id.into(), ..Default::default() }.into(),
        agent_id: agent.clone().into(),
        resources: list(&resources),
        command: executor.is_none().then_some(command).into(),
        executor: executor.into(),
        ..Default::default()
    }
}

/// `e` holds half a cpu.
fn custom_executor(id: &str) -> pb::ExecutorInfo {
    pb::ExecutorInfo {
        executor_id: pb::ExecutorID { value: id.into(), ..Default::default() }.into(),
        command: pb::CommandInfo { value: Some("executor".into()), ..Default::default() }.into(),
        resources: list(&["cpus:0.5"]),
        ..Default::default()
    }
}

fn default_executor(id: &str, framework_id: Option<&str>) -> pb::ExecutorInfo {
    let framework_id = framework_id.map(|id| pb::FrameworkID { value: id.into(), ..Default::default() });
    pb::ExecutorInfo {
        r#type: Some(pb::executor_info::Type::DEFAULT),
        executor_id: pb::ExecutorID { value: id.into(), ..Default::default() }.into(),
        framework_id: framework_id.into(),
        resources: list(&["cpus:0.1", "mem:32", "disk:32"]),
        ..Default::default()
    }
}

/// Operators.
impl Script {
    fn operator(&mut self, words: &[&str]) {
        use master::call::{self, Type};
        let of = |r#type| master::Call { r#type: Some(r#type), ..Default::default() };
        let call = match words {
            ["subscribe"] => of(Type::SUBSCRIBE),
            ["gone", agent] => {
                let gone =
                    call::MarkAgentGone { agent_id: self.agent_id(agent).into(), ..Default::default() };
                master::Call { mark_agent_gone: gone.into(), ..of(Type::MARK_AGENT_GONE) }
            }
            ["teardown", framework] => {
                let known = self.frameworks.get(*framework).map(|it| it.info.id.value.clone());
                let framework_id = pb::FrameworkID {
                    value: known.unwrap_or_else(|| String::from(*framework)),
                    ..Default::default()
                };
                let teardown = call::Teardown { framework_id: framework_id.into(), ..Default::default() };
                master::Call { teardown: teardown.into(), ..of(Type::TEARDOWN) }
            }
            ["weights"] => of(Type::UPDATE_WEIGHTS),
            _ => panic!("what does an operator do with {words:?}?"),
        };
        let conn = ConnId(self.connect("operator"));
        self.step(Input::Operator { conn, principal: None, call: Box::new(call) });
    }
}

fn json(event: &impl tepui_proto::json::ToJson) -> String {
    String::from_utf8(tepui_proto::json::to_vec(event)).expect("JSON is text")
}

/// `cpus:1`, `cpus(web):1`, `disk(web)@v1:10`: reservations in brackets, `@` a persistent volume.
fn list(words: &[&str]) -> Vec<pb::Resource> {
    let resources = words.iter().copied().filter(|word| is_resource(word));
    resources.map(resource).collect()
}

fn resource(word: &str) -> pb::Resource {
    let (what, value) = word.split_once(':').expect("name:value");
    let (what, volume) = what.split_once('@').map_or((what, None), |(what, volume)| (what, Some(volume)));
    let (name, roles) =
        what.split_once('(').map_or((what, ""), |(name, roles)| (name, roles.trim_end_matches(')')));
    let plain = parse::resources(&format!("{name}:{value}"), "*").expect("resources");
    let mut resource = plain[0].to_proto(Format::Post);
    for role in roles.split(',').filter(|role| !role.is_empty()) {
        resource.reservations.push(pb::resource::ReservationInfo {
            r#type: Some(pb::resource::reservation_info::Type::DYNAMIC),
            role: Some(role.into()),
            ..Default::default()
        });
    }
    if let Some(volume) = volume {
        let persistence = pb::resource::disk_info::Persistence { id: volume.into(), ..Default::default() };
        let volume =
            pb::Volume { container_path: "data".into(), mode: pb::volume::Mode::RW, ..Default::default() };
        resource.disk = pb::resource::DiskInfo {
            persistence: persistence.into(),
            volume: volume.into(),
            ..Default::default()
        }
        .into();
    }
    resource
}

fn is_resource(word: &str) -> bool {
    ["cpus", "mem", "disk", "ports", "gpus", "ephemeral_ports"]
        .iter()
        .any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '(', '@'])))
}

fn options<'a>(words: &'a [&'a str], key: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    words.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix(':'))
}

fn option<'a>(words: &'a [&'a str], key: &'a str) -> Option<&'a str> {
    options(words, key).next()
}

fn offer_ids(words: &[&str]) -> Vec<pb::OfferID> {
    let ids = words.iter().filter_map(|word| word.strip_prefix('#'));
    let whole = |id: &str| if id.contains('O') { id.into() } else { format!("m-O{id}") };
    ids.map(|id| pb::OfferID { value: whole(id), ..Default::default() }).collect()
}

fn filters(words: &[&str]) -> Option<pb::Filters> {
    let seconds = option(words, "refuse")?.parse().expect("seconds");
    Some(pb::Filters { refuse_seconds: Some(seconds), ..Default::default() })
}

fn task_state(text: &str) -> pb::TaskState {
    use pb::TaskState as S;
    match text {
        "STARTING" => S::TASK_STARTING,
        "RUNNING" => S::TASK_RUNNING,
        "KILLING" => S::TASK_KILLING,
        "FINISHED" => S::TASK_FINISHED,
        "FAILED" => S::TASK_FAILED,
        "KILLED" => S::TASK_KILLED,
        "DROPPED" => S::TASK_DROPPED,
        "LOST" => S::TASK_LOST,
        _ => panic!("what state is {text}?"),
    }
}

fn operation_state(text: &str) -> pb::OperationState {
    match text {
        "FINISHED" => pb::OperationState::OPERATION_FINISHED,
        "DROPPED" => pb::OperationState::OPERATION_DROPPED,
        _ => panic!("what state is {text}?"),
    }
}
