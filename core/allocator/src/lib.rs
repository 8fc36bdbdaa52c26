//! The allocator: offers, and the accounting of resources.
//!
//! A value inside the master, fed by it alone. It owns the ledger, the only accounting in the system (for each agent
//! `total = free + offered + used`), and the tree of roles by whose weighted shares and quotas it decides who comes next
//! and how much they get. `allocate` is called once per turn and is free of charge when nothing changed: agents and
//! frameworks that changed are remembered, and only they are looked at.
//!
//! | | |
//! |---|---|
//! | `allocator`, `agent`, `agent_spec`, `framework_spec`, `options` | agents and frameworks, and what they request |
//! | `moves`, `ledger`, `held` | moves of resources, and their holders |
//! | `tree`, `booking`, `tally`, `ranking`, `lottery`, `share`, `order`, `walk` | roles and frameworks, their holdings and order |
//! | `quota`, `claims`, `recovery` | what roles must and may have; the pause before that is known |
//! | `slack`, `slack_books`, `borrowers`, `loans`, `lending` | reserved but idle resources and their loans; off by default |
//! | `allocate`, `cycle`, `candidates`, `offer`, `grant` | the order of agents; possible offers of one to each kind of client; offers |
//! | `explain` | why a framework or role was offered resources or not, on request |
//! | `slab`, `ids`, `bits`, `marks`, `owners` | dense storage, and what the inner loop needs |
//! | `filters`, `constraints`, `min_allocatable`, `inverse` | restrictions of offers by frameworks, and inverse offers |
//!
//! Absent: a clock, protobuf, connections, offer ids. Ties are drawn from a seed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod agent;
mod agent_spec;
mod allocate;
mod allocator;
mod audit;
mod bits;
mod booking;
mod borrowers;
mod candidates;
mod claims;
mod constraints;
mod cycle;
mod explain;
mod filter_counts;
mod filters;
mod framework_spec;
mod grant;
mod held;
mod ids;
mod inverse;
mod ledger;
mod lending;
mod loans;
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
mod slab;
mod slack;
mod slack_books;
mod tally;
mod tree;
mod walk;

pub use agent_spec::{AgentCapabilities, AgentSpec, Attribute, AttributeValue, Domain};
pub use allocator::Allocator;
pub use claims::Quota;
pub use constraints::{
    AttributeConstraint, Group, OfferConstraints, Pattern, PatternError, Predicate, Selector, admits,
};
pub use explain::{
    Borrowing, Capability, ClientReport, Finding, FrameworkReport, Inquiry, Place, Reason, RoleReport,
};
pub use framework_spec::{FrameworkCapabilities, FrameworkSpec};
pub use grant::{Allocation, Grant, InverseGrant};
pub use held::Held;
pub use min_allocatable::{MinAllocatable, MinAllocatableError};
pub use moves::Holder;
pub use options::{Options, Sorter};
pub use share::{WEIGHT_MAX, WEIGHT_MIN};
pub use slack::Slack;
