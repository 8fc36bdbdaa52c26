//! Why a request does not fit, in the words that a person is shown.

use core::fmt;

use tepui_resources::{Name, Scalar};

use crate::Kind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    NoOffers,
    /// There is less of a resource than requested; `have` is the most that one role is offered.
    Short {
        kind: Kind,
        name: Name,
        requested: Scalar,
        have: Scalar,
    },
    /// A port of the request is not among the offered ones.
    Port(u64),
    /// There are fewer offered ports than requested.
    Ports {
        requested: usize,
        have: u128,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::NoOffers => f.write_str("no offers"),
            Misfit::Short { kind, name, requested, have } => {
                write!(f, "requested {requested} {kind} {name}, offered {have}")
            }
            Misfit::Port(port) => write!(f, "port {port} is not offered"),
            Misfit::Ports { requested, have } => write!(f, "requested {requested} ports, offered {have}"),
        }
    }
}
