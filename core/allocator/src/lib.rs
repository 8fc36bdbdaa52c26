//! The allocator: who is offered what, and the books about it.
//!
//! A value inside the master, fed by it alone. It owns the ledger, the only accounting in the system (for each agent
//! `total = free + offered + used`), and the tree of roles by whose weighted shares and quotas it decides who comes next
//! and how much they get. `allocate` is called once per turn and is free of charge when nothing changed: agents and
//! frameworks that changed are remembered, and only they are looked at.
//!
//! | | |
//! |---|---|
//! | `allocator`, `spec`, `options` | who there is and what they want |
//! | `moves`, `ledger` | what happens to resources, and who holds them |
//! | `tree`, `booking`, `ranking`, `lottery`, `share`, `order`, `walk` | roles and frameworks, what they hold, who comes next |
//! | `quota`, `recovery` | what roles must and may have; the pause before that is known |
//! | `slack`, `borrowers`, `lending` | what is reserved but idle, and lent, and to whom; off unless `Options` say so |
//! | `cycle`, `look`, `offer` | which agents are looked at; who could have what of one; what is offered |
//! | `share_sorter` | the order alone, to be measured |
//! | `explain` | why somebody was offered what it was, on request |
//! | `slab`, `ids`, `bits`, `marks`, `owners` | dense storage, and what the inner loop needs |
//! | `filters`, `constraints`, `min_allocatable`, `inverse` | what frameworks do not want, and being asked to leave |
//!
//! Never here: a clock, protobuf, connections, offer ids. Ties are drawn from a seed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allocator;
mod audit;
mod bits;
mod booking;
mod borrowers;
mod constraints;
mod cycle;
mod explain;
mod filter_counts;
mod filters;
mod ids;
mod inverse;
mod ledger;
mod lending;
mod look;
mod lottery;
mod marks;
mod min_allocatable;
mod moves;
mod offer;
mod options;
mod order;
mod owners;
mod quota;
mod ranking;
mod recovery;
mod share;
mod share_sorter;
mod slab;
mod slack;
mod spec;
mod tree;
mod walk;

pub use allocator::Allocator;
pub use constraints::{
    AttributeConstraint, Group, OfferConstraints, Pattern, PatternError, Predicate, Selector, admits,
};
pub use cycle::{Allocation, Grant, InverseGrant};
pub use explain::{
    Borrowing, Capability, Finding, FrameworkReport, Inquiry, Place, Reason, RoleReport, Standing,
};
pub use min_allocatable::{MinAllocatable, MinAllocatableError};
pub use moves::{Held, Holder};
pub use options::{Options, Sorter};
pub use quota::Quota;
pub use share::{WEIGHT_MAX, WEIGHT_MIN};
pub use share_sorter::ShareSorter;
pub use slack::Slack;
pub use spec::{
    AgentCapabilities, AgentSpec, Attribute, AttributeValue, Domain, FrameworkCapabilities, FrameworkSpec,
};
