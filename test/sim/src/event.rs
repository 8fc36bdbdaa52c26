//! Everything that can happen in the world, as one enum.

use tepui_types::{ConnId, ContainerEvent, ContainerId};

use crate::caller;
use crate::election;
use crate::executor;
use crate::fault::Fault;
use crate::framework;
use crate::net::{Client, End, Kind, Message, Net, Node};
use crate::swarm;

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
    /// One end detects that its connection broke.
    Broken {
        conn: ConnId,
        to: End,
    },
    /// An attempt to reach the master failed.
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
    /// A container event reaches the agent.
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
    Swarm(swarm::Step),
    /// An agent measures its machine and its containers.
    Measure {
        agent: usize,
    },
    Election {
        master: usize,
        step: election::Step,
    },
    Caller(caller::Turn),
    Fault(Fault),
    /// A process checks its disk.
    Room {
        node: Node,
    },
    /// No more faults: from now on everything heals.
    Heal,
    /// Look whether everything has healed.
    Settled,
}

impl Event {
    /// The name of the event in recorded histories. Names never change: recorded histories would become invalid.
    pub(crate) fn name(&self, net: &Net) -> String {
        match self {
            Event::Turn { node, .. } => format!("turn:{}", node_name(*node)),
            Event::Synced { node, .. } => format!("synced:{}", node_name(*node)),
            Event::Start { node } => format!("start:{}", node_name(*node)),
            Event::Deliver { conn, to, .. } => format!("deliver:{}", conn_name(net, *conn, *to)),
            Event::Broken { conn, to } => format!("broken:{}", conn_name(net, *conn, *to)),
            Event::Unreachable { agent, .. } => format!("unreachable:A{agent}"),
            Event::ContainerStarts { agent, .. } => format!("container-starts:A{agent}"),
            Event::ContainerEnds { agent, .. } => format!("container-ends:A{agent}"),
            Event::Container { agent, .. } => format!("container:A{agent}"),
            Event::Executor { agent, step, .. } => format!("executor:A{agent}:{}", step.name()),
            Event::Framework { index, step, .. } => format!("framework:F{index}:{}", step.name()),
            Event::Swarm(step) => format!("swarm:{}", step.name()),
            Event::Measure { agent } => format!("measure:A{agent}"),
            Event::Election { master, step } => format!("election:M{master}:{}", step.name()),
            Event::Caller(caller::Turn::Begin) => "caller:begin".into(),
            Event::Caller(caller::Turn::Call { .. }) => "caller:call".into(),
            Event::Caller(caller::Turn::HangUp { .. }) => "caller:hang-up".into(),
            Event::Fault(fault) => format!("fault:{fault:?}"),
            Event::Room { node } => format!("room:{}", node_name(*node)),
            Event::Heal => "heal".into(),
            Event::Settled => "settled".into(),
        }
    }
}

fn node_name(node: Node) -> String {
    match node {
        Node::Master(0) => "M".into(),
        Node::Master(index) => format!("M{index}"),
        Node::Agent(index) => format!("A{index}"),
    }
}

/// By its client and kind: the numbers of connections depend on all earlier events.
fn conn_name(net: &Net, conn: ConnId, to: End) -> String {
    let Some(conn) = net.conns.get(&conn) else { return "over".into() };
    let client = match &conn.client {
        Client::Framework { index, .. } => format!("F{index}"),
        Client::Swarm { .. } => "swarm".into(),
        Client::Agent { index, .. } => format!("A{index}"),
        Client::Executor { agent, .. } => format!("E{agent}"),
        Client::Caller { agent, .. } => format!("C{agent}"),
        Client::Operator => "operator".into(),
    };
    let kind = match conn.kind {
        Kind::Stream => "stream",
        Kind::Calls => "calls",
        Kind::Request => "request",
        Kind::Session => "session",
        Kind::Link => "link",
    };
    let to = match to {
        End::Client => "client",
        End::Server => "server",
    };
    format!("{client}:{kind}:{to}")
}
