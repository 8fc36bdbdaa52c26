//! What a cycle takes from the heap: nothing for asking frameworks, a little for each offer that it makes.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use tepui_allocator::{AgentCapabilities, AgentSpec, Allocation, Allocator, FrameworkSpec, Options, Quota};
use tepui_fsm::{Mono, unlimited};
use tepui_resources::{Resources, Role, parse};
use tepui_types::{AgentId, FrameworkId};

const AGENTS: usize = 20;
const FOR_EVER: Mono = Mono(u64::MAX);

/// Frameworks in as many roles, all of whom can be asked about agents with cpus, mem and ports.
struct World {
    allocator: Allocator,
    seconds: u64,
}

impl World {
    fn new(frameworks: usize) -> Self {
        let mut allocator = Allocator::new(Options::default());
        for number in 0..frameworks {
            let id = FrameworkId::new(format!("F{number}"));
            allocator.add_framework(FrameworkSpec::new(id, role(number)));
        }
        for number in 0..AGENTS {
            let spec = AgentSpec {
                hostname: "host".into(),
                capabilities: AgentCapabilities::ALL,
                total: resources("cpus:4;mem:64;ports:[1-9]"),
                ..AgentSpec::default()
            };
            allocator.add_agent(agent(number), spec, Vec::new());
        }
        Self { allocator, seconds: 0 }
    }

    /// The next batch, and how often it asked for memory.
    fn batch(&mut self) -> (Allocation, u64) {
        self.seconds += 1;
        let mut decided = Allocation::default();
        let now = Mono(self.seconds * 1_000_000_000);
        let heap = measure(|| decided = self.allocator.allocate(now, &mut unlimited));
        (decided, heap.count_total)
    }

    fn decline(&mut self, offers: Allocation, refused_until: Option<Mono>) {
        for offer in offers.grants {
            self.allocator.decline(&offer.agent, &offer.framework, &offer.resources, refused_until);
        }
    }

    /// A batch that looks at every agent.
    fn batch_of_all(&mut self) -> (Allocation, u64) {
        (0..AGENTS).for_each(|number| self.allocator.activate_agent(&agent(number)));
        self.batch()
    }
}

fn role(number: usize) -> Role {
    Role::new(format!("role-{number}"))
}

fn agent(number: usize) -> AgentId {
    AgentId::new(format!("A{number}"))
}

fn resources(text: &str) -> Resources {
    parse::resources(text, "*").expect("a list of resources").into_iter().collect()
}

#[test]
fn idle_batch_allocates_no_heap() {
    for frameworks in [10, 500] {
        let mut world = World::new(frameworks);
        assert_eq!(world.batch().0.grants.len(), AGENTS);
        assert_eq!(world.batch(), (Allocation::default(), 0), "nothing changed");
    }
}

#[test]
fn batch_with_filtered_frameworks_allocates_no_heap() {
    for frameworks in [10, 500] {
        let mut world = World::new(frameworks);
        // Every client is offered every agent, and declines it.
        for _ in 0..frameworks {
            let (offers, _) = world.batch();
            assert_eq!(offers.grants.len(), AGENTS);
            world.decline(offers, Some(FOR_EVER));
        }
        world.batch_of_all();
        assert_eq!(world.batch_of_all(), (Allocation::default(), 0), "{frameworks} frameworks");
    }
}

#[test]
fn batch_with_frameworks_at_their_limit_allocates_no_heap() {
    for frameworks in [10, 500] {
        let mut world = World::new(frameworks);
        for number in 0..frameworks {
            let limits = ["cpus", "mem"].map(|name| (name.into(), Default::default()));
            let quota = Quota { limits: limits.into_iter().collect(), ..Quota::default() };
            world.allocator.set_quota(&role(number), quota);
        }
        world.batch_of_all();
        assert_eq!(world.batch_of_all(), (Allocation::default(), 0), "{frameworks} frameworks");
    }
}

/// Each offer has a list of resources, its place among what the framework holds, and its place in the answer.
#[test]
fn heap_use_of_an_offer_is_independent_of_framework_count() {
    let taken = [10, 500].map(|frameworks| {
        let mut world = World::new(frameworks);
        for _ in 1..frameworks {
            let (offers, _) = world.batch();
            world.decline(offers, Some(FOR_EVER));
        }
        // Now each agent is left to one who does not refuse it.
        let mut last = 0;
        for _ in 0..3 {
            let (offers, taken) = world.batch();
            assert_eq!(offers.grants.len(), AGENTS);
            world.decline(offers, None);
            last = taken;
        }
        last
    });
    assert_eq!(taken[0], taken[1]);
    assert!(taken[0] <= 8 * AGENTS as u64, "{} for {AGENTS} offers", taken[0]);
}
