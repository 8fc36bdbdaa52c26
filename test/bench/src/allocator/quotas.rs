//! Shapes with quota.

use tepui_allocator::Quota;
use tepui_resources::{Limits, Resources, Role};

use super::bench::{Bench, framework, resources};
use super::shapes::{add_agents, two_cycles};

const AGENT: &str = "cpus:2;mem:2048;disk:2048";
const HALF: &str = "cpus:1;mem:1024;disk:1024";
const TWO: &str = "cpus:4;mem:4096;disk:4096";

pub(super) fn many_roles(bench: &mut Bench, agents: usize, frameworks: usize) {
    add_agents(bench, agents, &resources(AGENT), 0, &Resources::new());
    bench.paused_step("add frameworks", |allocator| {
        for number in 0..frameworks {
            allocator.add_framework(framework(number, &role(number)));
        }
    });
    bench.prepare(|allocator| {
        for number in 0..frameworks {
            let quota = if number % 6 == 0 { TWO } else { HALF };
            allocator.set_quota(&Role::from(role(number).as_str()), exactly(quota));
        }
    });
    two_cycles(bench, agents);
}

pub(super) fn roles(bench: &mut Bench, agents: usize, frameworks: usize) {
    add_agents(bench, agents, &resources(AGENT), 0, &Resources::new());
    bench.paused_step("add frameworks", |allocator| {
        for number in 0..frameworks {
            allocator.add_framework(framework(number, &role(number / 2)));
        }
    });
    bench.prepare(|allocator| {
        for number in 0..frameworks.div_ceil(2) {
            allocator.set_quota(&Role::from(role(number).as_str()), exactly(TWO));
        }
    });
    two_cycles(bench, agents);
}

pub(super) fn per_framework(bench: &mut Bench, agents: usize, frameworks: usize) {
    bench.step("add frameworks", |allocator| {
        for number in 0..frameworks {
            allocator.add_framework(framework(number, &role(number)));
        }
    });
    bench.prepare(|allocator| {
        for number in 0..frameworks {
            allocator.set_quota(&Role::from(role(number).as_str()), exactly("cpus:1;mem:1024"));
        }
    });
    let total = resources("cpus:24;mem:4096;disk:4096;ports:[31000-32000]");
    add_agents(bench, agents, &total, 0, &Resources::new());
}

fn role(number: usize) -> String {
    format!("role-{number}")
}

/// No less and no more.
fn exactly(text: &str) -> Quota {
    let guarantees = resources(text).quantities();
    let limits: Limits = guarantees.iter().map(|(name, amount)| (name.clone(), amount)).collect();
    Quota { guarantees, limits }
}
