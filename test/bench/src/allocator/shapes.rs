//! The shapes: who is there, what is used, what changes between the cycles.

use tepui_resources::{Resources, Role};
use tepui_types::FrameworkId;

use super::Step;
use super::bench::{Bench, agent, agent_id, framework, framework_id, port_ranges, resources, revocable_cpus};

/// Refused without end.
const FOR_EVER_SECS: f64 = f64::INFINITY;
const ALL_ROLES: &str = "*";

#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Two agents and two frameworks per role; everything is offered once.
    Roles,
    /// Agents come with tasks, then each gets revocable resources.
    AddAndUpdate,
    /// More and more frameworks want no offers.
    Suppress,
    /// All but one in a hundred want no offers.
    ExtremeSuppress,
    /// Everybody declines everything for ever.
    Decline,
    /// Agents with nothing on them, then every framework revives.
    Backlog,
}

impl Shape {
    pub(super) const ALL: &'static [Shape] = &[
        Shape::Roles,
        Shape::AddAndUpdate,
        Shape::Suppress,
        Shape::ExtremeSuppress,
        Shape::Decline,
        Shape::Backlog,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::Roles => "roles",
            Shape::AddAndUpdate => "add-and-update",
            Shape::Suppress => "suppress",
            Shape::ExtremeSuppress => "extreme-suppress",
            Shape::Decline => "decline",
            Shape::Backlog => "backlog",
        }
    }

    /// Agents and frameworks.
    pub(super) fn sizes(self) -> &'static [(usize, usize)] {
        match self {
            Shape::Roles => &[(20, 20), (200, 200), (2000, 2000)],
            Shape::AddAndUpdate => {
                &[(1000, 50), (1000, 1000), (5000, 200), (10_000, 200), (10_000, 1000), (50_000, 1000)]
            }
            Shape::Suppress => &[(1000, 200), (10_000, 200), (10_000, 1000)],
            Shape::ExtremeSuppress => &[(10_000, 1000), (10_000, 6000)],
            Shape::Decline => &[(1000, 50), (1000, 200), (10_000, 200)],
            Shape::Backlog => &[(10_000, 1000)],
        }
    }

    pub(super) fn run(self, agents: usize, frameworks: usize) -> Vec<Step> {
        let mut bench = Bench::new();
        match self {
            Shape::Roles => roles(&mut bench, agents, frameworks),
            Shape::AddAndUpdate => add_and_update(&mut bench, agents, frameworks),
            Shape::Suppress => suppress(&mut bench, agents, frameworks),
            Shape::ExtremeSuppress => extreme_suppress(&mut bench, agents, frameworks),
            Shape::Decline => decline(&mut bench, agents, frameworks),
            Shape::Backlog => backlog(&mut bench, agents, frameworks),
        }
        bench.steps
    }
}

fn roles(bench: &mut Bench, agents: usize, frameworks: usize) {
    let total = resources("cpus:2;mem:2048;disk:2048");
    add_agents(bench, agents, &total, 0, &Resources::new());
    bench.paused_step("add frameworks", |allocator| {
        for number in 0..frameworks {
            allocator.add_framework(framework(number, &format!("role-{}", number / 2)));
        }
    });
    bench.cycle("first cycle");
    look_again(bench, agents);
    bench.cycle("second cycle");
}

fn add_and_update(bench: &mut Bench, agents: usize, frameworks: usize) {
    let total = resources("cpus:2;mem:1024;disk:4096;ports:[31000-32000]");
    let used = resources(&format!("cpus:1;mem:128;disk:1024;{}", port_ranges(4, 2)));
    add_frameworks(bench, frameworks);
    add_agents(bench, agents, &total, frameworks, &used);
    let more = total + &revocable_cpus(10);
    bench.step("update agents", |allocator| {
        for number in 0..agents {
            allocator.update_agent(&agent_id(number), agent(number, &more));
        }
    });
}

fn suppress(bench: &mut Bench, agents: usize, frameworks: usize) {
    busy_cluster(bench, agents, frameworks, 1024);
    let steps = 5;
    for step in 1..=steps {
        bench.return_all(0.0);
        bench.cycle("cycle");
        let wanted = frameworks * (step - 1) / steps..frameworks * step / steps;
        bench.prepare(|allocator| wanted.for_each(|number| allocator.suppress(&framework_id(number), &[])));
    }
    bench.return_all(0.0);
    bench.cycle("cycle, all suppressed");
}

fn extreme_suppress(bench: &mut Bench, agents: usize, frameworks: usize) {
    busy_cluster(bench, agents, frameworks, 1024);
    bench.prepare(|allocator| {
        (0..frameworks * 99 / 100).for_each(|number| allocator.suppress(&framework_id(number), &[]));
    });
    for _ in 0..3 {
        bench.return_all(0.0);
        bench.cycle("cycle");
    }
}

fn decline(bench: &mut Bench, agents: usize, frameworks: usize) {
    busy_cluster(bench, agents, frameworks, 2014);
    bench.return_all(FOR_EVER_SECS);
    bench.cycle("early cycle");
    // Every framework is to have declined every agent, so far as a cluster of this size lets that be awaited.
    let rounds = frameworks.min(2_000_000 / agents);
    for _ in 0..rounds {
        bench.return_all(FOR_EVER_SECS);
        bench.cycle("round");
        bench.steps.pop();
    }
    bench.return_all(FOR_EVER_SECS);
    bench.cycle("late cycle");
    look_again(bench, agents);
    bench.cycle("late cycle, all agents again");
    bench.cycle("late cycle, no change");
}

fn backlog(bench: &mut Bench, agents: usize, frameworks: usize) {
    let total = resources("cpus:24;mem:4096;disk:4096;ports:[31000-32000]");
    add_frameworks(bench, frameworks);
    add_agents(bench, agents, &total, 0, &Resources::new());
    bench.step("revive all", |allocator| {
        (0..frameworks).for_each(|number| allocator.revive(&framework_id(number), &[]));
    });
}

/// Agents on which one framework each uses cpus, this much memory, and ports in 16 ranges.
fn busy_cluster(bench: &mut Bench, agents: usize, frameworks: usize, used_mem: u32) {
    let total = resources("cpus:24;mem:4096;disk:4096;ports:[31000-32000]");
    let used = resources(&format!("cpus:16;mem:{used_mem};disk:1024;{}", port_ranges(16, 10)));
    add_frameworks(bench, frameworks);
    add_agents(bench, agents, &total, frameworks, &used);
}

fn add_frameworks(bench: &mut Bench, frameworks: usize) {
    bench.step("add frameworks", |allocator| {
        (0..frameworks).for_each(|number| allocator.add_framework(framework(number, ALL_ROLES)));
    });
}

/// Agents on which the frameworks, if there are any, use something in turn.
fn add_agents(bench: &mut Bench, agents: usize, total: &Resources, frameworks: usize, used: &Resources) {
    let used = used.clone().allocate(&Role::from(ALL_ROLES));
    let held = |number: usize| -> Vec<(FrameworkId, Resources)> {
        let framework = number.checked_rem(frameworks);
        framework.map(|framework| (framework_id(framework), used.clone())).into_iter().collect()
    };
    bench.step("add agents", |allocator| {
        for number in 0..agents {
            allocator.add_agent(agent_id(number), agent(number, total), held(number));
        }
    });
}

/// Makes the next cycle look at every agent, changed or not.
fn look_again(bench: &mut Bench, agents: usize) {
    bench.prepare(|allocator| (0..agents).for_each(|number| allocator.activate_agent(&agent_id(number))));
}
