//! The second phase: no more faults, and everything must settle.
//!
//! Settled means: every agent is registered, no task is live, every framework has a terminal state for each of its tasks,
//! there are no offers, containers or unacknowledged updates, no disk contains terminated entities, master and agents
//! count the same resources. Then all processes are restarted and must settle again. Finally frameworks revive, and all
//! free resources must be offered.

use tepui_core_agent::Phase as AgentPhase;
use tepui_core_master::FrameworkLink;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;
use tepui_types::{AgentId, FrameworkId, OfferId};

use crate::chance::SECOND;
use crate::check::Fact;
use crate::event::Event;
use crate::framework::{self, Framework, Step};
use crate::net::Node;
use crate::world::{Phase, Stage, World};
use crate::{agent, master, operator, swarm};

/// Long enough for the slowest retry of an update, several times.
const HEALS_WITHIN: u64 = 3600 * SECOND;
const LOOK_EVERY: u64 = 5 * SECOND;

pub(crate) fn begin(world: &mut World) {
    world.trace_line(|| "faults end".into());
    world.phase = Phase::Healing { stage: Stage::Settling, until: world.queue.now() + HEALS_WITHIN };
    for master in &mut world.masters {
        (master.process.paused_until, master.cut_off_until) = (0, 0);
        master.process.hardware.heal();
    }
    for agent in &mut world.agents {
        agent.process.paused_until = 0;
        agent.process.hardware.heal();
    }
    world.plan.bad_containers = 0.0;
    world.plan.slow_disk = 0.0;
    world.plan.late_acknowledgements = 0.0;
    for master in 0..world.masters.len() {
        let node = Node::Master(master);
        world.queue.after(SECOND, Event::Start { node });
        world.queue.after(SECOND, Event::Room { node });
    }
    for agent in 0..world.agents.len() {
        world.agents[agent].cut_off_until = 0;
        let node = Node::Agent(agent);
        world.queue.after(SECOND, Event::Start { node });
        world.queue.after(SECOND, Event::Room { node });
    }
    for index in 0..world.frameworks.len() {
        world.frameworks[index].cut_off_until = 0;
        let life = world.frameworks[index].life;
        world.queue.after(SECOND, Event::Framework { index, life, step: Step::Start });
        world.queue.after(2 * SECOND, Event::Framework { index, life, step: Step::Repair });
    }
    swarm::begin_healing(world);
    world.queue.after(LOOK_EVERY, Event::Settled);
}

pub(crate) fn check_progress(world: &mut World) {
    let Phase::Healing { stage, until } = world.phase else { return };
    clear_abandoned(world);
    swarm::advance(world);
    let open = match stage {
        Stage::Settling | Stage::Restarted => unsettled(world),
        Stage::Offering => unoffered(world),
    };
    if open.is_empty() {
        next(world, stage);
    } else if world.queue.now() >= until {
        world.checks.fail("heals", format!("{stage:?}: {}", open.join("; ")));
    }
    world.queue.after(LOOK_EVERY, Event::Settled);
}

fn next(world: &mut World, stage: Stage) {
    world.trace_line(|| format!("done: {stage:?}"));
    let until = world.queue.now() + HEALS_WITHIN;
    match stage {
        Stage::Settling => {
            world.checks.observe(&Fact::Settled);
            restart_all(world);
            world.phase = Phase::Healing { stage: Stage::Restarted, until };
        }
        Stage::Restarted => {
            world.checks.observe(&Fact::Settled);
            world.phase = Phase::Healing { stage: Stage::Offering, until };
            (0..world.frameworks.len()).for_each(|index| framework::revive_all(world, index));
        }
        Stage::Offering => world.phase = Phase::Over,
    }
}

fn restart_all(world: &mut World) {
    for index in 0..world.masters.len() {
        master::crash(world, index);
        world.queue.after(SECOND, Event::Start { node: Node::Master(index) });
    }
    swarm::crash(world);
    for index in 0..world.agents.len() {
        agent::crash(world, index);
        world.queue.after(SECOND, Event::Start { node: Node::Agent(index) });
    }
}

/// An operator tears down abandoned frameworks, marks lost agents as gone, and reverts operator changes.
fn clear_abandoned(world: &mut World) {
    end_abandoned_frameworks(world);
    give_up_lost_agents(world);
    operator::revert_changes(world);
}

/// An agent that never received its admission registers with a new id.
fn give_up_lost_agents(world: &mut World) {
    let Some(machine) = world.leader() else { return };
    let is_someone = |id: &AgentId| {
        let machines = world.agents.iter().filter_map(|agent| agent.process.machine.as_ref());
        machines.into_iter().any(|machine| machine.state().info.id.value == id.as_str())
    };
    let lost = machine.state().unreachable_agents.keys().filter(|id| !is_someone(id));
    let lost: Vec<AgentId> = lost.cloned().collect();
    lost.into_iter().for_each(|id| master::mark_gone(world, &id));
}

fn end_abandoned_frameworks(world: &mut World) {
    let Some(machine) = world.leader() else { return };
    let swarm = world.swarm.as_ref().and_then(|swarm| swarm.framework_id());
    let owned =
        |id: &str| swarm == Some(id) || world.frameworks.iter().any(|framework| framework.id() == Some(id));
    // One that is connected may be about to receive its id, from a master that waits for its disk.
    let frameworks = machine.state().frameworks.values();
    let silent = frameworks.filter(|known| !matches!(known.link, FrameworkLink::Connected { .. }));
    let abandoned: Vec<FrameworkId> =
        silent.map(|known| known.id.clone()).filter(|id| !owned(id.as_str())).collect();
    for id in abandoned {
        let teardown =
            pb::master::call::Teardown { framework_id: id.to_proto().into(), ..Default::default() };
        let call = pb::master::Call {
            r#type: Some(pb::master::call::Type::TEARDOWN),
            teardown: teardown.into(),
            ..Default::default()
        };
        world.checks.observe(&Fact::FrameworkEnds { id: id.as_str() });
        master::operator_call(world, call);
    }
}

/// What has not settled yet.
fn unsettled(world: &World) -> Vec<String> {
    let mut open: Vec<String> = world.callers.unanswered().collect();
    master_unsettled(world, &mut open);
    swarm::unsettled(world, &mut open);
    for index in 0..world.agents.len() {
        agent_unsettled(world, index, &mut open);
    }
    for framework in &world.frameworks {
        if let Some(service) = &framework.service {
            open.extend(service.open());
            continue;
        }
        if !is_connected(world, framework) {
            open.push(format!("F{} is not connected", framework.index));
        }
        for (id, task) in framework.live_tasks() {
            // Tasks of an unknown agent have no other state.
            let unknown = task.state == pb::TaskState::TASK_UNKNOWN;
            if !unknown || is_registered(world, &task.agent_id) {
                open.push(format!("F{} thinks {id} is {:?}", framework.index, task.state));
            }
        }
        for (id, operation) in &framework.memory.operations {
            // Unknown to a master with all agents: it never existed, or its terminal status was acknowledged.
            if operation.state != pb::OperationState::OPERATION_UNKNOWN {
                open.push(format!("F{} thinks operation {id} is {:?}", framework.index, operation.state));
            }
        }
    }
    open
}

fn is_connected(world: &World, framework: &Framework) -> bool {
    let (Some(machine), Some(id)) = (world.leader(), framework.id()) else { return false };
    let known = machine.state().frameworks.get(&FrameworkId::new(id)).filter(|_| framework.is_subscribed());
    known.is_some_and(|known| matches!(known.link, FrameworkLink::Connected { .. }))
}

/// Whether the master remembers an agent.
fn is_registered(world: &World, id: &pb::AgentID) -> bool {
    let Some(machine) = world.leader() else { return true };
    let (state, id) = (machine.state(), AgentId::from(id));
    state.agents.contains_key(&id)
        || state.recovered_agents.contains_key(&id)
        || state.unreachable_agents.contains_key(&id)
        || state.gone_agents.contains_key(&id)
}

fn master_unsettled(world: &World, open: &mut Vec<String>) {
    let Some(machine) = world.leader() else {
        return open.push("the master is down".into());
    };
    let state = machine.state();
    let connected = state.agents.values().filter(|agent| agent.is_active()).count();
    if connected != world.agents.len() {
        open.push(format!("the master has {connected} of {} agents", world.agents.len()));
    }
    for id in state.recovered_agents.keys() {
        open.push(format!("the master waits for agent {id}"));
    }
    let is_held = |offer: &OfferId| world.swarm.as_ref().is_some_and(|swarm| swarm.holds(offer));
    for offer in state.offers.values().filter(|offer| !is_held(&offer.id)) {
        open.push(format!("offer {} to {} is out", offer.id, offer.framework_id));
    }
    for framework in state.frameworks.values() {
        for task in framework.tasks.values() {
            open.push(format!("the master thinks {} of {} is {:?}", task.id, framework.id, task.task.state));
        }
    }
    for agent in state.agents.values() {
        for (framework, executor) in agent.executors.keys() {
            open.push(format!("the master thinks executor {executor} of {framework} is on {}", agent.id));
        }
        if !agent.operations.is_empty() {
            open.push(format!("the master waits for operations on {}", agent.id));
        }
    }
}

/// Keys of terminated entities on an agent's disk.
const LEFT_OVER: [&str; 6] = ["executor/", "task/", "update/", "operation/", "framework/", "container/"];

/// Free resources without an offer although a framework accepts them.
fn unoffered(world: &World) -> Vec<String> {
    let Some(machine) = world.leader() else { return vec!["the master is down".into()] };
    let state = machine.state();
    let mut open = Vec::new();
    for agent in state.agents.values() {
        let offers = state.offers.values().filter(|offer| offer.agent_id == agent.id);
        let offered = offers.fold(Resources::new(), |sum, offer| sum + &offer.resources).unallocate();
        if !offered.contains(&agent.total.unreserved()) {
            open.push(format!("of {} ({}) only {offered} is offered", agent.id, agent.total));
        }
    }
    open
}

fn agent_unsettled(world: &World, index: usize, open: &mut Vec<String>) {
    let node = &world.agents[index];
    for id in node.host.alive() {
        open.push(format!("container {id} runs on A{index}"));
    }
    let Some(machine) = &node.process.machine else {
        return open.push(format!("A{index} is down"));
    };
    let state = machine.state();
    if state.phase != AgentPhase::Running {
        open.push(format!("A{index} is {:?}", state.phase));
    }
    for framework in state.frameworks.values() {
        for executor in framework.executors.values() {
            open.push(format!(
                "A{index} has executor {} of {} {:?}",
                executor.id, framework.id, executor.phase
            ));
        }
    }
    for id in state.containers.keys() {
        open.push(format!("A{index} has container {id}"));
    }
    if !state.operations.is_empty() {
        open.push(format!("A{index} waits for acknowledgements of operations"));
    }
    if let Some(key) =
        node.process.disk.keys().find(|key| LEFT_OVER.iter().any(|start| key.starts_with(start)))
    {
        open.push(format!("A{index} has {key} on its disk"));
    }
    let books = world.leader().map(|machine| machine.state());
    let booked = books.and_then(|books| books.agents.get(&AgentId::from(&*state.info.id)));
    let total = &state.total + &state.oversubscribed;
    if let Some(booked) = booked.filter(|booked| booked.total != total) {
        open.push(format!("A{index} has {total}, the master thinks {}", booked.total));
    }
}
