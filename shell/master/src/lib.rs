//! The master program: the machine of `core/master`, its registry on disk, and the HTTP around them.
//!
//! Calls become inputs; effects become answers, events and snapshots. Everything that only reads is rendered from the
//! newest snapshot, on other threads: a reader never stops the master.
//!
//! Never here: decisions about the cluster.
#![forbid(unsafe_code)]

mod access;
mod agents;
mod audit;
mod candidacy;
mod convert;
mod document;
mod documents;
mod effects;
mod explain;
mod fault;
mod front;
mod index;
mod log;
mod maintenance;
mod metered;
mod metrics;
mod operator;
mod options;
mod pages;
mod program;
mod quota;
mod read;
mod roles;
mod routes;
mod run;
mod scheduler;
mod slack;
mod subscribers;
mod teardown;
mod term;
mod throttle;
mod weights;
mod whitelist;

pub use fault::MasterFault;
pub use options::{Access, Options, RegistryAt};
pub use run::{RunningMaster, run};
pub use tepui_authz::Authorizer;
pub use tepui_core_master::{Config, Limits, Sorter};
pub use tepui_http::auth::Credentials;
pub use tepui_http::{Authentication, BrowserPolicy, ClientTls, Tls, TlsFiles};
pub use tepui_program::{Firewall, Logging, ProcessFault, ProcessOptions, parse_acls, raise_open_files};
pub use tepui_store::Headroom;
pub use tepui_store::etcd::EtcdAddress;
pub use throttle::Throttle;

#[cfg(test)]
mod tests;
