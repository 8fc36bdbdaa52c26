//! Drives the machines as the real runtime does: turns over bounded batches, the outbox barrier, deadlines.

use tepui_fsm::unlimited;
use tepui_types::ConnId;

use crate::chance::{MS, SECOND, mostly};
use crate::event::Event;
use crate::net::{Client, End, Kind, Message, Node};
use crate::process::Schedule;
use crate::world::World;
use crate::{agent, caller, disk, election, executor, framework, master, swarm};

/// How likely a short turn has time for one more piece of work.
const GO_ON: f64 = 0.5;

/// Inputs of one turn.
const TURN_INPUTS_MAX: u64 = 8;

impl World {
    /// Plans the next turn of a process: soon if it has mail, else when its next timer is due.
    pub(crate) fn plan_turn(&mut self, node: Node) {
        let now = self.queue.now();
        let Schedule { has_mail, deadline, wake, life, paused_until } = match node {
            Node::Master(index) => self.masters[index].process.schedule(),
            Node::Agent(index) => self.agents[index].process.schedule(),
        };
        let at = match (has_mail, deadline) {
            (true, _) => now + mostly(&mut self.rng, 1000, MS, 0.005, 300 * MS),
            // A timer that is due right after its turn waits a little: a machine that never sleeps shows as a flood.
            (false, Some(deadline)) => deadline.0.max(now + MS),
            (false, None) => return,
        };
        let at = at.max(paused_until);
        if wake.is_some_and(|wake| wake <= at) {
            return;
        }
        match node {
            Node::Master(index) => self.masters[index].process.wake = Some(at),
            Node::Agent(index) => self.agents[index].process.wake = Some(at),
        }
        self.queue.at(at, Event::Turn { node, life, at });
    }

    pub(crate) fn turn(&mut self, node: Node, life: u32, at: u64) {
        let now = self.now_of(node);
        let inputs_max = 1 + self.rng.below(TURN_INPUTS_MAX) as usize;
        match node {
            Node::Master(index) => {
                let process = &mut self.masters[index].process;
                if process.life != life || process.wake != Some(at) {
                    return;
                }
                process.wake = None;
                let (short, budget_rng) = (self.plan.short_turns, &mut self.budget_rng);
                let mut budget = || !short || budget_rng.chance(GO_ON);
                process.turn(now, inputs_max, &mut budget);
                master::check(self, index);
            }
            Node::Agent(index) => {
                let process = &mut self.agents[index].process;
                if process.life != life || process.wake != Some(at) {
                    return;
                }
                process.wake = None;
                process.turn(now, inputs_max, &mut unlimited);
                agent::check(self, index);
            }
        }
        self.release(node);
        self.plan_turn(node);
    }

    /// Releases effects that may become visible, and starts to write pending records.
    pub(crate) fn release(&mut self, node: Node) {
        let sabotage = self.sabotage;
        match node {
            Node::Master(index) => {
                let effects = self.masters[index].process.ready(|_| sabotage.bypasses_master_barrier());
                master::release(self, index, effects);
            }
            Node::Agent(index) => {
                let effects = self.agents[index].process.ready(|effect| sabotage.bypasses_barrier(effect));
                effects.into_iter().for_each(|effect| agent::make_visible(self, index, effect));
            }
        }
        let begun = match node {
            Node::Master(index) => self.masters[index].process.begin_sync(),
            Node::Agent(index) => self.agents[index].process.begin_sync(),
        };
        if begun {
            let wait = mostly(&mut self.rng, MS / 10, 5 * MS, self.plan.slow_disk, 3 * SECOND);
            let at = disk::room_from(self, node) + wait;
            self.queue.at(at, Event::Synced { node, life: self.life_of(node) });
        }
    }

    pub(crate) fn synced(&mut self, node: Node, life: u32) {
        if self.life_of(node) != life || !self.is_up(node) || disk::failed(self, node) {
            return;
        }
        match node {
            Node::Master(index) if !election::may_write(self, index) => return,
            Node::Master(index) => master::synced(self, index),
            Node::Agent(index) => agent::synced(self, index),
        }
        self.release(node);
    }

    pub(crate) fn deliver_to_client(&mut self, conn: ConnId, client: Client, message: Message) {
        match client {
            Client::Framework { index, life } => framework::on_event(self, index, life, conn, message),
            Client::Swarm { life } => swarm::on_event(self, life, conn, message),
            Client::Agent { index, life, link } => {
                agent::on_master_message(self, index, life, link, conn, message)
            }
            Client::Executor { agent, container } => {
                executor::on_event(self, agent, &container, conn, message)
            }
            Client::Caller { job, .. } => caller::on_event(self, job, conn, &message),
            Client::Operator => (),
        }
    }

    /// Notifies one end of a closed connection.
    pub(crate) fn notify_closed(&mut self, conn: ConnId, to: End) {
        let Some(open) = self.net.conns.get(&conn) else { return };
        let (kind, client, server, life) = (open.kind, open.client.clone(), open.server, open.server_life);
        match (to, kind) {
            (End::Server, Kind::Calls) => (),
            (End::Server, _) if self.life_of(server) != life => (),
            (End::Server, Kind::Stream | Kind::Link | Kind::Request | Kind::Session) => match server {
                Node::Master(index) => master::closed(self, index, conn, kind),
                Node::Agent(index) => agent::closed(self, index, conn, kind),
            },
            (End::Client, _) => match client {
                Client::Framework { index, life } => framework::closed(self, index, life, conn, kind),
                Client::Swarm { life } => swarm::closed(self, life, conn, kind),
                Client::Agent { index, life, link } => agent::link_down(self, index, life, link),
                Client::Executor { agent, container } => executor::closed(self, agent, &container, conn),
                Client::Caller { job, .. } => caller::closed(self, job, conn),
                Client::Operator => (),
            },
        }
    }
}
