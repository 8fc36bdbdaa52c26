//! Disks that fill, fail, tear and roll back.
//!
//! A disk comes under pressure, which its process observes, and then perhaps becomes full: some records fit into a reserve,
//! others wait, and meanwhile only effects that depend on no record become visible. An etcd without room has no reserve, and
//! no leader can be elected. A failed write terminates the process; all or nothing of it was written. A write that etcd
//! does not answer is repeated, whether it was executed or not. A torn or rolled back file is detected when it is opened:
//! the process does not start until an operator has replaced the file, the master's by a copy, an agent's by a copy or by
//! nothing.

use tepui_fsm::{Durable, Fsm};

use tepui_types::DiskRoom;

use crate::chance::{MS, SECOND, between};
use crate::event::Event;
use crate::fault::{any_agent, any_node};
use crate::net::Node;
use crate::process::{Hardware, Process};
use crate::sabotage::Sabotage;
use crate::world::World;
use crate::{agent, election, master};

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Torn,
    RolledBack,
}

/// The outcome of opening a file.
enum Opened {
    Sound,
    Refused,
}

/// A process with its own disk. Several masters use etcd instead.
fn any_disk(world: &mut World) -> Node {
    match any_node(world) {
        Node::Master(_) if world.masters.len() > 1 => Node::Agent(any_agent(world)),
        node => node,
    }
}

/// Records that the reserve of a disk may take, at most.
const RESERVE_MAX: u64 = 12;

/// The interval of disk checks.
const LOOK_EVERY: u64 = SECOND;

pub(crate) fn fill(world: &mut World) {
    let (now, rng) = (world.queue.now(), &mut world.rng);
    let full_from = now + between(rng, 0, 5 * SECOND);
    let full_until = if rng.chance(0.8) { full_from + between(rng, SECOND, 40 * SECOND) } else { full_from };
    let short_until = full_until + between(rng, 0, 10 * SECOND);
    let reserve = between(rng, 0, RESERVE_MAX) as usize;
    world.counts.full_disks += 1;
    let nodes = match any_node(world) {
        Node::Master(_) if world.masters.len() > 1 => (0..world.masters.len()).map(Node::Master).collect(),
        node => vec![node],
    };
    let is_etcd = nodes.len() > 1;
    for node in nodes {
        world.trace_line(|| format!("the disk of {node:?} is full until {}", full_until / SECOND));
        let hardware = world.hardware_mut(node);
        let reserve = if is_etcd { 0 } else { reserve };
        *hardware = Hardware { full_from, full_until, short_until, reserve, ..*hardware };
        plan_room_checks(world, node);
    }
}

/// Plans the checks at which the process observes the start and the end of disk pressure.
pub(crate) fn plan_room_checks(world: &mut World, node: Node) {
    let wait = between(&mut world.rng, 0, LOOK_EVERY);
    let until = world.hardware(node).short_until;
    world.queue.after(wait, Event::Room { node });
    world.queue.at(until + wait, Event::Room { node });
}

/// A process checks its disk.
pub(crate) fn check_room(world: &mut World, node: Node) {
    let is_short = world.hardware(node).short_until > world.queue.now();
    if !world.is_up(node) || world.hardware(node).observed_short == is_short {
        return;
    }
    world.hardware_mut(node).observed_short = is_short;
    world.counts.disk_pressures += u64::from(is_short);
    let room = DiskRoom { is_short, available_bytes: 0 };
    match node {
        Node::Master(index) => master::input(world, index, tepui_core_master::Input::DiskRoom(room)),
        Node::Agent(index) => agent::input(world, index, tepui_core_agent::Input::DiskRoom(room)),
    }
}

/// The time at which a started write finds room: now, perhaps in the reserve, or when the disk is no longer full.
pub(crate) fn room_from(world: &mut World, node: Node) -> u64 {
    let (now, hardware) = (world.queue.now(), *world.hardware(node));
    if !hardware.is_full(now) {
        return now;
    }
    let stuck = match node {
        Node::Master(index) => world.masters[index].process.is_blocked_on_full_disk(),
        Node::Agent(index) => world.agents[index].process.is_blocked_on_full_disk(),
    };
    match stuck {
        true => {
            world.counts.stuck_writes += 1;
            hardware.full_until
        }
        false => {
            world.counts.reserved_writes += 1;
            check_room(world, node);
            now
        }
    }
}

impl Hardware {
    /// There is room from now on.
    pub(crate) fn heal(&mut self) {
        (self.full_until, self.short_until) = (0, 0);
    }

    pub(crate) fn is_full(&self, now: u64) -> bool {
        (self.full_from..self.full_until).contains(&now)
    }
}

/// The next write of a process fails.
pub(crate) fn fail(world: &mut World) {
    let node = any_node(world);
    world.hardware_mut(node).write_fails = true;
}

/// Whether a write failed. The process then exits and is restarted by its supervisor.
pub(crate) fn failed(world: &mut World, node: Node) -> bool {
    let fails = world.is_up(node) && std::mem::take(&mut world.hardware_mut(node).write_fails);
    if fails && !world.is_healing() {
        world.counts.failed_writes += 1;
        if let Node::Master(index) = node
            && world.masters.len() > 1
        {
            election::unanswered(world, index);
            return true;
        }
        let written = if world.rng.chance(0.5) { usize::MAX } else { 0 };
        world.trace_line(|| format!("a write of {node:?} fails"));
        stop(world, node, written);
        let wait = between(&mut world.rng, 100 * MS, 5 * SECOND);
        world.queue.after(wait, Event::Start { node });
        return true;
    }
    false
}

/// A process dies with its file damaged.
pub(crate) fn damage(world: &mut World, damage: Damage) {
    let node = any_disk(world);
    if !world.is_up(node) {
        return;
    }
    world.trace_line(|| format!("the file of {node:?} is damaged: {damage:?}"));
    match damage {
        Damage::Torn => world.counts.torn_writes += 1,
        Damage::RolledBack => world.counts.rollbacks += 1,
    }
    stop(world, node, 0);
    world.hardware_mut(node).damage = Some(damage);
    let wait = between(&mut world.rng, 100 * MS, 5 * SECOND);
    world.queue.after(wait, Event::Start { node });
}

fn stop(world: &mut World, node: Node, written: usize) {
    match node {
        Node::Master(index) => master::stop(world, index, written),
        Node::Agent(index) => agent::stop(world, index, written),
    }
}

/// Before a process starts: false if its file is damaged. Then an operator replaces it, after a while.
pub(crate) fn may_start(world: &mut World, node: Node) -> bool {
    let sabotage = world.sabotage;
    let opened = match node {
        Node::Master(index) => open(&mut world.masters[index].process, sabotage),
        Node::Agent(index) => open(&mut world.agents[index].process, sabotage),
    };
    match opened {
        Opened::Sound => return true,
        Opened::Refused => (),
    }
    world.counts.refused_starts += 1;
    world.trace_line(|| format!("{node:?} refuses to start: its file is damaged"));
    world.hardware_mut(node).damage = None;
    match node {
        Node::Agent(index) if world.rng.chance(0.5) => agent::wipe(world, index),
        Node::Agent(_) | Node::Master(_) => (),
    }
    let wait = between(&mut world.rng, SECOND, 60 * SECOND);
    world.queue.after(wait, Event::Start { node });
    false
}

/// Every commit is checked when a file is opened, so none is lost silently, unless that is sabotaged.
fn open<M: Fsm>(process: &mut Process<M>, sabotage: Sabotage) -> Opened
where
    M::Record: Durable,
{
    match process.hardware.damage {
        Some(Damage::RolledBack) if sabotage == Sabotage::SilentRollback => {
            process.hardware.damage = None;
            process.undo_last_write();
            Opened::Sound
        }
        Some(_) => Opened::Refused,
        None => Opened::Sound,
    }
}
