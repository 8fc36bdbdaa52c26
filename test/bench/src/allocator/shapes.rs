//! The shapes: who is there, what is used, what changes between the cycles.

use std::sync::Arc;

use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use super::bench::{
    Bench, agent, agent_id, framework, framework_id, named_agent, port_ranges, resources, revocable_cpus,
};
use super::{Step, cluster, others, quotas};

/// Refused without end.
pub(super) const FOR_EVER_SECS: f64 = f64::INFINITY;
const ALL_ROLES: &str = "*";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As many roles and frameworks as agents, each role with a quota: most of half an agent, some of two.
    QuotaManyRoles,
    /// Two agents and two frameworks per role; everything is offered once.
    Roles,
    /// The same with a quota of two agents for each role.
    QuotaRoles,
    /// Agents come with tasks, then each gets revocable resources.
    AddAndUpdate,
    /// More and more frameworks want no offers.
    Suppress,
    /// All but one in a hundred want no offers.
    ExtremeSuppress,
    /// All offers are declined for ever.
    Decline,
    /// Agents with nothing on them, then every framework revives.
    Backlog,
    /// A role with a quota for each framework, then agents come.
    QuotaPerFramework,
    /// Agents with reservations, a volume each, and tasks.
    Volumes,
    /// The same with shared volumes.
    SharedVolumes,
    /// One agent with labelled reservations of hundreds of roles; one more is made and undone.
    Reservations,
    /// Few large agents and many frameworks that launch something in every round.
    MultiFramework,
    /// What is held by many, without offers.
    Sorter,
    /// The same in a deep tree of roles.
    SorterTree,
    /// A whole cluster: roles of one and of many frameworks, reservations on a third of the agents.
    Cluster,
}

impl Shape {
    pub(super) const ALL: &'static [Shape] = &[
        Shape::QuotaManyRoles,
        Shape::Roles,
        Shape::QuotaRoles,
        Shape::AddAndUpdate,
        Shape::Suppress,
        Shape::ExtremeSuppress,
        Shape::Decline,
        Shape::Backlog,
        Shape::QuotaPerFramework,
        Shape::Volumes,
        Shape::SharedVolumes,
        Shape::Reservations,
        Shape::MultiFramework,
        Shape::Sorter,
        Shape::SorterTree,
        Shape::Cluster,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::QuotaManyRoles => "quota-many-roles",
            Shape::Roles => "roles",
            Shape::QuotaRoles => "quota-roles",
            Shape::AddAndUpdate => "add-and-update",
            Shape::Suppress => "suppress",
            Shape::ExtremeSuppress => "extreme-suppress",
            Shape::Decline => "decline",
            Shape::Backlog => "backlog",
            Shape::QuotaPerFramework => "quota-per-framework",
            Shape::Volumes => "volumes",
            Shape::SharedVolumes => "shared-volumes",
            Shape::Reservations => "reservations",
            Shape::MultiFramework => "multi-framework",
            Shape::Sorter => "sorter",
            Shape::SorterTree => "sorter-tree",
            Shape::Cluster => "cluster",
        }
    }

    /// Agents and frameworks.
    pub(super) fn sizes(self) -> &'static [(usize, usize)] {
        match self {
            Shape::QuotaManyRoles => &[(30, 30), (300, 300), (3000, 3000)],
            Shape::Roles | Shape::QuotaRoles => &[(20, 20), (200, 200), (2000, 2000)],
            Shape::AddAndUpdate => {
                &[(1000, 50), (1000, 1000), (5000, 200), (10_000, 200), (10_000, 1000), (50_000, 1000)]
            }
            Shape::Suppress => &[(1000, 200), (10_000, 200), (10_000, 1000)],
            Shape::ExtremeSuppress => &[(10_000, 1000), (10_000, 6000)],
            Shape::Decline => &[(1000, 50), (1000, 200), (10_000, 200)],
            Shape::Backlog | Shape::QuotaPerFramework => &[(10_000, 1000)],
            Shape::Volumes | Shape::SharedVolumes => &[(10_000, 200)],
            Shape::Reservations => &[(1, 200)],
            Shape::MultiFramework => &[(80, 554)],
            Shape::Sorter => &[(50_000, 1000)],
            Shape::SorterTree => &[(10_000, 1022)],
            Shape::Cluster => &[(1000, 50), (5000, 100), (10_000, 200), (25_000, 500), (50_000, 1000)],
        }
    }

    /// How many frameworks go with so many agents.
    pub(super) fn frameworks(self, agents: usize) -> usize {
        match self {
            Shape::QuotaManyRoles | Shape::Roles | Shape::QuotaRoles => agents,
            _ => (agents / 50).clamp(2, 1000),
        }
    }

    pub(super) fn run(self, agents: usize, frameworks: usize) -> Vec<Step> {
        let mut bench = Bench::new();
        match self {
            Shape::QuotaManyRoles => quotas::many_roles(&mut bench, agents, frameworks),
            Shape::Roles => roles(&mut bench, agents, frameworks),
            Shape::QuotaRoles => quotas::roles(&mut bench, agents, frameworks),
            Shape::AddAndUpdate => add_and_update(&mut bench, agents, frameworks),
            Shape::Suppress => suppress(&mut bench, agents, frameworks),
            Shape::ExtremeSuppress => extreme_suppress(&mut bench, agents, frameworks),
            Shape::Decline => decline(&mut bench, agents, frameworks),
            Shape::Backlog => backlog(&mut bench, agents, frameworks),
            Shape::QuotaPerFramework => quotas::per_framework(&mut bench, agents, frameworks),
            Shape::Volumes => others::volumes(&mut bench, agents, frameworks, false),
            Shape::SharedVolumes => others::volumes(&mut bench, agents, frameworks, true),
            Shape::Reservations => others::reservations(&mut bench, frameworks),
            Shape::MultiFramework => others::multi_framework(&mut bench, agents, frameworks),
            Shape::Sorter => others::sorter(&mut bench, agents, frameworks),
            Shape::SorterTree => others::sorter_tree(&mut bench, agents, frameworks),
            Shape::Cluster => cluster::cluster(&mut bench, agents, frameworks),
        }
        bench.weigh();
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
    two_cycles(bench, agents);
}

/// One that gives and one that finds nothing to give; and one that knows that before looking.
pub(super) fn two_cycles(bench: &mut Bench, agents: usize) {
    bench.cycle("first cycle");
    look_again(bench, agents);
    bench.cycle("second cycle");
    bench.cycle("cycle, nothing changed");
}

fn add_and_update(bench: &mut Bench, agents: usize, frameworks: usize) {
    let total = resources("cpus:2;mem:1024;disk:4096;ports:[31000-32000]");
    let used = resources(&format!("cpus:1;mem:128;disk:1024;{}", port_ranges(4, 2)));
    add_frameworks(bench, frameworks);
    let more = total.clone() + &revocable_cpus(10);
    let updates: Vec<_> = (0..agents).map(|number| (agent_id(number), agent(number, &more))).collect();
    add_known_agents(bench, agents, |_| total.clone(), Some((frameworks, used.allocate(&ALL_ROLES.into()))));
    bench.step("update agents", |allocator| {
        for (id, spec) in updates {
            allocator.update_agent(&id, spec);
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
    add_known_agents(bench, agents, |_| total.clone(), None);
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

/// Frameworks that are made before the clock runs, as the C++ benchmarks of these shapes do.
pub(super) fn add_frameworks(bench: &mut Bench, frameworks: usize) {
    let known: Vec<_> = (0..frameworks).map(|number| framework(number, ALL_ROLES)).collect();
    bench.step("add frameworks", |allocator| {
        known.into_iter().for_each(|spec| allocator.add_framework(spec));
    });
}

/// Agents on which the frameworks, if there are any, use something in turn.
pub(super) fn add_agents(
    bench: &mut Bench,
    agents: usize,
    total: &Resources,
    frameworks: usize,
    used: &Resources,
) {
    let used = used.clone().allocate(&Role::from(ALL_ROLES));
    let held = |number: usize| -> Vec<(FrameworkId, Resources)> {
        let framework = number.checked_rem(frameworks);
        framework.map(|framework| (framework_id(framework), used.clone())).into_iter().collect()
    };
    bench.step("add agents", |allocator| {
        for number in 0..agents {
            let name: Arc<str> = format!("agent-{number}").into();
            let spec = named_agent(name.clone(), total);
            allocator.add_agent(AgentId::new(name), spec, held(number));
        }
    });
}

/// The same with agents that are made before the clock runs, where the C++ benchmark does so.
pub(super) fn add_known_agents(
    bench: &mut Bench,
    agents: usize,
    total: impl Fn(usize) -> Resources,
    used: Option<(usize, Resources)>,
) {
    let held = |number: usize| -> Vec<(FrameworkId, Resources)> {
        let used = used.as_ref().map(|(frameworks, used)| (framework_id(number % frameworks), used.clone()));
        used.into_iter().collect()
    };
    let known: Vec<_> =
        (0..agents).map(|number| (agent_id(number), agent(number, &total(number)), held(number))).collect();
    bench.step("add agents", |allocator| {
        known.into_iter().for_each(|(id, spec, used)| allocator.add_agent(id, spec, used));
    });
}

/// Makes the next cycle look at every agent, changed or not.
pub(super) fn look_again(bench: &mut Bench, agents: usize) {
    bench.prepare(|allocator| (0..agents).for_each(|number| allocator.activate_agent(&agent_id(number))));
}
