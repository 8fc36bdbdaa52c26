//! A naive allocator to compare with: every number from scratch out of the ledgers, fractions without division.

use alloc::vec;

use tepui_resources::{Limits, Quantities};

use super::*;
use crate::Quota;
use crate::candidates::can_handle;
use crate::grant::{Scope, Stage};
use crate::marks::Traits;
use crate::slab::{ClientSlot, FrameworkSlot};
use crate::slack_books::is_slack;
use crate::tree::Tree;
use crate::walk::Walk;

/// `share = amount / (total * weight)` as two numbers.
type Fraction = (u128, u128);

/// What an operator set, remembered by the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) weights: BTreeMap<Role, f64>,
    pub(super) quotas: BTreeMap<Role, Quota>,
}

pub(super) struct Reference<'a> {
    pub(super) allocator: &'a Allocator,
    pub(super) settings: &'a Settings,
    pub(super) order: Ordered,
}

/// The clients whose order is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    /// All clients, by what they hold.
    Clients,
    /// Borrowers, by what is lent to them.
    Borrowers,
}

fn is_at_or_below(role: &Role, above: &Role) -> bool {
    role == above || role.is_strict_subrole_of(above)
}

impl Reference<'_> {
    fn tree(&self) -> &Tree {
        match self.order {
            Ordered::Clients => &self.allocator.tree,
            Ordered::Borrowers => &self.allocator.borrowers.tree,
        }
    }

    /// All clients in the order of the allocator.
    pub(super) fn served_order(&self) -> Vec<ClientSlot> {
        let mut tree = self.tree().clone();
        tree.settle_order();
        let mut walk = Walk::new(Scope::All);
        walk.start(&tree, Stage::Everyone);
        core::iter::from_fn(|| walk.next(&tree)).collect()
    }

    /// All clients in the order of exact shares, role by role.
    pub(super) fn naive_order(&self) -> Vec<ClientSlot> {
        let mut settled = self.tree().clone();
        settled.settle_order(); // Only what decides between equal shares is read from it.
        let active = settled.clients.iter().filter(|(_, client)| client.active);
        let mut order = Vec::new();
        self.order_below(&settled, "", &active.map(|(slot, _)| slot).collect::<Vec<_>>(), &mut order);
        order
    }

    fn order_below(&self, tree: &Tree, path: &str, clients: &[ClientSlot], order: &mut Vec<ClientSlot>) {
        let mut own = Vec::new();
        let mut children: BTreeMap<Role, Vec<ClientSlot>> = BTreeMap::new();
        for client in clients {
            let role = tree.role_of(*client).as_str();
            match role.strip_prefix(path).unwrap().trim_start_matches('/').split('/').next() {
                Some("") | None => own.push(*client),
                Some(child) => {
                    let child = if path.is_empty() { child.into() } else { format!("{path}/{child}") };
                    children.entry(child.as_str().into()).or_default().push(*client);
                }
            }
        }
        let mut siblings: Vec<(Fraction, (u64, u64), Option<Role>)> = Vec::new();
        for role in children.keys() {
            let share = self.share(|_, held_as| is_at_or_below(held_as, role), self.weight(role));
            let node = tree.node(role).expect("a role with frameworks is in the tree");
            siblings.push((share, tree.nodes[node].key.tie(), Some(role.clone())));
        }
        if !own.is_empty() {
            let share = self.share(|_, held_as| held_as.as_str() == path, 1_000_000);
            let node = tree.node(&path.into()).expect("a role with frameworks is in the tree");
            siblings.push((share, tree.nodes[node].own_key.tie(), None));
        }
        siblings.sort_by(|a, b| compare(a.0, b.0).then(a.1.cmp(&b.1)));
        for (_, _, role) in siblings {
            match role {
                Some(role) => self.order_below(tree, role.as_str(), &children[&role], order),
                None => order.extend(self.order_own(tree, &own)),
            }
        }
    }

    fn order_own(&self, tree: &Tree, clients: &[ClientSlot]) -> Vec<ClientSlot> {
        let mut keyed: Vec<_> = clients
            .iter()
            .map(|slot| {
                let role = tree.role_of(*slot);
                let framework = tree.clients[*slot].framework;
                let share = self.share(|holder, held_as| holder == framework && held_as == role, 1_000_000);
                (share, tree.clients[*slot].key.tie(), *slot)
            })
            .collect();
        keyed.sort_by(|a, b| compare(a.0, b.0).then(a.1.cmp(&b.1)));
        keyed.into_iter().map(|(_, _, slot)| slot).collect()
    }

    fn weight(&self, role: &Role) -> u128 {
        self.settings.weights.get(role).map_or(1_000_000, |weight| (weight * 1e6).round() as u128)
    }

    /// The largest fraction of the total among what is held by these.
    fn share(&self, counts: impl Fn(FrameworkSlot, &Role) -> bool, weight: u128) -> Fraction {
        let mut held = Quantities::new();
        let mut total = Quantities::new();
        for (_, agent) in self.allocator.agents.iter() {
            total += &match self.order {
                Ordered::Clients => agent.ledger.total().scalar_quantities(),
                Ordered::Borrowers => agent.ledger.slack().total().scalar_quantities(),
            };
            let mut here = Resources::new();
            for (framework, parts) in agent.ledger.held() {
                let counted = |one: &Resource| is_slack(one) == (self.order == Ordered::Borrowers);
                let held = (&parts.offered + &parts.used).filter(counted);
                for (role, part) in held.by_allocation() {
                    if counts(framework, &role) {
                        here += &part.unallocate();
                    }
                }
            }
            held += &here.single_copies().scalar_quantities();
        }
        let fractions = total.iter().map(|(name, total)| {
            (held.get(name).thousandths() as u128 * 1_000_000, total.thousandths() as u128 * weight)
        });
        fractions.max_by(|a, b| compare(*a, *b)).unwrap_or((0, 1))
    }

    /// All reservations at and below a role, and what is held there that is neither reserved nor revocable.
    pub(super) fn consumed(&self, role: &Role) -> Quantities {
        let mut sum = Quantities::new();
        for (_, agent) in self.allocator.agents.iter() {
            let reserved = agent.ledger.total().non_revocable().filter(|one| {
                one.reservation_role().is_some_and(|reserved_to| is_at_or_below(reserved_to, role))
            });
            sum += &reserved.scalar_quantities();
            for (_, held) in agent.ledger.held() {
                let held = (&held.offered + &held.used).unreserved().non_revocable();
                let mine = held.filter(|one| is_at_or_below(one.allocation().unwrap(), role));
                sum += &mine.scalar_quantities();
            }
        }
        sum
    }

    /// What must be kept for a role with all below it.
    fn required(&self, role: &Role) -> Quantities {
        let quota = self.settings.quotas.get(role).cloned().unwrap_or_default();
        let own = quota.guarantees - &self.consumed(role);
        let below: Vec<Role> = self.children(role.as_str());
        let below: Quantities =
            below.iter().map(|child| self.required(child)).collect::<Vec<_>>().iter().sum();
        own.clone() + &(below - &own)
    }

    fn children(&self, path: &str) -> Vec<Role> {
        let of = |role: &Role| {
            let rest = match path {
                "" => role.as_str(),
                path => role.as_str().strip_prefix(path)?.strip_prefix('/')?,
            };
            let name = rest.split('/').next()?;
            Some(if path.is_empty() { name.into() } else { format!("{path}/{name}").as_str().into() })
        };
        let all: BTreeSet<Role> = self.settings.quotas.keys().filter_map(of).collect();
        all.into_iter().collect()
    }

    pub(super) fn all_required(&self) -> Quantities {
        self.children("").iter().map(|top| self.required(top)).collect::<Vec<_>>().iter().sum()
    }

    pub(super) fn available(&self) -> Quantities {
        let offerable = self.allocator.agents.iter().filter(|(_, agent)| agent.active && agent.whitelisted);
        let free =
            offerable.map(|(_, agent)| agent.ledger.free().unreserved().non_revocable().scalar_quantities());
        free.collect::<Vec<_>>().iter().sum()
    }

    /// By how much more the role could lower what is required in all, if it had endlessly much.
    fn guaranteed(&self, role: &Role) -> Quantities {
        let path: Vec<Role> =
            core::iter::once(role.clone()).chain(role.ancestors().map(Role::from)).collect();
        let top = path.last().unwrap();
        self.required(top) - &self.required_without(top, &path)
    }

    fn required_without(&self, role: &Role, path: &[Role]) -> Quantities {
        if !path.contains(role) {
            return self.required(role);
        }
        let children = self.children(role.as_str());
        let below: Vec<_> = children.iter().map(|child| self.required_without(child, path)).collect();
        below.iter().sum()
    }

    /// The most that quota lets this role have of these.
    fn within_quota(&self, role: &Role, fit: &Resources) -> Resources {
        let is_plain = |one: &Resource| one.amount().is_some() && !one.is_reserved() && !one.is_revocable();
        let mut plain = fit.filter(is_plain);
        let mut roles: Vec<Role> = vec![role.clone()];
        roles.extend(role.ancestors().map(Role::from));
        for role in &roles {
            let limits = self.settings.quotas.get(role).map_or(Limits::new(), |quota| quota.limits.clone());
            plain = plain.shrink_to_limits(&limits.minus(&self.consumed(role)));
        }
        let required = self.all_required();
        if !required.is_empty() {
            plain = plain.shrink_to(&(self.available() - &required + &self.guaranteed(role)));
        }
        fit.filter(|one| !is_plain(one)) + &plain
    }

    /// What the role could borrow of an agent.
    fn lendable(&self, agent: &AgentId, role: &Role) -> Resources {
        let slack = self.allocator.slack(agent).unwrap();
        slack.idle.allocation_slack(Some(role)) - &(slack.offered + &slack.used).unallocate()
    }

    /// Free resources of agents that a client could have, ignoring filters.
    pub(super) fn idle(&self) -> Vec<String> {
        let allocator = self.allocator;
        let mut idle = Vec::new();
        for (_, agent) in allocator.agents.iter().filter(|(_, agent)| agent.active && agent.whitelisted) {
            for (slot, client) in allocator.tree.clients.iter().filter(|(_, client)| client.active) {
                let role = &allocator.tree.nodes[client.node].role;
                let fit = agent.ledger.free().allocatable_to(role).non_shared();
                let fit = fit.filter(|one| can_handle(allocator.tree.client_traits(slot).traits, one));
                let fit = self.within_quota(role, &fit);
                let borrows = allocator.tree.client_traits(slot).traits.has_any(Traits::REVOCABLE);
                let slack = if borrows { self.lendable(&agent.id, role) } else { Resources::new() };
                for fit in [fit, slack] {
                    if allocator.options.min_allocatable.allows(&fit.quantities()) {
                        let id = &allocator.frameworks[client.framework].id;
                        idle.push(format!("{fit} of {} lies idle, {id} in {role} could have it", agent.id));
                    }
                }
            }
        }
        idle
    }
}

fn compare(a: Fraction, b: Fraction) -> core::cmp::Ordering {
    (a.0 * b.1).cmp(&(b.0 * a.1))
}
