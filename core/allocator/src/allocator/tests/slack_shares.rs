//! How slack is shared among borrowers: simulated clusters in which borrowers take loans, use them for a while or
//! decline them, once per second.

use proptest::prelude::*;
use tepui_fsm::Rng;

use super::*;
use crate::slack_books::is_slack;

/// What a borrower does with every offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// Uses all of it for 3 to 12 seconds.
    Uses,
    /// Uses one cpu of it for 3 to 12 seconds.
    UsesPart,
    /// Declines with `refuse_seconds` 0.
    Declines,
}

struct Borrower {
    role: &'static str,
    conduct: Conduct,
    /// Offers of slack.
    offers: usize,
    /// Sum over all seconds of the cpus that were lent and in use.
    cpu_seconds: i64,
}

struct Cluster {
    allocator: Allocator,
    seconds: u64,
    rng: Rng,
    borrowers: Vec<Borrower>,
    /// Tasks by the second they end.
    tasks: Vec<(u64, Grant)>,
}

impl Cluster {
    /// Each agent has 4 cpus that an owner reserved and does not use.
    fn new(agents: usize, seed: u64) -> Self {
        let mut allocator = Allocator::new(Options { allocation_slack: true, seed, ..Options::default() });
        for n in 0..agents {
            let (spec, _) = agent_spec(&["cpus(owner):4"]);
            allocator.add_agent(AgentId::new(format!("A{n}")), spec, Vec::new());
        }
        Self { allocator, seconds: 0, rng: Rng::seeded(seed), borrowers: Vec::new(), tasks: Vec::new() }
    }

    fn borrower(&mut self, role: &'static str, conduct: Conduct) {
        let name = format!("F{}", self.borrowers.len());
        self.allocator.add_framework(framework_spec(&name, &[&format!("role={role}")]));
        self.borrowers.push(Borrower { role, conduct, offers: 0, cpu_seconds: 0 });
    }

    fn weight(&mut self, role: &str, weight: f64) {
        self.allocator.set_weights(&BTreeMap::from([(Role::from(role), weight)]));
    }

    fn second(&mut self) {
        self.seconds += 1;
        let ended = self.tasks.extract_if(.., |(end, _)| *end <= self.seconds).collect::<Vec<_>>();
        for (_, task) in ended {
            self.allocator.release(&task.agent, &task.framework, &task.resources);
        }
        let now = Mono(self.seconds * 1_000_000_000);
        for grant in self.allocator.allocate(now, &mut unlimited).grants {
            self.answer(grant);
        }
        for (_, task) in &self.tasks {
            let number = number_of(&task.framework);
            self.borrowers[number].cpu_seconds += task.resources.cpus().thousandths();
        }
        self.allocator.audit().unwrap();
    }

    fn answer(&mut self, grant: Grant) {
        assert!(grant.resources.iter().all(is_slack), "the cluster has nothing else for borrowers");
        let borrower = &mut self.borrowers[number_of(&grant.framework)];
        borrower.offers += 1;
        let used = match borrower.conduct {
            Conduct::Uses => grant.resources.clone(),
            Conduct::UsesPart => resources("cpus~:1").allocate(&grant.role),
            Conduct::Declines => Resources::new(),
        };
        let Grant { agent, framework, resources, .. } = &grant;
        if !used.is_empty() {
            self.allocator.launch(agent, framework, &used);
            let end = self.seconds + 3 + self.rng.next_u64() % 10;
            self.tasks.push((end, Grant { resources: used.clone(), ..grant.clone() }));
        }
        let rest = resources - &used;
        if !rest.is_empty() {
            self.allocator.decline(agent, framework, &rest, None);
        }
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.second());
    }

    fn forget_the_past(&mut self) {
        for borrower in &mut self.borrowers {
            (borrower.offers, borrower.cpu_seconds) = (0, 0);
        }
    }

    /// What each of these had, as a part of what all of them had.
    fn parts(&self, roles: &[&str], of: impl Fn(&Borrower) -> f64) -> Vec<f64> {
        let sum = |role: &str| self.borrowers.iter().filter(|one| one.role == role).map(&of).sum::<f64>();
        let all: f64 = roles.iter().map(|role| sum(role)).sum();
        roles.iter().map(|role| sum(role) / all).collect()
    }
}

fn number_of(framework: &FrameworkId) -> usize {
    framework.as_str()[1..].parse().unwrap()
}

fn close(parts: &[f64], expected: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    for (part, expected) in parts.iter().zip(expected) {
        prop_assert!((part - expected).abs() <= tolerance, "{parts:?} instead of {expected}");
    }
    Ok(())
}

const WEIGHTED: [&str; 3] = ["a", "b", "c"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn shares_of_continuous_borrowers_converge_to_their_weights(
        seed: u64,
        weights in proptest::collection::vec(1..5u8, 3),
        part in any::<bool>(),
        decliners in 0..3usize,
    ) {
        let mut cluster = Cluster::new(30, seed);
        for (role, weight) in WEIGHTED.iter().zip(&weights) {
            cluster.weight(role, f64::from(*weight));
            cluster.borrower(role, if part { Conduct::UsesPart } else { Conduct::Uses });
        }
        (0..decliners).for_each(|_| cluster.borrower("d", Conduct::Declines));
        cluster.run(40);
        cluster.forget_the_past();
        cluster.run(160);
        let all: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        let expected: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / all).collect();
        close(&cluster.parts(&WEIGHTED, |one| one.cpu_seconds as f64), &expected, 0.06)?;
    }

    #[test]
    fn offers_to_borrowers_that_decline_follow_their_weights(
        seed: u64,
        weights in proptest::collection::vec(1..5u8, 3),
        // In turns, and side by side.
        agents in prop_oneof![Just(1), Just(30)],
    ) {
        let mut cluster = Cluster::new(agents, seed);
        for (role, weight) in WEIGHTED.iter().zip(&weights) {
            cluster.weight(role, f64::from(*weight));
            cluster.borrower(role, Conduct::Declines);
        }
        cluster.run(240);
        let all: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        let expected: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / all).collect();
        close(&cluster.parts(&WEIGHTED, |one| one.offers as f64), &expected, 0.06)?;
    }

    #[test]
    fn new_borrower_gets_offers_immediately_without_starving_others(
        seed: u64,
        settled in 20..200u64,
        decliners in 0..4usize,
        conduct in prop_oneof![Just(Conduct::Uses), Just(Conduct::UsesPart), Just(Conduct::Declines)],
    ) {
        let mut cluster = Cluster::new(1, seed);
        cluster.borrower("a", conduct);
        (0..decliners).for_each(|_| cluster.borrower("d", Conduct::Declines));
        cluster.run(settled);
        cluster.forget_the_past();
        cluster.borrower("new", conduct);
        // One task may have to terminate, and all other clients may be offered it once.
        cluster.run(13 + decliners as u64);
        prop_assert!(cluster.borrowers.last().unwrap().offers > 0, "the newcomer got no offer");
        cluster.forget_the_past();
        cluster.run(150);
        let roles = &["a", "new", "d"][..if decliners > 0 { 3 } else { 2 }];
        let parts = cluster.parts(roles, |one| one.offers as f64);
        prop_assert!(parts.iter().all(|part| *part > 0.1), "of the offers {roles:?} got {parts:?}");
        prop_assert!(cluster.borrowers.iter().all(|one| one.offers > 0), "somebody got none");
    }
}

#[test]
fn weights_count_at_every_level_of_the_role_tree() {
    let mut cluster = Cluster::new(60, 1);
    for (role, weight) in [("eng", 3.0), ("eng/web", 2.0)] {
        cluster.weight(role, weight);
    }
    for role in ["eng/web", "eng/db", "ops", "ops"] {
        cluster.borrower(role, Conduct::Uses);
    }
    cluster.run(40);
    cluster.forget_the_past();
    cluster.run(160);
    let parts = cluster.parts(&["eng/web", "eng/db", "ops"], |one| one.cpu_seconds as f64);
    close(&parts, &[0.5, 0.25, 0.25], 0.05).unwrap();
    let of_ops: Vec<i64> = cluster.borrowers[2..].iter().map(|one| one.cpu_seconds).collect();
    assert!((of_ops[0] - of_ops[1]).abs() * 10 < of_ops[0] + of_ops[1], "{of_ops:?}");
}

#[test]
fn a_borrower_with_loans_yields_to_one_without() {
    let mut cluster = Cluster::new(4, 5);
    cluster.borrower("rich", Conduct::Uses);
    cluster.run(1);
    assert_eq!(cluster.borrowers[0].offers, 4);
    cluster.borrower("poor", Conduct::Uses);
    cluster.run(40);
    let parts = cluster.parts(&["rich", "poor"], |one| one.offers as f64);
    assert!(parts[1] > 0.3, "{parts:?}");
}
