//! The ledger of one agent: the holders of its resources.
//!
//! Owned by the allocator; the only accounting in the system. Fed by grants and by the master's moves. Invariant:
//! `total = free + offered + used`, unless more is held than the total; checked by `audit`. Such a debt exists when
//! an agent re-registered with less than is in use on it, or with other reservations: then nothing of the names in
//! debt is free, with any reservation. Shared resources can be held any number of times and stay free. Slack is held
//! in addition to all this: it is the idle part of another client's reservation (`slack`). Absent: clocks,
//! connections, protobuf.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::Mono;
use tepui_resources::{Quantities, Resource, Resources, Role};

use crate::held::{Held, Part};
use crate::slab::FrameworkSlot;
use crate::slack_books::{SlackBooks, SlackTerms, is_slack};

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    total: Resources,
    /// By framework; only those with holdings.
    held: Vec<Holding>,
    free: Resources,
    /// What is held beyond the total.
    debt: Resources,
    slack: SlackBooks,
    slack_news: News,
}

/// Changes that the books of slack do not contain yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    #[default]
    Nothing,
    /// Holdings of owners. As long as nothing is lent, computed when a borrower exists.
    OfOwners,
    /// Also what is lent.
    OfBorrowers,
}

#[derive(Clone, Debug)]
struct Holding {
    framework: FrameworkSlot,
    held: Held,
    /// When the oldest of what is offered was granted.
    offered_since: Mono,
}

impl Ledger {
    pub(crate) fn new(terms: SlackTerms) -> Self {
        Self { slack: SlackBooks::new(terms), ..Self::default() }
    }

    pub(crate) fn slack(&self) -> Cow<'_, SlackBooks> {
        if self.slack_news == News::Nothing {
            return Cow::Borrowed(&self.slack);
        }
        let mut slack = self.slack.clone();
        self.count_slack(&mut slack);
        Cow::Owned(slack)
    }

    /// Roles with reservations that could be lent while idle.
    pub(crate) fn lenders(&self) -> &[Role] {
        self.slack.owners()
    }

    /// How much there is to lend if all of it is idle.
    pub(crate) fn lendable(&self) -> &Quantities {
        self.slack.lendable()
    }

    /// Whether something idle may be left to lend: false only if certainly not.
    pub(crate) fn may_lend(&self) -> bool {
        match self.slack_news {
            News::Nothing => self.slack.has_rest(),
            News::OfOwners | News::OfBorrowers => !self.lenders().is_empty(),
        }
    }

    /// Whether more is lent than is idle. Must be settled so far as anything is lent.
    pub(crate) fn is_over_lent(&self) -> bool {
        self.slack.is_over()
    }

    /// Must follow when what is held or there changed, of these resources.
    fn note_slack(&mut self, changed: &Resources) {
        if changed.iter().any(is_slack) {
            self.slack_news = News::OfBorrowers;
        } else if self.slack.is_affected_by(changed) {
            self.slack_news = self.slack_news.max(News::OfOwners);
        }
    }

    fn count_slack(&self, slack: &mut SlackBooks) {
        slack.count(&self.total, self.held().map(|(_, held)| held), |resource| self.owes(resource));
    }

    fn note_total(&mut self) {
        self.slack.note_total(&self.total);
        if self.slack.is_affected_by(&self.total) {
            self.slack_news = self.slack_news.max(News::OfOwners);
        }
    }

    /// Counts slack if anything is lent.
    pub(crate) fn settle_lent(&mut self) {
        if self.slack_news == News::OfBorrowers || !self.slack.lent().is_empty() {
            self.settle_slack();
        }
    }

    pub(crate) fn settle_slack(&mut self) {
        if self.slack_news != News::Nothing {
            let mut slack = core::mem::take(&mut self.slack);
            self.count_slack(&mut slack);
            self.slack = slack;
            self.slack_news = News::Nothing;
        }
    }

    pub(crate) fn total(&self) -> &Resources {
        &self.total
    }

    pub(crate) fn free(&self) -> &Resources {
        &self.free
    }

    /// The holders.
    pub(crate) fn held(&self) -> impl ExactSizeIterator<Item = (FrameworkSlot, &Held)> + Clone + '_ {
        self.held.iter().map(|holding| (holding.framework, &holding.held))
    }

    pub(crate) fn held_by(&self, framework: FrameworkSlot) -> Option<&Held> {
        self.position(framework).ok().map(|at| &self.held[at].held)
    }

    /// Frameworks with an unanswered offer, and its time.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (FrameworkSlot, &Resources, Mono)> + '_ {
        let offering = self.held.iter().filter(|holding| !holding.held.offered.is_empty());
        offering.map(|holding| (holding.framework, &holding.held.offered, holding.offered_since))
    }

    fn position(&self, framework: FrameworkSlot) -> Result<usize, usize> {
        self.held.binary_search_by_key(&framework, |holding| holding.framework)
    }

    /// Must be followed by `drop_if_empty` unless something is added.
    fn holding_mut(&mut self, framework: FrameworkSlot) -> &mut Holding {
        let at = self.position(framework).unwrap_or_else(|at| {
            let holding = Holding { framework, held: Held::default(), offered_since: Mono(0) };
            self.held.insert(at, holding);
            at
        });
        &mut self.held[at]
    }

    fn held_mut(&mut self, framework: FrameworkSlot) -> &mut Held {
        &mut self.holding_mut(framework).held
    }

    fn drop_if_empty(&mut self, framework: FrameworkSlot) {
        if let Ok(at) = self.position(framework)
            && self.held[at].held.is_empty()
        {
            self.held.remove(at);
        }
    }

    /// Whether more is held under this name than there is.
    pub(crate) fn owes(&self, resource: &Resource) -> bool {
        self.debt.names().any(|name| name == resource.name())
    }

    /// Whether more is held than there is.
    pub(crate) fn has_debt(&self) -> bool {
        !self.debt.is_empty()
    }

    /// The total before.
    pub(crate) fn set_total(&mut self, total: Resources) -> Resources {
        let before = core::mem::replace(&mut self.total, total);
        if self.held.is_empty() {
            self.free = self.total.clone();
        } else {
            match self.total.checked_sub(&before).filter(|_| self.debt.is_empty()) {
                Some(more) => self.free += more,
                None => self.count_free(),
            }
        }
        self.note_total();
        before
    }

    /// From scratch.
    fn count_free(&mut self) {
        let taken = self.taken();
        self.debt = &taken - &self.total;
        self.debt += self.strays();
        self.free = (&self.total - &taken).filter(|resource| !self.owes(resource));
    }

    /// Shared resources that are held without being in the total: the resources they are made of are not free.
    fn strays(&self) -> Resources {
        let mut shared = Resources::new();
        for (_, held) in self.held() {
            for part in [&held.offered, &held.used].into_iter().filter(|part| has_shared(part)) {
                shared += part.shared().unallocate();
            }
        }
        &shared.single_copies() - &self.total
    }

    /// The sum of what is held and taken from others by that.
    fn taken(&self) -> Resources {
        let mut taken = Resources::new();
        for (_, held) in self.held() {
            taken.put_back(&exclusive_part(&held.offered));
            taken.put_back(&exclusive_part(&held.used));
        }
        taken
    }

    /// Free -> offered: `fit`, or everything, allocated to a role. Also returns what is shared of it, not allocated.
    pub(crate) fn grant(
        &mut self,
        now: Mono,
        framework: FrameworkSlot,
        fit: Option<Resources>,
        role: &Role,
    ) -> (Resources, Resources) {
        let (fit, shared) = match fit {
            Some(fit) => {
                self.free -= &*exclusive_part(&fit);
                let shared = shared_part(&fit);
                (fit, shared)
            }
            None => {
                let shared = shared_part(&self.free);
                (core::mem::replace(&mut self.free, shared.clone()), shared)
            }
        };
        let resources = fit.allocate(role);
        self.offer(now, framework, &resources);
        (resources, shared)
    }

    /// Idle though reserved -> lent: slack has no holder but the borrower.
    pub(crate) fn lend(&mut self, now: Mono, framework: FrameworkSlot, slack: &Resources) {
        debug_assert!(slack.iter().all(is_slack), "{slack} is not all slack");
        self.offer(now, framework, slack);
        self.note_slack(slack);
    }

    fn offer(&mut self, now: Mono, framework: FrameworkSlot, resources: &Resources) {
        let holding = self.holding_mut(framework);
        if holding.held.offered.is_empty() {
            holding.offered_since = now;
        }
        holding.held.offered += resources;
    }

    /// Free, or in no account -> held. Grants come from `free`; an agent's report may exceed it.
    pub(crate) fn add(&mut self, framework: FrameworkSlot, part: Part, resources: &Resources) {
        *self.held_mut(framework).part_mut(part) += resources;
        self.drop_if_empty(framework);
        let simple = self.debt.is_empty() && !has_shared(resources);
        if !(simple && self.free.take(&exclusive_part(resources))) {
            self.count_free();
        }
        self.note_slack(resources);
    }

    /// Held -> free. Returns what was really held: everything, or the caller is wrong.
    pub(crate) fn remove(
        &mut self,
        framework: FrameworkSlot,
        part: Part,
        resources: &Resources,
    ) -> Resources {
        let removed = cut(self.held_mut(framework).part_mut(part), resources);
        self.drop_if_empty(framework);
        if !self.debt.is_empty() {
            self.count_free();
        } else if self.held.is_empty() {
            self.free = self.total.clone();
        } else {
            self.free.put_back(&exclusive_part(&removed));
        }
        self.note_slack(&removed);
        removed
    }

    /// Offered -> used. Shared resources become used and stay offered.
    pub(crate) fn launch(&mut self, framework: FrameworkSlot, resources: &Resources) -> Resources {
        let held = self.held_mut(framework);
        let launched = cut(&mut held.offered, &resources.non_shared());
        held.used += &launched;
        let shared = resources.shared();
        if !shared.is_empty() {
            debug_assert!(
                shared.clone().single_copies().iter().all(|one| held.offered.contains_resource(one))
            );
            held.used += &shared;
        }
        self.drop_if_empty(framework);
        self.note_slack(resources);
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
                let held = self.held_mut(framework).part_mut(part);
                *held -= consumed;
                *held += converted;
                self.drop_if_empty(framework);
            }
            None | Some(_) => return false,
        }
        let simple = self.debt.is_empty() && !has_shared(&before) && !has_shared(&after);
        self.total -= &before;
        self.total += &after;
        if !simple {
            self.total = core::mem::take(&mut self.total).single_copies();
            self.count_free();
        } else if holder.is_none() {
            self.free -= &before;
            self.free += &after;
        }
        self.note_slack(&before);
        self.note_slack(&after);
        self.note_total();
        true
    }

    fn holds(&self, framework: FrameworkSlot, part: Part, resources: &Resources) -> bool {
        self.held_by(framework).is_some_and(|held| held.part(part).contains(resources))
    }

    /// What is wrong with the books, if anything.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let sorted = self.held.is_sorted_by(|a, b| a.framework < b.framework);
        if !sorted || self.held().any(|(_, held)| held.is_empty()) {
            return Err("a holding is empty or out of order".into());
        }
        let mut scratch = self.clone();
        scratch.count_free();
        scratch.slack_news = News::OfBorrowers;
        scratch.settle_slack();
        scratch.note_total();
        if self.slack_news == News::Nothing && scratch.slack != self.slack {
            return Err(format!("slack is {:?}, not {:?}", scratch.slack, self.slack));
        }
        if scratch.debt != self.debt || scratch.free != self.free {
            let (total, free, debt) = (&self.total, &self.free, &self.debt);
            return Err(format!("total {total} is not free {free} + held {} - owed {debt}", self.taken()));
        }
        Ok(())
    }
}

/// Without what is not taken from others.
fn exclusive_part(resources: &Resources) -> Cow<'_, Resources> {
    match resources.iter().all(is_exclusive) {
        true => Cow::Borrowed(resources),
        false => Cow::Owned(resources.filter(is_exclusive)),
    }
}

/// Whether holding it takes it from others: shared resources can be held by many, slack is counted by its owner.
fn is_exclusive(resource: &Resource) -> bool {
    !resource.is_shared() && !is_slack(resource)
}

/// Removes `wanted` from `from` as far as present: all of it, unless the caller is wrong.
fn cut(from: &mut Resources, wanted: &Resources) -> Resources {
    if from == wanted {
        return core::mem::take(from);
    }
    if from.contains(wanted) {
        *from -= wanted;
        return wanted.clone();
    }
    debug_assert!(false, "{wanted} is not in {from}");
    let there: Resources = from.intersect(wanted);
    *from -= &there;
    there
}

/// What can be held more than once.
pub(crate) fn shared_part(resources: &Resources) -> Resources {
    if has_shared(resources) { resources.shared() } else { Resources::new() }
}

/// Whether any of these can be held more than once.
pub(crate) fn has_shared(resources: &Resources) -> bool {
    resources.iter().any(Resource::is_shared)
}
