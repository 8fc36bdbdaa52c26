//! Swarm: the decisions of a Docker API front end for the whole cluster.
//!
//! A *container* is one task; its *engine* is the Docker engine of the agent whose offers it uses. A user chooses how
//! precious the resources are by the constraint `res-type`. [`Manager`] is the machine: offers, status updates, engines and
//! calls of clients come in, records and effects go out. Everything else here is pure functions that it is made of.
//!
//! Owned and fed by the shell of the front end, which has the sockets and the store.
//! Never: a clock, a file, a socket, HTTP.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod agent;
mod expression;
mod filter;
mod go;
mod info;
mod manage;
mod manager;
mod node;
mod occupant;
mod options;
mod rejection;
mod res_type;
mod schedule;
mod select;
mod spec;
mod strategy;
#[cfg(test)]
mod testing;

pub use address::{Attributes, EngineAddress, PORT_ATTRIBUTE, SOCKET_ATTRIBUTE};
pub use agent::{Agent, Engine, EngineLink};
pub use expression::{Expression, ExpressionError, Operator};
pub use filter::{Filter, Soft};
pub use go::duration_text;
pub use info::{Counts, amount_text, status_rows};
pub use manage::{Command, HELP, Host, Manage, Replication, TlsPaths, UsageError};
pub use manager::{
    AgentRecord, Config, Container, Created, Effect, EngineEvent, EngineOperation, Input, Launch, Manager,
    Offer, Phase, Record, RecoverError, RequestId, Update, View,
};
pub use node::Node;
pub use occupant::{HostBinding, Image, Occupant};
pub use options::{ClusterOptions, OptionError};
pub use rejection::Rejection;
pub use res_type::{Choice, RES_TYPE, ResTypeError};
pub use schedule::{ScheduleError, Scheduler};
pub use select::{Candidate, Selection, explain, select};
pub use spec::{Amounts, Binding, ContainerSpec, FRAMEWORK_LABEL, NAME_LABEL, Reschedule, TASK_LABEL};
pub use strategy::Strategy;
pub use tepui_placement::Kind;
