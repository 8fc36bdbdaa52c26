//! Faults: their schedule and their effects. There are none in the healing phase.

use crate::chance::{MS, SECOND, between, mostly, pick};
use crate::disk::Damage;
use crate::event::Event;
use crate::net::{Client, Node};
use crate::world::{Phase, World};
use crate::{agent, clock, disk, election, framework, master, operator, swarm};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    MasterCrash,
    AgentCrash,
    Reboot,
    FrameworkCrash,
    /// A connection breaks.
    Break,
    /// A connection stands still for a while.
    Stall,
    /// An agent or a framework and the master cannot reach each other.
    Partition,
    /// An operator marks an agent as gone.
    Gone,
    /// An agent is unregistered.
    Departure,
    /// A process stands still for a while.
    Pause,
    /// An operator changes something.
    Operator,
    /// The wall clock of a process jumps.
    ClockJump,
    /// Nothing can be written for a while.
    FullDisk,
    /// A write fails and terminates the process.
    FailedWrite,
    /// A process dies while it writes, and leaves a damaged file.
    TornWrite,
    /// A process crashes, and its disk has lost the last write.
    Rollback,
    /// Masters cannot reach etcd.
    EtcdPartition,
    /// The Swarm manager dies.
    SwarmCrash,
    /// A Docker engine restarts.
    EngineRestart,
    /// The connections of the Swarm manager to an engine break.
    EngineBreak,
    /// The executor of a container of Swarm dies.
    HolderKill,
}

const ALL: [Fault; 21] = [
    Fault::MasterCrash,
    Fault::AgentCrash,
    Fault::Reboot,
    Fault::FrameworkCrash,
    Fault::Break,
    Fault::Stall,
    Fault::Partition,
    Fault::Gone,
    Fault::Departure,
    Fault::Pause,
    Fault::Operator,
    Fault::ClockJump,
    Fault::FullDisk,
    Fault::FailedWrite,
    Fault::TornWrite,
    Fault::Rollback,
    Fault::EtcdPartition,
    Fault::SwarmCrash,
    Fault::EngineRestart,
    Fault::EngineBreak,
    Fault::HolderKill,
];

fn mean(world: &World, fault: Fault) -> Option<u64> {
    let plan = &world.plan;
    match fault {
        Fault::MasterCrash => plan.master_crashes,
        Fault::AgentCrash => plan.agent_crashes,
        Fault::Reboot => plan.reboots,
        Fault::FrameworkCrash => plan.framework_crashes,
        Fault::Break => plan.breaks,
        Fault::Stall => plan.stalls,
        Fault::Partition => plan.partitions,
        Fault::Gone => plan.gone,
        Fault::Departure => plan.departures,
        Fault::Pause => plan.pauses,
        Fault::Operator => plan.operators,
        Fault::ClockJump => plan.clock_jumps,
        Fault::FullDisk => plan.full_disks,
        Fault::FailedWrite => plan.failed_writes,
        Fault::TornWrite => plan.torn_writes,
        Fault::Rollback => plan.rollbacks,
        Fault::EtcdPartition => plan.etcd_partitions,
        Fault::SwarmCrash => plan.swarm.as_ref()?.crashes,
        Fault::EngineRestart => plan.swarm.as_ref()?.engine_restarts,
        Fault::EngineBreak => plan.swarm.as_ref()?.engine_breaks,
        Fault::HolderKill => plan.swarm.as_ref()?.holder_kills,
    }
}

pub(crate) fn plan_all(world: &mut World) {
    for fault in ALL {
        world.source.enter(|| format!("plan:{fault:?}"));
        plan(world, fault);
    }
}

fn plan(world: &mut World, fault: Fault) {
    if let Some(mean) = mean(world, fault) {
        let wait = between(&mut world.rng, mean / 10, 2 * mean);
        world.queue.after(wait, Event::Fault(fault));
    }
}

pub(crate) fn inject(world: &mut World, fault: Fault) {
    if world.phase != Phase::Faults {
        return;
    }
    plan(world, fault);
    match fault {
        Fault::MasterCrash => master_crash(world),
        Fault::AgentCrash => agent_crash(world),
        Fault::Reboot => reboot(world),
        Fault::FrameworkCrash => {
            let index = world.rng.below(world.frameworks.len() as u64) as usize;
            framework::crash(world, index);
        }
        Fault::Break => break_one(world),
        Fault::Stall => stall_one(world),
        Fault::Partition => partition(world),
        Fault::Gone => gone(world),
        Fault::Departure => departure(world),
        Fault::Pause => pause(world),
        Fault::Operator => operator::change(world),
        Fault::ClockJump => clock::jump(world),
        Fault::FullDisk => disk::fill(world),
        Fault::FailedWrite => disk::fail(world),
        Fault::TornWrite => disk::damage(world, Damage::Torn),
        Fault::Rollback => disk::damage(world, Damage::RolledBack),
        Fault::EtcdPartition => election::cut_off(world),
        Fault::SwarmCrash => swarm::crash(world),
        Fault::EngineRestart => swarm::restart_engine(world),
        Fault::EngineBreak => swarm::break_watch(world),
        Fault::HolderKill => swarm::kill_executor(world),
    }
}

/// The master now and then, else any agent.
pub(crate) fn any_node(world: &mut World) -> Node {
    match world.rng.chance(0.3) {
        true => Node::Master(world.rng.below(world.masters.len() as u64) as usize),
        false => Node::Agent(any_agent(world)),
    }
}

fn master_crash(world: &mut World) {
    let any = world.rng.below(world.masters.len() as u64) as usize;
    let index = world.leading().unwrap_or(any);
    world.counts.master_crashes += u64::from(world.masters[index].process.is_up());
    master::crash(world, index);
    let wait = mostly(&mut world.rng, 50 * MS, 3 * SECOND, 0.2, 30 * SECOND);
    world.queue.after(wait, Event::Start { node: Node::Master(index) });
}

pub(crate) fn any_agent(world: &mut World) -> usize {
    world.rng.below(world.agents.len() as u64) as usize
}

fn agent_crash(world: &mut World) {
    let index = any_agent(world);
    if world.agents[index].process.is_up() {
        world.counts.agent_crashes += 1;
        agent::crash(world, index);
        let wait = mostly(&mut world.rng, 50 * MS, 3 * SECOND, 0.2, 60 * SECOND);
        world.queue.after(wait, Event::Start { node: Node::Agent(index) });
    }
}

fn reboot(world: &mut World) {
    let index = any_agent(world);
    world.counts.reboots += 1;
    agent::reboot(world, index);
    let wait = between(&mut world.rng, 2 * SECOND, 60 * SECOND);
    world.queue.after(wait, Event::Start { node: Node::Agent(index) });
}

fn break_one(world: &mut World) {
    let conns = world.conns_where(|_| true);
    if let Some(conn) = pick(&mut world.rng, &conns).copied() {
        world.counts.breaks += 1;
        world.trace_line(|| format!("connection {} breaks", conn.0));
        let detected_within = mostly(&mut world.rng, MS, 500 * MS, 0.2, 20 * SECOND);
        world.break_conn(conn, detected_within);
    }
}

fn stall_one(world: &mut World) {
    let conns = world.conns_where(|_| true);
    if let Some(conn) = pick(&mut world.rng, &conns).copied() {
        world.counts.stalls += 1;
        world.trace_line(|| format!("connection {} stalls", conn.0));
        let wait = between(&mut world.rng, SECOND, 30 * SECOND);
        world.stall(conn, wait);
    }
}

fn partition(world: &mut World) {
    world.counts.partitions += 1;
    let lasts = mostly(&mut world.rng, SECOND, 10 * SECOND, 0.5, 90 * SECOND);
    let until = world.queue.now() + lasts;
    let (agents, frameworks) = (world.agents.len() as u64, world.frameworks.len() as u64);
    let managers = u64::from(world.swarm.is_some());
    let victim = world.rng.below(agents + frameworks + managers);
    let is_victim = |client: &Client| match client {
        Client::Agent { index, .. } => *index as u64 == victim,
        Client::Framework { index, .. } => *index as u64 + agents == victim,
        Client::Swarm { .. } => victim == agents + frameworks,
        Client::Executor { .. } | Client::Caller { .. } | Client::Operator => false,
    };
    match victim.checked_sub(agents) {
        None => world.agents[victim as usize].cut_off_until = until,
        Some(index) => match world.frameworks.get_mut(index as usize) {
            Some(framework) => framework.cut_off_until = until,
            None => swarm::cut_off(world, until),
        },
    }
    world.trace_line(|| format!("partition of {} until {}", name(victim, agents), until / SECOND));
    for conn in world.conns_where(|conn| is_victim(&conn.client)) {
        world.break_conn(conn, 2 * lasts);
    }
}

fn name(victim: u64, agents: u64) -> String {
    match victim.checked_sub(agents) {
        None => format!("A{victim}"),
        Some(index) => format!("F{index}"),
    }
}

fn departure(world: &mut World) {
    let index = any_agent(world);
    if world.agents[index].process.is_up() {
        world.counts.departures += 1;
        agent::unregister(world, index);
    }
}

fn pause(world: &mut World) {
    let lasts = mostly(&mut world.rng, SECOND, 5 * SECOND, 0.3, 40 * SECOND);
    let until = world.queue.now() + lasts;
    world.counts.pauses += 1;
    match world.rng.below(3) {
        0 => {
            let index = world.leading().unwrap_or(0);
            world.trace_line(|| format!("M{index} pauses until {}", until / SECOND));
            world.masters[index].process.paused_until = until;
        }
        _ => {
            let index = any_agent(world);
            world.trace_line(|| format!("A{index} pauses until {}", until / SECOND));
            world.agents[index].process.paused_until = until;
        }
    }
}

/// Any agent known to the master: registered, recovered or unreachable.
fn gone(world: &mut World) {
    let Some(machine) = world.leader() else { return };
    let state = machine.state();
    let ids: Vec<_> = state
        .agents
        .keys()
        .chain(state.recovered_agents.keys())
        .chain(state.unreachable_agents.keys())
        .cloned()
        .collect();
    let Some(id) = pick(&mut world.rng, &ids).cloned() else { return };
    world.counts.gone += 1;
    master::mark_gone(world, &id);
}
