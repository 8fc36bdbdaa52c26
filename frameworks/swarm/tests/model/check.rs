//! The invariants: after every turn, of every effect, and once the cluster is at rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tepui_resources::{Name, Scalar};
use tepui_swarm::{Effect, Kind, Launch, Phase, RES_TYPE};
use tepui_types::{AgentId, TaskId, TaskStateExt};

use crate::cluster::{CREATE_LABEL, Link};
use crate::world::{CHOICES, World};

/// Names are unique; the type of every engine is that of the offers held; no container runs twice, not even for a moment.
pub fn after_turn(world: &World) {
    runs_once_at_any_time(world);
    let view = world.manager.view();
    let mut names = BTreeSet::new();
    for container in view.containers.values().filter(|it| !it.occupant.name.is_empty()) {
        assert!(names.insert(container.occupant.name.clone()), "{} is there twice", container.occupant.name);
    }
    for (id, agent) in view.agents.iter() {
        let own = || world.held.values().filter(|(of, _)| of == id).flat_map(|(_, part)| part.iter());
        let has =
            |kind: Kind| own().any(|it| Kind::of(it) == kind && matches!(it.name(), Name::Cpus | Name::Mem));
        let expected = match (has(Kind::Regular), has(Kind::Revocable)) {
            (true, true) => Some("any"),
            (true, false) => Some("regular"),
            (false, true) => Some("revocable"),
            (false, false) => None,
        };
        assert_eq!(agent.labels().get(RES_TYPE).map(String::as_str), expected, "type of {id}");
    }
}

pub fn effect(world: &mut World, effect: &Effect) {
    match effect {
        Effect::Accept(launch) => accept(world, launch),
        Effect::Decline(offers) => {
            for offer in offers {
                assert!(world.used.insert(offer.clone()), "{offer} is used again");
                world.held.remove(offer);
            }
        }
        Effect::Reply { request, answer } => {
            let life = world.life;
            let create = world.creates.get_mut(&request.0).expect("a request of ours");
            assert!(create.answer.is_none(), "request {} is answered twice", request.0);
            assert!(!create.abandoned, "request {} is answered to nobody", request.0);
            assert_eq!(create.life, life, "request {} is answered by another manager", request.0);
            create.answer = Some(answer.clone().map(|created| created.id));
        }
        _ => (),
    }
}

fn accept(world: &mut World, launch: &Launch) {
    let mut offered = tepui_resources::Resources::new();
    for offer in &launch.offers {
        assert!(world.used.insert(offer.clone()), "{offer} is used again");
        let (agent, part) = world.held.remove(offer).expect("an offer that is held");
        assert_eq!(agent, launch.agent, "{offer} is of another agent");
        offered += &part;
    }
    assert!(offered.contains(&launch.resources), "{} is not in {offered}", launch.resources);
    let document: Value = serde_json::from_str(&launch.document).expect("JSON");
    assert_eq!(document["Labels"][RES_TYPE], launch.kind.as_str(), "label of the container");
    for resource in launch.resources.iter() {
        assert_eq!(Kind::of(resource), launch.kind, "{resource} is of another kind");
    }
    let number: u64 = document["Labels"][CREATE_LABEL].as_str().and_then(|it| it.parse().ok()).expect("it");
    let create = &world.creates[&number];
    assert!(CHOICES[create.choice].1.contains(&launch.kind), "{} was not allowed", launch.kind);
    let amounts = launch.resources.scalar_quantities();
    assert_eq!(amounts.get(&Name::Cpus), Scalar::from_thousandths(create.cpus * 1000));
    assert_eq!(amounts.get(&Name::Mem), Scalar::from_thousandths(create.memory * 1000));
}

/// Nothing is on its way any more: everything must be where it belongs, once.
pub fn at_rest(world: &World) {
    answers(world);
    records_match_engines(world);
    engines_match_records(world);
    containers_are_kept(world);
    ends_are_true(world);
    nothing_runs_twice(world);
}

fn answers(world: &World) {
    for (number, create) in world.creates.iter().filter(|(_, it)| it.life == world.life && !it.abandoned) {
        assert!(create.answer.is_some(), "create {number} is not answered");
    }
}

fn records_match_engines(world: &World) {
    for (task, container) in world.manager.view().containers.iter() {
        let agent = world.cluster.agents.iter().find(|it| it.id.as_str() == container.agent).expect("it");
        let found = agent.containers.get(&container.occupant.id);
        let live = world.cluster.tasks.get(task).is_some_and(|it| !it.state.is_terminal());
        let live = live && agent.link != Link::Gone;
        match &container.phase {
            Phase::Launching => panic!("{task} is launching still"),
            Phase::Rescheduling => assert!(!live, "{task} is back and waits for another node"),
            Phase::Created => assert!(live && found.is_some(), "{task} is created but not there"),
            Phase::Ended { .. } => {
                assert!(!live, "{task} has ended but its task has not");
                assert!(agent.link == Link::Gone || found.is_some(), "{task} has ended and is not there");
            }
        }
        if let Some(found) = found {
            assert_eq!(found.name, container.occupant.name, "name of {task}");
            assert!(live || !found.running, "{task} runs without a task");
        }
    }
}

/// No container and no task is left behind that nobody knows.
fn engines_match_records(world: &World) {
    let view = world.manager.view();
    for agent in world.cluster.agents.iter().filter(|it| it.link != Link::Gone) {
        for (id, container) in &agent.containers {
            let known = view.containers.values().any(|it| it.occupant.id == *id);
            // One that was renamed cannot be told from a container of somebody else, but it does not run.
            let is_harmless = container.renamed && !container.running;
            assert!(known || is_harmless, "create {} left {id} behind on {}", container.create(), agent.id);
        }
    }
    for (task, it) in world.cluster.tasks.iter().filter(|(_, it)| !it.state.is_terminal()) {
        let lost = world.cluster.agents[it.agent].link == Link::Gone;
        assert!(lost || view.containers.contains_key(task), "{task} holds resources that nobody uses");
    }
}

fn containers_are_kept(world: &World) {
    let view = world.manager.view();
    let known: BTreeMap<u64, TaskId> = view
        .containers
        .iter()
        .map(|(task, it)| (it.occupant.labels[CREATE_LABEL].parse().expect("a number"), task.clone()))
        .collect();
    assert_eq!(known.len(), view.containers.size(), "two records of one create");
    for (number, create) in &world.creates {
        let is_expected = matches!(create.answer, Some(Ok(_))) && !create.removing && !create.auto_remove;
        assert!(!is_expected || known.contains_key(number), "create {number} is lost");
        // What became of a container on a node that is gone is never known.
        let is_there = |it: &TaskId| {
            let agent = &view.containers[it].agent;
            world.cluster.agents.iter().any(|it| it.id.as_str() == agent && it.link != Link::Gone)
        };
        assert!(
            !create.removed || !known.get(number).is_some_and(is_there),
            "create {number} was removed and is still there"
        );
    }
    for container in view.containers.values() {
        assert!(view.agents.contains_key(&AgentId::new(&*container.agent)), "its agent is forgotten");
    }
}

/// One that moves when its node fails may run on both sides of a partition; at rest it does not.
fn runs_once_at_any_time(world: &World) {
    let mut running = BTreeSet::new();
    for container in world.cluster.agents.iter().flat_map(|agent| agent.containers.values()) {
        let is_counted = container.running && !world.creates[&container.create()].reschedule;
        assert!(
            !is_counted || running.insert(container.create()),
            "create {} runs twice",
            container.create()
        );
    }
}

/// A container that has terminated shows the state and the reason of its task's own end, however often the master was asked.
fn ends_are_true(world: &World) {
    for (task, container) in world.manager.view().containers.iter() {
        let Phase::Ended { state, reason, .. } = &container.phase else { continue };
        let Some(it) = world.cluster.tasks.get(task) else { continue };
        // A task that did not get as far as to adopt a container leaves it the end that it had.
        let is_lost = world.cluster.agents[it.agent].link == Link::Gone;
        if is_lost || it.launch.adopt.is_some() && it.container.is_none() {
            continue;
        }
        let expected = (format!("{:?}", it.state), it.reason.map(|reason| format!("{reason:?}")));
        assert_eq!((state, reason), (&expected.0, &expected.1), "end of {task}");
    }
}

fn nothing_runs_twice(world: &World) {
    let mut running: BTreeMap<u64, u32> = BTreeMap::new();
    for container in world.cluster.agents.iter().flat_map(|agent| agent.containers.values()) {
        *running.entry(container.create()).or_default() += u32::from(container.running);
        let create = &world.creates[&container.create()];
        assert!(create.reschedule || container.starts <= create.starts, "started by nobody");
    }
    for (number, count) in running {
        assert!(count <= 1, "create {number} runs {count} times");
    }
}
