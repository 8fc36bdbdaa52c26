//! Everything that can happen in the world, as one enum.

use tepui_types::{ConnId, ContainerEvent, ContainerId};

use crate::caller;
use crate::executor;
use crate::fault::Fault;
use crate::framework;
use crate::net::{End, Message, Node};

#[derive(Debug)]
pub(crate) enum Event {
    /// A process works off its mailbox and its due timers.
    Turn {
        node: Node,
        life: u32,
        at: u64,
    },
    /// What a process was writing is on its disk.
    Synced {
        node: Node,
        life: u32,
    },
    /// A process that was down starts.
    Start {
        node: Node,
    },
    Deliver {
        conn: ConnId,
        to: End,
        message: Message,
    },
    /// One end hears that its connection broke.
    Broken {
        conn: ConnId,
        to: End,
    },
    /// An attempt to reach the master came to nothing.
    Unreachable {
        agent: usize,
        life: u32,
        link: tepui_core_agent::LinkId,
    },
    /// A container that is being launched runs, or does not.
    ContainerStarts {
        agent: usize,
        id: ContainerId,
        fails: bool,
    },
    ContainerEnds {
        agent: usize,
        id: ContainerId,
        status: i32,
        oom: bool,
    },
    /// What containers tell reaches the agent.
    Container {
        agent: usize,
        life: u32,
        event: ContainerEvent,
    },
    Executor {
        agent: usize,
        container: ContainerId,
        step: executor::Step,
    },
    Framework {
        index: usize,
        life: u32,
        step: framework::Step,
    },
    Caller(caller::Turn),
    Fault(Fault),
    /// No more faults: from now on everything heals.
    Heal,
    /// Look whether everything has healed.
    Settled,
}
