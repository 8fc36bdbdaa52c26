//! Loans of slack: possible borrowers, and the loans of each.

use alloc::vec::Vec;

use tepui_resources::Resources;

use crate::Allocator;
use crate::marks::Traits;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot};
use crate::tally::Booking;

impl Allocator {
    /// Must follow when a client came into the ordinary order or left it, or what it can take changed.
    pub(crate) fn note_borrower(&mut self, client: ClientSlot) {
        let borrows = self.options.allocation_slack
            && self.tree.clients[client].active
            && self.tree.client_traits(client).traits.has_any(Traits::REVOCABLE);
        match (borrows, self.borrowers.slot(client)) {
            (true, None) => {
                let (framework, role) = (self.tree.clients[client].framework, self.tree.role_of(client));
                let borrower = self.borrowers.tree.ensure_client(framework, role);
                self.borrowers.tree.clients[borrower].subscribed = true;
                self.borrowers.tree.set_active(borrower, true);
                self.borrowers.map(borrower, client);
            }
            (false, Some(borrower)) => {
                self.borrowers.unmap(client);
                self.borrowers.tree.clients[borrower].subscribed = false;
                self.borrowers.tree.set_active(borrower, false);
                self.drop_borrower_if_unused(borrower);
            }
            (true, Some(_)) | (false, None) => (),
        }
    }

    /// A framework has more, or less, lent to it.
    pub(crate) fn book_loan(
        &mut self,
        agent: AgentSlot,
        framework: FrameworkSlot,
        slack: &Resources,
        way: Booking,
    ) {
        for (role, part) in slack.by_allocation() {
            let borrower = self.borrowers.tree.ensure_client(framework, &role);
            self.borrowers.tree.book(borrower, agent, &part, way);
            self.drop_borrower_if_unused(borrower);
        }
    }

    fn drop_borrower_if_unused(&mut self, borrower: ClientSlot) {
        if self.borrowers.tree.drop_if_unused(borrower) {
            // Its slot will be another's.
            let agents: Vec<AgentSlot> = self.agents.slots().collect();
            agents.into_iter().for_each(|agent| self.agents[agent].served.remove(borrower));
        }
    }
}
