//! The allocator: who is offered what, and the books about it.
//!
//! A value inside the master, fed by it alone. It owns the ledger, the only accounting in the system (for each agent
//! `total = free + offered + used`), and the tree of roles by whose weighted shares it decides who comes next.
//! `allocate` is called once per turn and is free of charge when nothing changed: agents and frameworks that changed
//! are remembered, and only they are looked at.
//!
//! Never here: a clock, protobuf, connections, offer ids. Ties are drawn from a seed.
//!
//! Not here yet: quota. Its guarantees come before, its limits inside `cycle`'s step from an agent's free resources to
//! a grant; its numbers belong to the nodes of `tree`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allocator;
mod audit;
mod constraints;
mod cycle;
mod filters;
mod inverse;
mod ledger;
mod min_allocatable;
mod moves;
mod options;
mod order;
mod slab;
mod spec;
mod tree;

pub use allocator::Allocator;
pub use constraints::{
    AttributeConstraint, Group, OfferConstraints, Pattern, PatternError, Predicate, Selector,
};
pub use cycle::{Allocation, Grant, InverseGrant};
pub use min_allocatable::{MinAllocatable, MinAllocatableError};
pub use moves::{Held, Holder};
pub use options::Options;
pub use spec::{
    AgentCapabilities, AgentSpec, Attribute, AttributeValue, Domain, FrameworkCapabilities, FrameworkSpec,
};
