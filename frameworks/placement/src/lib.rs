//! Placement: whether a request fits into the offers that a framework holds of one agent, and which parts of them it takes.
//!
//! Shared by frameworks. Fed with offers as the master sent them and a [`Request`]; answers with a [`Placement`] (the offers
//! to accept and the exact resources of the task) or a [`Misfit`] (what is missing).
//! Invariants of every placement: all of its `cpus`, `mem`, `disk` and `gpus` are of one [`Kind`]; all of its resources are
//! allocated to one role; the accepted offers contain it.
//! Never: a clock, a queue, the choice between agents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fit;
mod kind;
mod misfit;
mod offer;
mod ports;
mod request;

pub use fit::{Placement, fit};
pub use kind::Kind;
pub use misfit::Misfit;
pub use offer::{HeldOffer, totals};
pub use request::{Port, Request};
