//! What the programs of the master and the agent share: the table of endpoints, answers about the process itself, files,
//! the log's level, access rules, documents in the classic form.
//!
//! Never here: what a call means, and what the state of a program looks like.
#![forbid(unsafe_code)]

mod acls;
pub mod classic;
mod common;
pub mod document;
mod endpoint;
mod fault;
pub mod files;
mod firewall;
mod help;
mod leader;
mod limits;
mod logging;
pub mod metrics;
pub mod operator;
mod options;
mod process;
mod router;
mod system;

/// Protocol of a connection between agent and master after the HTTP upgrade: calls up, events down, in RecordIO.
pub const AGENT_LINK_PROTOCOL: &str = "tepui.agent.v1";

pub use acls::parse_acls;
pub use common::{ProcessInfo, ready};
pub use endpoint::{
    ANY, Answering, Endpoint, GET, Handler, Locality, Methods, Needs, POST, Realm, Row, allowed,
};
pub use fault::ProcessFault;
pub use firewall::Firewall;
pub use help::Help;
pub use leader::leader_authority;
pub use limits::raise_open_files;
pub use logging::Logging;
pub use options::ProcessOptions;
pub use process::{Process, ServerInfo, disk_room, pass_ended};
pub use router::Router;
pub use system::System;

/// Flags that have a value, as `/flags` shows them.
pub type Flags = Vec<(String, String)>;
