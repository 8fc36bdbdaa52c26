//! The player: one line in, what came of it out. The allocator's books are audited after every line.
//!
//! ```text
//! agent A cpus:4 mem:512 [host:h] [no-feedback]       a new agent connects
//! framework F role:web [multi] [pa] [refine] [revocable] [checkpoint] [failover:60] [id:x] [principal:p] [user:u] [suppress:r] [new]
//! settle                                     the end of a turn
//! after 15s                                  time passes; everything due happens
//! skip 15s                                   the same, without heartbeats and pings
//! F accept #0 [#1] [refuse:0] : launch t1 cpus:1 ; launch t2 cpus:1 exec:e cpus:0.1 ; group g1 e cpus:1 ...
//! F decline #0 [refuse:60]    F kill t1   F ack t1   F reconcile [t1@A]   F teardown   F close   F revive   F suppress
//! F leaves #3 [refuse:60]     F stays #3   answers to inverse offers
//! A update t1 RUNNING [latest:FINISHED] [preempted]      A exited e   A pong   A close   A back   A lost t1   A leave
//! operator subscribe | gone A | teardown F
//! call {"type":"DRAIN_AGENT",...}            an operator call as it came over the wire; @A is the id of agent A
//! master restarts
//! A disk on | off                             the disk of agent A is short of room, or has room again
//! registry short | enough                     the same of the registry's disk
//! F shows                                    the last event F heard, as JSON
//! ...                                        what came so far is left out: other tests begin like this, and one says it
//! post [stream:F] [principal:p] {"type":"KILL",...}   a scheduler call as it came over the wire
//! ```

mod accept;
mod agents;
mod frameworks;
mod hear;
mod words;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Budget, Fsm, Mono, Now, Outbox, Wall, unlimited};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::Registry;
use tepui_types::{ConnId, DiskRoom, FrameworkId};

use super::audit::audit;
use crate::values::explain::Subject;
pub(super) use agents::domain;

use crate::{Config, Input, Master};

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
    /// The newest snapshot.
    published: Option<Arc<crate::State>>,
}

#[derive(Default)]
struct Agent {
    conn: u64,
    id: String,
    subscribe: link::call::Subscribe,
    tasks: BTreeMap<String, pb::Task>,
    /// Its last status of each task.
    said: BTreeMap<String, link::Call>,
    /// Messages to it are lost until it re-registers.
    deaf: bool,
}

#[derive(Default)]
struct Framework {
    conn: u64,
    stream_id: String,
    info: pb::FrameworkInfo,
    suppressed: Vec<String>,
    /// The last update of each task that needs an acknowledgement: agent, uuid.
    updates: BTreeMap<String, (String, Vec<u8>)>,
    /// The update before the last one, of each task.
    earlier: BTreeMap<String, (String, Vec<u8>)>,
    /// The last status of each operation that needs an acknowledgement.
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
            published: None,
        }
    }

    pub(super) fn state(&self) -> &crate::State {
        self.master.state()
    }

    /// Everything printed so far.
    pub(super) fn output(&self) -> &str {
        &self.said
    }

    pub(super) fn said(self) -> String {
        self.said
    }

    pub(super) fn play(&mut self, script: &str) {
        // A line that begins with `;` continues the one before.
        let script = script.lines().map(str::trim).collect::<Vec<_>>().join("\n").replace("\n;", " ;");
        for line in script.lines().filter(|line| !line.is_empty()) {
            match line {
                "--" => {
                    self.said.push_str("--\n");
                    continue;
                }
                "..." => {
                    self.said.clear();
                    continue;
                }
                _ => (),
            }
            self.line(line);
            audit(&self.master).unwrap_or_else(|wrong| panic!("after '{line}': {wrong}\n{}", self.said));
        }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["settle"] => self.settle(&mut unlimited),
            // With time for one piece of work.
            ["turn"] => self.settle(&mut || false),
            ["explain", name] => self.explain(name),
            ["post", ..] => self.post(line),
            ["call", ..] => self.operator_call(line),
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
            ["registry", room @ ("short" | "enough")] => self.disk_room(*room == "short"),
            [name, verb, rest @ ..] if self.agents.contains_key(*name) => self.agent_does(name, verb, rest),
            [name, verb, rest @ ..] if self.frameworks.contains_key(*name) => {
                self.framework_does(name, verb, rest)
            }
            _ => panic!("what is '{line}'?"),
        }
    }

    /// The registry's disk is short of room, or has enough.
    fn disk_room(&mut self, is_short: bool) {
        let mut out = Outbox::new();
        let room = DiskRoom { is_short, available_bytes: 3 << 20 };
        self.master.step(self.now, Input::DiskRoom(room), &mut out);
        self.hear(out);
    }

    fn settle(&mut self, budget: &mut Budget<'_>) {
        let mut out = Outbox::new();
        self.master.settle(self.now, budget, &mut out);
        self.hear(out);
        let published = self.published.as_ref().map(|state| format!("{state:?}"));
        assert_eq!(published, Some(format!("{:?}", self.master.state())), "readers see an older state");
    }

    fn explain(&mut self, name: &str) {
        self.next_conn += 1;
        let id = &self.frameworks[name].info.id.value;
        let subject = Subject::Framework(FrameworkId::new(id.clone()));
        let mut out = Outbox::new();
        let input = Input::Explain { conn: ConnId(self.next_conn), subject };
        self.master.step(self.now, input, &mut out);
        self.hear(out);
    }

    /// Runs every deadline on the way.
    fn pass(&mut self, time: &str) {
        let seconds: f64 = time.trim_end_matches('s').parse().expect("seconds");
        let end = self.now.mono + Duration::from_secs_f64(seconds);
        while let Some(due) = self.master.deadline().filter(|due| *due <= end) {
            self.set_time(due.max(self.now.mono));
            self.settle(&mut unlimited);
        }
        self.set_time(end);
        self.settle(&mut unlimited);
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

/// Entities of the cluster, for generators of random lines.
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

    pub(super) fn agent_tasks(&self, agent: &str) -> Vec<&str> {
        self.agents[agent].tasks.keys().map(String::as_str).collect()
    }

    pub(super) fn has_operation(&self, agent: &str) -> bool {
        let id = tepui_types::AgentId::new(self.agents[agent].id.as_str());
        self.master.agent(&id).is_some_and(|agent| agent.conn().is_some() && !agent.operations.is_empty())
    }

    /// As written in lines, with their owners.
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
