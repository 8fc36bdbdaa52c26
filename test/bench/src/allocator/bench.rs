//! An allocator under measurement, with a clock of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tepui_allocator::{AgentCapabilities, AgentSpec, Allocator, FrameworkSpec, Grant, Options};
use tepui_fsm::{Mono, unlimited};
use tepui_resources::{Resources, Revocable, Role, parse};
use tepui_types::{AgentId, FrameworkId};

use super::Step;

const INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Bench {
    allocator: Allocator,
    now: Mono,
    /// Unanswered offers.
    offers: Vec<Grant>,
    pub(super) steps: Vec<Step>,
    memory_before_mib: f64,
}

impl Bench {
    pub(super) fn new() -> Self {
        let options = Options { allocation_interval: INTERVAL, allocation_slack: true, ..Options::default() };
        let memory_before_mib = resident_mib();
        let allocator = Allocator::new(options);
        Self { allocator, now: Mono(0), offers: Vec::new(), steps: Vec::new(), memory_before_mib }
    }

    /// Times `work` and everything the allocator decides because of it.
    pub(super) fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Allocator)) {
        let mut work = Some(work);
        let began = Instant::now();
        let offers = counted(&mut || {
            work.take().into_iter().for_each(|work| work(&mut self.allocator));
            self.settle()
        });
        self.steps.push(Step { name, offers, took: began.elapsed(), memory_mib: None });
    }

    /// Times `work` while the allocator is paused.
    pub(super) fn paused_step(&mut self, name: &'static str, work: impl FnOnce(&mut Allocator)) {
        let mut work = Some(work);
        let began = Instant::now();
        counted(&mut || {
            work.take().into_iter().for_each(|work| work(&mut self.allocator));
            0
        });
        self.steps.push(Step { name, offers: 0, took: began.elapsed(), memory_mib: None });
    }

    /// Times one batch.
    pub(super) fn cycle(&mut self, name: &'static str) {
        self.now = self.now + INTERVAL;
        self.step(name, |_| ());
    }

    /// Notes with the last step what everything takes by now.
    pub(super) fn weigh(&mut self) {
        if let Some(step) = self.steps.last_mut() {
            step.memory_mib = Some((resident_mib() - self.memory_before_mib).max(0.0));
        }
    }

    /// Work that is not timed and lets nothing be decided.
    pub(super) fn prepare(&mut self, work: impl FnOnce(&mut Allocator)) {
        work(&mut self.allocator);
    }

    /// Gives all offers back, not timed.
    pub(super) fn return_all(&mut self, refuse_seconds: f64) {
        self.return_some(usize::MAX, refuse_seconds);
    }

    /// Gives so many offers back, the oldest first, not timed.
    pub(super) fn return_some(&mut self, count: usize, refuse_seconds: f64) {
        let until = self.allocator.refusal(self.now, Some(refuse_seconds));
        for offer in self.offers.drain(..count.min(self.offers.len())) {
            self.allocator.decline(&offer.agent, &offer.framework, &offer.resources, until);
        }
    }

    /// Launches a task on every offer and gives the rest back, not timed.
    pub(super) fn launch_on_all(&mut self, task: &Resources) {
        for offer in self.offers.drain(..) {
            let task = task.clone().allocate(&offer.role);
            if offer.resources.contains(&task) {
                self.allocator.launch(&offer.agent, &offer.framework, &task);
                let rest = &offer.resources - &task;
                self.allocator.decline(&offer.agent, &offer.framework, &rest, None);
            } else {
                self.allocator.decline(&offer.agent, &offer.framework, &offer.resources, None);
            }
        }
    }

    /// The unanswered offers.
    pub(super) fn offers(&self) -> &[Grant] {
        &self.offers
    }

    fn settle(&mut self) -> usize {
        let before = self.offers.len();
        loop {
            self.offers.extend(self.allocator.allocate(self.now, &mut unlimited).grants);
            if self.allocator.deadline().is_none_or(|at| at > self.now) {
                return self.offers.len() - before;
            }
        }
    }
}

/// What a step does, under a name by which `instructions` finds it.
#[inline(never)]
fn counted(work: &mut dyn FnMut() -> usize) -> usize {
    std::hint::black_box(work())
}

/// What this process holds in memory.
fn resident_mib() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let resident = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<f64>().ok());
    resident.unwrap_or(0.0) * 4096.0 / (1024.0 * 1024.0)
}

pub(super) fn agent_id(number: usize) -> AgentId {
    AgentId::new(format!("agent-{number}"))
}

pub(super) fn framework_id(number: usize) -> FrameworkId {
    FrameworkId::new(format!("framework-{number}"))
}

pub(super) fn agent(number: usize, total: &Resources) -> AgentSpec {
    named_agent(format!("agent-{number}").into(), total)
}

pub(super) fn named_agent(hostname: Arc<str>, total: &Resources) -> AgentSpec {
    AgentSpec { hostname, capabilities: AgentCapabilities::ALL, total: total.clone(), ..AgentSpec::default() }
}

pub(super) fn framework(number: usize, role: &str) -> FrameworkSpec {
    FrameworkSpec::new(framework_id(number), Role::from(role))
}

pub(super) fn resources(text: &str) -> Resources {
    parse::resources(text, "*").expect("the shapes are well formed").into_iter().collect()
}

/// So many revocable cpus.
pub(super) fn revocable_cpus(cpus: u32) -> Resources {
    resources(&format!("cpus:{cpus}")).map(|resource| resource.with_revocable(Revocable::Plain))
}

/// `count` ranges of `length` ports each, with gaps between them.
pub(super) fn port_ranges(count: u32, length: u32) -> String {
    let ranges: Vec<String> = (0..count)
        .map(|index| 31_000 + index * (1000 / count))
        .map(|begin| format!("{begin}-{}", begin + length - 1))
        .collect();
    format!("ports:[{}]", ranges.join(","))
}
