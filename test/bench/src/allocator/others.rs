//! Volumes, reservations, many frameworks on few agents, and allocation without offers.

use tepui_allocator::{Allocator, Holder};
use tepui_resources::{Disk, Labels, Reservation, Resource, Resources, Role, Scalar};

use super::bench::{Bench, agent, agent_id, framework, framework_id, port_ranges, resources};
use super::shapes::{add_agents, add_frameworks, add_known_agents};

const OWNER: &str = "owner";

/// Every agent has reservations and a volume of the role that all frameworks are in, who use some of it in turn.
pub(super) fn volumes(bench: &mut Bench, agents: usize, frameworks: usize, shared: bool) {
    bench.step("add frameworks", |allocator| {
        (0..frameworks).for_each(|number| allocator.add_framework(framework(number, OWNER)));
    });
    let reserved = |text: &str| resources(text).push_reservation(&Reservation::fixed(OWNER));
    let rest = reserved("cpus:24;mem:4096;disk:3072;ports:[31000-32000]");
    let total = |number: usize| {
        let volume = Resource::scalar("disk", Scalar::from_count(1024))
            .push_reservation(Reservation::fixed(OWNER))
            .with_disk(Some(Disk::persistent(format!("id{number}"), &format!("path{number}"))))
            .with_shared(shared);
        &rest + &volume.into()
    };
    let used = reserved(&format!("cpus:16;mem:1024;disk:1024;{}", port_ranges(16, 10)));
    add_known_agents(bench, agents, total, Some((frameworks, used.allocate(&OWNER.into()))));
    for _ in 0..3 {
        bench.return_all(0.0);
        bench.cycle("cycle");
    }
}

/// One agent with four labelled reservations for each of many roles; all of it is offered to one framework.
pub(super) fn reservations(bench: &mut Bench, roles: usize) {
    let mut total = resources("cpus:100;mem:4096");
    for role in 0..roles {
        for label in 0..4 {
            total += &Resources::from(
                Resource::scalar("cpus", Scalar::ONE).push_reservation(labelled(role, label)),
            );
        }
    }
    bench.step("add agent", |allocator| {
        allocator.add_framework(framework(0, &role(0)));
        allocator.add_agent(agent_id(0), agent(0, &total), Vec::new());
    });
    let plain = resources("cpus:1").allocate(&Role::from(role(0).as_str()));
    let reserved = plain.clone().push_reservation(&labelled(0, 4));
    assert!(!bench.offers().is_empty(), "what is free is offered");
    let convert = |allocator: &mut Allocator, from: &Resources, to: &Resources| {
        let holder = framework_id(0);
        assert!(allocator.convert(&agent_id(0), Holder::Offered(&holder), from, to), "it is offered");
    };
    bench.paused_step("reserve", |allocator| convert(allocator, &plain, &reserved));
    bench.paused_step("unreserve", |allocator| convert(allocator, &reserved, &plain));
}

fn labelled(of: usize, label: usize) -> Reservation {
    let labels: Labels = [("key".to_owned(), Some(label.to_string()))].into_iter().collect();
    Reservation { labels: Some(labels), ..Reservation::dynamic(role(of).as_str()) }
}

fn role(number: usize) -> String {
    format!("role-{number}")
}

/// Few large agents; every framework that is offered something launches a task.
pub(super) fn multi_framework(bench: &mut Bench, agents: usize, frameworks: usize) {
    bench.step("add frameworks", |allocator| {
        (0..frameworks).for_each(|number| allocator.add_framework(framework(number, &role(number % 4))));
    });
    add_agents(bench, agents, &resources("cpus:64;mem:488000"), 0, &Resources::new());
    let task = resources("cpus:1;mem:4096");
    for _ in 0..10 {
        bench.launch_on_all(&task);
        bench.cycle("round");
    }
    // The holders of the last offers keep them.
    bench.cycle("round without offers");
}

/// Resources of agents are allocated to clients in turn and released, without offers. The benchmark of the C++ sorter
/// has the order of the clients alone; here the ledgers are included.
pub(super) fn sorter(bench: &mut Bench, agents: usize, frameworks: usize) {
    add_frameworks(bench, frameworks);
    take_and_give(bench, agents, frameworks, |_| "*".to_owned());
}

/// The same with a client at each node of a binary tree of roles: those of 1,022 are nine deep, the root left out.
pub(super) fn sorter_tree(bench: &mut Bench, agents: usize, frameworks: usize) {
    // The first two are the children of the root, the next four theirs: the binary digits behind the first tell the way.
    let path = |number: usize| -> String {
        let node = number + 2;
        let turns: Vec<&str> =
            (0..node.ilog2()).rev().map(|level| if node >> level & 1 == 0 { "a" } else { "b" }).collect();
        turns.join("/")
    };
    bench.step("add frameworks", |allocator| {
        (0..frameworks).for_each(|number| allocator.add_framework(framework(number, &path(number))));
    });
    take_and_give(bench, agents, frameworks, path);
}

fn take_and_give(bench: &mut Bench, agents: usize, frameworks: usize, role: impl Fn(usize) -> String) {
    let total = resources("cpus:24;mem:4096;disk:4096;ports:[31000-32000]");
    let used = resources(&format!("cpus:16;mem:2014;disk:1024;{}", port_ranges(100, 9)));
    let agent_ids: Vec<_> = (0..agents).map(agent_id).collect();
    let framework_ids: Vec<_> = (0..frameworks).map(framework_id).collect();
    let held: Vec<Resources> =
        (0..frameworks).map(|number| used.clone().allocate(&Role::from(role(number).as_str()))).collect();
    bench.prepare(|allocator| {
        for (number, id) in agent_ids.iter().enumerate() {
            allocator.add_agent(id.clone(), agent(number, &total), Vec::new());
            allocator.deactivate_agent(id);
        }
    });
    bench.step("allocate all", |allocator| {
        for (number, id) in agent_ids.iter().enumerate() {
            let by = number % frameworks;
            allocator.occupy(id, &framework_ids[by], &held[by]);
        }
    });
    bench.step("unallocate all", |allocator| {
        for (number, id) in agent_ids.iter().enumerate() {
            let by = number % frameworks;
            allocator.release(id, &framework_ids[by], &held[by]);
        }
    });
}
