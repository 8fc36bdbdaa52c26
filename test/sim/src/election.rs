//! Several masters over etcd: one key that the leader creates and holds by a lease, and the registry, which only the
//! creator of that key can write.
//!
//! As in the program: a leader renews its lease after a third of it, acts as leader for nine tenths of it after the last
//! renewal by its own clock, and ends its term when that time, the key, or a write is lost. Later effects are discarded.
//! Clocks may run slowly, so a deposed leader may consider itself the leader for a while; its writes fail.

use tepui_core_master::Master;

use crate::chance::{MS, SECOND, between, mostly, pick};
use crate::check::Fact;
use crate::event::Event;
use crate::net::Node;
use crate::process::Process;
use crate::sabotage::Sabotage;
use crate::world::World;
use crate::{master, operator};

/// Between attempts while another master leads or etcd is unavailable.
const RETRY_PAUSE: u64 = 200 * MS;

/// One of the masters.
pub(crate) struct MasterNode {
    pub(crate) process: Process<Master>,
    /// Set while it leads, or believes so.
    tenure: Option<Tenure>,
    /// Until then it does not reach etcd.
    pub(crate) cut_off_until: u64,
    /// How much slower than etcd's its clock runs, in tenths.
    slow_tenths: u64,
}

#[derive(Clone, Copy, Debug)]
struct Tenure {
    /// Of the key that it made.
    revision: u64,
    trusted_until: u64,
}

/// The store that all masters share.
#[derive(Debug, Default)]
pub(crate) struct Etcd {
    /// Unset with a single master, which has its own store.
    lease: Option<u64>,
    seat: Option<Seat>,
    revision: u64,
    /// The registry is on this master's disk: the only one that could write since the key was created.
    writer: usize,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    revision: u64,
    expires_at: u64,
}

/// What happens in an election.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A master without a term campaigns.
    Campaign,
    Renew {
        life: u32,
    },
    /// The leadership expires unless the lease was renewed.
    Doubt {
        life: u32,
    },
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Step::Campaign => "campaign",
            Step::Renew { .. } => "renew",
            Step::Doubt { .. } => "doubt",
        }
    }
}

impl MasterNode {
    pub(crate) fn new() -> Self {
        MasterNode { process: Process::new(), tenure: None, cut_off_until: 0, slow_tenths: 0 }
    }
}

impl Etcd {
    pub(crate) fn new(lease: Option<u64>) -> Self {
        Etcd { lease, ..Default::default() }
    }
}

impl World {
    /// The master that leads in truth, if it runs.
    pub(crate) fn leader(&self) -> Option<&Master> {
        self.masters[self.leading()?].process.machine.as_ref()
    }

    pub(crate) fn leading(&self) -> Option<usize> {
        (0..self.masters.len()).find(|index| self.masters[*index].process.is_up() && self.is_seated(*index))
    }

    /// Whether this master created the leader's key.
    pub(crate) fn is_seated(&self, index: usize) -> bool {
        let revision = self.masters[index].tenure.map(|tenure| tenure.revision);
        let seat = self.etcd.seat.filter(|seat| seat.expires_at > self.queue.now());
        self.etcd.lease.is_none() || seat.is_some_and(|seat| Some(seat.revision) == revision)
    }

    /// Whether a master may believe that it leads.
    pub(crate) fn is_trusted(&self, index: usize) -> bool {
        let trusted =
            self.masters[index].tenure.is_some_and(|tenure| tenure.trusted_until > self.queue.now());
        self.etcd.lease.is_none() || trusted
    }

    fn reaches_etcd(&self, index: usize) -> bool {
        self.masters[index].cut_off_until <= self.queue.now()
    }

    /// The result of leader discovery: the leader, or one that was deposed without having detected it.
    pub(crate) fn find_master(&mut self) -> Option<usize> {
        let up = |index: &usize| self.masters[*index].process.is_up();
        let believers: Vec<usize> = (0..self.masters.len()).filter(up).collect();
        match self.leading() {
            Some(leader) if believers.len() == 1 || self.rng.chance(0.7) => Some(leader),
            _ => pick(&mut self.rng, &believers).copied(),
        }
    }
}

/// Lets a master start: at once if it is the only one, else when it is elected.
pub(crate) fn start(world: &mut World, index: usize) {
    match world.etcd.lease {
        None => master::start(world, index),
        Some(_) => step(world, index, Step::Campaign),
    }
}

pub(crate) fn step(world: &mut World, index: usize, step: Step) {
    let node = &world.masters[index];
    if node.process.paused_until > world.queue.now() {
        let at = node.process.paused_until;
        return world.queue.at(at, Event::Election { master: index, step });
    }
    match step {
        Step::Campaign => campaign(world, index),
        Step::Renew { life } if node.process.is_up() && node.process.life == life => renew(world, index),
        Step::Doubt { life } if node.process.is_up() && node.process.life == life => {
            if !world.is_trusted(index) {
                depose(world, index);
            }
        }
        Step::Renew { .. } | Step::Doubt { .. } => (),
    }
}

fn plan(world: &mut World, index: usize, wait: u64, step: Step) {
    world.queue.after(wait, Event::Election { master: index, step });
}

fn campaign(world: &mut World, index: usize) {
    let (Some(lease), now) = (world.etcd.lease, world.queue.now()) else { return };
    if world.masters[index].process.is_up() {
        return;
    }
    let is_taken = world.etcd.seat.is_some_and(|seat| seat.expires_at > now);
    let is_full = world.masters[index].process.hardware.is_full(now);
    if is_taken || is_full || !world.reaches_etcd(index) {
        let wait = RETRY_PAUSE + between(&mut world.rng, 0, RETRY_PAUSE);
        return plan(world, index, wait, Step::Campaign);
    }
    world.etcd.revision += 1;
    let revision = world.etcd.revision;
    world.etcd.seat = Some(Seat { revision, expires_at: now + lease });
    world.masters[index].tenure = Some(Tenure { revision, trusted_until: now });
    world.masters[index].slow_tenths = if world.rng.chance(0.7) { between(&mut world.rng, 3, 10) } else { 0 };
    trust(world, index, lease);
    let registry = std::mem::take(&mut world.masters[world.etcd.writer].process.disk);
    world.masters[index].process.disk = registry;
    world.etcd.writer = index;
    world.counts.elections += 1;
    world.trace_line(|| format!("M{index} is elected"));
    master::start(world, index);
    plan(world, index, lease / 3, Step::Renew { life: world.masters[index].process.life });
    plan_lease_end(world, index);
}

/// The lease counts from the request, less a tenth for clock drift.
fn trust(world: &mut World, index: usize, lease: u64) {
    let answered_in = mostly(&mut world.rng, MS, 20 * MS, 0.1, SECOND);
    let node = &mut world.masters[index];
    let by_own_clock = lease * 9 / 10 * (10 + node.slow_tenths) / 10;
    if let Some(tenure) = &mut node.tenure {
        let until = (world.queue.now() + by_own_clock).saturating_sub(answered_in);
        tenure.trusted_until = tenure.trusted_until.max(until);
    }
}

fn plan_lease_end(world: &mut World, index: usize) {
    let node = &world.masters[index];
    if let Some(tenure) = node.tenure {
        let step = Step::Doubt { life: node.process.life };
        world.queue.at(tenure.trusted_until, Event::Election { master: index, step });
    }
}

fn renew(world: &mut World, index: usize) {
    let Some(lease) = world.etcd.lease else { return };
    plan(world, index, lease / 3, Step::Renew { life: world.masters[index].process.life });
    if !world.reaches_etcd(index) {
        return;
    }
    if !world.is_seated(index) {
        return depose(world, index);
    }
    if let Some(seat) = &mut world.etcd.seat {
        seat.expires_at = world.queue.now() + lease;
    }
    trust(world, index, lease);
    plan_lease_end(world, index);
}

/// A term ends: its state is discarded, and the master becomes a candidate again.
pub(crate) fn depose(world: &mut World, index: usize) {
    if !world.masters[index].process.is_up() {
        return;
    }
    world.trace_line(|| format!("M{index} does not lead any more"));
    world.counts.lost_terms += 1;
    master::stop(world, index, 0);
    plan(world, index, RETRY_PAUSE, Step::Campaign);
}

/// Called before the effects of a master become visible: false, ending its term, if it may have been replaced.
pub(crate) fn may_send(world: &mut World, index: usize) -> bool {
    let trusted = world.is_trusted(index);
    if trusted && !world.is_seated(index) {
        world.counts.deposed_effects += 1;
    }
    if !trusted {
        depose(world, index);
    }
    trusted
}

/// Before the records of a master count as written: false if they are not, because etcd cannot be reached yet or because
/// another master leads.
pub(crate) fn may_write(world: &mut World, index: usize) -> bool {
    if world.etcd.lease.is_none() {
        return true;
    }
    if !world.reaches_etcd(index) {
        let at = world.masters[index].cut_off_until + MS;
        write_later(world, index, at);
        return false;
    }
    let seated = world.is_seated(index) || world.sabotage == Sabotage::Unfenced;
    if !seated {
        world.counts.fenced_writes += 1;
        depose(world, index);
    }
    seated
}

/// Retries the write of records later; meanwhile only effects that depend on no record become visible.
fn write_later(world: &mut World, index: usize, at: u64) {
    let process = &mut world.masters[index].process;
    process.block_on_full_disk();
    let (node, life) = (Node::Master(index), process.life);
    world.queue.at(at, Event::Synced { node, life });
}

/// etcd does not answer a write, which it may have carried out.
pub(crate) fn unanswered(world: &mut World, index: usize) {
    let can_write = world.is_seated(index) && world.reaches_etcd(index);
    if world.rng.chance(0.5) && can_write {
        world.trace_line(|| format!("M{index} wrote, and etcd does not answer"));
        world.masters[index].process.write_unanswered();
        for record in world.masters[index].process.writing() {
            world.checks.observe(&Fact::MasterStores(record));
        }
    }
    let wait = between(&mut world.rng, 500 * MS, 3 * SECOND);
    let at = world.queue.now() + wait;
    write_later(world, index, at);
}

/// What a master was writing when it died reached etcd only if it led.
pub(crate) fn written_at_death(world: &World, index: usize, written: usize) -> usize {
    if world.is_seated(index) && world.reaches_etcd(index) { written } else { 0 }
}

/// A master, or all of them, cannot reach etcd for a while.
pub(crate) fn cut_off(world: &mut World) {
    let Some(lease) = world.etcd.lease else { return };
    let until = world.queue.now() + between(&mut world.rng, lease / 2, 2 * lease);
    world.counts.etcd_partitions += 1;
    let all = world.rng.chance(0.3);
    let victim = match world.leading() {
        Some(leader) if world.rng.chance(0.7) => leader,
        _ => world.rng.below(world.masters.len() as u64) as usize,
    };
    for (index, node) in world.masters.iter_mut().enumerate() {
        if all || index == victim {
            node.cut_off_until = until;
        }
    }
    let name = if all { "all masters".into() } else { format!("M{victim}") };
    world.trace_line(|| format!("{name} cannot reach etcd until {}", until / SECOND));
    // Something to write, for a leader that cannot.
    (0..3).for_each(|_| operator::change(world));
}
