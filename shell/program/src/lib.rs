//! What the programs of the master and the agent share: the table of endpoints, answers about the process itself, files,
//! the log's level, access rules, documents in the classic form.
//!
//! Never here: what a call means, and what the state of a program looks like.
#![forbid(unsafe_code)]

mod acls;
pub mod classic;
mod common;
mod endpoint;
pub mod files;
mod firewall;
mod help;
mod leader;
mod logging;
mod router;
mod system;

pub use acls::parse_acls;
pub use common::{ProcessInfo, ready};
pub use endpoint::{
    ANY, Answering, Endpoint, GET, Handler, Locality, Methods, Needs, POST, Realm, Row, allowed,
};
pub use firewall::Firewall;
pub use help::Help;
pub use leader::leader_authority;
pub use logging::Logging;
pub use router::Router;
pub use system::System;

/// Flags that have a value, as `/flags` shows them.
pub type Flags = Vec<(String, String)>;
