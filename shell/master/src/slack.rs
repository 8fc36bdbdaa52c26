//! Allocation slack of agents as documents and metrics show it, derived from the snapshot.
//!
//! The allocator keeps its own books; nothing here decides what is offered.

use tepui_core_master::State;
use tepui_resources::{Resource, Resources, Revocable, Role};

/// Reserved resources that may be lent, whether their owners use them or not; with their reservations.
pub(crate) fn lendable(state: &State, total: &Resources) -> Resources {
    let Some(opted_out) = &state.slack_opt_out else { return Resources::new() };
    let keeps = |owner: &Role| {
        let mut roles = opted_out.iter().map(|role| Role::from(role.as_str()));
        roles.any(|role| *owner == role || owner.is_strict_subrole_of(&role))
    };
    total.filter(|one| is_lendable(one) && one.reservation_role().is_some_and(|owner| !keeps(owner)))
}

/// Of lendable resources those that their owners do not use, lent or not: revocable and unreserved, as borrowers hold them.
pub(crate) fn idle(mut lendable: Resources, used: &Resources) -> Resources {
    if lendable.is_empty() {
        return lendable;
    }
    lendable -= &used.filter(is_lendable).unallocate();
    lendable.flatten(Revocable::AllocationSlack).to_unreserved()
}

/// Resources that borrowers hold.
pub(crate) fn lent(held: &Resources) -> Resources {
    held.revocable_as(Revocable::AllocationSlack)
}

fn is_lendable(resource: &Resource) -> bool {
    resource.is_reserved()
        && !resource.is_revocable()
        && !resource.is_persistent_volume()
        && !resource.is_shared()
}

#[cfg(test)]
mod tests {
    use tepui_core_master::{Config, Master};
    use tepui_fsm::{Mono, Now, Wall};
    use tepui_registry::Registry;
    use tepui_resources::parse;

    use super::*;

    fn resources(text: &str) -> Resources {
        parse::resources(text, "*").unwrap().into_iter().collect()
    }

    #[test]
    fn idle_slack_is_reserved_minus_used_resources() {
        let (total, used) =
            (resources("cpus:4;cpus(web):2;mem(db):64;mem:64"), resources("cpus:1;cpus(web):0.5"));
        let used = used.allocate(&Role::from("web"));
        for (lends, opted_out, expected) in [
            (false, &[][..], Resources::new()),
            (true, &[], resources("cpus:1.5;mem:64")),
            (true, &["db"], resources("cpus:1.5")),
            (true, &["db", "web"], Resources::new()),
        ] {
            let config = Config {
                allocation_slack: lends,
                allocation_slack_opt_out: opted_out.iter().map(|role| role.to_string()).collect(),
                ..Config::default()
            };
            let now = Now { mono: Mono(1), wall: Wall(1) };
            let master = Master::new(config, Registry::default(), now);
            let expected = expected.flatten(Revocable::AllocationSlack);
            assert_eq!(idle(lendable(master.state(), &total), &used), expected, "{lends} {opted_out:?}");
        }
    }
}
