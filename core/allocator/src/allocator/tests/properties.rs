//! Random histories: the ledger stays correct, no client gets more than was free or than quota allows, clients are
//! served in the order of shares, and no resources stay idle that a client could have.

use alloc::vec;

use proptest::prelude::*;
use tepui_resources::Quantities;

use super::reference::{Ordered, Reference, Settings};
use super::*;
use crate::Quota;
use crate::slack_books::is_slack;

const AGENTS: usize = 4;
const FRAMEWORKS: usize = 4;
const ROLES: [&str; 4] = ["a", "a/x", "b", "*"];

#[derive(Clone, Debug)]
enum Step {
    AddAgent(usize, usize),
    UpdateAgent(usize, usize),
    RemoveAgent(usize),
    AgentActive(usize, bool),
    Unavailable(usize, bool),
    Framework(usize, u8, bool),
    RemoveFramework(usize),
    FrameworkActive(usize, bool),
    Suppress(usize, usize),
    Revive(usize, usize),
    Weight(usize, u8),
    Quota(usize, u8, u8),
    /// After so many milliseconds, with time for so many agents.
    Allocate(u64, usize),
    Decline(usize, Option<u8>),
    Launch(usize, u8),
    Release(usize),
    Occupy(usize, usize, usize),
    Reserve(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let agent = || 0..AGENTS;
    let framework = || 0..FRAMEWORKS;
    let role = || 0..ROLES.len();
    let shape = || 0..TOTALS.len();
    prop_oneof![
        4 => (agent(), shape()).prop_map(|(a, n)| Step::AddAgent(a, n)),
        1 => (agent(), shape()).prop_map(|(a, n)| Step::UpdateAgent(a, n)),
        1 => agent().prop_map(Step::RemoveAgent),
        1 => (agent(), any::<bool>()).prop_map(|(a, on)| Step::AgentActive(a, on)),
        1 => (agent(), any::<bool>()).prop_map(|(a, on)| Step::Unavailable(a, on)),
        4 => (framework(), 1..16u8, any::<bool>()).prop_map(|(f, roles, all)| Step::Framework(f, roles, all)),
        1 => framework().prop_map(Step::RemoveFramework),
        1 => (framework(), any::<bool>()).prop_map(|(f, on)| Step::FrameworkActive(f, on)),
        1 => (framework(), role()).prop_map(|(f, r)| Step::Suppress(f, r)),
        1 => (framework(), role()).prop_map(|(f, r)| Step::Revive(f, r)),
        1 => (role(), 1..9u8).prop_map(|(r, weight)| Step::Weight(r, weight)),
        2 => (role(), 0..6u8, 0..6u8).prop_map(|(r, least, most)| Step::Quota(r, least, most)),
        8 => (0..3_000u64, 1..6usize).prop_map(|(millis, pieces)| Step::Allocate(millis, pieces)),
        3 => (any::<usize>(), proptest::option::of(0..9u8)).prop_map(|(n, seconds)| Step::Decline(n, seconds)),
        4 => (any::<usize>(), 0..4u8).prop_map(|(n, part)| Step::Launch(n, part)),
        3 => any::<usize>().prop_map(Step::Release),
        1 => (agent(), framework(), role()).prop_map(|(a, f, r)| Step::Occupy(a, f, r)),
        1 => any::<usize>().prop_map(Step::Reserve),
    ]
}

const TOTALS: [&str; 5] = [
    "cpus:4 mem:64 ports:1-9",
    "cpus:1 mem:64 cpus(a):2 cpus!:3",
    "cpus:2 disk(a)@v&:10 mem(b):64",
    "cpus(a,a/x):4 mem:999 disk:5",
    "mem:10 cpus:0.5",
];

/// What the master would remember.
struct World {
    allocator: Allocator,
    now: u64,
    settings: Settings,
    offers: Vec<Grant>,
    tasks: Vec<Grant>,
}

fn agent_named(n: usize) -> AgentId {
    AgentId::new(format!("A{n}"))
}

fn framework_named(n: usize) -> FrameworkId {
    FrameworkId::new(format!("F{n}"))
}

fn spec_of(shape: usize) -> AgentSpec {
    agent_spec(&TOTALS[shape].split_whitespace().collect::<Vec<_>>()).0
}

impl World {
    fn new(allocation_slack: bool) -> Self {
        // Waiting for the batch is not what is tested here.
        let allocator = Allocator::new(Options { allocation_slack, ..Options::default() });
        Self { allocator, now: 0, settings: Settings::default(), offers: Vec::new(), tasks: Vec::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::AddAgent(a, shape) => {
                if self.allocator.total(&agent_named(a)).is_none() {
                    self.allocator.add_agent(agent_named(a), spec_of(shape), Vec::new());
                }
            }
            Step::UpdateAgent(a, shape) => {
                self.allocator.update_agent(&agent_named(a), spec_of(shape));
            }
            Step::RemoveAgent(a) => {
                self.allocator.remove_agent(&agent_named(a));
                self.forget(|grant| grant.agent == agent_named(a));
            }
            Step::AgentActive(a, true) => self.allocator.activate_agent(&agent_named(a)),
            Step::AgentActive(a, false) => self.allocator.deactivate_agent(&agent_named(a)),
            Step::Unavailable(a, on) => self.allocator.set_unavailable(&agent_named(a), on),
            Step::Framework(f, roles, capable) => self.framework(f, roles, capable),
            Step::RemoveFramework(f) => {
                self.allocator.remove_framework(&framework_named(f));
                self.forget(|grant| grant.framework == framework_named(f));
            }
            Step::FrameworkActive(f, true) => self.allocator.activate_framework(&framework_named(f)),
            Step::FrameworkActive(f, false) => self.allocator.deactivate_framework(&framework_named(f)),
            Step::Suppress(f, r) => self.allocator.suppress(&framework_named(f), &[ROLES[r].into()]),
            Step::Revive(f, r) => self.allocator.revive(&framework_named(f), &[ROLES[r].into()]),
            Step::Weight(r, weight) => {
                let weight = f64::from(weight) / 5.0;
                self.settings.weights.insert(ROLES[r].into(), weight);
                self.allocator.set_weights(&BTreeMap::from([(ROLES[r].into(), weight)]));
            }
            Step::Quota(r, least, most) => self.quota(ROLES[r].into(), least, most),
            Step::Allocate(millis, pieces) => self.allocate(millis, pieces),
            Step::Decline(n, seconds) => self.decline(n, seconds),
            Step::Launch(n, part) => self.launch(n, part),
            Step::Release(n) => {
                if let Some(task) = take(&mut self.tasks, n) {
                    self.allocator.release(&task.agent, &task.framework, &task.resources);
                }
            }
            Step::Occupy(a, f, r) => self.occupy(a, f, ROLES[r].into()),
            Step::Reserve(n) => self.reserve(n),
        }
    }

    fn framework(&mut self, f: usize, roles: u8, capable: bool) {
        let mut spec = FrameworkSpec::new(framework_named(f), "*".into());
        let chosen = ROLES.iter().enumerate().filter(|(i, _)| roles & (1 << i) != 0);
        spec.roles = chosen.map(|(_, role)| Role::from(*role)).collect();
        if !capable {
            spec.capabilities.revocable_resources = false;
            spec.capabilities.shared_resources = false;
        }
        self.allocator.add_framework(spec);
    }

    /// A guarantee of `least` cpus and a limit on `most` cpus, and on mem as well if that is odd; 0 and 5 are none.
    fn quota(&mut self, role: Role, least: u8, most: u8) {
        let mut quota = Quota::default();
        quota.guarantees.set(&"cpus".into(), Scalar::from_count(u128::from(least)));
        if least % 2 == 1 {
            quota.guarantees.set(&"mem".into(), Scalar::from_count(50));
        }
        if most < 5 {
            quota.limits.set(&"cpus".into(), Scalar::from_count(u128::from(most)));
        }
        if most % 2 == 1 {
            quota.limits.set(&"mem".into(), Scalar::from_count(100));
        }
        self.settings.quotas.insert(role.clone(), quota.clone());
        self.allocator.set_quota(&role, quota);
    }

    fn reference(&self) -> Reference<'_> {
        Reference { allocator: &self.allocator, settings: &self.settings, order: Ordered::Clients }
    }

    /// Nothing that was granted broke a limit or made guarantees harder to meet.
    fn quota_held(&self, before: &BTreeMap<Role, Quantities>, lack_before: &Quantities) {
        for (role, quota) in &self.settings.quotas {
            let consumed = self.reference().consumed(role);
            for (name, limit) in quota.limits.iter() {
                let most = limit.max(before[role].get(name));
                assert!(consumed.get(name) <= most, "{role} consumes {consumed}, at most {most} of {name}");
            }
        }
        let lack = self.reference().all_required() - &self.reference().available();
        assert!(lack_before.contains(&lack), "guarantees lack {lack}, before they lacked {lack_before}");
    }

    fn allocate(&mut self, millis: u64, pieces: usize) {
        let roles = self.settings.quotas.keys();
        let consumed = roles.map(|role| (role.clone(), self.reference().consumed(role))).collect();
        let lack = self.reference().all_required() - &self.reference().available();
        self.grant(millis, pieces);
        self.quota_held(&consumed, &lack);
    }

    fn grant(&mut self, millis: u64, pieces: usize) {
        self.now += millis * 1_000_000;
        let free = |allocator: &Allocator, id: &AgentId| allocator.free(id).cloned().unwrap_or_default();
        let ids: Vec<AgentId> = (0..AGENTS).map(agent_named).collect();
        let mut left: BTreeMap<AgentId, Resources> =
            ids.iter().map(|id| (id.clone(), free(&self.allocator, id))).collect();
        let over = |allocator: &Allocator| -> Vec<Resources> {
            (0..AGENTS).map(|n| allocator.over_lent(&agent_named(n))).collect()
        };
        let over_before = over(&self.allocator);
        for grant in self.allocator.allocate(Mono(self.now), &mut pieces_of_work(pieces)).grants {
            let given = grant.resources.filter(|one| !is_slack(one)).unallocate();
            let left = left.get_mut(&grant.agent).expect("grants are of agents that exist");
            assert!(left.contains(&given), "{given} is granted, {left} is free");
            *left -= &given.non_shared();
            self.offers.push(grant);
        }
        assert_eq!(over(&self.allocator), over_before, "nothing is lent that is not idle");
        for (id, left) in left {
            assert_eq!(free(&self.allocator, &id), left, "what was not granted is free");
        }
    }

    fn decline(&mut self, n: usize, seconds: Option<u8>) {
        let Some(offer) = take(&mut self.offers, n) else { return };
        let until =
            seconds.and_then(|seconds| self.allocator.refusal(Mono(self.now), Some(f64::from(seconds))));
        self.allocator.decline(&offer.agent, &offer.framework, &offer.resources, until);
    }

    fn launch(&mut self, n: usize, part: u8) {
        let Some(offer) = take(&mut self.offers, n) else { return };
        let used: Resources = offer.resources.iter().skip(usize::from(part)).cloned().collect();
        self.allocator.launch(&offer.agent, &offer.framework, &used);
        let rest = &offer.resources - &used.non_shared();
        self.allocator.decline(&offer.agent, &offer.framework, &rest, None);
        self.tasks.push(Grant { resources: used, ..offer });
    }

    fn occupy(&mut self, a: usize, f: usize, role: Role) {
        if self.allocator.total(&agent_named(a)).is_some() {
            let resources = resources("cpus:1 mem:1").allocate(&role);
            let (agent, framework) = (agent_named(a), framework_named(f));
            self.allocator.occupy(&agent, &framework, &resources);
            self.tasks.push(Grant { framework, role, agent, resources });
        }
    }

    fn reserve(&mut self, n: usize) {
        let Some(offer) = take(&mut self.offers, n) else { return };
        let plain = offer.resources.unreserved().non_revocable();
        let reserved = match offer.role.as_str() {
            "*" => plain.clone(),
            _ => plain.clone().push_reservation(&Reservation::dynamic(offer.role.clone())),
        };
        let holder = Holder::Offered(&offer.framework);
        let had_total = self.allocator.total(&offer.agent).expect("offers are of agents that exist");
        // An agent that came back smaller may not have it any more.
        if had_total.contains(&plain.clone().unallocate()) {
            assert!(self.allocator.convert(&offer.agent, holder, &plain, &reserved));
            self.offers.push(Grant { resources: &(&offer.resources - &plain) + &reserved, ..offer });
        } else {
            self.offers.push(offer);
        }
    }

    fn forget(&mut self, gone: impl Fn(&Grant) -> bool) {
        self.offers.retain(|offer| !gone(offer));
        self.tasks.retain(|task| !gone(task));
    }

    /// After a complete run no client could be offered anything, except what it declined.
    fn nothing_lies_idle(&mut self) {
        for _ in 0..20 {
            self.allocate(5_000, 3);
        }
        let idle = self.reference().idle();
        assert!(idle.is_empty(), "{}", idle.join("\n"));
    }
}

fn take<T>(items: &mut Vec<T>, n: usize) -> Option<T> {
    (!items.is_empty()).then(|| items.swap_remove(n % items.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn random_steps_keep_allocator_accounting_exact(slack: bool, steps in proptest::collection::vec(any_step(), 1..120)) {
        let mut world = World::new(slack);
        for step in steps {
            let told = format!("{step:?}");
            world.step(step);
            if let Err(wrong) = world.allocator.audit() {
                panic!("after {told}: {wrong}");
            }
            for order in [Ordered::Clients, Ordered::Borrowers] {
                let reference = Reference { order, ..world.reference() };
                prop_assert_eq!(reference.served_order(), reference.naive_order(), "{:?} after {}", order, told);
            }
        }
        world.nothing_lies_idle();
    }
}

#[test]
fn same_seed_gives_the_same_grants() {
    let run = |seed| {
        let mut allocator = Allocator::new(Options { seed, ..Options::default() });
        for n in 0..20 {
            allocator.add_framework(FrameworkSpec::new(framework_named(n), ROLES[n % 4].into()));
            allocator.add_agent(agent_named(n), spec_of(0), Vec::new());
        }
        allocator.allocate(Mono(0), &mut unlimited)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Histories that once left something idle.
#[test]
fn recorded_regressions_leave_no_resource_idle() {
    use Step::{AddAgent, Allocate, Decline, Framework, Quota, UpdateAgent};
    for steps in [
        vec![
            Quota(1, 1, 0),
            AddAgent(2, 3),
            AddAgent(1, 2),
            Allocate(0, 3),
            Framework(0, 11, false),
            Allocate(0, 3),
            AddAgent(0, 0),
            Quota(1, 1, 1),
            Allocate(1000, 3),
            UpdateAgent(2, 0),
        ],
        vec![
            Framework(0, 9, false),
            AddAgent(0, 1),
            AddAgent(1, 0),
            AddAgent(2, 1),
            Quota(3, 2, 4),
            Allocate(0, 3),
            Decline(0, None),
        ],
    ] {
        let mut world = World::new(false);
        for step in steps {
            world.step(step);
        }
        world.nothing_lies_idle();
    }
}
