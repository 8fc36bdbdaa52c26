//! Disks that fill, fail, tear and roll back.
//!
//! A full disk is waited out: nothing is written until there is room, and nothing behind it becomes visible. A write that
//! fails ends the process; perhaps all of it was written, perhaps nothing. A torn or rolled back file is damage that shows
//! when it is opened: the process does not start until an operator has replaced the file, the master's by a copy, an
//! agent's by a copy or by nothing.

use tepui_fsm::{Durable, Fsm};

use crate::chance::{MS, SECOND, between};
use crate::event::Event;
use crate::fault::{any_agent, any_node};
use crate::net::Node;
use crate::process::Process;
use crate::sabotage::Sabotage;
use crate::world::World;
use crate::{agent, master};

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Torn,
    RolledBack,
}

/// What comes of opening a file.
enum Opened {
    Sound,
    Refused,
}

/// A process with a disk of its own. Several masters have etcd's instead.
fn any_disk(world: &mut World) -> Node {
    match any_node(world) {
        Node::Master(_) if world.masters.len() > 1 => Node::Agent(any_agent(world)),
        node => node,
    }
}

pub(crate) fn fill(world: &mut World) {
    let node = any_disk(world);
    let until = world.queue.now() + between(&mut world.rng, SECOND, 40 * SECOND);
    world.counts.full_disks += 1;
    world.tell(|| format!("the disk of {node:?} is full until {}", until / SECOND));
    world.hardware_mut(node).full_until = until;
}

/// The next write of a process fails.
pub(crate) fn fail(world: &mut World) {
    let node = any_disk(world);
    world.hardware_mut(node).write_fails = true;
}

/// A write came back with an error: true if so. The process ends, and is started again by whoever watches it.
pub(crate) fn failed(world: &mut World, node: Node) -> bool {
    let fails = world.is_up(node) && std::mem::take(&mut world.hardware_mut(node).write_fails);
    if fails && !world.is_healing() {
        world.counts.failed_writes += 1;
        let written = if world.rng.chance(0.5) { usize::MAX } else { 0 };
        world.tell(|| format!("a write of {node:?} fails"));
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
    world.tell(|| format!("the file of {node:?} is damaged: {damage:?}"));
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
    world.tell(|| format!("{node:?} refuses to start: its file is damaged"));
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
