//! Plain data: counters, timers, limits, messages that the master writes, and the offers of one ACCEPT.

pub(crate) mod accepted_offers;
pub(crate) mod counters;
pub(crate) mod event;
pub mod explain;
pub(crate) mod isolations;
pub(crate) mod limits;
pub(crate) mod normalize;
pub(crate) mod terminal_acknowledgements;
pub(crate) mod timers;
