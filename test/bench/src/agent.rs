//! A simulated agent: what a real one would say to the master, without containers, files or sockets.
//!
//! It takes the events of its link and gives the calls to send. Every status goes through the real path: the oldest
//! unacknowledged one is sent, the next follows its acknowledgement, and all are sent again on a new link.
//!
//! Never here: I/O, clocks; ids are counted, not drawn.

use std::collections::BTreeMap;

use tepui_client::shorthand::scalar;
use tepui_proto::mesos::v1::agent_info::{Capability, capability};
use tepui_proto::mesos::v1::task_status::Source;
use tepui_proto::mesos::v1::value::{Range, Ranges, Text, Type as ValueType};
use tepui_proto::mesos::v1::{
    AgentID, AgentInfo, Attribute, ContainerID, ContainerStatus, FrameworkID, FrameworkInfo, NetworkInfo,
    Resource, Task, TaskInfo, TaskState, TaskStatus, network_info,
};
use tepui_proto::tepui::agent::v1::{Call, Event, call, event};

use crate::engine::Engine;

/// The name and the version an agent of this release has.
const VERSION: &str = "1.12.0";

/// What becomes of a launched task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs and finishes at once.
    Short,
    /// It runs until it is killed.
    Long,
    /// It holds a container that is not started.
    Held,
}

impl Life {
    /// The states that its executor reports, one after the other.
    fn states(self) -> &'static [TaskState] {
        match self {
            Life::Short => &[TaskState::TASK_STARTING, TaskState::TASK_RUNNING, TaskState::TASK_FINISHED],
            Life::Long => &[TaskState::TASK_STARTING, TaskState::TASK_RUNNING],
            Life::Held => &[TaskState::TASK_STARTING],
        }
    }
}

#[derive(Clone, Debug)]
pub struct Agent {
    number: usize,
    id: Option<AgentID>,
    life: Life,
    /// Makes the containers of its tasks.
    engine: Option<Engine>,
    resources: Vec<Resource>,
    frameworks: BTreeMap<String, FrameworkInfo>,
    /// By framework and task id.
    tasks: BTreeMap<(String, String), Running>,
    statuses_made: u64,
}

/// A task that is not both at its end and acknowledged.
#[derive(Clone, Debug)]
struct Running {
    task: Task,
    /// How many of its life's states were told.
    told: usize,
    waiting: Option<TaskStatus>,
    /// Of its statuses.
    data: Option<Vec<u8>>,
}

impl Agent {
    /// An agent with room for so many tasks of 0.1 cpus and 32 MB.
    pub fn new(number: usize, life: Life, slots: usize) -> Self {
        let resources = vec![
            scalar("cpus", TASK_CPUS * slots as f64),
            scalar("mem", TASK_MEM * slots as f64),
            scalar("disk", 10_240.0),
            ports(),
        ];
        Self {
            number,
            id: None,
            life,
            engine: None,
            resources,
            frameworks: BTreeMap::new(),
            tasks: BTreeMap::new(),
            statuses_made: 0,
        }
    }

    pub fn number(&self) -> usize {
        self.number
    }

    /// An agent beside an engine, with room for so many containers.
    pub fn with_engine(number: usize, engine: Engine, slots: usize) -> Self {
        Self { engine: Some(engine), ..Self::new(number, Life::Held, slots) }
    }

    /// The first call on a new link: everything the agent knows.
    pub fn subscribe(&self) -> Call {
        let subscribe = call::Subscribe {
            agent_info: self.info().into(),
            version: VERSION.to_owned(),
            pid: format!("slave(1)@{}:5051", self.ip()),
            capabilities: CAPABILITIES
                .iter()
                .map(|kind| Capability { r#type: Some(*kind), ..Default::default() })
                .collect(),
            total_resources: self.resources.clone(),
            tasks: self.tasks.values().map(|running| running.task.clone()).collect(),
            frameworks: self.frameworks.values().cloned().collect(),
            ..Default::default()
        };
        Call { r#type: Some(call::Type::SUBSCRIBE), subscribe: subscribe.into(), ..Default::default() }
    }

    /// Takes one event in; what there is to say goes to `out`.
    pub fn hear(&mut self, event: Event, out: &mut Vec<Call>) {
        use event::Type;
        match event.r#type {
            Some(Type::SUBSCRIBED) => {
                self.subscribed(event.subscribed.into_option().unwrap_or_default(), out)
            }
            Some(Type::PING) => out.push(Call { r#type: Some(call::Type::PONG), ..Default::default() }),
            Some(Type::LAUNCH) => self.launch(event.launch.into_option().unwrap_or_default(), out),
            Some(Type::ACKNOWLEDGE) => self.acknowledge(&event.acknowledge, out),
            Some(Type::SHUTDOWN_FRAMEWORK) => {
                let id = &event.shutdown_framework.framework_id.value;
                self.frameworks.remove(id);
                self.tasks.retain(|(framework, _), _| framework != id);
            }
            _ => (), // The benchmarks use nothing else.
        }
    }

    fn subscribed(&mut self, subscribed: event::Subscribed, out: &mut Vec<Call>) {
        self.id = subscribed.agent_id.into_option();
        for running in self.tasks.values() {
            out.extend(running.update());
        }
    }

    fn launch(&mut self, launch: event::Launch, out: &mut Vec<Call>) {
        let framework = launch.framework_info.into_option().unwrap_or_default();
        let task = launch.task.into_option().unwrap_or_default();
        let key = (framework.id.value.clone(), task.task_id.value.clone());
        let data = self.engine.as_ref().and_then(|engine| engine.create(task.data.as_deref()?).ok());
        let task = staged(&framework, task);
        self.frameworks.entry(key.0.clone()).or_insert(framework);
        self.tasks.insert(key.clone(), Running { task, told: 0, waiting: None, data });
        self.go_on(&key, out);
    }

    fn acknowledge(&mut self, acknowledge: &event::Acknowledge, out: &mut Vec<Call>) {
        let key = (acknowledge.framework_id.value.clone(), acknowledge.task_id.value.clone());
        let Some(running) = self.tasks.get_mut(&key) else { return };
        if running.waiting.as_ref().and_then(|status| status.uuid.as_ref()) != Some(&acknowledge.uuid) {
            return;
        }
        running.waiting = None;
        match running.task.state == TaskState::TASK_FINISHED {
            true => drop(self.tasks.remove(&key)),
            false => self.go_on(&key, out),
        }
    }

    /// The next state of a task whose last one is acknowledged, if there is one.
    fn go_on(&mut self, key: &(String, String), out: &mut Vec<Call>) {
        let ip = self.ip();
        let Some(running) = self.tasks.get_mut(key) else { return };
        let Some(state) = self.life.states().get(running.told) else { return };
        self.statuses_made += 1;
        let status = TaskStatus {
            task_id: running.task.task_id.clone(),
            state: *state,
            source: Some(Source::SOURCE_EXECUTOR),
            agent_id: AgentID::clone(&running.task.agent_id).into(),
            timestamp: Some(self.statuses_made as f64),
            uuid: Some(uuid(self.number, self.statuses_made)),
            data: running.data.clone(),
            container_status: container_status(&key.1, ip).into(),
            ..Default::default()
        };
        running.told += 1;
        running.task.state = *state;
        running.task.status_update_state = Some(*state);
        running.task.status_update_uuid = status.uuid.clone();
        // For another master; short tasks do not live to see one.
        if self.life == Life::Long {
            running.task.statuses.push(TaskStatus { uuid: None, ..status.clone() });
        }
        running.waiting = Some(status);
        out.extend(running.update());
    }

    fn info(&self) -> AgentInfo {
        // Engines are reached by their sockets on this machine only.
        let hostname = match &self.engine {
            Some(_) => "127.0.0.1".to_owned(),
            None => format!("agent-{}.bench", self.number),
        };
        let socket = self.engine.iter().map(|engine| engine.socket().display().to_string());
        AgentInfo {
            hostname,
            attributes: socket.map(|socket| text_attribute("docker_socket", socket)).collect(),
            port: Some(5051),
            resources: self.resources.clone(),
            id: self.id.clone().into(),
            ..Default::default()
        }
    }

    /// Every agent on a machine of its own.
    fn ip(&self) -> String {
        let [_, a, b, c] = (self.number as u32).to_be_bytes();
        format!("10.{a}.{b}.{c}")
    }
}

impl Running {
    fn update(&self) -> Option<Call> {
        let update = call::Update {
            framework_id: self.task.framework_id.clone(),
            status: self.waiting.clone()?.into(),
            latest_state: self.task.state,
            ..Default::default()
        };
        Some(Call { r#type: Some(call::Type::UPDATE), update: update.into(), ..Default::default() })
    }
}

/// What a task of the benchmarks holds.
pub const TASK_CPUS: f64 = 0.1;
pub const TASK_MEM: f64 = 32.0;

const CAPABILITIES: &[capability::Type] = &[
    capability::Type::MULTI_ROLE,
    capability::Type::HIERARCHICAL_ROLE,
    capability::Type::RESERVATION_REFINEMENT,
    capability::Type::RESIZE_VOLUME,
    capability::Type::AGENT_OPERATION_FEEDBACK,
];

fn staged(framework: &FrameworkInfo, info: TaskInfo) -> Task {
    Task {
        name: info.name,
        task_id: info.task_id,
        framework_id: FrameworkID::clone(&framework.id).into(),
        agent_id: info.agent_id,
        state: TaskState::TASK_STAGING,
        resources: info.resources,
        ..Default::default()
    }
}

/// What a real agent adds to every status.
fn container_status(task: &str, ip: String) -> ContainerStatus {
    let address = network_info::IPAddress { ip_address: Some(ip), ..Default::default() };
    ContainerStatus {
        container_id: ContainerID { value: format!("container-of-{task}"), ..Default::default() }.into(),
        network_infos: vec![NetworkInfo { ip_addresses: vec![address], ..Default::default() }],
        ..Default::default()
    }
}

fn ports() -> Resource {
    let range = Range { begin: 31_000, end: 32_000, ..Default::default() };
    Resource {
        name: "ports".to_owned(),
        r#type: ValueType::RANGES,
        ranges: Ranges { range: vec![range], ..Default::default() }.into(),
        ..Default::default()
    }
}

fn text_attribute(name: &str, value: String) -> Attribute {
    Attribute {
        name: name.to_owned(),
        r#type: ValueType::TEXT,
        text: Text { value, ..Default::default() }.into(),
        ..Default::default()
    }
}

fn uuid(agent: usize, count: u64) -> Vec<u8> {
    [(agent as u64).to_be_bytes(), count.to_be_bytes()].concat()
}
