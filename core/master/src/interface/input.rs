//! Inputs of the master.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;

use tepui_proto::mesos::v1::{master, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{ConnId, DiskRoom};

use crate::values::explain::Subject;

/// One thing that happened outside. Bodies are already parsed; required fields are present.
#[derive(Clone, Debug)]
pub enum Input {
    /// A call on /api/v1/scheduler. A SUBSCRIBE turns `conn` into the framework's event stream.
    Scheduler {
        conn: ConnId,
        /// The Mesos-Stream-Id header.
        stream_id: Option<String>,
        /// The authenticated principal, if any.
        principal: Option<String>,
        call: Box<scheduler::Call>,
    },
    /// A scheduler's event stream ended: closed by the peer, broken, or too slow.
    SchedulerClosed { conn: ConnId },
    /// A call of an agent. The first on its `conn` is SUBSCRIBE; events go back on the same `conn`.
    Agent { conn: ConnId, principal: Option<Arc<str>>, call: Box<link::Call> },
    /// An agent's link ended.
    AgentClosed { conn: ConnId },
    /// An operator call on /api/v1 that changes something (reads are answered from snapshots), or the start of an
    /// operator's event stream (SUBSCRIBE).
    Operator { conn: ConnId, principal: Option<String>, call: Box<master::Call> },
    /// A request to explain offers.
    Explain { conn: ConnId, subject: Subject },
    /// Only agents on these hosts are offered from now on; none: all.
    Whitelist { hosts: Option<BTreeSet<String>> },
    /// An operator's event stream ended.
    OperatorClosed { conn: ConnId },
    /// The registry's disk has become short of room, or is so no longer.
    DiskRoom(DiskRoom),
}
