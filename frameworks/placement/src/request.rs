//! What a task needs of an agent.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Ranges};

/// Amounts by name and host ports. A request of nothing fits wherever there is an offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Scalars: cpus, mem, disk, gpus and custom ones.
    pub amounts: Quantities,
    /// In the order in which the placement lists the ports it found.
    pub ports: Vec<Port>,
}

/// One port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port {
    Exactly(u64),
    /// Any port that is offered and that no other port of the request needs.
    Any,
    /// As `Any`, of these ranges.
    Within(Ranges),
}
