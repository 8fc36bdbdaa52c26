//! The agent program: the machine of `core/agent`, its records on disk, its link to the master, its containers, and the
//! HTTP around them.
//!
//! Calls, link events and container events become inputs; effects become answers, events, link calls, container
//! operations and snapshots. Sandboxes are shown from the file system, and nothing outside of them.
//!
//! Never here: decisions about tasks.
#![forbid(unsafe_code)]

mod access;
mod attached;
mod audit;
mod containers;
mod detect;
mod document;
mod effects;
mod executor;
mod image_gc;
mod link;
mod log;
mod metrics;
mod modes;
mod operator;
mod options;
mod origin;
mod program;
mod read;
mod routes;
mod run;
mod samples;
mod statistics;
mod target;

pub use access::Access;
pub use detect::share_of_machine;
pub use effects::AgentEnd;
pub use image_gc::ImageGc;
pub use options::Options;
pub use run::{AgentFault, RunningAgent, run};
pub use samples::fixed_estimator;
pub use tepui_authz::Authorizer;
pub use tepui_core_agent::{Config, Estimator, Eviction, QosController, Recover};
pub use tepui_http::auth::{Credential, JwtKey};
pub use tepui_http::{Authentication, Tls, TlsFiles};
pub use tepui_program::{Firewall, Logging, ProcessFault, ProcessOptions, parse_acls};
pub use tepui_store::Headroom;
