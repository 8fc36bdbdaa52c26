//! Plays a script on a manager and writes down what comes out.
//!
//! Each line is one input followed by a settle. Task ids are written as `t1`, `t2`, … in the order of their launch.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use expect_test::Expect;
use tepui_fsm::{Durable, Fsm, Item, Mono, Now, Outbox, Rng, Wall};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, OfferId, TaskId};

use crate::address::EngineAddress;
use crate::manager::{Config, Effect, EngineEvent, Input, Manager, Offer, RequestId, Update, View};
use crate::schedule::Scheduler;
use crate::testing::{engine, resources, spec};

const SEED: u64 = 7;

pub struct World {
    pub manager: Manager,
    config: Config,
    now: Now,
    store: BTreeMap<String, Vec<u8>>,
    tasks: Vec<TaskId>,
    trace: String,
    /// Each turn has time for one attempt to place a container only.
    pub has_short_turns: bool,
}

pub fn config(revocable: bool) -> Config {
    Config {
        scheduler: Scheduler::default(),
        task_timeout: Duration::from_secs(5),
        offer_timeout: Duration::from_secs(30),
        refuse_timeout: Duration::from_secs(5),
        idle_refuse_timeout: Duration::from_secs(60),
        revocable,
    }
}

/// Plays the commands of a transcript, its lines with `> `, and compares everything that comes out. Commands before a
/// line `...` have their output in another transcript.
pub fn replay(transcript: Expect) {
    World::new(config(true)).replay(transcript);
}

impl World {
    pub fn new(config: Config) -> Self {
        let manager = Manager::recover(config.clone(), [], Rng::seeded(SEED)).expect("no records");
        let (now, store) = (Now::default(), BTreeMap::new());
        Self { manager, config, now, store, tasks: Vec::new(), trace: String::new(), has_short_turns: false }
    }

    pub fn replay(&mut self, transcript: Expect) {
        let lines = transcript.data().lines().map(str::trim);
        let script = lines.filter_map(|line| line.strip_prefix("> ").or((line == "...").then_some(line)));
        let trace = self.play(&script.collect::<Vec<_>>().join("\n"));
        assert!(!trace.is_empty(), "a transcript without commands");
        transcript.assert_eq(&trace);
    }

    pub fn play(&mut self, script: &str) -> String {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line == "..." {
                let commands = self.trace.lines().filter(|line| line.starts_with("> "));
                self.trace = commands.chain(["..."]).flat_map(|line| [line, "\n"]).collect();
            } else {
                self.trace += &format!("> {line}\n");
                self.line(line);
            }
        }
        core::mem::take(&mut self.trace)
    }

    pub fn view(&self) -> View {
        self.manager.view()
    }

    fn line(&mut self, line: &str) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let input = match command {
            "subscribe" => Input::Subscribed { framework_id: rest.to_owned() },
            "disconnect" => Input::Disconnected,
            "offer" => offer(word(), word(), word()),
            "rescind" => Input::Rescinded(OfferId::new(rest)),
            "agent-failed" => Input::AgentFailed(AgentId::new(rest)),
            "up" => {
                let (agent, name, occupants) = (word(), word(), word());
                let occupants: Vec<&str> = occupants.split(", ").filter(|it| !it.is_empty()).collect();
                let event = EngineEvent::Up(Arc::new(engine(name, &[], &occupants, &[])));
                Input::Engine { agent: AgentId::new(agent), event }
            }
            // The engine shows the container of a task under a name.
            "left" => {
                let (agent, task, name) = (word(), word(), word());
                let (task, framework) = (self.task(task), crate::FRAMEWORK_LABEL);
                let text = format!("{name} {}={task} {framework}=F1", crate::TASK_LABEL);
                let event = EngineEvent::Up(Arc::new(engine("node-0", &[], &[&text], &[])));
                Input::Engine { agent: AgentId::new(agent), event }
            }
            "down" => {
                Input::Engine { agent: AgentId::new(word()), event: EngineEvent::Down(word().to_owned()) }
            }
            "create" => {
                let (request, name, options) = (word(), word(), word());
                let name = Some(name.to_owned()).filter(|name| name != "-");
                Input::Create {
                    request: RequestId(request.parse().expect("a number")),
                    name,
                    spec: Box::new(spec(options)),
                }
            }
            "hold" => {
                let (request, task) = (word(), word());
                let request = RequestId(request.parse().expect("a number"));
                Input::Hold { request, task: self.task(task) }
            }
            "abandon" => Input::Abandoned(RequestId(rest.parse().expect("a number"))),
            "removed" => Input::Removed(self.task(rest)),
            "rename" => {
                let (request, task, name) = (word(), word(), word());
                let request = RequestId(request.parse().expect("a number"));
                Input::Rename { request, task: self.task(task), name: name.to_owned() }
            }
            "rename-failed" => Input::RenameFailed { name: rest.to_owned() },
            "renamed" => {
                let (task, name) = (word(), word());
                Input::Renamed { task: self.task(task), name: name.to_owned() }
            }
            "update" => self.update(rest),
            "wait" => {
                self.now.mono = self.now.mono + Duration::from_secs(rest.parse().expect("seconds"));
                self.now.wall = Wall(self.now.mono.0);
                return self.settle(Outbox::new());
            }
            "restart" => return self.restart(),
            other => panic!("unknown command {other:?}"),
        };
        let mut out = Outbox::new();
        self.manager.step(self.now, input, &mut out);
        self.settle(out);
    }

    /// `t1 STATE [REASON] [id=ENGINE-ID] [by-agent] [of-agent] [unknown] [no-image] [message…]`.
    fn update(&self, text: &str) -> Input {
        let mut words = text.split(' ');
        let task = self.task(words.next().expect("a task"));
        let state = state(words.next().expect("a state"));
        let (mut reason, mut container, mut by_executor, mut message) = (None, None, true, Vec::new());
        let (mut has_executor, mut missing_image, mut is_of_agent) = (true, None, false);
        for word in words {
            match word {
                "by-agent" => by_executor = false,
                "of-agent" => (by_executor, is_of_agent) = (false, true),
                "unknown" => (by_executor, has_executor) = (false, false),
                "no-image" => missing_image = Some("busybox".to_owned()),
                "INVALID_OFFERS" => reason = Some(Reason::REASON_INVALID_OFFERS),
                "RECONCILIATION" => reason = Some(Reason::REASON_RECONCILIATION),
                "REREGISTERED" => reason = Some(Reason::REASON_AGENT_REREGISTERED),
                "PREEMPTED" => reason = Some(Reason::REASON_CONTAINER_PREEMPTED),
                "REGISTRATION_TIMEOUT" => reason = Some(Reason::REASON_EXECUTOR_REGISTRATION_TIMEOUT),
                "EXECUTOR_TERMINATED" => reason = Some(Reason::REASON_EXECUTOR_TERMINATED),
                word => match word.strip_prefix("id=") {
                    Some(id) => container = Some((id.to_owned(), format!("engine_chose_{id}"))),
                    None => message.push(word),
                },
            }
        }
        let agent = self.manager.containers.get(&task).map_or("A1", |container| container.agent.as_str());
        let agent = Some(AgentId::new(agent));
        // The master repeats states without a uuid; an agent that never had the task gives its answer one.
        let is_repeated =
            matches!(reason, Some(Reason::REASON_RECONCILIATION | Reason::REASON_AGENT_REREGISTERED));
        let uuid = Some(Vec::from([1])).filter(|_| !is_repeated || is_of_agent);
        let message = message.join(" ");
        Input::Update(Update {
            task,
            agent,
            state,
            reason,
            message,
            uuid,
            container,
            missing_image,
            by_executor,
            has_executor,
        })
    }

    fn task(&self, alias: &str) -> TaskId {
        let number: usize = alias.trim_start_matches('t').parse().expect("t1, t2, …");
        self.tasks[number - 1].clone()
    }

    fn settle(&mut self, mut out: Outbox<Manager>) {
        let has_short_turns = self.has_short_turns;
        self.manager.settle(self.now, &mut || !has_short_turns, &mut out);
        for item in out.take() {
            self.item(item);
        }
        assert!(
            self.manager.deadline().is_none_or(|at| at > self.now.mono || at == Mono(0)),
            "a timer is due still"
        );
    }

    fn item(&mut self, item: Item<crate::Record, Effect>) {
        let text = match &item {
            Item::Record(record) => {
                let mut writes = Vec::new();
                record.writes(&mut writes);
                for write in writes {
                    match write.value {
                        Some(value) => self.store.insert(write.key, value),
                        None => self.store.remove(&write.key),
                    };
                }
                record.to_string()
            }
            Item::Effect(Effect::Publish(_)) => return,
            Item::Effect(effect) => effect.to_string(),
        };
        if let Item::Record(crate::Record::Container(container) | crate::Record::Replaced(_, container)) =
            &item
        {
            let task = TaskId::new(&*container.task);
            if !self.tasks.contains(&task) {
                self.tasks.push(task);
            }
        }
        let aliases = self.tasks.iter().enumerate();
        let text =
            aliases.fold(text, |text, (at, task)| text.replace(task.as_str(), &format!("t{}", at + 1)));
        // A blank at the end of a line is part of a text of classic Swarm, but must not be in a source file.
        self.trace += &format!("{}\n", text.replace(" \n", "<blank>\n"));
    }

    /// Killed with nothing but its records left.
    fn restart(&mut self) {
        let records: Vec<_> = self.store.clone().into_iter().collect();
        self.manager =
            Manager::recover(self.config.clone(), records, Rng::seeded(SEED + 1)).expect("its own records");
        self.settle(Outbox::new());
    }
}

fn offer(id: &str, agent: &str, text: &str) -> Input {
    let host = agent.to_lowercase();
    Input::Offers(Vec::from([Offer {
        id: OfferId::new(id),
        agent: AgentId::new(agent),
        hostname: host.clone(),
        engine: EngineAddress::Tcp { host, port: 2375 },
        socket: "/run/docker.sock".into(),
        resources: resources(text),
    }]))
}

fn state(name: &str) -> TaskState {
    match name {
        "STARTING" => TaskState::TASK_STARTING,
        "RUNNING" => TaskState::TASK_RUNNING,
        "FINISHED" => TaskState::TASK_FINISHED,
        "FAILED" => TaskState::TASK_FAILED,
        "KILLED" => TaskState::TASK_KILLED,
        "LOST" => TaskState::TASK_LOST,
        "GONE" => TaskState::TASK_GONE,
        "DROPPED" => TaskState::TASK_DROPPED,
        "UNREACHABLE" => TaskState::TASK_UNREACHABLE,
        "UNKNOWN" => TaskState::TASK_UNKNOWN,
        other => panic!("unknown state {other}"),
    }
}
