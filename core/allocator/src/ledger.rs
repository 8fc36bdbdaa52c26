//! The ledger of one agent: who holds which of its resources.
//!
//! Owned by the allocator; the only accounting in the system. Fed by grants and by the master's moves.
//! Invariant: `total = free + offered + used`, unless more is held than there is; checked by `audit`. Such a debt is
//! there when an agent came back with less than is in use on it, or with other reservations: then of the names that are
//! owed nothing is free, whoever it is reserved for. Shared resources can be held any number of times and are free all
//! the while.
//! Never: clocks, connections, protobuf.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use tepui_resources::{Resource, Resources};

use crate::Held;
use crate::slab::FrameworkSlot;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    total: Resources,
    held: BTreeMap<FrameworkSlot, Held>,
    /// The sum of what is held, not allocated, without shared resources.
    taken: Resources,
    free: Resources,
    /// More is taken than there is.
    owes: bool,
}

/// Which half of what a framework holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Offered,
    Used,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.used.is_empty()
    }

    fn part(&self, part: Part) -> &Resources {
        match part {
            Part::Offered => &self.offered,
            Part::Used => &self.used,
        }
    }

    fn part_mut(&mut self, part: Part) -> &mut Resources {
        match part {
            Part::Offered => &mut self.offered,
            Part::Used => &mut self.used,
        }
    }
}

impl Ledger {
    pub(crate) fn total(&self) -> &Resources {
        &self.total
    }

    pub(crate) fn free(&self) -> &Resources {
        &self.free
    }

    pub(crate) fn held(&self) -> &BTreeMap<FrameworkSlot, Held> {
        &self.held
    }

    pub(crate) fn set_total(&mut self, total: Resources) {
        self.total = total;
        self.owes = !self.total.contains(&self.taken);
        self.count();
    }

    /// After the total or what is taken changed. Only less of the one or more of the other can begin a debt.
    fn count(&mut self) {
        if self.owes {
            self.owes = !self.total.contains(&self.taken);
        }
        self.free = match self.owes {
            true => free_of_debtor(&self.total, &self.taken),
            false => &self.total - &self.taken,
        };
    }

    /// Free, or nobody's at all -> held: what an agent reports may go beyond what is free.
    pub(crate) fn add(&mut self, framework: FrameworkSlot, part: Part, resources: &Resources) {
        *self.held.entry(framework).or_default().part_mut(part) += resources;
        let taken = exclusive(resources);
        self.taken += &taken;
        // Grants come from what is free.
        if self.owes || (part == Part::Used && !self.free.contains(&taken)) {
            self.owes = true;
            return self.count();
        }
        self.free -= &taken;
    }

    /// Held -> free. Returns what was really held: everything, or the caller is wrong.
    pub(crate) fn remove(
        &mut self,
        framework: FrameworkSlot,
        part: Part,
        resources: &Resources,
    ) -> Resources {
        let Some(held) = self.held.get_mut(&framework) else {
            debug_assert!(resources.is_empty(), "{resources} was held by nobody");
            return Resources::new();
        };
        let removed = cut(held.part_mut(part), resources);
        if held.is_empty() {
            self.held.remove(&framework);
        }
        self.taken -= &exclusive(&removed);
        self.count();
        removed
    }

    /// Offered -> used. Shared resources become used and stay offered.
    pub(crate) fn launch(&mut self, framework: FrameworkSlot, resources: &Resources) -> Resources {
        let held = self.held.entry(framework).or_default();
        let launched = cut(&mut held.offered, &resources.non_shared());
        held.used += &launched;
        let shared = resources.shared();
        if !shared.is_empty() {
            debug_assert!(
                shared.clone().single_copies().iter().all(|one| held.offered.contains_resource(one))
            );
            held.used += &shared;
        }
        if held.is_empty() {
            self.held.remove(&framework);
        }
        shared
    }

    /// `consumed` becomes `converted`, in what the framework holds (or in what is free) and in the total.
    pub(crate) fn convert(
        &mut self,
        holder: Option<(FrameworkSlot, Part)>,
        consumed: &Resources,
        converted: &Resources,
    ) -> bool {
        let (before, after) = (consumed.clone().unallocate(), converted.clone().unallocate());
        match holder {
            None if self.free.contains(&before) => (),
            Some((framework, part)) if self.holds(framework, part, consumed) => {
                let held = self.held.entry(framework).or_default();
                *held.part_mut(part) -= consumed;
                *held.part_mut(part) += converted;
                if held.is_empty() {
                    self.held.remove(&framework);
                }
                self.taken -= &exclusive(consumed);
                self.taken += &exclusive(converted);
            }
            None | Some(_) => return false,
        }
        self.total -= &before;
        self.total += &after;
        self.total = core::mem::take(&mut self.total).single_copies();
        self.count();
        true
    }

    fn holds(&self, framework: FrameworkSlot, part: Part, resources: &Resources) -> bool {
        self.held.get(&framework).is_some_and(|held| held.part(part).contains(resources))
    }

    /// What is wrong with the books, if anything.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut taken = Resources::new();
        for held in self.held.values() {
            if held.is_empty() {
                return Err("an empty holding is kept".into());
            }
            taken += &exclusive(&held.offered);
            taken += &exclusive(&held.used);
        }
        if taken != self.taken {
            return Err(format!("{taken} is held, but {} is booked", self.taken));
        }
        if free_of_debtor(&self.total, &taken) != self.free {
            return Err(format!("total {} is not free {} + held {taken}", self.total, self.free));
        }
        Ok(())
    }
}

/// What is not taken, of names of which not more is taken than there is.
fn free_of_debtor(total: &Resources, taken: &Resources) -> Resources {
    let debt = taken - total;
    (total - taken).filter(|resource| debt.names().all(|owed| owed != resource.name()))
}

/// Without what can be held more than once, and without saying by which role.
pub(crate) fn exclusive(resources: &Resources) -> Resources {
    resources.non_shared().unallocate()
}

/// Takes out of `from` what is there of `wanted`: all of it, unless the caller is wrong.
fn cut(from: &mut Resources, wanted: &Resources) -> Resources {
    if from.contains(wanted) {
        *from -= wanted;
        return wanted.clone();
    }
    debug_assert!(false, "{wanted} is not in {from}");
    let there: Resources = from.intersect(wanted);
    *from -= &there;
    there
}

/// Whether any of these can be held more than once.
pub(crate) fn has_shared(resources: &Resources) -> bool {
    resources.iter().any(Resource::is_shared)
}
