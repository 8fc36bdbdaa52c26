//! The choice of executors to preempt so that the allocation fits the agent: whole executors, the youngest first, and
//! only those whose termination helps.
//!
//! Pure arithmetic over allocations. Two conditions must hold for the agent: firm and lent resources fit its total,
//! and lent resources fit the reservations without persistent data.

use alloc::vec::Vec;

use tepui_fsm::Wall;
use tepui_resources::{Name, Resources, Scalar};

use crate::state::bookkeeping::ExecutorKey;

/// Resources of one executor including its tasks, without allocation.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) key: ExecutorKey,
    pub(super) added: Wall,
    /// What cannot be taken from it.
    pub(super) firm: Resources,
    /// Lent to it: reserved for an owner that did not use it.
    pub(super) slack: Resources,
}

/// Whether all these can be held at the same time. What is wrong without anything lent does not count: nothing would
/// be gained by waiting for it.
pub(super) fn fits(total: &Resources, holdings: &[Holding]) -> bool {
    let sums = Sums::of(total, holdings);
    sums.missing().is_empty() && !holdings.iter().any(|holding| sums.collides(&holding.slack))
}

/// Whether something is lent and in use by its owner at the same time.
#[cfg(test)]
pub(super) fn is_overfull(total: &Resources, holdings: &[Holding]) -> bool {
    let sums = Sums::of(total, holdings);
    sums.slack.names().any(|name| {
        let (firm, lent) = (sums.firm.amount(name), sums.slack.amount(name));
        lent > Scalar::ZERO && firm + lent > total.amount(name)
    })
}

/// The borrowers that have to go, the youngest first: from the oldest on, each stays that leaves enough room.
pub(super) fn victims(total: &Resources, holdings: Vec<Holding>) -> Vec<ExecutorKey> {
    let sums = Sums::of(total, &holdings);
    let (colliding, rest): (Vec<_>, Vec<_>) =
        holdings.into_iter().partition(|holding| sums.collides(&holding.slack));
    let missing = Sums::of(total, &rest).missing();
    let is_needed = |name: &Name| missing.iter().any(|(missing, _)| missing == name);
    let (mut borrowers, staying): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|holding| holding.slack.names().any(is_needed));
    borrowers.sort_by(|a, b| (a.added, &a.key).cmp(&(b.added, &b.key)));
    let mut held = Sums::of(total, &staying);
    borrowers.retain(|borrower| {
        held.firm += &borrower.firm;
        held.slack += &borrower.slack;
        let goes = !held.missing().is_empty();
        if goes {
            held.firm -= &borrower.firm;
            held.slack -= &borrower.slack;
        }
        goes
    });
    colliding.into_iter().chain(borrowers.into_iter().rev()).map(|victim| victim.key).collect()
}

struct Sums<'t> {
    total: &'t Resources,
    /// What can be lent at all.
    lendable: Resources,
    firm: Resources,
    slack: Resources,
}

impl<'t> Sums<'t> {
    fn of(total: &'t Resources, holdings: &[Holding]) -> Self {
        let mut sums = Self {
            total,
            lendable: total.non_revocable().stateless().reserved(),
            firm: Resources::default(),
            slack: Resources::default(),
        };
        for holding in holdings {
            sums.firm += &holding.firm;
            sums.slack += &holding.slack;
        }
        sums
    }

    /// The amounts to reclaim.
    fn missing(&self) -> Vec<(Name, Scalar)> {
        let missing = |name: &Name| {
            let lent = self.slack.amount(name);
            let beyond_total = (self.firm.amount(name) + lent).minus_or_zero(self.total.amount(name));
            let beyond_lendable = lent.minus_or_zero(self.lendable.amount(name));
            let amount = beyond_total.max(beyond_lendable).min(lent);
            (amount > Scalar::ZERO).then(|| (name.clone(), amount))
        };
        self.slack.names().filter_map(missing).collect()
    }

    /// Whether ports or other things that cannot be divided are lent and in use at the same time.
    fn collides(&self, slack: &Resources) -> bool {
        slack.names().any(|name| {
            let (ranges, set) = (slack.ranges(name), slack.set(name));
            !ranges.intersection(&self.firm.ranges(name)).is_empty()
                || !set.intersection(&self.firm.set(name)).is_empty()
                || !self.lendable.ranges(name).contains(&ranges)
                || !self.lendable.set(name).contains(&set)
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use tepui_resources::{Revocable, parse};
    use tepui_types::{ExecutorId, FrameworkId};

    use super::*;

    fn all(text: &str) -> Resources {
        parse::resources(text, "*").expect("valid").into_iter().collect()
    }

    /// `name firm | slack`, the oldest first.
    fn holdings(text: &str) -> Vec<Holding> {
        let holding = |(at, line): (usize, &str)| {
            let (name, rest) = line.trim().split_once(' ').expect("a name");
            let (firm, slack) = rest.split_once('|').expect("firm | slack");
            Holding {
                key: (FrameworkId::new("F"), ExecutorId::new(name)),
                added: Wall(at as u64),
                firm: all(firm.trim()),
                slack: all(slack.trim()).flatten(Revocable::AllocationSlack),
            }
        };
        text.lines().filter(|line| !line.trim().is_empty()).enumerate().map(holding).collect()
    }

    fn check(total: &str, held: &str, expected: &str) {
        let (total, held) = (all(total), holdings(held));
        let ids = |keys: Vec<ExecutorKey>| {
            keys.iter().map(|key| key.1.to_string()).collect::<Vec<String>>().join(" ")
        };
        let fit = fits(&total, &held);
        let gone = ids(victims(&total, held.clone()));
        assert_eq!((gone.as_str(), fit), (expected, expected.is_empty()), "{total}: {held:?}");
    }

    const TOTAL: &str = "cpus(ads):4;mem(ads):400;cpus:2;mem:200;ports(ads):[1-9]";

    #[test]
    fn no_preemption_while_resources_suffice() {
        check(TOTAL, "", "");
        check(TOTAL, "a cpus:2|\n b |cpus:4;mem:400", "");
        check(TOTAL, "a cpus:2;mem:200|\n b |cpus:4;mem:400;ports:[1-9]", "");
    }

    #[test]
    fn the_youngest_are_evicted_first() {
        check(TOTAL, "a |cpus:1\n b |cpus:1\n c |cpus:1\n owner cpus:4|", "c");
        check(TOTAL, "a |cpus:2\n b |cpus:1\n c |cpus:1\n owner cpus:4|", "c b");
        check(TOTAL, "a |cpus:2\n b |cpus:2\n owner cpus:4|", "b");
        check(TOTAL, "a |cpus:3\n b |cpus:0.5\n c |cpus:0.5\n owner cpus:3|", "c b");
    }

    #[test]
    fn no_preemption_without_benefit() {
        check(TOTAL, "a |cpus:2\n b |cpus:1\n c |cpus:1\n owner cpus:5|", "c a");
        check(TOTAL, "a |cpus:1\n b |mem:100\n c |cpus:1;mem:100\n owner cpus:5;mem:500|", "c");
        check(TOTAL, "a |cpus:1\n b |cpus:1\n c |mem:100\n owner cpus:5|", "b");
        check(TOTAL, "a |cpus:0.5\n b |cpus:3\n c |cpus:0.5\n owner cpus:5|", "b");
    }

    #[test]
    fn every_kind_of_resource_is_reclaimed() {
        check(TOTAL, "a |mem:100\n b |cpus:1\n owner cpus:6;mem:500|", "b");
        check(TOTAL, "a |mem:100\n b |cpus:1\n owner cpus:6;mem:600|", "b a");
    }

    #[test]
    fn conflicting_port_loans_are_preempted() {
        check(TOTAL, "a |ports:[1-2]\n b |ports:[3-4]\n owner ports:[4-5]|", "b");
        check(TOTAL, "a |ports:[20-21]", "a");
    }

    #[test]
    fn loans_above_the_reservation_are_preempted() {
        check("cpus(ads):1;cpus:5", "a |cpus:1\n b |cpus:1", "b");
        check("cpus:6", "a |cpus:1\n b |cpus:1", "b a");
    }

    #[test]
    fn overuse_without_loans_is_ignored() {
        check(TOTAL, "a cpus:5|\n b cpus:5|", "");
        check(TOTAL, "a cpus:5|\n b cpus:5|\n c |mem:100", "");
        check(TOTAL, "a cpus:5|\n b cpus:5|\n c |cpus:1;mem:100", "c");
    }
}
