//! Lending: the choice of the borrower of an agent's idle reservations.
//!
//! All of it goes to one borrower per run: the first in order (`borrowers`) for which it is enough by itself and that
//! has no filter for it. A borrower that was offered it and used nothing comes after all that were not, so that
//! declining blocks no other borrower; when all were, they take turns independent of their loans, until one of them
//! uses some and the order counts again. If it is too little for all, or declined by all, it is added to an ordinary
//! offer of the same agent.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Resources};

use crate::agent::{Agent, Urgency};
use crate::bits::Bits;
use crate::candidates::{Candidates, View, note_refusing, view};
use crate::filters::Group;
use crate::grant::{Scope, Stage};
use crate::slab::{AgentSlot, ClientSlot, NodeSlot, Slot};
use crate::tally::Booking;
use crate::tree::Tree;
use crate::walk::Walk;
use crate::{Allocator, Grant, MinAllocatable};

/// What is idle of others, as the roles see it.
#[derive(Clone, Debug)]
pub(crate) struct Lending {
    idle: Resources,
    lent: Resources,
    /// Roles that something idle is reserved for.
    lenders: Vec<NodeSlot>,
    loans: Vec<Loan>,
    /// Clients that were given an ordinary offer of the agent in this run, with its place among the grants.
    pub(crate) served: Vec<(ClientSlot, usize)>,
}

/// What roles with the same view of the lenders could borrow.
#[derive(Clone, Debug)]
pub(crate) struct Loan {
    view: View,
    slack: Resources,
    quantities: Quantities,
    /// Enough for an offer, by the cluster's measure.
    enough: bool,
    /// Clients that refuse all of it.
    refused_by: Bits<ClientSlot>,
}

impl Lending {
    fn new(tree: &Tree, agent: &mut Agent) -> Self {
        let Agent { ledger, owners, .. } = agent;
        let slack = ledger.slack();
        let (idle, lent) = (slack.idle().clone(), slack.lent().clone());
        let lenders = slack.owners().iter().filter_map(|role| owners.node(tree, role)).collect();
        Self { idle, lent, lenders, loans: Vec::new(), served: Vec::new() }
    }

    fn loan(&mut self, tree: &Tree, node: NodeSlot, filters: &[Group], least: &MinAllocatable) -> &Loan {
        let view = view(tree, &self.lenders, node);
        let known = self.loans.iter().position(|loan| loan.view == view);
        let at = known.unwrap_or_else(|| {
            let slack = &self.idle.allocation_slack(Some(&tree.nodes[node].role)) - &self.lent;
            let mut refused_by = Bits::new();
            note_refusing(filters, &slack, &mut refused_by);
            let quantities = slack.quantities();
            self.loans.push(Loan { view, enough: least.allows(&quantities), slack, quantities, refused_by });
            self.loans.len() - 1
        });
        &self.loans[at]
    }
}

impl Allocator {
    /// What is idle of this agent is lent once in a run, and not before guarantees are served.
    pub(crate) fn lending(&mut self, slot: AgentSlot, lends: bool) -> Option<Lending> {
        let may = self.cycle.stage == Stage::Everyone && lends && !self.cycle.lent.contains(slot);
        may.then(|| Lending::new(&self.tree, &mut self.agents[slot]))
    }

    /// The client that what is idle of the agent is offered to, whatever else it is offered.
    pub(crate) fn borrower_of(
        &mut self,
        slot: AgentSlot,
        scope: Scope,
        candidates: &Candidates,
        lending: &mut Lending,
    ) -> Option<ClientSlot> {
        self.borrowers.tree.settle_order();
        self.borrowers.tree.draw_order();
        let mut walk = core::mem::replace(self.loan_walk_mut(scope), Walk::new(scope));
        walk.start(&self.borrowers.tree, Stage::Everyone);
        let (mut first, mut served) = (None, Vec::new());
        while first.is_none()
            && let Some(borrower) = walk.next(&self.borrowers.tree)
        {
            if self.takes_loan(slot, self.borrowers.client(borrower), candidates, lending) {
                match self.agents[slot].served.contains(borrower) {
                    true => served.push(borrower),
                    false => first = Some(borrower),
                }
            }
        }
        *self.loan_walk_mut(scope) = walk;
        let borrower = first.or_else(|| self.borrowers.next_turn(served))?;
        Some(self.borrowers.client(borrower))
    }

    /// Whether a loan is enough for the client without anything else, and it does not refuse it.
    fn takes_loan(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        candidates: &Candidates,
        lending: &mut Lending,
    ) -> bool {
        let client_traits = self.tree.client_traits(client);
        if candidates.is_unfit_for(client_traits.traits) {
            return false;
        }
        let (filters, least) = (self.filters.on(slot), &self.options.min_allocatable);
        let loan = lending.loan(&self.tree, client_traits.node, filters, least);
        let enough = match &self.tree.clients[client].terms.min_allocatable {
            None => loan.enough,
            Some(own) => own.allows(&loan.quantities),
        };
        enough && !loan.refused_by.contains(client) && self.accepts(slot, client)
    }

    /// Lends to the borrower, else to the first in order that has an ordinary offer of the agent in this run.
    pub(crate) fn lend(
        &mut self,
        slot: AgentSlot,
        scope: Scope,
        borrower: Option<ClientSlot>,
        mut lending: Lending,
        grants: &mut Vec<Grant>,
    ) {
        let guaranteed = self.cycle.guaranteed.range((slot, ClientSlot::new(0))..);
        let guaranteed = guaranteed.take_while(|((agent, _), _)| *agent == slot);
        lending.served.extend(guaranteed.map(|((_, client), at)| (*client, *at)));
        let client = borrower.or_else(|| self.served_borrower(slot, scope, &mut lending));
        let Some(client) = client else { return };
        let role = self.tree.role_of(client).clone();
        let slack = self.loan(slot, client, &mut lending).slack.clone().allocate(&role);
        let framework = self.tree.clients[client].framework;
        self.agents[slot].ledger.lend(self.cycle.now, framework, &slack);
        self.book_loan(slot, framework, &slack, Booking::In);
        if let Some(borrower) = self.borrowers.slot(client) {
            self.agents[slot].served.insert(borrower);
        }
        self.cycle.lent.insert(slot);
        // What this role could not borrow, being its own, another one may in the next run.
        self.note_free(slot);
        if self.agents[slot].ledger.may_lend() {
            self.want(slot, Urgency::Batch);
        }
        match lending.served.iter().find(|(served, _)| *served == client) {
            Some((_, at)) => grants[*at].resources += slack,
            None => grants.push(self.grant(slot, client, role, slack)),
        }
    }

    /// The first in order of those served that something can be lent to; those that refuse it come last.
    fn served_borrower(
        &mut self,
        slot: AgentSlot,
        scope: Scope,
        lending: &mut Lending,
    ) -> Option<ClientSlot> {
        let mut clients: Vec<ClientSlot> = lending.served.iter().map(|(client, _)| *client).collect();
        clients.retain(|client| {
            let borrows = self.borrowers.slot(*client).is_some();
            borrows && !self.loan(slot, *client, lending).slack.is_empty()
        });
        if clients.len() > 1 {
            let mut walk = core::mem::replace(self.loan_walk_mut(scope), Walk::new(scope));
            walk.start(&self.borrowers.tree, Stage::Everyone);
            let order = core::iter::from_fn(|| walk.next(&self.borrowers.tree));
            let order = order.map(|borrower| self.borrowers.client(borrower));
            clients = order.filter(|client| clients.contains(client)).collect();
            *self.loan_walk_mut(scope) = walk;
        }
        let mut refuses =
            |client: &ClientSlot| self.loan(slot, *client, lending).refused_by.contains(*client);
        clients.iter().copied().find(|client| !refuses(client)).or(clients.first().copied())
    }

    fn loan<'l>(&self, slot: AgentSlot, client: ClientSlot, lending: &'l mut Lending) -> &'l Loan {
        let (filters, least) = (self.filters.on(slot), &self.options.min_allocatable);
        lending.loan(&self.tree, self.tree.client_traits(client).node, filters, least)
    }

    fn loan_walk_mut(&mut self, scope: Scope) -> &mut Walk {
        match scope {
            Scope::All => &mut self.cycle.loan_walk,
            Scope::Fresh => &mut self.cycle.fresh_loan_walk,
        }
    }
}
