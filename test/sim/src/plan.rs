//! The parameters of one seed: cluster size and fault rates.
//!
//! Most seeds have few kinds of faults, which reach deeper states than all at once. A few seeds have all of them, and a few
//! have a large cluster.

use crate::chance::{Rng, SECOND, Source, between};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) agents: usize,
    pub(crate) frameworks: usize,
    /// How long the phase with faults lasts.
    pub(crate) faults_for: u64,
    /// The mean time between two faults of a kind; unset: never.
    pub(crate) master_crashes: Option<u64>,
    pub(crate) agent_crashes: Option<u64>,
    pub(crate) reboots: Option<u64>,
    pub(crate) framework_crashes: Option<u64>,
    pub(crate) breaks: Option<u64>,
    pub(crate) stalls: Option<u64>,
    pub(crate) partitions: Option<u64>,
    pub(crate) gone: Option<u64>,
    pub(crate) departures: Option<u64>,
    pub(crate) pauses: Option<u64>,
    pub(crate) operators: Option<u64>,
    /// The mean time between launches by the container API; unset: none.
    pub(crate) callers: Option<u64>,
    /// How likely a write takes long.
    pub(crate) slow_disk: f64,
    /// How likely a container takes long, fails, or hangs.
    pub(crate) bad_containers: f64,
    /// The probability of a late acknowledgement.
    pub(crate) late_acknowledgements: f64,
    pub(crate) offer_timeout: Option<u64>,
    /// At most one agent is removed in this time.
    pub(crate) removal_pace: Option<u64>,
    /// The limit of completed entries in the master.
    pub(crate) history_max: usize,
    pub(crate) ping_timeout: u64,
    pub(crate) reregister_timeout: u64,
    pub(crate) executor_registration_timeout: u64,
    pub(crate) recovery_timeout: u64,
    /// Frameworks share volumes, resize them and run tasks on them.
    pub(crate) volumes: bool,
    /// Agents have reservations, and some frameworks borrow idle ones.
    pub(crate) slack: bool,
    /// Turns of the master have time for a few agents only.
    pub(crate) short_turns: bool,
    /// The probability that a new task reuses the id of a terminated one.
    pub(crate) reused_ids: f64,
    /// Tasks have health checks and checks.
    pub(crate) checks: bool,
    pub(crate) clock_jumps: Option<u64>,
    pub(crate) full_disks: Option<u64>,
    pub(crate) failed_writes: Option<u64>,
    pub(crate) torn_writes: Option<u64>,
    pub(crate) rollbacks: Option<u64>,
    /// Agents evict tasks when memory runs short.
    pub(crate) evictions: bool,
    /// Oversubscribed cpus of an agent, until its machine is too busy.
    pub(crate) oversubscribed_cpus: Option<u64>,
    /// Frameworks differ in the users that they may use.
    pub(crate) authorization: bool,
    /// Frameworks avoid some agents.
    pub(crate) constraints: bool,
    /// Tasks have limits above their requests.
    pub(crate) limits: bool,
    pub(crate) masters: usize,
    /// Of the leader among several masters.
    pub(crate) lease: Option<u64>,
    pub(crate) etcd_partitions: Option<u64>,
    /// A Swarm manager, and a Docker engine beside each agent.
    pub(crate) swarm: Option<SwarmPlan>,
}

/// The mean time between two faults of a kind; unset: never.
#[derive(Clone, Debug)]
pub(crate) struct SwarmPlan {
    pub(crate) crashes: Option<u64>,
    pub(crate) engine_restarts: Option<u64>,
    pub(crate) engine_breaks: Option<u64>,
    pub(crate) holder_kills: Option<u64>,
}

/// The share of seeds with a large cluster.
const LARGE: f64 = 0.01;
/// The share of seeds with a Swarm manager; not those with a large cluster.
const SWARM: f64 = 0.25;
/// The share of seeds with all kinds of faults.
const EVERYTHING: f64 = 0.05;

/// Later features use a separate generator: seeds without them keep their history.
const LATER: u64 = 0x7465_7075_695f_3032;

impl Plan {
    /// Every value is a named part: a recorded history stays valid when others are added.
    pub(crate) fn draw(source: &Source, rng: &mut Rng) -> Self {
        let mut later = source.rng("later", LATER);
        let everything = later.part("plan.everything").chance(EVERYTHING);
        let is_large = later.part("plan.large").chance(LARGE);
        let likely = |share| if everything { 1.0 } else { share };
        let slack = later.part("plan.slack").chance(0.4);
        let lease = later.part("plan.lease").chance(0.3).then(|| between(&mut later, 3, 10) * SECOND);
        let (agents, frameworks, seconds) = match is_large {
            true => ((20, 50), (8, 20), (10, 30)),
            false => ((1, 4), (1, 3), (20, 120)),
        };
        Plan {
            agents: between(rng.part("plan.agents"), agents.0, agents.1) as usize,
            frameworks: between(rng.part("plan.frameworks"), frameworks.0, frameworks.1) as usize,
            faults_for: between(rng.part("plan.faults_for"), seconds.0, seconds.1) * SECOND,
            master_crashes: sometimes(rng.part("plan.master_crashes"), likely(0.5), 10, 60),
            agent_crashes: sometimes(rng.part("plan.agent_crashes"), likely(0.5), 5, 40),
            reboots: sometimes(rng.part("plan.reboots"), likely(0.15), 20, 60),
            framework_crashes: sometimes(rng.part("plan.framework_crashes"), likely(0.4), 5, 40),
            breaks: sometimes(rng.part("plan.breaks"), likely(0.5), 2, 20),
            stalls: sometimes(rng.part("plan.stalls"), likely(0.3), 2, 20),
            partitions: sometimes(rng.part("plan.partitions"), likely(0.4), 10, 40),
            gone: sometimes(rng.part("plan.gone"), likely(0.15), 20, 60),
            departures: sometimes(rng.part("plan.departures"), likely(0.1), 20, 60),
            pauses: sometimes(rng.part("plan.pauses"), likely(0.3), 5, 30),
            slow_disk: either(rng.part("plan.slow_disk"), 0.3, 0.1, 0.01),
            bad_containers: either(rng.part("plan.bad_containers"), 0.3, 0.2, 0.02),
            late_acknowledgements: either(rng.part("plan.late_acknowledgements"), 0.3, 0.3, 0.02),
            removal_pace: rng.part("plan.removal_pace").chance(0.3).then(|| between(rng, 1, 10) * SECOND),
            history_max: if rng.part("plan.history_max").chance(0.5) {
                between(rng, 0, 3) as usize
            } else {
                1000
            },
            offer_timeout: rng.part("plan.offer_timeout").chance(0.3).then(|| between(rng, 2, 20) * SECOND),
            ping_timeout: between(rng.part("plan.ping_timeout"), 2, 6) * SECOND,
            reregister_timeout: between(rng.part("plan.reregister_timeout"), 10, 40) * SECOND,
            executor_registration_timeout: between(rng.part("plan.executor_registration_timeout"), 5, 30)
                * SECOND,
            recovery_timeout: between(rng.part("plan.recovery_timeout"), 20, 120) * SECOND,
            volumes: later.part("plan.volumes").chance(0.4),
            operators: sometimes(later.part("plan.operators"), likely(0.4), 2, 20),
            slack,
            short_turns: later.part("plan.short_turns").chance(0.4),
            reused_ids: if later.part("plan.reused_ids").chance(0.5) { 0.6 } else { 0.0 },
            callers: later.part("plan.callers").chance(0.4).then(|| between(&mut later, 2, 30) * SECOND / 10),
            checks: later.part("plan.checks").chance(0.5),
            clock_jumps: sometimes(later.part("plan.clock_jumps"), likely(0.3), 2, 20),
            full_disks: sometimes(later.part("plan.full_disks"), likely(0.2), 5, 30),
            failed_writes: sometimes(later.part("plan.failed_writes"), likely(0.2), 5, 40),
            torn_writes: sometimes(later.part("plan.torn_writes"), likely(0.1), 10, 60),
            rollbacks: sometimes(later.part("plan.rollbacks"), likely(0.1), 10, 60),
            evictions: later.part("plan.evictions").chance(0.3),
            oversubscribed_cpus: later
                .part("plan.oversubscribed_cpus")
                .chance(0.4)
                .then(|| between(&mut later, 1, 4))
                .filter(|_| !slack),
            authorization: later.part("plan.authorization").chance(0.4),
            constraints: later.part("plan.constraints").chance(0.3),
            limits: later.part("plan.limits").chance(0.4),
            masters: lease.map_or(1, |_| between(later.part("plan.masters"), 2, 3) as usize),
            lease,
            etcd_partitions: sometimes(later.part("plan.etcd_partitions"), likely(0.6), 5, 30)
                .filter(|_| lease.is_some()),
            swarm: SwarmPlan::draw(&mut later, likely).filter(|_| !is_large),
        }
    }
}

impl SwarmPlan {
    fn draw(rng: &mut Rng, likely: impl Fn(f64) -> f64) -> Option<Self> {
        rng.part("plan.swarm").chance(SWARM).then(|| SwarmPlan {
            crashes: sometimes(rng.part("plan.swarm_crashes"), likely(0.6), 3, 30),
            engine_restarts: sometimes(rng.part("plan.engine_restarts"), likely(0.4), 5, 40),
            engine_breaks: sometimes(rng.part("plan.engine_breaks"), likely(0.4), 3, 30),
            holder_kills: sometimes(rng.part("plan.holder_kills"), likely(0.4), 3, 30),
        })
    }
}

fn either(rng: &mut Rng, likely: f64, one: f64, other: f64) -> f64 {
    if rng.chance(likely) { one } else { other }
}

fn sometimes(rng: &mut Rng, likely: f64, low: u64, high: u64) -> Option<u64> {
    let (comes, mean) = (rng.chance(likely), between(rng, low, high) * SECOND);
    comes.then_some(mean)
}
