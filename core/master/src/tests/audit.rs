//! Invariants after every step: each index agrees with the state, and the allocator's ledger is the sum of offers,
//! tasks and executors.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use tepui_resources::Resources;
use tepui_types::{AgentId, FrameworkId, TaskStateExt};

use crate::{Master, Tallies};

type Held = BTreeMap<(AgentId, FrameworkId), Resources>;

pub(super) fn audit(master: &Master) -> Result<(), String> {
    master.allocator.audit()?;
    connections(master)?;
    tasks(master)?;
    footprint(master)?;
    unreachable(master)?;
    same("tallies", &master.state.tallies, &Tallies::of(&master.state))?;
    books(master)
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, left: &T, right: &T) -> Result<(), String> {
    match left == right {
        true => Ok(()),
        false => Err(format!("{what}: {left:?} is not {right:?}")),
    }
}

fn connections(master: &Master) -> Result<(), String> {
    let of_agents: BTreeMap<_, _> =
        master.state.agents.iter().filter_map(|(id, agent)| Some((agent.conn()?, id.clone()))).collect();
    same("links", &of_agents, &master.links)?;
    let of_frameworks: BTreeMap<_, _> =
        master.state.frameworks.iter().filter_map(|(id, it)| Some((it.conn()?, id.clone()))).collect();
    same("streams", &of_frameworks, &master.schedulers)?;
    let pids: BTreeMap<_, _> =
        master.state.agents.iter().map(|(id, agent)| (agent.pid.clone(), id.clone())).collect();
    same("pids", &pids, &master.pids)
}

fn tasks(master: &Master) -> Result<(), String> {
    let mut of_frameworks = BTreeSet::new();
    for (framework_id, framework) in master.state.frameworks.iter() {
        for (task_id, task) in framework.tasks.iter() {
            of_frameworks.insert((task.agent_id.clone(), framework_id.clone(), task_id.clone()));
        }
    }
    let mut of_agents = BTreeSet::new();
    for (agent_id, agent) in master.state.agents.iter() {
        for (framework_id, task_id) in agent.tasks.iter() {
            of_agents.insert((agent_id.clone(), framework_id.clone(), task_id.clone()));
        }
    }
    same("tasks", &of_frameworks, &of_agents)
}

fn footprint(master: &Master) -> Result<(), String> {
    let mut counted: BTreeMap<FrameworkId, BTreeMap<AgentId, usize>> = BTreeMap::new();
    for (agent_id, agent) in master.state.agents.iter() {
        let of_tasks = agent.tasks.iter().map(|(framework_id, _)| framework_id);
        for framework_id in of_tasks.chain(agent.executors.keys().map(|(framework_id, _)| framework_id)) {
            *counted.entry(framework_id.clone()).or_default().entry(agent_id.clone()).or_default() += 1;
        }
    }
    same("footprint", &counted, &master.footprint)
}

fn unreachable(master: &Master) -> Result<(), String> {
    let mut listed: BTreeMap<AgentId, BTreeSet<_>> = BTreeMap::new();
    for (framework_id, framework) in master.state.frameworks.iter() {
        for task in framework.unreachable_tasks.iter() {
            listed.entry(task.agent_id.clone()).or_default().insert((framework_id.clone(), task.id.clone()));
        }
    }
    same("unreachable tasks", &listed, &master.unreachable_tasks)
}

fn books(master: &Master) -> Result<(), String> {
    let (mut offered, mut used) = (Held::new(), Held::new());
    for offer in master.state.offers.values() {
        *offered.entry((offer.agent_id.clone(), offer.framework_id.clone())).or_default() += &offer.resources;
    }
    for task in master.state.frameworks.values().flat_map(|framework| framework.tasks.values()) {
        if !task.state().is_terminal() {
            *used.entry((task.agent_id.clone(), task.framework_id.clone())).or_default() += &task.resources;
        }
    }
    for (agent_id, agent) in master.state.agents.iter() {
        same("total", &Some(&agent.total), &master.allocator.total(agent_id))?;
        for ((framework_id, _), executor) in agent.executors.iter() {
            *used.entry((agent_id.clone(), framework_id.clone())).or_default() += &executor.resources;
        }
    }
    let (mut booked_offered, mut booked_used) = (Held::new(), Held::new());
    for agent_id in master.state.agents.keys() {
        for (framework_id, held) in master.allocator.holdings(agent_id) {
            let key = (agent_id.clone(), framework_id.clone());
            booked_offered.insert(key.clone(), held.offered.clone());
            booked_used.insert(key, held.used.clone());
        }
    }
    for held in [&mut offered, &mut used, &mut booked_offered, &mut booked_used] {
        held.retain(|_, resources| !resources.is_empty());
    }
    same("offered", &offered, &booked_offered)?;
    same("used", &used, &booked_used)
}
