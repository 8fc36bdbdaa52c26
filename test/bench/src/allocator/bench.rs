//! An allocator under measurement, with a clock of its own.

use std::time::{Duration, Instant};

use tepui_allocator::{AgentCapabilities, AgentSpec, Allocator, FrameworkSpec, Grant, Options};
use tepui_fsm::Mono;
use tepui_resources::{Resources, Revocable, Role, parse};
use tepui_types::{AgentId, FrameworkId};

use super::Step;

const INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Bench {
    allocator: Allocator,
    now: Mono,
    /// Offers that nobody answered yet.
    offers: Vec<Grant>,
    pub(super) steps: Vec<Step>,
}

impl Bench {
    pub(super) fn new() -> Self {
        let options = Options { allocation_interval: INTERVAL, ..Options::default() };
        Self { allocator: Allocator::new(options), now: Mono(0), offers: Vec::new(), steps: Vec::new() }
    }

    /// Times `work` and everything the allocator decides because of it.
    pub(super) fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Allocator)) {
        let began = Instant::now();
        work(&mut self.allocator);
        let offers = self.settle();
        self.steps.push(Step { name, offers, took: began.elapsed() });
    }

    /// Times `work` while the allocator is paused.
    pub(super) fn paused_step(&mut self, name: &'static str, work: impl FnOnce(&mut Allocator)) {
        let began = Instant::now();
        work(&mut self.allocator);
        self.steps.push(Step { name, offers: 0, took: began.elapsed() });
    }

    /// Times one batch.
    pub(super) fn cycle(&mut self, name: &'static str) {
        self.now = self.now + INTERVAL;
        self.step(name, |_| ());
    }

    /// Work that is not timed and lets nothing be decided.
    pub(super) fn prepare(&mut self, work: impl FnOnce(&mut Allocator)) {
        work(&mut self.allocator);
    }

    /// Gives all offers back, not timed.
    pub(super) fn return_all(&mut self, refuse_seconds: f64) {
        let until = self.allocator.refusal(self.now, Some(refuse_seconds));
        for offer in self.offers.drain(..) {
            self.allocator.give_back(&offer.agent, &offer.framework, &offer.resources, until);
        }
    }

    fn settle(&mut self) -> usize {
        let before = self.offers.len();
        loop {
            self.offers.extend(self.allocator.allocate(self.now).grants);
            if self.allocator.deadline().is_none_or(|at| at > self.now) {
                return self.offers.len() - before;
            }
        }
    }
}

pub(super) fn agent_id(number: usize) -> AgentId {
    AgentId::new(format!("agent-{number}"))
}

pub(super) fn framework_id(number: usize) -> FrameworkId {
    FrameworkId::new(format!("framework-{number}"))
}

pub(super) fn agent(number: usize, total: &Resources) -> AgentSpec {
    AgentSpec {
        hostname: format!("agent-{number}").into(),
        capabilities: AgentCapabilities::ALL,
        total: total.clone(),
        ..AgentSpec::default()
    }
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
