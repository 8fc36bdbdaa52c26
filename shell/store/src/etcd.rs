//! etcd as registry store and for leader election.
//!
//! Below one prefix are the leader's key, bound to a lease that the leader renews, and the registry, one key per fact.
//! Every write is a transaction that compares the leader's key first: a deposed master cannot write.
//!
//! Uses etcd's HTTP gateway (`/v3/…`, JSON), with TLS and a user if the address has them. Absent: the meaning of records.

mod address;
mod client;
mod election;
mod journal;
mod records;
mod term;

pub use address::{EtcdAddress, Login};
pub use client::{Etcd, EtcdFault, EtcdTls};
pub use election::{Candidate, Leadership, Observed};
pub use records::EtcdRecords;
pub use term::{StepDown, Term};

/// Below the prefix: the key of the leader.
const LEADER: &str = "leader";
/// Below the prefix: the records, each under its own key.
const RECORDS: &str = "registry/";
/// Below the prefix: a commit that is too large for one transaction, while it is carried out.
const JOURNAL: &str = "journal/";

#[cfg(test)]
mod tests;
