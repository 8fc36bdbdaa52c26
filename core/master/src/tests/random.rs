//! Random scripts: in any order of inputs the ledger stays correct and nothing panics.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::Rng;

use super::script::Script;
use crate::Config;

const SEEDS: u64 = 30;
const LINES: usize = 200;

#[test]
fn random_inputs_keep_master_accounting_exact() {
    for seed in 0..SEEDS {
        let config = Config {
            agent_ping_timeout: Duration::from_secs(3),
            max_agent_ping_timeouts: 2,
            offer_timeout: (seed % 3 == 0).then_some(Duration::from_secs(4)),
            agent_removal_rate_limit: (seed % 5 == 0).then_some((1, Duration::from_secs(5))),
            max_unreachable_tasks_per_framework: 3,
            max_completed_frameworks: 2,
            seed,
            ..Config::default()
        };
        let mut run = Script::new(config);
        let mut author = Author { rng: Rng::seeded(seed), tasks: 0 };
        for _ in 0..LINES {
            let line = author.line(&run);
            run.play(&line);
        }
    }
}

/// Writes the next line from what is there.
struct Author {
    rng: Rng,
    tasks: u64,
}

impl Author {
    fn line(&mut self, run: &Script) -> String {
        match self.rng.below(24) {
            0 => format!("agent {} cpus:4 mem:1024 disk:100", self.one(&["A", "B", "C"])),
            1 => self.framework(),
            2..=6 => self.of_agent(run),
            7..=9 => "settle".to_string(),
            10 | 11 => self.pass(run),
            12 if self.rng.chance(0.1) => "master restarts".to_string(),
            13 if self.rng.chance(0.2) => self.of_operator(run),
            14..=18 => self.accept(run),
            _ => self.of_framework(run),
        }
    }

    /// Time passes; agents mostly answer their pings.
    fn pass(&mut self, run: &Script) -> String {
        let mut lines = String::new();
        for agent in run.agent_names() {
            if self.rng.chance(0.9) {
                lines += &format!("{agent} pong\n");
            }
        }
        let longest = if self.rng.chance(0.1) { 20 } else { 2 };
        lines + &format!("after {}s", 1 + self.rng.below(longest))
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u64) as usize]
    }

    fn framework(&mut self) -> String {
        let checkpoint = self.one(&["checkpoint", ""]);
        let aware = self.one(&["pa", ""]);
        let failover = self.one(&["failover:5", "failover:50", ""]);
        let new = self.one(&["new", ""]);
        format!("framework {} role:web refine {checkpoint} {aware} {failover} {new}", self.one(&["F", "G"]))
    }

    fn of_agent(&mut self, run: &Script) -> String {
        let names = run.agent_names();
        if names.is_empty() {
            return "settle".to_string();
        }
        let agent = self.one(&names);
        let tasks = run.agent_tasks(agent);
        let framework = self.one(&run.framework_names_or(&["F"]));
        match self.rng.below(12) {
            0 if self.rng.chance(0.5) => format!("{agent} close"),
            0 | 1 => format!("{agent} back"),
            3 => format!("{agent} pong"),
            4 if self.rng.chance(0.1) => format!("{agent} leave"),
            4 if !tasks.is_empty() => format!("{agent} lost {}", self.one(&tasks)),
            5 if run.has_framework(framework) => format!("{agent} exited {framework} e"),
            6 => format!("{agent} resources cpus:{} mem:1024 disk:100", 3 + self.rng.below(3)),
            7 if run.has_operation(agent) => {
                format!("{agent} operation {}", self.one(&["FINISHED", "FAILED"]))
            }
            _ if !tasks.is_empty() => {
                let states = ["RUNNING", "RUNNING latest:FINISHED", "FINISHED", "FAILED", "KILLED"];
                format!("{agent} update {} {}", self.one(&tasks), self.one(&states))
            }
            _ => format!("{agent} pong"),
        }
    }

    fn of_operator(&mut self, run: &Script) -> String {
        let agents = run.agent_names();
        match self.rng.below(3) {
            0 => "operator subscribe".to_string(),
            1 if !agents.is_empty() => format!("operator gone {}", self.one(&agents)),
            _ => format!("operator teardown {}", self.one(&["F", "G"])),
        }
    }

    fn accept(&mut self, run: &Script) -> String {
        let offers = run.offers();
        let frameworks = run.framework_names_or(&[]);
        if frameworks.is_empty() || offers.is_empty() {
            return "settle".to_string();
        }
        let (offer, owner) = &offers[self.rng.below(offers.len() as u64) as usize];
        let framework = if self.rng.chance(0.05) { self.one(&frameworks) } else { owner };
        let operations: Vec<String> = (0..1 + self.rng.below(3)).map(|_| self.operation()).collect();
        let refuse = self.one(&["refuse:0", "refuse:2", ""]);
        format!("{framework} accept {offer} {refuse} : {}", operations.join(" ; "))
    }

    fn operation(&mut self) -> String {
        self.tasks += 1;
        let task = if self.rng.chance(0.1) { 1 } else { self.tasks };
        match self.rng.below(8) {
            0 => "reserve cpus(web):1 disk(web):10".to_string(),
            1 => format!("create disk(web)@v{}:10", self.rng.below(3)),
            2 => "unreserve cpus(web):1".to_string(),
            3 => format!("destroy disk(web)@v{}:10", self.rng.below(3)),
            4 => format!("launch t{task} cpus:0.5 exec:e"),
            _ => format!("launch t{task} cpus:{} mem:32", 1 + self.rng.below(2)),
        }
    }

    fn of_framework(&mut self, run: &Script) -> String {
        let names = run.framework_names_or(&[]);
        if names.is_empty() {
            return self.framework();
        }
        let name = self.one(&names);
        let offers = run.offers();
        let task = format!("t{}", self.rng.below(self.tasks.max(1)));
        match self.rng.below(16) {
            0 if self.rng.chance(0.3) => format!("{name} teardown"),
            0 => format!("{name} close"),
            1 | 2 => format!("{name} back"),
            3 => format!("{name} kill {task}"),
            4 => format!("{name} reconcile {task}@A"),
            5 => format!("{name} suppress"),
            6 => format!("{name} revive"),
            7 if !offers.is_empty() => {
                format!("{name} decline {}", offers[self.rng.below(offers.len() as u64) as usize].0)
            }
            _ => match run.unacknowledged(name).as_slice() {
                [] => format!("{name} reconcile"),
                tasks => format!("{name} ack {}", self.one(tasks)),
            },
        }
    }
}
