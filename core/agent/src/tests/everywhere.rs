//! A crash after each record and effect of the agent, while its peers continue.
//!
//! The container stays alive, the executor resubscribes with its unacknowledged updates, the master acknowledges the
//! updates it receives. At any crash: the task is launched at most once and its termination is reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::string::String;
use std::vec::Vec;

use tepui_fsm::{Durable, Fsm, Item, Now, Outbox, Wall, Write, unlimited};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{
    ConnId, ContainerEvent, ContainerId, ContainerOp, ExecutorId, FrameworkId, RecoveredContainer, TaskId,
    TaskStateExt, Termination,
};

use super::driver::World;
use crate::{Agent, Config, Effect, Input, LinkId, Sender};

/// Limit of steps before a run counts as stuck.
const ROUNDS_MAX: usize = 400;

#[derive(Default)]
struct Play {
    config: Config,
    now: Now,
    store: BTreeMap<String, Vec<u8>>,
    inputs: VecDeque<Input>,
    /// Items that leave the agent before it crashes; none: it does not.
    left: Option<usize>,
    items: usize,
    conns: u64,
    container: Option<(ContainerId, bool)>,
    containers_launched: usize,
    executor: Executor,
    seen: BTreeSet<Vec<u8>>,
    states: Vec<TaskState>,
    launched: bool,
}

/// The executor: it outlives the agent.
#[derive(Default)]
struct Executor {
    conn: Option<ConnId>,
    times_launched: usize,
    unacknowledged: Vec<pb::TaskStatus>,
    next: usize,
    shut_down: bool,
}

const STORY: [TaskState; 3] = [TaskState::TASK_STARTING, TaskState::TASK_RUNNING, TaskState::TASK_FINISHED];

impl Play {
    fn run(config: Config, left: Option<usize>) -> Play {
        let now = Now { wall: Wall(1_000_000_000_000), ..Default::default() };
        let mut play = Play { config, left, now, ..Default::default() };
        let mut agent = play.start();
        for _ in 0..ROUNDS_MAX {
            let mut out = Outbox::new();
            match play.inputs.pop_front() {
                Some(input) => agent.step(play.now, input, &mut out),
                None => match agent.deadline() {
                    Some(at) if !play.is_over() => {
                        let passed = at.since(play.now.mono);
                        play.now.mono = play.now.mono + passed;
                        play.now.wall = Wall(play.now.wall.0 + passed.as_nanos() as u64);
                    }
                    _ => break,
                },
            }
            agent.settle(play.now, &mut unlimited, &mut out);
            if play.release(out) {
                agent = play.start();
            }
        }
        play
    }

    fn is_over(&self) -> bool {
        self.states.last().is_some_and(|state| state.is_terminal())
            && !self.store.keys().any(|key| key.starts_with("update/") || key.starts_with("executor/"))
    }

    /// Starts the agent, for the first time or after a crash, which breaks every connection.
    fn start(&mut self) -> Agent {
        self.inputs = VecDeque::from([Input::Start]);
        self.executor.conn = None;
        Agent::new(self.config.clone(), self.store.clone(), self.now).expect("its own records")
    }

    /// Lets out what may leave; true if the agent crashed on the way.
    fn release(&mut self, mut out: Outbox<Agent>) -> bool {
        for item in out.take() {
            if self.left == Some(self.items) {
                self.left = None;
                return true;
            }
            self.items += 1;
            match item {
                Item::Record(record) => {
                    let mut writes = Vec::new();
                    record.writes(&mut writes);
                    for Write { key, value } in writes {
                        match value {
                            Some(value) => self.store.insert(key, value),
                            None => self.store.remove(&key),
                        };
                    }
                }
                Item::Effect(effect) => self.see(effect),
            }
        }
        false
    }

    fn see(&mut self, effect: Effect) {
        match effect {
            Effect::Connect { link } => self.inputs.push_back(Input::LinkUp { link }),
            Effect::Master { link, call } => self.master(link, *call),
            Effect::Executor { conn, event } | Effect::Kill { conn, event }
                if self.executor.conn == Some(conn) =>
            {
                self.executor_event(*event)
            }
            Effect::Container(op) => self.container_op(op),
            Effect::Answer { answer, .. } => {
                // An executor that is refused tries again.
                if matches!(answer, tepui_types::Answer::Refused(_)) {
                    self.subscribe();
                }
            }
            _ => (),
        }
    }

    fn master(&mut self, link: LinkId, call: link::Call) {
        use link::event::{Acknowledge, Launch, Subscribed, Type};
        let mut event = link::Event::default();
        if call.r#type == Some(link::call::Type::SUBSCRIBE) {
            event.r#type = Some(Type::SUBSCRIBED);
            event.subscribed = Subscribed {
                agent_id: pb::AgentID { value: "S0".into(), ..Default::default() }.into(),
                silence_timeout_seconds: 75.0,
                ..Default::default()
            }
            .into();
        } else if let Some(update) = call.update.as_option() {
            let uuid = update.status.uuid.clone().unwrap_or_default();
            if self.seen.insert(uuid.clone()) {
                self.states.push(update.status.state);
            }
            event.r#type = Some(Type::ACKNOWLEDGE);
            event.acknowledge = Acknowledge {
                framework_id: update.framework_id.clone(),
                task_id: update.status.task_id.clone().into_option().unwrap_or_default().into(),
                uuid,
                ..Default::default()
            }
            .into();
        } else {
            return;
        }
        self.inputs.push_back(Input::LinkEvent { link, event: event.into() });
        // The master counts the launch as sent, and does not send it twice.
        if call.r#type == Some(link::call::Type::SUBSCRIBE) {
            let knows = call.subscribe.tasks.iter().any(|task| task.task_id.value == "t1");
            if !self.launched {
                self.launched = true;
                let task = pb::TaskInfo {
                    name: "t1".into(),
                    task_id: TaskId::new("t1").to_proto().into(),
                    command: pb::CommandInfo { value: Some("true".into()), ..Default::default() }.into(),
                    resources: super::driver::resources("cpus:1;mem:32"),
                    ..Default::default()
                };
                let framework_info = pb::FrameworkInfo {
                    id: FrameworkId::new("F").to_proto().into(),
                    checkpoint: Some(true),
                    ..Default::default()
                };
                let launch =
                    Launch { framework_info: framework_info.into(), task: task.into(), ..Default::default() };
                let event =
                    link::Event { r#type: Some(Type::LAUNCH), launch: launch.into(), ..Default::default() };
                self.inputs.push_back(Input::LinkEvent { link, event: event.into() });
            } else if !knows && !self.states.iter().any(|state| state.is_terminal()) {
                self.request_missing();
            }
        }
    }

    /// The launch was lost: the master reconciles the task.
    fn request_missing(&mut self) {
        let Some(Input::LinkEvent { event, .. }) = self.inputs.back_mut() else { return };
        let missing = link::event::MissingTask {
            framework_id: FrameworkId::new("F").to_proto().into(),
            task_id: TaskId::new("t1").to_proto().into(),
            ..Default::default()
        };
        event.subscribed.as_option_mut().expect("just said").missing_tasks.push(missing);
    }

    fn container_op(&mut self, op: ContainerOp) {
        match op {
            ContainerOp::Recover { known } => {
                let containers = known
                    .into_iter()
                    .map(|known| RecoveredContainer {
                        ended: (self.container != Some((known.id.clone(), true))).then(Termination::default),
                        id: known.id,
                        pid: None,
                    })
                    .collect();
                self.inputs.push_back(Input::Container(ContainerEvent::Recovered { containers }));
                self.subscribe();
            }
            ContainerOp::Launch(spec) => {
                self.containers_launched += 1;
                self.container = Some((spec.id.clone(), true));
                self.inputs.push_back(Input::Container(ContainerEvent::Launched { id: spec.id, pid: 1 }));
                self.subscribe();
            }
            ContainerOp::Destroy { .. } => self.exit(),
            _ => (),
        }
    }

    fn exit(&mut self) {
        if let Some((id, alive)) = &mut self.container
            && *alive
        {
            *alive = false;
            let event = ContainerEvent::Exited { id: id.clone(), termination: Termination::default() };
            self.inputs.push_back(Input::Container(event));
        }
    }

    fn subscribe(&mut self) {
        if !self.container.as_ref().is_some_and(|(_, alive)| *alive) {
            return;
        }
        let updates = self
            .executor
            .unacknowledged
            .iter()
            .map(|status| executor_api::call::Update { status: status.clone().into(), ..Default::default() });
        let task = pb::TaskInfo { task_id: TaskId::new("t1").to_proto().into(), ..Default::default() };
        let subscribe = executor_api::call::Subscribe {
            unacknowledged_updates: updates.collect(),
            unacknowledged_tasks: if self.executor.times_launched > 0 {
                Vec::from([task])
            } else {
                Vec::new()
            },
            ..Default::default()
        };
        let mut call = call(executor_api::call::Type::SUBSCRIBE);
        call.subscribe = subscribe.into();
        let conn = self.request(call);
        self.executor.conn = Some(conn);
    }

    fn request(&mut self, call: executor_api::Call) -> ConnId {
        self.conns += 1;
        let conn = ConnId(self.conns);
        self.inputs.push_back(Input::Executor { conn, sender: Sender::default(), call: call.into() });
        conn
    }

    fn executor_event(&mut self, event: executor_api::Event) {
        use executor_api::event::Type;
        match event.r#type.unwrap_or_default() {
            Type::LAUNCH => {
                self.executor.times_launched += 1;
                self.say_next();
            }
            Type::ACKNOWLEDGED => {
                let uuid = &event.acknowledged.uuid;
                self.executor.unacknowledged.retain(|status| status.uuid.as_ref() != Some(uuid));
                if self.executor.unacknowledged.is_empty() {
                    self.say_next();
                }
            }
            Type::SHUTDOWN => {
                self.executor.shut_down = true;
                self.exit();
            }
            _ => (),
        }
    }

    fn say_next(&mut self) {
        let Some(state) = STORY.get(self.executor.next) else { return self.exit() };
        self.executor.next += 1;
        let status = pb::TaskStatus {
            task_id: TaskId::new("t1").to_proto().into(),
            state: *state,
            source: Some(pb::task_status::Source::SOURCE_EXECUTOR),
            uuid: Some([self.executor.next as u8; 16].into()),
            ..Default::default()
        };
        self.executor.unacknowledged.push(status.clone());
        let mut call = call(executor_api::call::Type::UPDATE);
        call.update = executor_api::call::Update { status: status.into(), ..Default::default() }.into();
        self.request(call);
    }
}

fn call(kind: executor_api::call::Type) -> executor_api::Call {
    executor_api::Call {
        executor_id: ExecutorId::new("t1").to_proto().into(),
        framework_id: FrameworkId::new("F").to_proto().into(),
        r#type: Some(kind),
        ..Default::default()
    }
}

#[test]
fn crash_at_any_step_loses_no_update_and_launches_once() {
    let config = World::default().config;
    let whole = Play::run(config.clone(), None);
    assert_eq!(whole.states, STORY);
    assert!(whole.items > 30);
    for left in 0..whole.items {
        let play = Play::run(config.clone(), Some(left));
        let told = (left, &play.states);
        assert!(
            play.containers_launched <= 1 && play.executor.times_launched <= 1,
            "launched twice {told:?}"
        );
        assert!(play.states.last().is_some_and(|state| state.is_terminal()), "no end {told:?}");
        if play.executor.next == STORY.len() {
            assert_eq!(play.states, STORY, "an update is missing {told:?}");
        }
        let history = play.store.keys().filter(|key| key.starts_with("history/"));
        assert!(history.count() <= 3, "more than the task, its executor and the framework is kept {told:?}");
        let over = ["path/", "history/"];
        let leftover = play.store.keys().filter(|key| !over.iter().any(|start| key.starts_with(start)));
        assert_eq!(leftover.collect::<Vec<_>>(), ["agent", "boot_id"], "{told:?}");
    }
}
