//! Launches tasks on a master without a network or a disk, for a profiler: what the checks of a launch cost.
//!
//! `valgrind --tool=callgrind target/sim/examples/launches 2000`, then `callgrind_annotate --inclusive=yes`. Authorization
//! has rules, as on a cluster that uses it.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use tepui_authz::{Acls, Action, Authorizer, Entity, Rule};
use tepui_client::shorthand::{scalar, shell};
use tepui_core_master::{Config, Effect, Input, Master};
use tepui_fsm::{Fsm, Item, Mono, Now, Outbox, Wall, unlimited};
use tepui_proto::mesos::v1::offer::operation::{Launch, Type as OperationType};
use tepui_proto::mesos::v1::scheduler::call::{Accept, Acknowledge, Subscribe, Type as CallType};
use tepui_proto::mesos::v1::{self as pb, offer, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::Registry;
use tepui_types::ConnId;

/// Tasks of one ACCEPT.
const TASKS_OF_ACCEPT: usize = 20;
/// Between turns, in nanoseconds: short enough that no ping becomes overdue.
const TURN: u64 = 10_000_000;
const FRAMEWORK: ConnId = ConnId(1);
const AGENT: ConnId = ConnId(2);

fn main() {
    let wanted = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    let mut driver = Driver::new();
    driver.subscribe();
    while driver.launched < wanted {
        driver.round();
    }
    println!("{} tasks launched", driver.launched);
}

struct Driver {
    master: Master,
    now: u64,
    next_conn: u64,
    launched: usize,
    framework_id: pb::FrameworkID,
    stream_id: Option<String>,
    offers: Vec<pb::Offer>,
}

/// The second of two rules allows the user, by name.
fn authorizer() -> Authorizer {
    let some = |name: &str| Entity::Some(BTreeSet::from([name.to_owned()]));
    let rules = vec![
        Rule { principals: some("somebody"), objects: Entity::Any },
        Rule { principals: some("bench"), objects: some("nobody") },
        Rule { principals: Entity::Any, objects: Entity::None },
    ];
    let acls = Acls::new(true, BTreeMap::from([(Action::RunTask, rules)])).expect("rules about users");
    Authorizer::new(Some(acls))
}

impl Driver {
    fn new() -> Self {
        let config = Config { authorizer: authorizer(), ..Config::default() };
        let now = Now { mono: Mono(0), wall: Wall(TURN) };
        Driver {
            master: Master::new(config, Registry::default(), now),
            now: 0,
            next_conn: 10,
            launched: 0,
            framework_id: Default::default(),
            stream_id: None,
            offers: Vec::new(),
        }
    }

    fn turn(&mut self, inputs: Vec<Input>) {
        self.now += TURN;
        let now = Now { mono: Mono(self.now), wall: Wall(TURN + self.now) };
        let mut out = Outbox::new();
        for input in inputs {
            self.master.step(now, input, &mut out);
        }
        self.master.settle(now, &mut unlimited, &mut out);
        for item in out.take() {
            match item {
                Item::Effect(Effect::OpenScheduler { stream_id, .. }) => self.stream_id = Some(stream_id),
                Item::Effect(Effect::Scheduler { event, .. }) => self.receive(&event),
                Item::Effect(_) | Item::Record(_) => (),
            }
        }
    }

    fn receive(&mut self, event: &scheduler::Event) {
        if event.subscribed.is_set() {
            self.framework_id = (*event.subscribed.framework_id).clone();
        }
        self.offers.extend(event.offers.offers.iter().cloned());
    }

    fn call(&mut self, mut call: scheduler::Call) -> Input {
        self.next_conn += 1;
        call.framework_id = self.framework_id.clone().into();
        let (conn, stream_id) = (ConnId(self.next_conn), self.stream_id.clone());
        Input::Scheduler { conn, stream_id, principal: None, call: Box::new(call) }
    }

    fn subscribe(&mut self) {
        let framework_info = pb::FrameworkInfo {
            user: "nobody".into(),
            name: "bench".into(),
            principal: Some("bench".into()),
            checkpoint: Some(true),
            ..Default::default()
        };
        let subscribe = Subscribe { framework_info: framework_info.into(), ..Default::default() };
        let call = scheduler::Call {
            r#type: Some(CallType::SUBSCRIBE),
            subscribe: subscribe.into(),
            ..Default::default()
        };
        let resources = vec![scalar("cpus", 64.0), scalar("mem", 65536.0), scalar("disk", 65536.0)];
        let info =
            pb::AgentInfo { hostname: "host".into(), resources: resources.clone(), ..Default::default() };
        let subscribe = link::call::Subscribe {
            agent_info: info.into(),
            version: "1.12.0".into(),
            pid: "slave(1)@10.0.0.1:5051".into(),
            total_resources: resources,
            ..Default::default()
        };
        let agent = link::Call {
            r#type: Some(link::call::Type::SUBSCRIBE),
            subscribe: subscribe.into(),
            ..Default::default()
        };
        let framework =
            Input::Scheduler { conn: FRAMEWORK, stream_id: None, principal: None, call: Box::new(call) };
        self.turn(vec![framework, Input::Agent { conn: AGENT, principal: None, call: Box::new(agent) }]);
    }

    /// Accepts an offer, and terminates its tasks.
    fn round(&mut self) {
        let offer = self.offers.pop().expect("resources are released in every round");
        let tasks: Vec<pb::TaskInfo> = (0..TASKS_OF_ACCEPT).map(|at| self.task(&offer, at)).collect();
        self.launched += tasks.len();
        let accept = self.accept(&offer, tasks.clone());
        self.turn(vec![accept]);
        let updates = tasks.iter().map(|task| update(&self.framework_id, &offer, task)).collect();
        self.turn(updates);
        let acknowledged: Vec<Input> = tasks.iter().map(|task| self.acknowledge(&offer, task)).collect();
        self.turn(acknowledged);
        while self.offers.is_empty() {
            self.turn(Vec::new());
        }
    }

    fn task(&self, offer: &pb::Offer, at: usize) -> pb::TaskInfo {
        let id = format!("task-{}", self.launched + at);
        pb::TaskInfo {
            name: id.clone(),
            task_id: pb::TaskID { value: id, ..Default::default() }.into(),
            agent_id: offer.agent_id.clone(),
            resources: vec![scalar("cpus", 0.1), scalar("mem", 32.0)],
            command: shell("sleep 1000").into(),
            ..Default::default()
        }
    }

    fn accept(&mut self, offer: &pb::Offer, task_infos: Vec<pb::TaskInfo>) -> Input {
        let operation = offer::Operation {
            r#type: Some(OperationType::LAUNCH),
            launch: Launch { task_infos, ..Default::default() }.into(),
            ..Default::default()
        };
        let accept = Accept {
            offer_ids: vec![(*offer.id).clone()],
            operations: vec![operation],
            filters: pb::Filters { refuse_seconds: Some(0.0), ..Default::default() }.into(),
            ..Default::default()
        };
        let call =
            scheduler::Call { r#type: Some(CallType::ACCEPT), accept: accept.into(), ..Default::default() };
        self.call(call)
    }

    fn acknowledge(&mut self, offer: &pb::Offer, task: &pb::TaskInfo) -> Input {
        let acknowledge = Acknowledge {
            agent_id: offer.agent_id.clone(),
            task_id: task.task_id.clone(),
            uuid: uuid(task),
            ..Default::default()
        };
        let call = scheduler::Call {
            r#type: Some(CallType::ACKNOWLEDGE),
            acknowledge: acknowledge.into(),
            ..Default::default()
        };
        self.call(call)
    }
}

fn uuid(task: &pb::TaskInfo) -> Vec<u8> {
    task.task_id.value.clone().into_bytes()
}

fn update(framework_id: &pb::FrameworkID, offer: &pb::Offer, task: &pb::TaskInfo) -> Input {
    let status = pb::TaskStatus {
        task_id: task.task_id.clone(),
        agent_id: (*offer.agent_id).clone().into(),
        state: pb::TaskState::TASK_FINISHED,
        uuid: Some(uuid(task)),
        ..Default::default()
    };
    let update = link::call::Update {
        framework_id: framework_id.clone().into(),
        status: status.into(),
        latest_state: pb::TaskState::TASK_FINISHED,
        ..Default::default()
    };
    let call =
        link::Call { r#type: Some(link::call::Type::UPDATE), update: update.into(), ..Default::default() };
    Input::Agent { conn: AGENT, principal: None, call: Box::new(call) }
}
