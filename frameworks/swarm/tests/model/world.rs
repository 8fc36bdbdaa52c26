//! One seeded run: clients, faults, and the process of the manager with its store.
//!
//! Each turn is one input and a settle; what comes out is released item by item, and the process may be killed between any two.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::json;
use tepui_fsm::{Durable, Fsm, Item, Now, Outbox, Rng, Wall, unlimited};
use tepui_proto::mesos::v1::TaskState;
use tepui_resources::Resources;
use tepui_swarm::{
    Config, ContainerSpec, Created, Effect, EngineEvent, Input, Kind, Manager, Phase, Record, Rejection,
    RequestId, Scheduler,
};
use tepui_types::{AgentId, OfferId, TaskId, TaskStateExt};

use crate::check;
use crate::cluster::{CREATE_LABEL, Cluster, Container, Link};

const AGENTS: usize = 4;
const TURNS: usize = 1500;
const HEALING_ROUNDS: usize = 60;
/// Two creates often ask for the same name.
const NAMES: u64 = 12;
/// The first request of a rename.
const RENAMES: u64 = 1 << 32;
/// The first request of a hold.
const HOLDS: u64 = 2 << 32;

/// (constraint, kinds that it allows)
pub const CHOICES: [(&str, &[Kind]); 6] = [
    ("", &[Kind::Regular]),
    ("constraint:res-type==regular", &[Kind::Regular]),
    ("constraint:res-type==~regular", &Kind::ALL),
    ("constraint:res-type==revocable", &[Kind::Revocable]),
    ("constraint:res-type==~revocable", &Kind::ALL),
    ("constraint:res-type==*", &Kind::ALL),
];

pub struct World {
    pub rng: Rng,
    pub cluster: Cluster,
    pub manager: Manager,
    store: BTreeMap<String, Vec<u8>>,
    now: Now,
    /// Engines that the present manager is connected to.
    connected: BTreeSet<usize>,
    engine_events: Vec<VecDeque<EngineEvent>>,
    pub creates: BTreeMap<u64, Create>,
    /// Offers that the manager has and may use.
    pub held: BTreeMap<OfferId, (AgentId, Resources)>,
    pub used: BTreeSet<OfferId>,
    renames: Vec<(TaskId, String)>,
    holds: Vec<u64>,
    answered: BTreeSet<RequestId>,
    pub life: u32,
    faults: bool,
    pub trace: Vec<String>,
}

pub struct Create {
    pub name: Option<String>,
    pub choice: usize,
    pub cpus: i64,
    pub memory: i64,
    pub reschedule: bool,
    pub auto_remove: bool,
    pub life: u32,
    pub answer: Option<Result<String, Rejection>>,
    pub abandoned: bool,
    /// A client asked for its removal.
    pub removing: bool,
    /// And was told that it is done.
    pub removed: bool,
    pub starts: u32,
}

fn config() -> Config {
    Config {
        scheduler: Scheduler::default(),
        task_timeout: Duration::from_secs(5),
        offer_timeout: Duration::from_secs(30),
        refuse_timeout: Duration::from_secs(5),
        revocable: true,
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut cluster = Cluster::default();
        for agent in 0..AGENTS {
            let (regular, revocable) = [
                ("cpus:4;mem:4096", "cpus:4;mem:2048"),
                ("cpus:2;mem:1024", "cpus:3"),
                ("cpus:3;mem:512", ""),
            ][agent % 3];
            cluster.add_agent(regular, revocable);
        }
        let manager = Manager::recover(config(), [], rng.fork()).expect("no records");
        Self {
            rng,
            cluster,
            manager,
            store: BTreeMap::new(),
            now: Now::default(),
            connected: BTreeSet::new(),
            engine_events: (0..AGENTS).map(|_| VecDeque::new()).collect(),
            creates: BTreeMap::new(),
            held: BTreeMap::new(),
            used: BTreeSet::new(),
            renames: Vec::new(),
            holds: Vec::new(),
            answered: BTreeSet::new(),
            life: 0,
            faults: true,
            trace: Vec::new(),
        }
    }

    pub fn run(&mut self) {
        self.cluster.subscribe();
        for _ in 0..TURNS {
            self.act();
        }
        self.faults = false;
        self.heal();
        check::at_rest(self);
    }

    fn log(&mut self, line: String) {
        self.trace.push(line);
    }

    fn act(&mut self) {
        let agent = self.rng.below(AGENTS as u64) as usize;
        match self.rng.below(100) {
            0..20 => (0..3).for_each(|_| self.deliver_event()),
            20..38 => (0..3).for_each(|_| self.deliver_call()),
            38..50 => self.offer(agent),
            50..54 => self.create(),
            54..62 => self.progress(),
            62..70 => self.send_updates(),
            70..75 => self.list_engine(agent),
            75..82 => self.deliver_engine(agent),
            82..85 => self.start(),
            85..86 => self.hold(),
            86..88 => self.exit(agent),
            88..91 => self.remove(),
            91..92 => self.rename(),
            92..93 => self.abandon(),
            93..96 => self.wait(),
            _ => self.fault(agent),
        }
    }

    fn fault(&mut self, agent: usize) {
        match self.rng.below(16) {
            12..16 => self.restore(),
            0..2 => {
                let offers: Vec<OfferId> = self.cluster.offers.keys().cloned().collect();
                if let Some(offer) = self.pick(&offers) {
                    self.cluster.rescind(&offer);
                }
            }
            2 => self.preempt(),
            3 => {
                let tasks: Vec<TaskId> = self.cluster.tasks.keys().cloned().collect();
                if let Some(task) = self.pick(&tasks) {
                    self.cluster.kill_executor(&task);
                }
            }
            4 => self.kill_manager(),
            5 => {
                self.log("connection to the master breaks".into());
                self.cluster.disconnect();
                self.turn(Input::Disconnected);
            }
            6..8 => self.restore(),
            8 => {
                self.log(format!("agent {agent} unreachable"));
                self.cluster.lose_agent(agent, Link::Unreachable);
            }
            // At least one stays.
            9 if agent > 0 && self.rng.chance(0.2) => {
                self.log(format!("agent {agent} gone"));
                self.cluster.lose_agent(agent, Link::Gone);
                self.engine_down(agent);
            }
            10 => {
                self.log(format!("engine {agent} stops"));
                self.cluster.stop_engine(agent);
                self.engine_down(agent);
            }
            _ => self.engine_up(agent),
        }
    }

    fn restore(&mut self) {
        if !self.cluster.connected {
            self.log("connection to the master is back".into());
            self.cluster.subscribe();
        }
        for agent in 0..AGENTS {
            self.cluster.restore_agent(agent);
        }
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = self.rng.below(all.len() as u64) as usize;
        all.get(at).cloned()
    }

    fn deliver_event(&mut self) {
        let Some(event) = self.cluster.events.pop_front() else { return };
        match &event {
            Input::Subscribed { .. } => self.held.clear(),
            Input::Offers(offers) => {
                for offer in offers {
                    self.held.insert(offer.id.clone(), (offer.agent.clone(), offer.resources.clone()));
                }
            }
            Input::Rescinded(offer) => drop(self.held.remove(offer)),
            Input::AgentFailed(agent) => self.held.retain(|_, (of, _)| of != agent),
            _ => (),
        }
        self.turn(event);
    }

    fn deliver_call(&mut self) {
        if let Some(call) = self.cluster.calls.pop_front() {
            self.cluster.call(call);
        }
    }

    fn offer(&mut self, agent: usize) {
        match self.rng.below(3) {
            0 => self.cluster.offer(agent, |_| true),
            1 => self.cluster.offer(agent, |resource| Kind::of(resource) == Kind::Regular),
            _ => self.cluster.offer(agent, |resource| Kind::of(resource) == Kind::Revocable),
        }
    }

    fn create(&mut self) {
        let number = self.creates.len() as u64 + 1;
        let create = Create {
            name: self.rng.chance(0.7).then(|| format!("name{}", self.rng.below(NAMES))),
            choice: self.rng.below(CHOICES.len() as u64) as usize,
            cpus: self.rng.below(3) as i64 + 1,
            memory: self.rng.below(3) as i64 * 128,
            reschedule: self.rng.chance(0.3),
            auto_remove: self.rng.chance(0.2),
            life: self.life,
            answer: None,
            abandoned: false,
            removing: false,
            removed: false,
            starts: 0,
        };
        let mut env = vec!["A=1"];
        env.extend(Some(CHOICES[create.choice].0).filter(|text| !text.is_empty()));
        env.extend(create.reschedule.then_some("reschedule:on-node-failure"));
        let body = json!({
            "Image": "busybox",
            "Env": env,
            "Labels": {CREATE_LABEL: number.to_string(), "res-type": "gold"},
            "HostConfig": {
                "CpuShares": create.cpus,
                "Memory": create.memory << 20,
                "AutoRemove": create.auto_remove,
            },
        });
        let spec = ContainerSpec::parse(body.to_string().as_bytes(), true).expect("a body");
        let name = create.name.clone();
        self.creates.insert(number, create);
        self.turn(Input::Create { request: RequestId(number), name, spec: Box::new(spec) });
    }

    fn progress(&mut self) {
        let is_staging = |task: &TaskId| self.cluster.tasks[task].state == TaskState::TASK_STAGING;
        let staging: Vec<TaskId> =
            self.cluster.tasks.keys().filter(|task| is_staging(task)).cloned().collect();
        for task in staging {
            match self.rng.below(20) {
                0 => self.cluster.end(&task, TaskState::TASK_FAILED, None, true),
                1..10 => self.cluster.create_container(&task),
                _ => (),
            }
        }
    }

    fn send_updates(&mut self) {
        let tasks: Vec<TaskId> = self.cluster.tasks.keys().cloned().collect();
        for task in tasks {
            if self.rng.chance(0.5) {
                self.cluster.send_update(&task);
            }
        }
    }

    /// The shell lists an engine; the answer arrives later. It does not list one again before the manager has its loss.
    fn list_engine(&mut self, agent: usize) {
        let is_lost = self.engine_events[agent].iter().any(|it| matches!(it, EngineEvent::Down(_)));
        if self.connected.contains(&agent) && self.cluster.agents[agent].engine_up && !is_lost {
            let engine = self.cluster.snapshot(agent);
            self.engine_events[agent].push_back(EngineEvent::Up(engine));
        }
    }

    fn engine_down(&mut self, agent: usize) {
        if self.connected.contains(&agent) {
            self.engine_events[agent].push_back(EngineEvent::Down("connection refused".into()));
        }
    }

    fn engine_up(&mut self, agent: usize) {
        if self.cluster.agents[agent].link != Link::Gone {
            self.cluster.agents[agent].engine_up = true;
            self.list_engine(agent);
        }
    }

    fn deliver_engine(&mut self, agent: usize) {
        let Some(event) = self.engine_events[agent].pop_front() else { return };
        let id = self.cluster.agents[agent].id.clone();
        self.turn(Input::Engine { agent: id, event });
    }

    /// A client starts the container that it created, once.
    fn start(&mut self) {
        let created =
            self.creates.iter().filter(|(_, it)| it.starts == 0 && matches!(it.answer, Some(Ok(_))));
        let created: Vec<u64> = created.map(|(number, _)| *number).collect();
        let Some(number) = self.pick(&created) else { return };
        let agents = self.cluster.agents.iter().enumerate().filter(|(_, agent)| agent.engine_up);
        let containers = agents.flat_map(|(at, agent)| agent.containers.iter().map(move |it| (at, it)));
        // A create whose agent was lost meanwhile may have left another container there; the client has the id of its own.
        let view = self.manager.view();
        let is_own = |id: &str, it: &Container| {
            it.create() == number && !it.running && view.find(id).is_some_and(|found| found.occupant.id == id)
        };
        let own = containers.filter(|(_, (id, it))| is_own(id, it));
        let own = own.filter(|(_, (_, it))| !self.cluster.tasks[&it.task].state.is_terminal());
        let own: Vec<(usize, String)> = own.map(|(agent, (id, _))| (agent, id.clone())).collect();
        for (agent, id) in own {
            self.cluster.start(agent, &id);
            self.creates.entry(number).and_modify(|it| it.starts += 1);
        }
    }

    /// A client starts a container that has ended, once a task holds its resources again.
    fn hold(&mut self) {
        let view = self.manager.view();
        let ended = view.containers.values().filter(|it| matches!(it.phase, Phase::Ended { .. }));
        let ended: Vec<_> = ended.cloned().collect();
        let Some(container) = self.pick(&ended) else { return };
        let number: u64 = container.occupant.labels[CREATE_LABEL].parse().expect("a number");
        self.holds.push(number);
        let request = RequestId(HOLDS + self.holds.len() as u64 - 1);
        self.turn(Input::Hold { request, task: TaskId::new(&*container.task) });
    }

    /// The engine starts a container that a task holds.
    fn start_held(&mut self, number: u64, created: &Created) {
        let task = self.cluster.tasks.get(&created.task).filter(|it| !it.state.is_terminal());
        let Some(agent) = task.map(|it| it.agent) else { return };
        let is_startable = |it: &Container| !it.running && it.task == created.task;
        if self.cluster.agents[agent].containers.get(&created.id).is_some_and(is_startable) {
            self.cluster.start(agent, &created.id);
            self.creates.entry(number).and_modify(|it| it.starts += 1);
        }
    }

    fn exit(&mut self, agent: usize) {
        let ids: Vec<String> = self.cluster.agents[agent].containers.keys().cloned().collect();
        if let Some(id) = self.pick(&ids) {
            self.cluster.exit(agent, &id);
        }
    }

    fn preempt(&mut self) {
        let tasks: Vec<TaskId> = self.cluster.tasks.keys().cloned().collect();
        let Some(task) = self.pick(&tasks) else { return };
        let is_left_running = self.rng.chance(0.5);
        self.cluster.preempt(&task, is_left_running);
    }

    /// A client removes a container: the front end does it on the engine, then tells the manager.
    fn remove(&mut self) {
        let view = self.manager.view();
        let all: Vec<_> = view.containers.values().filter(|it| !it.occupant.id.is_empty()).cloned().collect();
        let Some(container) = self.pick(&all) else { return };
        let agent = self.agent(&AgentId::new(&*container.agent));
        let is_gone = self.cluster.agents[agent].link == Link::Gone;
        if !self.cluster.agents[agent].engine_up && !is_gone {
            return;
        }
        let number: u64 = container.occupant.labels[CREATE_LABEL].parse().expect("a number");
        self.log(format!("client removes create {number}"));
        self.cluster.remove_container(agent, &container.occupant.id);
        self.creates.entry(number).and_modify(|it| it.removing = true);
        if self.faults && self.rng.chance(0.1) {
            return self.kill_manager();
        }
        let life = self.life;
        self.turn(Input::Removed(TaskId::new(&*container.task)));
        let is_answered = self.life == life;
        self.creates.entry(number).and_modify(|it| it.removed = is_answered);
    }

    fn rename(&mut self) {
        let view = self.manager.view();
        let all: Vec<_> = view.containers.values().filter(|it| !it.occupant.id.is_empty()).cloned().collect();
        let Some(container) = self.pick(&all) else { return };
        let name = format!("name{}", self.rng.below(NAMES));
        let task = TaskId::new(&*container.task);
        self.renames.push((task.clone(), name.clone()));
        let request = RequestId(RENAMES + self.renames.len() as u64 - 1);
        self.turn(Input::Rename { request, task, name });
    }

    /// The front end renames on the engine what the manager allowed.
    fn rename_on_engine(&mut self, task: TaskId, name: String) {
        let Some(container) = self.manager.view().containers.get(&task).cloned() else { return };
        let agent = self.agent(&AgentId::new(&*container.agent));
        let it = &mut self.cluster.agents[agent];
        let is_taken = it.containers.values().any(|it| it.name == name);
        let found = it.containers.get_mut(&container.occupant.id).filter(|_| it.engine_up && !is_taken);
        match found {
            Some(found) => {
                found.name = name.clone();
                found.renamed = true;
                self.turn(Input::Renamed { task, name });
            }
            None => self.turn(Input::RenameFailed { name }),
        }
    }

    fn abandon(&mut self) {
        let life = self.life;
        let open =
            self.creates.iter().filter(|(_, it)| it.answer.is_none() && it.life == life && !it.abandoned);
        let open: Vec<u64> = open.map(|(number, _)| *number).collect();
        let Some(number) = self.pick(&open) else { return };
        self.creates.entry(number).and_modify(|it| it.abandoned = true);
        self.turn(Input::Abandoned(RequestId(number)));
    }

    fn wait(&mut self) {
        let millis = self.rng.below(1000);
        self.now.mono = self.now.mono + Duration::from_millis(millis);
        self.now.wall = Wall(self.now.mono.0);
        self.log(format!("wait {millis}ms"));
        self.settle(Outbox::new());
    }

    fn agent(&self, id: &AgentId) -> usize {
        self.cluster.agents.iter().position(|agent| agent.id == *id).expect("an agent of ours")
    }

    fn turn(&mut self, input: Input) {
        self.log(format!("> {}", short(&input)));
        if matches!(input, Input::Disconnected) {
            self.held.clear();
        }
        let mut out = Outbox::new();
        self.manager.step(self.now, input, &mut out);
        if self.faults && self.rng.chance(0.002) {
            return self.kill_manager();
        }
        self.settle(out);
    }

    fn settle(&mut self, mut out: Outbox<Manager>) {
        self.manager.settle(self.now, &mut unlimited, &mut out);
        let (mut renames, mut held) = (Vec::new(), Vec::new());
        for item in out.take() {
            if self.faults && self.rng.chance(0.001) {
                return self.kill_manager();
            }
            if let Item::Effect(Effect::Reply { request, answer }) = &item
                && request.0 >= RENAMES
            {
                let at = (request.0 % RENAMES) as usize;
                assert!(self.answered.insert(*request), "{request:?} is answered twice");
                match (request.0 >= HOLDS, answer) {
                    (true, Ok(created)) => held.push((self.holds[at], created.clone())),
                    (false, Ok(_)) => renames.push(self.renames[at].clone()),
                    (_, Err(_)) => (),
                }
                continue;
            }
            self.release(item);
        }
        check::after_turn(self);
        for (task, name) in renames {
            self.rename_on_engine(task, name);
        }
        for (number, created) in held {
            self.start_held(number, &created);
        }
    }

    fn release(&mut self, item: Item<Record, Effect>) {
        let effect = match item {
            Item::Record(record) => {
                self.log(format!("  {record}"));
                return self.write(&record);
            }
            Item::Effect(Effect::Publish(_)) => return,
            Item::Effect(effect) => effect,
        };
        self.log(format!("  {effect}"));
        check::effect(self, &effect);
        match effect {
            Effect::Connect { agent, .. } => {
                let agent = self.agent(&agent);
                self.connected.insert(agent);
                match self.cluster.agents[agent].engine_up {
                    true => self.list_engine(agent),
                    false => self.engine_down(agent),
                }
            }
            Effect::Disconnect(agent) => {
                let agent = self.agent(&agent);
                self.connected.remove(&agent);
                self.engine_events[agent].clear();
            }
            Effect::Engine { agent, operation } => {
                let agent = self.agent(&agent);
                self.cluster.operate(agent, &operation);
            }
            Effect::Reply { .. } | Effect::Publish(_) => (),
            call if self.cluster.connected => self.cluster.calls.push_back(call),
            _ => (),
        }
    }

    fn write(&mut self, record: &Record) {
        let mut writes = Vec::new();
        record.writes(&mut writes);
        for write in writes {
            match write.value {
                Some(value) => self.store.insert(write.key, value),
                None => self.store.remove(&write.key),
            };
        }
    }

    /// Killed with nothing but its records left; clients that wait lose their connection.
    fn kill_manager(&mut self) {
        self.log("manager is killed".into());
        self.life += 1;
        self.held.clear();
        self.connected.clear();
        self.engine_events.iter_mut().for_each(VecDeque::clear);
        self.cluster.disconnect();
        let records: Vec<_> = self.store.clone().into_iter().collect();
        self.manager = Manager::recover(config(), records, self.rng.fork()).expect("its own records");
        self.cluster.subscribe();
        self.settle(Outbox::new());
    }

    /// No more faults: everything comes back that can, and everything on its way arrives.
    fn heal(&mut self) {
        self.restore();
        for round in 0..HEALING_ROUNDS {
            for agent in 0..AGENTS {
                self.engine_up(agent);
                if round % 6 == 0 {
                    self.cluster.offer(agent, |_| true);
                }
            }
            let tasks: Vec<TaskId> = self.cluster.tasks.keys().cloned().collect();
            for task in tasks {
                self.cluster.create_container(&task);
                self.cluster.send_update(&task);
            }
            while !self.cluster.events.is_empty() || !self.cluster.calls.is_empty() {
                self.deliver_call();
                self.deliver_event();
            }
            for agent in 0..AGENTS {
                while !self.engine_events[agent].is_empty() {
                    self.deliver_engine(agent);
                }
            }
            self.now.mono = self.now.mono + Duration::from_secs(1);
            self.settle(Outbox::new());
        }
    }
}

fn short(input: &Input) -> String {
    match input {
        Input::Offers(offers) => {
            let offers = offers.iter().map(|it| format!("{} {} {}", it.id, it.agent, it.resources));
            format!("offer {}", offers.collect::<Vec<_>>().join(", "))
        }
        Input::Engine { agent, event: EngineEvent::Up(engine) } => {
            let names: Vec<&str> = engine.occupants.iter().map(|it| &*it.name).collect();
            format!("engine {agent} up {names:?}")
        }
        Input::Create { request, name, .. } => format!("create {} {name:?}", request.0),
        Input::Update(update) => {
            let id = update.container.as_ref().map(|(id, _)| id.trim_start_matches('0'));
            format!("update {} {:?} {:?} {id:?}", update.task, update.state, update.reason)
        }
        other => format!("{other:?}"),
    }
}
