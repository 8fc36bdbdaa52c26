//! One helper that drives the scheduler by a script over a [`Cluster`], and writes down records and effects.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use expect_test::Expect;
use tepui_fsm::{Durable, Fsm, Item, Now, Outbox, Rng, Wall, unlimited};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState as State;
use tepui_resources::Resource;

use super::cluster::Cluster;
use crate::plan::Action;
use crate::plan::backoff::BackoffPolicy;
use crate::scheduler::plans::LAST_REPLACEMENT;
use crate::scheduler::{Accept, Command, Config, Effect, Input, Origin, PlanView, RequestId, Scheduler};
use crate::spec::ServiceSpec;

pub struct World {
    pub scheduler: Scheduler,
    pub cluster: Cluster,
    pub store: BTreeMap<String, Vec<u8>>,
    pub now: Now,
    pub text: String,
    specs: BTreeMap<String, String>,
    aliases: Vec<String>,
    requests: u64,
    config: Config,
    lives: u64,
    pub is_quiet: bool,
    pub is_finished: bool,
    /// Times of automatic replacements that were recorded.
    pub replacements: Vec<Wall>,
    /// Kills that the cluster was told.
    pub kills: Vec<String>,
    pub is_suppressed: bool,
    /// Agents whose offers were declined, and until when.
    pub filters: BTreeMap<String, tepui_fsm::Mono>,
    /// The scheduler dies after so many items of an outbox.
    pub crash_after: Option<usize>,
}

pub fn parse(text: &str) -> ServiceSpec {
    let template = |name: &str| Ok(format!("content of {name}"));
    let env = BTreeMap::new();
    let input = crate::Input { file: "svc.yml", text, env: &env, template: &template };
    crate::parse(input).unwrap_or_else(|report| panic!("{report}")).0
}

pub fn config() -> Config {
    let mut config = Config::new("svc");
    config.backoff = BackoffPolicy { enabled: true, initial_ms: 10_000, factor: 2.0, max_ms: 60_000 };
    config.api_host = "api".to_owned();
    config.api_port = 8080;
    config
}

/// Plays the commands of a transcript, its lines with `> `, and compares everything that comes out. Specs are texts
/// with names. Commands before a line `...` have their output in another transcript.
pub fn replay(specs: &[(&str, &str)], transcript: Expect) {
    let mut world = World::new(config(), 1);
    world.specs = specs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    for line in transcript.data().lines().map(str::trim) {
        if let Some(command) = line.strip_prefix("> ") {
            world.line(command);
        } else if line == "..." {
            let commands = world.text.lines().filter(|line| line.starts_with("> "));
            world.text = commands.chain(["..."]).flat_map(|line| [line, "\n"]).collect();
        }
    }
    assert!(!world.text.is_empty(), "a transcript without commands");
    transcript.assert_eq(&world.text);
}

impl World {
    pub fn new(config: Config, seed: u64) -> World {
        let scheduler =
            Scheduler::recover(config.clone(), Vec::new(), Rng::seeded(seed)).expect("no records");
        World {
            scheduler,
            cluster: Cluster::new(&config.role),
            store: BTreeMap::new(),
            now: Now { mono: tepui_fsm::Mono(1_000_000_000), wall: Wall(1_000_000_000_000) },
            text: String::new(),
            specs: BTreeMap::new(),
            aliases: Vec::new(),
            requests: 0,
            config,
            lives: seed,
            is_quiet: false,
            is_finished: false,
            replacements: Vec::new(),
            kills: Vec::new(),
            is_suppressed: false,
            filters: BTreeMap::new(),
            crash_after: None,
        }
    }

    fn line(&mut self, line: &str) {
        self.write(format!("> {line}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        let (first, rest) = words.split_first().expect("a word");
        match *first {
            "agent" => {
                let pair = |word: &&str| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
                self.cluster.add_agent(rest[0], rest[1], rest[2..].iter().filter_map(pair).collect());
            }
            "target" | "start" | "upload" => {
                let spec = Box::new(parse(&self.specs[rest[0]]));
                let origin = match *first {
                    "target" => Origin::Files,
                    "start" => Origin::Start,
                    _ => Origin::Upload,
                };
                self.command(Command::SetTarget { spec, origin });
            }
            "role" => rest[0].clone_into(&mut self.cluster.role),
            "subscribe" => self.input(Input::Subscribed { framework_id: "F1".to_owned() }),
            // The answers to the reconciliation are lost.
            "subscribe-unanswered" => {
                self.input(Input::Subscribed { framework_id: "F1".to_owned() });
                self.cluster.events.clear();
            }
            "lose-records" => self.store.retain(|key, _| !key.starts_with(rest[0])),
            "resend" => self.cluster.resend(),
            "disconnect" => self.input(Input::Disconnected),
            "offers" => {
                let agents: Vec<String> = match rest {
                    [] => self.cluster.agents.keys().cloned().collect(),
                    some => some.iter().map(|id| (*id).to_owned()).collect(),
                };
                for agent in agents {
                    self.cluster.offer(&agent);
                }
            }
            // Of all agents, in one event.
            "offers-at-once" => self.cluster.offer_at_once(),
            "wait" => self.wait(Duration::from_secs(rest[0].parse().expect("seconds"))),
            "restart" => {
                self.config.reinstall =
                    rest.first().and_then(|word| word.strip_prefix("reinstall=")).map(str::to_owned);
                self.restart();
            }
            "lose-effects" => self.crash_after = Some(rest[0].parse().expect("a number of items")),
            "agents" => self.input(Input::Agents(self.cluster.facts())),
            "unreachable" => self.cluster.lose_agent(rest[0], State::TASK_UNREACHABLE),
            "machine-down" => self.cluster.lose_agent(rest[0], State::TASK_LOST),
            "reachable" => self.cluster.return_agent(rest[0]),
            "reachable-drained-to-gone" => self.cluster.return_drained_agent(rest[0]),
            "drain" => self.cluster.drain(rest[0]),
            "gone" => self.cluster.remove_agent(rest[0]),
            "forgotten" => self.cluster.forget_agent(rest[0]),
            "calls-lost" => {
                let offers = rest.iter().map(|id| tepui_types::OfferId::new(*id)).collect();
                self.input(Input::CallsLost { offers });
            }
            "failed-agent" => self.input(Input::AgentFailed(tepui_types::AgentId::new(rest[0]))),
            "error" => self.input(Input::Failed(rest.join(" "))),
            "show" => self.show(rest),
            "pod-restart" => self.command(Command::RestartPod { pod: rest[0].to_owned() }),
            "pod-replace" => self.command(Command::ReplacePod { pod: rest[0].to_owned() }),
            "pause" | "resume" => {
                let (pod, tasks) =
                    (rest[0].to_owned(), rest[1..].iter().map(|it| (*it).to_owned()).collect());
                self.command(match *first {
                    "pause" => Command::PausePod { pod, tasks },
                    _ => Command::ResumePod { pod, tasks },
                });
            }
            "plan" => self.plan_command(rest),
            "uninstall" => self.command(Command::Uninstall),
            // The answer to TEARDOWN is lost.
            "uninstall-unanswered" => {
                self.command(Command::Uninstall);
                self.cluster.events.clear();
            }
            state => self.task_state(state, rest),
        }
        self.pump();
    }

    fn plan_command(&mut self, words: &[&str]) {
        let at = |index: usize| words.get(index).map(|word| (*word).to_owned());
        // Names of steps have blanks.
        let step = Some(words.get(3..).unwrap_or_default().join(" ")).filter(|name| !name.is_empty());
        let action = match words[1] {
            "interrupt" => Action::Interrupt { phase: at(2) },
            "continue" => Action::Continue { phase: at(2) },
            "complete" => Action::ForceComplete { phase: at(2), step },
            "restart" => Action::Restart { phase: at(2), step },
            "stop" => Action::Stop,
            "start" => {
                let pair = |word: &&str| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
                Action::Start { parameters: words[2..].iter().filter_map(pair).collect() }
            }
            other => panic!("unknown action {other}"),
        };
        self.command(Command::Plan { plan: words[0].to_owned(), action });
    }

    /// `run hello-0-server`: the live tasks of an instance get a state. `all` is all of them.
    fn task_state(&mut self, word: &str, names: &[&str]) {
        let (state, ready) = match word {
            "run" => (State::TASK_RUNNING, true),
            "unready" => (State::TASK_RUNNING, false),
            "fail" => (State::TASK_FAILED, false),
            "finish" => (State::TASK_FINISHED, false),
            "killed" | "drained" => (State::TASK_KILLED, false),
            "drained-to-gone" => (State::TASK_GONE_BY_OPERATOR, false),
            "lost" => (State::TASK_LOST, false),
            "dropped" | "dropped-by-drain" => (State::TASK_DROPPED, false),
            other => panic!("unknown word {other}"),
        };
        let message = match word {
            "fail" => "exit 1",
            "drained" | "drained-to-gone" | "dropped-by-drain" => "draining",
            "dropped" => "reconciled",
            _ => "",
        };
        for (name, id, agent, _) in self.cluster.tasks() {
            if !self.cluster.agents[&agent].is_reachable {
                continue;
            }
            if names.contains(&name.as_str()) || names == ["all"] {
                self.cluster.set_state(&id, state, message, ready);
            }
        }
    }

    pub fn command(&mut self, command: Command) {
        self.requests += 1;
        self.input(Input::Command { request: RequestId(self.requests), command });
    }

    /// Delivers events of the cluster until there are none.
    pub fn pump(&mut self) {
        while let Some(event) = self.cluster.events.pop_front() {
            self.input(event);
        }
    }

    pub fn input(&mut self, input: Input) {
        let mut out = Outbox::new();
        self.scheduler.step(self.now, input, &mut out);
        self.scheduler.settle(self.now, &mut unlimited, &mut out);
        self.release(out.take());
    }

    pub fn wait(&mut self, time: Duration) {
        let end = self.now.mono + time;
        while let Some(at) = self.scheduler.deadline().filter(|at| *at <= end) {
            self.advance(at.max(self.now.mono));
            let mut out = Outbox::new();
            self.scheduler.settle(self.now, &mut unlimited, &mut out);
            self.release(out.take());
            self.pump();
        }
        self.advance(end);
    }

    fn advance(&mut self, to: tepui_fsm::Mono) {
        self.now.wall = Wall(self.now.wall.0 + (to.0 - self.now.mono.0));
        self.now.mono = to;
    }

    /// Kills the scheduler and starts another from its records.
    pub fn restart(&mut self) {
        self.lives += 1000;
        let records: Vec<(String, Vec<u8>)> =
            self.store.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        self.cluster.offers.clear();
        self.cluster.events.clear();
        self.kills.clear();
        self.is_suppressed = false;
        self.filters.clear();
        self.crash_after = None;
        self.scheduler =
            Scheduler::recover(self.config.clone(), records, Rng::seeded(self.lives)).expect("records");
    }

    pub fn release(&mut self, items: Vec<Item<<Scheduler as Fsm>::Record, Effect>>) {
        for item in items {
            match self.crash_after {
                Some(0) => return,
                Some(left) => self.crash_after = Some(left - 1),
                None => (),
            }
            match item {
                Item::Record(record) => {
                    let mut writes = Vec::new();
                    record.writes(&mut writes);
                    let mut line = "record".to_owned();
                    for write in writes {
                        let sign = if write.value.is_some() { '+' } else { '-' };
                        let _ = write!(line, " {sign}{}", write.key);
                        let is_replacement = write.key.ends_with(LAST_REPLACEMENT) && write.value.is_some();
                        self.replacements.extend(is_replacement.then_some(self.now.wall));
                        match write.value {
                            Some(value) => self.store.insert(write.key, value),
                            None => self.store.remove(&write.key),
                        };
                    }
                    self.write(line);
                }
                Item::Effect(effect) => self.effect(effect),
            }
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Publish(_) => (),
            Effect::Accept(accept) => {
                self.write(accept_text(&accept));
                self.cluster.accept(&accept);
            }
            Effect::Decline { offers, refuse } => {
                let ids: Vec<&str> = offers.iter().map(|id| id.as_str()).collect();
                self.write(format!("decline {} for {} s", ids.join(","), refuse.as_secs()));
                for offer in &offers {
                    if let Some((agent, _)) = self.cluster.offers.remove(offer.as_str()) {
                        self.filters.insert(agent, self.now.mono + refuse);
                    }
                }
            }
            Effect::Kill { task, .. } => {
                self.write(format!("kill {task}"));
                self.kills.push(task.as_str().to_owned());
            }
            Effect::Acknowledge { task, uuid, .. } => self.cluster.acknowledge(task.as_str(), &uuid),
            Effect::AcknowledgeOperation { operation, .. } => {
                self.cluster.feedback.remove(&operation);
            }
            Effect::Reconcile(tasks) => {
                if tasks.is_empty() {
                    for (_, id, ..) in self.cluster.tasks() {
                        self.cluster.reconcile(&id, None);
                    }
                }
                for (task, agent) in &tasks {
                    self.write(format!("reconcile {task}"));
                    self.cluster.reconcile(task.as_str(), agent.as_ref().map(|id| id.as_str()));
                }
            }
            Effect::ReconcileOperations(operations) => {
                for (operation, agent) in operations {
                    let agent = self.cluster.agents.get(agent.as_str());
                    let is_reachable = agent.is_none_or(|agent| agent.is_reachable);
                    self.write(format!("reconcile operation {operation}"));
                    let state = self.cluster.feedback.get(&operation).copied();
                    let state = match is_reachable {
                        true => state.unwrap_or(pb::OperationState::OPERATION_UNKNOWN),
                        false => pb::OperationState::OPERATION_UNREACHABLE,
                    };
                    self.cluster.operation_status(&operation, state);
                }
            }
            Effect::UpdateFramework(framework) => {
                self.is_suppressed = false;
                let own = |own: &pb::framework_info::Capability| format!("{:?}", own.r#type.expect("a type"));
                let capabilities: Vec<String> = framework.capabilities.iter().map(own).collect();
                let roles = framework.roles.join(",");
                self.write(format!("update framework: roles {roles}, {}", capabilities.join(",")));
            }
            Effect::Suppress => {
                self.is_suppressed = true;
                self.write("suppress".to_owned());
            }
            Effect::Revive => {
                self.is_suppressed = false;
                self.filters.clear();
                self.write("revive".to_owned());
            }
            Effect::Reply { answer, .. } => self.write(format!("reply {answer}")),
            Effect::Teardown => {
                self.write("teardown".to_owned());
                self.cluster.events.push_back(Input::Deregistered);
            }
            Effect::Finished(_) => {
                self.is_finished = true;
                self.write("finished".to_owned());
            }
            Effect::Stop(reason) => self.write(format!("stop: {reason}")),
        }
    }

    fn show(&mut self, words: &[&str]) {
        let view = self.scheduler.view();
        match words {
            ["plan", name] => {
                let plan = view.plan(name).expect("a plan");
                self.write(plan_text(&plan));
            }
            ["plans"] => self.write(view.plan_names().join(" ")),
            ["pods"] => {
                for pod in view.pods().iter().flat_map(|own| &own.instances) {
                    let task = |task: &crate::scheduler::TaskView| {
                        format!("{} {}", task.name, task.status.as_deref().unwrap_or("-"))
                    };
                    self.write(format!(
                        "{}: {}",
                        pod.name,
                        pod.tasks.iter().map(task).collect::<Vec<_>>().join(", ")
                    ));
                }
            }
            ["health"] => self.write(view.health().value.to_string()),
            ["reservations"] => {
                for reservation in self.cluster.reservations() {
                    self.write(reservation);
                }
            }
            ["endpoint", name] => {
                let endpoint = view.endpoint(name);
                self.write(serde_json::to_string(&endpoint).expect("plain data"));
            }
            ["zones"] => {
                self.write(format!("{:?}", view.task_zones()));
                self.write(format!("{:?}", view.address_zone("hello", "10.0.0.1")));
            }
            ["endpoints"] => self.write(view.endpoint_names().join(" ")),
            ["offers"] => {
                for offer in view.offers().offers {
                    let own = offer.explanation.join(" ");
                    self.write(format!("{} {} {own}", offer.pod_instance_name, offer.outcome));
                }
            }
            ["configurations"] => {
                let ids: Vec<String> = view.configurations.keys().cloned().collect();
                self.write(format!("{} target {}", ids.join(" "), view.target.clone().unwrap_or_default()));
            }
            ["task", name] => {
                for task in view.tasks.values().filter(|task| task.launch.key.name() == *name) {
                    let info: pb::TaskInfo =
                        tepui_proto::wire::decode_record(&task.launch.info).expect("info");
                    let json = tepui_proto::json::to_vec(&info);
                    let value: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
                    for (key, value) in value.as_object().expect("an object") {
                        let value = match key.as_str() {
                            "resources" => continue,
                            "executor" => &value["container"],
                            _ => value,
                        };
                        let text = value.to_string();
                        self.write(format!("{key}: {}", brief_environment(&text)));
                    }
                }
            }
            other => panic!("unknown view {other:?}"),
        }
    }

    /// Writes a line, with UUIDs as `#1`, `#2` in the order of their appearance.
    pub fn write(&mut self, line: String) {
        if self.is_quiet {
            return;
        }
        let mut rest = line.as_str();
        while !rest.is_empty() {
            let is_uuid = |text: &str| {
                text.len() >= 36
                    && text.bytes().take(36).enumerate().all(|(at, byte)| match at {
                        8 | 13 | 18 | 23 => byte == b'-',
                        _ => byte.is_ascii_hexdigit(),
                    })
            };
            if is_uuid(rest) {
                let (id, after) = rest.split_at(36);
                let known = self.aliases.iter().position(|own| own == id).unwrap_or_else(|| {
                    self.aliases.push(id.to_owned());
                    self.aliases.len() - 1
                });
                let _ = write!(self.text, "#{}", known + 1);
                rest = after;
            } else {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                self.text.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
        self.text.push('\n');
    }
}

fn plan_text(plan: &PlanView) -> String {
    let mut text = format!("{} ({} strategy) ({})", plan.name, plan.strategy, plan.status);
    for phase in &plan.phases {
        let _ = write!(text, "\n  {} ({} strategy) ({})", phase.name, phase.strategy, phase.status);
        for step in &phase.steps {
            let message =
                step.message.split_once("): ").map(|(_, own)| format!(" {own}")).unwrap_or_default();
            let _ = write!(text, "\n    {} ({}){message}", step.name, step.status);
            for error in &step.errors {
                let _ = write!(text, "\n      error: {error}");
            }
        }
    }
    for error in &plan.errors {
        let _ = write!(text, "\n  error: {error}");
    }
    text
}

fn accept_text(accept: &Accept) -> String {
    let ids: Vec<&str> = accept.offers.iter().map(|id| id.as_str()).collect();
    let mut text = format!("accept {} of {}", ids.join(","), accept.agent);
    for operation in &accept.operations {
        let resources = |all: &[pb::Resource]| {
            let own = |it: &pb::Resource| resource_text(&Resource::from_proto(it).expect("a resource"));
            all.iter().map(own).collect::<Vec<_>>().join(" ")
        };
        let own = match operation.r#type.expect("a type") {
            pb::offer::operation::Type::RESERVE => {
                format!("RESERVE {}", resources(&operation.reserve.resources))
            }
            pb::offer::operation::Type::UNRESERVE => {
                format!("UNRESERVE {}", resources(&operation.unreserve.resources))
            }
            pb::offer::operation::Type::CREATE => format!("CREATE {}", resources(&operation.create.volumes)),
            pb::offer::operation::Type::DESTROY => {
                format!("DESTROY {}", resources(&operation.destroy.volumes))
            }
            pb::offer::operation::Type::LAUNCH_GROUP => {
                let group = &operation.launch_group;
                let task = &group.task_group.tasks[0];
                format!(
                    "LAUNCH_GROUP {} with {} in {} with {}",
                    task.task_id.value,
                    resources(&task.resources),
                    group.executor.executor_id.value,
                    resources(&group.executor.resources)
                )
            }
            other => format!("{other:?}"),
        };
        let _ = write!(text, "\n    {own}");
    }
    text
}

/// `cpus:1@id`, with the volume and the roles above the first.
fn resource_text(resource: &Resource) -> String {
    let id = resource.reservation().and_then(|level| {
        let labels = level.labels.as_ref()?;
        labels.iter().find(|(key, _)| key == "resource_id").and_then(|(_, value)| value.clone())
    });
    let value = match resource.value() {
        tepui_resources::Value::Scalar(amount) => amount.to_string(),
        tepui_resources::Value::Ranges(ranges) => ranges.to_string(),
        tepui_resources::Value::Set(set) => set.to_string(),
    };
    let path = resource
        .disk()
        .and_then(|disk| disk.volume.as_ref())
        .map(|volume| format!("[{}]", volume.container_path));
    let roles: Vec<&str> = resource.reservations().iter().map(|level| level.role.as_str()).collect();
    let roles = if roles.len() > 1 { format!("({})", roles.join(",")) } else { String::new() };
    format!("{}{roles}{}:{value}@{}", resource.name(), path.unwrap_or_default(), id.unwrap_or_default())
}

/// Variables as `NAME=value`.
fn brief_environment(text: &str) -> String {
    let text = text.replace("\"type\":\"VALUE\",", "");
    text.replace("\"environment\":{\"variables\":", "\"env\":{")
        .replace("{\"name\":", "{")
        .replace(",\"value\":", "=")
}
