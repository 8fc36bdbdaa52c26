//! Connections: ordered each way, late, stalled, broken with what is in flight, closed by either end.
//!
//! A connection has a client end (a framework, an agent's link, an executor) and a server end (the master, an agent).
//! A message arrives in order unless the connection breaks first. Both ends detect the end of a connection, at different
//! times.

use std::collections::BTreeMap;
use std::sync::Arc;

use tepui_core_agent::LinkId;
use tepui_proto::mesos::v1::{agent, executor, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{ConnId, ContainerId};

use crate::chance::{MS, Rng, SECOND, mostly};
use crate::event::Event;
use crate::world::World;

/// The process that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Master(usize),
    Agent(usize),
}

/// The client's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Framework {
        index: usize,
        life: u32,
    },
    /// The manager of `tepui swarm`.
    Swarm {
        life: u32,
    },
    Agent {
        index: usize,
        life: u32,
        link: LinkId,
    },
    Executor {
        agent: usize,
        container: ContainerId,
    },
    /// A client of the container API: inside an executor's container, or outside.
    Caller {
        agent: usize,
        inside: Option<ContainerId>,
        session: Option<ContainerId>,
        job: u64,
    },
    Operator,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An event stream, opened by a SUBSCRIBE.
    Stream,
    /// Calls, one after the other, and their answers.
    Calls,
    /// One call and its answer.
    Request,
    /// One call; if accepted, its container lives as long as the connection.
    Session,
    /// Both directions between agent and master.
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    SchedulerCall {
        exchange: ConnId,
        stream_id: Option<String>,
        call: Box<scheduler::Call>,
    },
    AgentCall(Box<link::Call>),
    ExecutorCall {
        exchange: ConnId,
        call: Box<executor::Call>,
    },
    ContainerCall(Box<agent::Call>),
    /// The link can be used.
    LinkOpen,
    /// 200: events follow.
    StreamOpen {
        stream_id: Option<String>,
    },
    SchedulerEvent(Arc<scheduler::Event>),
    LinkEvent(Box<link::Event>),
    ExecutorEvent(Box<executor::Event>),
    /// The answer to a call; a refusal has a status and a message, some answers have a body.
    Answer {
        exchange: ConnId,
        refused: Option<(u16, String)>,
        body: Option<Box<agent::Response>>,
    },
    /// The other end closed the connection after everything it sent.
    Close,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) kind: Kind,
    pub(crate) client: Client,
    pub(crate) server: Node,
    /// The life of the serving process that this connection is with.
    pub(crate) server_life: u32,
    client_open: bool,
    server_open: bool,
    /// What is in flight is lost.
    broken: bool,
    /// The newest arrival at each end.
    client_arrival: u64,
    server_arrival: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Net {
    next: u64,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    /// On which connection an exchange (one call) runs, until it is answered.
    exchanges: BTreeMap<ConnId, ConnId>,
}

impl Conn {
    fn is_open(&self, end: End) -> bool {
        match end {
            End::Client => self.client_open,
            End::Server => self.server_open,
        }
    }

    fn close(&mut self, end: End) {
        match end {
            End::Client => self.client_open = false,
            End::Server => self.server_open = false,
        }
    }

    fn arrival(&mut self, end: End) -> &mut u64 {
        match end {
            End::Client => &mut self.client_arrival,
            End::Server => &mut self.server_arrival,
        }
    }

    /// Both ends are on one machine.
    fn is_local(&self) -> bool {
        matches!(self.client, Client::Executor { .. } | Client::Caller { .. })
    }
}

impl End {
    fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

impl World {
    /// A new connection. Reachability is checked by the caller.
    pub(crate) fn open(&mut self, kind: Kind, client: Client, server: Node) -> ConnId {
        let id = self.next_conn_id();
        let server_life = self.life_of(server);
        let now = self.queue.now();
        let conn = Conn {
            kind,
            client,
            server,
            server_life,
            client_open: true,
            server_open: true,
            broken: false,
            client_arrival: now,
            server_arrival: now,
        };
        self.net.conns.insert(id, conn);
        id
    }

    /// A number for an exchange that shares a connection with others.
    pub(crate) fn begin_exchange(&mut self, on: ConnId) -> ConnId {
        let id = self.next_conn_id();
        self.net.exchanges.insert(id, on);
        id
    }

    /// The connection on which an exchange runs: its own, or the one it shares.
    pub(crate) fn end_exchange(&mut self, exchange: ConnId) -> ConnId {
        self.net.exchanges.remove(&exchange).unwrap_or(exchange)
    }

    fn next_conn_id(&mut self) -> ConnId {
        self.net.next += 1;
        ConnId(self.net.next)
    }

    /// Sends a message to one end; lost if the connection is closed.
    pub(crate) fn send(&mut self, conn: ConnId, to: End, message: Message) {
        let now = self.queue.now();
        let Some(open) = self.net.conns.get_mut(&conn) else { return };
        if open.broken || !open.is_open(to.other()) || !open.is_open(to) {
            return;
        }
        let wait = latency(&mut self.rng, open.is_local());
        let arrival = open.arrival(to);
        *arrival = (*arrival).max(now + wait);
        let at = *arrival;
        self.queue.at(at, Event::Deliver { conn, to, message });
    }

    /// One end closes: the other detects it after all earlier messages. Messages in flight to the closing end are lost.
    pub(crate) fn close(&mut self, conn: ConnId, by: End) {
        self.send(conn, by.other(), Message::Close);
        if let Some(open) = self.net.conns.get_mut(&conn) {
            open.close(by);
        }
        self.remove_if_closed(conn);
    }

    /// The connection breaks: messages in flight are lost; both ends detect it within `detected_within`.
    pub(crate) fn break_conn(&mut self, conn: ConnId, detected_within: u64) {
        let Some(open) = self.net.conns.get_mut(&conn) else { return };
        if std::mem::replace(&mut open.broken, true) {
            return;
        }
        for end in [End::Client, End::Server] {
            if open.is_open(end) {
                let wait = self.rng.below(detected_within.max(1));
                self.queue.after(wait, Event::Broken { conn, to: end });
            }
        }
    }

    /// The process at one end crashed; the other end detects it within `detected_within`.
    pub(crate) fn drop_end(&mut self, conn: ConnId, end: End, detected_within: u64) {
        if let Some(open) = self.net.conns.get_mut(&conn) {
            open.close(end);
        }
        self.break_conn(conn, detected_within);
        self.remove_if_closed(conn);
    }

    /// A message arrives: delivered to its receiver, if that still exists.
    pub(crate) fn deliver(&mut self, conn: ConnId, to: End, message: Message) {
        let Some(open) = self.net.conns.get_mut(&conn) else { return };
        if open.broken || !open.is_open(to) {
            return;
        }
        match message {
            Message::Close => self.on_disconnect(conn, to),
            message => self.deliver_to(conn, to, message),
        }
    }

    /// One end detects that the connection is closed.
    pub(crate) fn on_disconnect(&mut self, conn: ConnId, to: End) {
        let Some(open) = self.net.conns.get_mut(&conn) else { return };
        if !open.is_open(to) {
            return;
        }
        open.close(to);
        self.notify_closed(conn, to);
        self.remove_if_closed(conn);
    }

    fn remove_if_closed(&mut self, conn: ConnId) {
        if self.net.conns.get(&conn).is_some_and(|conn| !conn.client_open && !conn.server_open) {
            self.net.conns.remove(&conn);
            self.net.exchanges.retain(|_, on| *on != conn);
        }
    }

    /// Delays messages in flight and later ones, in both directions.
    pub(crate) fn stall(&mut self, conn: ConnId, wait: u64) {
        let now = self.queue.now();
        if let Some(open) = self.net.conns.get_mut(&conn) {
            for end in [End::Client, End::Server] {
                let arrival = open.arrival(end);
                *arrival = (*arrival).max(now) + wait;
            }
        }
    }

    /// The connections for which this holds, oldest first.
    pub(crate) fn conns_where(&self, wanted: impl Fn(&Conn) -> bool) -> Vec<ConnId> {
        self.net.conns.iter().filter(|(_, conn)| wanted(conn)).map(|(id, _)| *id).collect()
    }
}

fn latency(rng: &mut Rng, local: bool) -> u64 {
    match local {
        true => mostly(rng, MS / 20, MS, 0.01, 200 * MS),
        false => mostly(rng, MS / 5, 10 * MS, 0.02, SECOND),
    }
}
