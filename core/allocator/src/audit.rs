//! The check of the books: everything that is kept twice must agree. For tests and the simulator; it walks everything.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use tepui_resources::{Quantities, Resource, Role};

use crate::borrowers::Borrowers;
use crate::grant::{Scope, Stage};
use crate::marks::Traits;
use crate::slab::{ClientSlot, NodeSlot};
use crate::slack_books::is_slack;
use crate::tally::plain_quantities;
use crate::tree::{Child, Tree};
use crate::walk::Walk;
use crate::{Allocation, Allocator};

impl Allocator {
    /// Whether the books are right; what is wrong if not.
    pub fn audit(&self) -> Result<(), String> {
        self.audit_agents()?;
        self.audit_clients()?;
        audit_order(&self.tree)?;
        self.audit_borrowers()?;
        self.audit_quota()?;
        self.audit_unallocatable()?;
        match self.filters.is_consistent() {
            true => Ok(()),
            false => Err("the indexes of filters disagree".into()),
        }
    }

    /// Showing agents that are known to have no taker would change nothing.
    fn audit_unallocatable(&self) -> Result<(), String> {
        let Some(scope) = self.cycle.unallocatable.as_ref().map(|known| known.scope) else { return Ok(()) };
        let mut copy = self.clone();
        copy.tree.settle_order();
        copy.cycle.stage = Stage::Everyone;
        let marks = copy.tree.all_marks().to_vec();
        for (slot, agent) in self.agents.iter() {
            if copy.lends(slot) || !copy.is_skipped(slot, scope) {
                continue;
            }
            let (known, mut decided) = (copy.cycle.unallocatable.take(), Allocation::default());
            copy.allocate_agent(slot, scope, &mut decided);
            if !decided.grants.is_empty() || marks != copy.tree.all_marks() {
                return Err(format!("agent {} is not unallocatable: {decided:?}", agent.id));
            }
            copy.cycle.unallocatable = known;
        }
        Ok(())
    }

    fn audit_agents(&self) -> Result<(), String> {
        let (mut totals, mut lendable) = (Quantities::new(), Quantities::new());
        for (slot, agent) in self.agents.iter() {
            agent.ledger.audit().map_err(|wrong| format!("agent {}: {wrong}", agent.id))?;
            totals += &agent.ledger.total().scalar_quantities();
            lendable += &agent.ledger.slack().total().scalar_quantities();
            for (framework, entry) in self.frameworks.iter() {
                let holds = agent.ledger.held_by(framework).is_some();
                if holds != entry.agents.contains(slot) {
                    return Err(format!(
                        "framework {} and agent {} disagree on a holding",
                        entry.id, agent.id
                    ));
                }
            }
        }
        let (of, lent_of) = (&self.tree.totals, &self.borrowers.tree.totals);
        match totals == *of && lendable == *lent_of {
            true => Ok(()),
            false => Err(format!("shares are of {of} and {lent_of}, agents have {totals} and {lendable}")),
        }
    }

    /// Holdings of each client of a tree, by the ledgers.
    fn count_held(
        &self,
        tree: &Tree,
        counts: impl Fn(&Resource) -> bool,
    ) -> Result<BTreeMap<ClientSlot, Quantities>, String> {
        let mut held: BTreeMap<ClientSlot, Quantities> = BTreeMap::new();
        for (_, agent) in self.agents.iter() {
            for (framework, holding) in agent.ledger.held() {
                if !holding.offered.iter().chain(holding.used.iter()).any(&counts) {
                    continue;
                }
                let all = (&holding.offered + &holding.used).filter(&counts);
                for (role, part) in all.by_allocation() {
                    let amount = part.single_copies().scalar_quantities();
                    if let Some(client) = tree.client(framework, &role) {
                        *held.entry(client).or_default() += &amount;
                    } else if !amount.is_empty() {
                        return Err(format!("{amount} is held in role {role} without a holder"));
                    }
                }
            }
        }
        Ok(held)
    }

    /// Loans agree with the ledgers, and borrowers are the clients that can have any.
    fn audit_borrowers(&self) -> Result<(), String> {
        let Borrowers { tree, .. } = &self.borrowers;
        let held = self.count_held(tree, is_slack)?;
        for (slot, borrower) in tree.clients.iter() {
            let lent = held.get(&slot).cloned().unwrap_or_default();
            if lent != borrower.held.amount {
                let id = &self.frameworks[borrower.framework].id;
                return Err(format!("framework {id} borrows {lent}, but {} is booked", borrower.held.amount));
            }
        }
        let mut borrowers = 0;
        for (slot, client) in self.tree.clients.iter() {
            let can = self.tree.client_traits(slot).traits.has_any(Traits::REVOCABLE);
            let borrows = self.options.allocation_slack && client.active && can;
            borrowers += usize::from(borrows);
            let known = self.borrowers.slot(slot).filter(|borrower| self.borrowers.client(*borrower) == slot);
            if known.is_some_and(|borrower| tree.clients[borrower].active) != borrows {
                return Err("a borrower is not in order, or must not be".into());
            }
        }
        match tree.clients.iter().filter(|(_, borrower)| borrower.active).count() == borrowers {
            true => audit_order(tree),
            false => Err("the order of borrowers contains an unknown client".into()),
        }
    }

    /// Holdings of clients and roles agree with the ledgers.
    fn audit_clients(&self) -> Result<(), String> {
        let held = self.count_held(&self.tree, |one| !is_slack(one))?;
        for (slot, client) in self.tree.clients.iter() {
            if let Some(constraints) = &client.terms.constraints {
                for (agent, entry) in self.agents.iter() {
                    if constraints.known(agent).is_some_and(|known| known != constraints.admit(&entry.spec)) {
                        return Err(format!("the cached constraint match of agent {} is stale", entry.id));
                    }
                }
            }
            let booked = held.get(&slot).cloned().unwrap_or_default();
            if booked != client.held.amount {
                let id = &self.frameworks[client.framework].id;
                return Err(format!("framework {id} holds {booked}, but {} is booked", client.held.amount));
            }
        }
        Ok(())
    }

    /// Consumed, required and available amounts of roles agree with the ledgers.
    fn audit_quota(&self) -> Result<(), String> {
        let mut available = Quantities::new();
        let mut consumed: BTreeMap<NodeSlot, Quantities> = BTreeMap::new();
        for (_, agent) in self.agents.iter() {
            if agent.is_offerable() {
                available += &plain_quantities(agent.ledger.free());
            }
            for (role, part) in agent.ledger.total().non_revocable().by_reservation() {
                self.add_consumed(&mut consumed, &role, &part.scalar_quantities())?;
            }
            for (_, held) in agent.ledger.held() {
                for (role, part) in (&held.offered + &held.used).by_allocation() {
                    self.add_consumed(&mut consumed, &role, &plain_quantities(&part))?;
                }
            }
        }
        if available != self.tree.available {
            return Err(format!("{available} is available, but {} is booked", self.tree.available));
        }
        for (slot, node) in self.tree.nodes.iter() {
            let (claims, consumed) = (&node.claims, consumed.remove(&slot).unwrap_or_default());
            let children = self.tree.nodes.iter().filter(|(_, child)| child.parent == Some(slot));
            let below: Quantities = children.map(|(_, child)| &child.claims.required).sum();
            let lack = claims.quota.guarantees.clone() - &consumed;
            let required = below.clone() + &(lack - &below);
            if claims.consumed != consumed || claims.required_below != below || claims.required != required {
                let role = &node.role;
                return Err(format!("role '{role}' consumes {consumed} and requires {required}: {claims:?}"));
            }
        }
        Ok(())
    }

    fn add_consumed(
        &self,
        consumed: &mut BTreeMap<NodeSlot, Quantities>,
        role: &Role,
        amount: &Quantities,
    ) -> Result<(), String> {
        let mut next = match self.tree.node(role) {
            None if amount.is_empty() => return Ok(()),
            None => return Err(format!("role '{role}' consumes {amount}, but is not in the tree")),
            node => node,
        };
        while let Some(at) = next {
            *consumed.entry(at).or_default() += amount;
            next = self.tree.nodes[at].parent;
        }
        Ok(())
    }
}

/// Every client that may be offered something is in the order exactly once, and no other.
fn audit_order(tree: &Tree) -> Result<(), String> {
    let mut tree = tree.clone();
    tree.settle_order();
    for (slot, node) in tree.nodes.iter() {
        let children = node.children.iter().all(|(_, child)| match child {
            Child::Own => node.clients.len() > 0,
            Child::Role(role) => tree.nodes[role].parent == Some(slot) && tree.nodes[role].active > 0,
        });
        if !children || !node.children.is_sorted() || !node.clients.is_sorted() {
            return Err(format!("the order below role '{}' is wrong", node.role));
        }
    }
    let mut walk = Walk::new(Scope::All);
    walk.start(&tree, Stage::Everyone);
    let mut met = alloc::collections::BTreeSet::new();
    while let Some(client) = walk.next(&tree) {
        if !met.insert(client) || !tree.clients[client].active {
            return Err("a client is in the order twice, or must not be".into());
        }
    }
    if tree.clients.iter().filter(|(_, client)| client.active).count() != met.len() {
        return Err("an active client is not in the order".into());
    }
    let borrows = |client: &&ClientSlot| tree.client_traits(**client).traits.has_any(Traits::REVOCABLE);
    match met.iter().filter(borrows).count() == tree.nodes[tree.root].borrowers as usize {
        true => Ok(()),
        false => Err("the count of frameworks with revocable resources is wrong".into()),
    }
}
