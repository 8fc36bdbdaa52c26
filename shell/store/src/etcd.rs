//! etcd as the home of the registry and the judge of who leads.
//!
//! Below one prefix lie the leader's key, bound to a lease that only a living leader renews, and the registry, one key
//! per fact. Every write is a transaction that compares the leader's key first: a deposed master cannot write.
//!
//! Spoken over etcd's own HTTP gateway (`/v3/…`, JSON), with TLS and a user of our own if the address says so. Never here:
//! what records mean.

mod address;
mod client;
mod election;
mod journal;
mod records;

pub use address::{EtcdAddress, Login};
pub use client::{Etcd, EtcdFault, EtcdTls};
pub use election::{Candidate, Leadership, Observed};
pub use records::EtcdRecords;

/// Below the prefix: who leads.
const LEADER: &str = "leader";
/// Below the prefix: the records, each under its own key.
const RECORDS: &str = "registry/";
/// Below the prefix: a commit that is too large for one transaction, while it is carried out.
const JOURNAL: &str = "journal/";

#[cfg(test)]
mod tests;
