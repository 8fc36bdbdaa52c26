//! A whole cluster: half of the frameworks in a role of their own, the others ten to a role; every third agent has
//! reservations. The steps are the life of an allocator: agents are added, everything is offered, small changes, all
//! offers are declined.

use tepui_resources::{Reservation, Resources};

use super::bench::{Bench, agent, agent_id, framework, resources};
use super::shapes::{FOR_EVER_SECS, look_again};

/// How many agents change in a turn of a cluster that runs quietly.
const DIRTY_AGENTS: usize = 100;
/// So many filters are made at most before the last cycles.
const FILTERS_MAX: usize = 500_000;

pub(super) fn cluster(bench: &mut Bench, agents: usize, frameworks: usize) {
    let role = |number: usize| match number % 2 {
        0 => format!("own-{number}"),
        _ => format!("shared-{}", number / 20),
    };
    bench.paused_step("add frameworks", |allocator| {
        (0..frameworks).for_each(|number| allocator.add_framework(framework(number, &role(number))));
    });
    let plain = resources("cpus:16;mem:65536;disk:262144;ports:[31000-32000]");
    let reserved: Vec<Resources> = (0..frameworks)
        .map(|number| {
            let reservation = Reservation::dynamic(role(number).as_str());
            resources("cpus:8;mem:16384").push_reservation(&reservation) + &plain
        })
        .collect();
    bench.paused_step("add agents", |allocator| {
        for number in 0..agents {
            let total = if number % 3 == 0 { &reserved[number % frameworks] } else { &plain };
            allocator.add_agent(agent_id(number), agent(number, total), Vec::new());
        }
    });
    bench.cycle("first cycle");
    bench.weigh();
    bench.return_some(agents / 100, 0.0);
    bench.cycle("cycle after 1 % became free");
    bench.return_some(DIRTY_AGENTS.min(agents), 0.0);
    bench.cycle("turn with 100 agents that changed");
    bench.cycle("cycle, nothing changed");
    for _ in 0..(FILTERS_MAX / agents).clamp(1, frameworks) {
        bench.return_all(FOR_EVER_SECS);
        bench.cycle("round");
        bench.steps.pop();
    }
    bench.return_all(FOR_EVER_SECS);
    bench.cycle("cycle after all declined");
    bench.weigh();
    look_again(bench, agents);
    bench.cycle("the same, all agents again");
}
