//! Inputs of the agent.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_authz::Subject;
use tepui_proto::mesos::v1::{agent, executor};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{ConnId, ContainerEvent, DiskRoom};

use crate::state::bookkeeping::{LinkId, Load, MachineMemory, MemoryUse, SandboxUse, Used};

/// The caller of a call about containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Authorized for the user of the call.
    Operator,
    /// An executor, about containers of its own: as users that its framework may use.
    Executor,
}

/// The sender of a call, as far as the shell found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// None on an agent without authentication.
    pub principal: Option<Principal>,
    /// Determined only without authentication, for calls that need a known user.
    pub peer: Option<Peer>,
}

/// An authenticated sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// None if there are claims only, as of executors.
    pub name: Option<String>,
    pub claims: BTreeMap<String, String>,
}

/// The process that sent a call about a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// On another machine, or in another network namespace.
    Remote,
    /// Of root, or of the agent's own user.
    Trusted,
    /// Of the user of the executor around the container.
    Executor,
    /// Of another user, or of an unknown one.
    Other,
}

impl Sender {
    pub(crate) fn subject(&self) -> Subject<'_> {
        match &self.principal {
            None => Subject::Anonymous,
            Some(principal) => principal.name.as_deref().map_or(Subject::Claims, Subject::Principal),
        }
    }
}

/// One thing that happened outside. Bodies are already parsed; required fields are present.
#[derive(Clone, Debug)]
pub enum Input {
    /// The first input, once: start recovery and then look for a master.
    Start,
    /// The link requested by Effect::Connect is open; the agent subscribes.
    LinkUp {
        link: LinkId,
    },
    LinkEvent {
        link: LinkId,
        event: Box<link::Event>,
    },
    /// The link could not be opened, or ended.
    LinkDown {
        link: LinkId,
        reason: String,
    },
    /// A call on /api/v1/executor. A SUBSCRIBE turns `conn` into the executor's event stream.
    Executor {
        conn: ConnId,
        sender: Sender,
        call: Box<executor::Call>,
    },
    ExecutorClosed {
        conn: ConnId,
    },
    /// A call on /api/v1 that is not answered from a snapshot: containers and other changes.
    Operator {
        conn: ConnId,
        sender: Sender,
        call: Box<agent::Call>,
    },
    /// The client of a call that is not answered yet went away.
    OperatorClosed {
        conn: ConnId,
    },
    Container(ContainerEvent),
    /// The agent leaves the cluster: all tasks are killed, then the process exits.
    Unregister,
    /// What every container of ours uses.
    Used {
        samples: Vec<Used>,
    },
    /// How busy the machine is.
    Load(Load),
    /// How much memory is left, and what containers use of it.
    Memory {
        machine: MachineMemory,
        containers: Vec<MemoryUse>,
    },
    /// How full the work directory's file system is, 0.0 to 1.0; drives how long old sandboxes are kept.
    DiskUsage {
        used: f64,
    },
    /// The disk of the records has become short of room, or is so no longer.
    DiskRoom(DiskRoom),
    /// How much room is left on the work directory's file system, and what sandboxes hold of it.
    Sandboxes {
        available_bytes: u64,
        sandboxes: Vec<SandboxUse>,
    },
}
