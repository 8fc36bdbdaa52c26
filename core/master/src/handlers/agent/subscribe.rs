//! SUBSCRIBE: an agent registers or re-registers with its complete state.
//!
//! A new agent is admitted: recorded before it is visible. A known one is compared with the master's state. One that
//! only the registry, or nothing, contains brings its frameworks and tasks with it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::call::Subscribe;
use tepui_proto::tepui::agent::v1::event::Subscribed;
use tepui_registry::Operation as Record;
use tepui_types::{AgentId, ConnId, Rejection, Status};

use super::adopt;
use super::report::Report;
use super::subscribed::send_subscribed;
use super::update_resources::with_pending;
use crate::Effect;
use crate::entities::operation::ORPHAN_OPERATIONS_WAIT;
use crate::entities::removal::{self, Loss};
use crate::entities::{disk_pressure, drain, liveness, maintenance, offer, operation};
use crate::master::{Master, Out};
use crate::rules::{allocator_spec, authorization};
use crate::state::notice;
use crate::state::transition::{Registration, Transition};
use crate::state::{Agent, AgentLink, Map, Set};
use crate::values::counters::Counter;
use crate::values::event::to_agent;
use crate::values::timers::Timer;

pub(super) fn subscribe(
    master: &mut Master,
    now: Now,
    (conn, principal): (ConnId, Option<&str>),
    call: Subscribe,
    out: &mut Out,
) {
    // A second SUBSCRIBE on a link contains nothing new.
    if master.links.contains_key(&conn) {
        return;
    }
    let applicant = Applicant::of(conn, &call);
    let report = match Report::check(call, master.config.limits.agent_info) {
        Ok(report) => report,
        Err(why) => return applicant.reject(Rejection::bad_request(why), out),
    };
    if let Err(why) = authorize(master, principal, &report) {
        return applicant.reject(Rejection::new(Status::Forbidden, why), out);
    }
    if let Some(why) = outside(master, &report) {
        return applicant.reject(Rejection::bad_request(why), out);
    }
    if maintenance::is_down(&master.state, &report.info.hostname, report.ip()) {
        return applicant.turn_away(removal::MACHINE_DOWN, out);
    }
    let Some(id) = report.id.clone().or_else(|| unused_namesake(master, &report)) else {
        return match disk_pressure::check(master, "a new agent") {
            Ok(()) => admit(master, now, conn, report, out),
            Err(refusal) => applicant.reject(refusal, out),
        };
    };
    if master.state.gone_agents.contains_key(&id) {
        return applicant.turn_away("Agent was marked gone by an operator", out);
    }
    match master.agent(&id).cloned() {
        Some(known) if moved(&known, &report) => {
            applicant.turn_away("Agent came back with another address or hostname", out);
        }
        Some(known) => resume(master, now, conn, &known, report, out),
        None => welcome_back(master, now, conn, id, report, out),
    }
}

/// The registering agent, for the log and the audit log.
struct Applicant {
    conn: ConnId,
    id: Option<AgentId>,
    hostname: String,
    pid: Arc<str>,
}

impl Applicant {
    fn of(conn: ConnId, call: &Subscribe) -> Self {
        let info = &call.agent_info;
        let id = info.id.as_option().map(AgentId::from);
        Self { conn, id, hostname: info.hostname.clone(), pid: call.pid.as_str().into() }
    }

    fn log(self, reason: &str, out: &mut Out) {
        let Self { conn, id, hostname, pid } = self;
        let reason = reason.into();
        Master::log(Transition::AgentRejected { conn, agent_id: id, hostname, pid, reason }, out);
    }

    fn reject(self, refusal: Rejection, out: &mut Out) {
        let conn = self.conn;
        self.log(&refusal.message, out);
        Master::reject(conn, refusal, out);
    }

    /// It must end, and not ask again.
    fn turn_away(self, why: &str, out: &mut Out) {
        let conn = self.conn;
        self.log(why, out);
        out.effect(Effect::OpenAgent { conn });
        out.effect(Effect::Agent { conn, event: Box::new(to_agent::shutdown(why)) });
        out.effect(Effect::CloseAgent { conn });
    }
}

/// A principal may register agents of this name and address, and, with the id of an agent that an earlier master
/// admitted or that is unreachable, of that agent's name. A known agent is compared with it anyway.
fn authorize(master: &Master, principal: Option<&str>, report: &Report) -> Result<(), String> {
    let recovered = |id: &AgentId| master.state.recovered_agents.get(id).map(|info| info.hostname.as_str());
    let unreachable = |id: &AgentId| master.registry.unreachable_hostnames.get(id).map(String::as_str);
    let earlier = report.id.as_ref().and_then(|id| recovered(id).or_else(|| unreachable(id)));
    let names = [report.info.hostname.as_str(), report.ip()];
    for name in names.into_iter().chain(earlier) {
        authorization::register_agent(master, principal, name)?;
    }
    Ok(())
}

/// Why an agent cannot be placed among the fault domains.
fn outside(master: &Master, report: &Report) -> Option<&'static str> {
    match (report.info.domain.is_set(), master.config.master_info.domain.is_set()) {
        (true, false) => Some("The agent has a fault domain, and the master has none"),
        (false, _) if master.config.require_agent_domain => {
            Some("The agent has no fault domain, and must have one")
        }
        _ => None,
    }
}

/// An agent that did not receive its admission registers again. If nothing happened on it since, it is the same
/// agent.
fn unused_namesake(master: &Master, report: &Report) -> Option<AgentId> {
    let agent = master.agent(master.pids.get(&report.pid)?)?;
    let unused = agent.tasks.is_empty() && agent.executors.is_empty() && agent.operations.is_empty();
    (unused && agent.info.hostname == report.info.hostname).then(|| agent.id.clone())
}

fn moved(known: &Agent, report: &Report) -> bool {
    known.info.hostname != report.info.hostname || maintenance::ip(&known.pid) != report.ip()
}

/// A new agent. One with the same address lost its records: its tasks are lost.
fn admit(master: &mut Master, now: Now, conn: ConnId, report: Report, out: &mut Out) {
    if let Some(old) = master.pids.get(&report.pid).cloned() {
        master.record(Record::RemoveAgent { id: old.clone() }, out);
        removal::remove(master, now, &old, Loss::Removed, out);
        master.count(Counter::AgentRemovalsRegistered);
    }
    master.count(Counter::AgentRegistrations);
    let id = master.next_agent_id();
    let agent = fresh(master, now, conn, id, &report);
    master.record(Record::AdmitAgent(pb::AgentInfo::clone(&agent.info)), out);
    insert(master, now, conn, agent, Registration::New, out);
}

/// An agent that an earlier master admitted, that was unreachable, or that expired from the registry.
fn welcome_back(master: &mut Master, now: Now, conn: ConnId, id: AgentId, report: Report, out: &mut Out) {
    if let Some(old) = master.pids.get(&report.pid).filter(|old| **old != id).cloned() {
        master.record(Record::RemoveAgent { id: old.clone() }, out);
        removal::remove(master, now, &old, Loss::Removed, out);
        master.count(Counter::AgentRemovalsRegistered);
    }
    master.count(Counter::AgentReregistrations);
    let mut agent = fresh(master, now, conn, id.clone(), &report);
    agent.reregistered_at = Some(now.wall);
    let recovered = master.state.recovered_agents.get(&id).cloned();
    match &recovered {
        Some(info) if **info == *agent.info => (),
        Some(_) => master.record(Record::UpdateAgent(pb::AgentInfo::clone(&agent.info)), out),
        None => master.record(Record::MarkReachable(pb::AgentInfo::clone(&agent.info)), out),
    }
    master.state.recovered_agents.remove_mut(&id);
    master.state.unreachable_agents.remove_mut(&id);
    liveness::forget(master, &id);
    insert(master, now, conn, agent, Registration::Returned, out);
    adopt::everything(master, now, &id, report, recovered.is_none(), out);
    drain::remind(master, &id, out);
    master.timers.set(Timer::OrphanOperations(id), now.mono + ORPHAN_OPERATIONS_WAIT);
}

/// A known agent: its link broke, or it was restarted.
fn resume(master: &mut Master, now: Now, conn: ConnId, known: &Agent, report: Report, out: &mut Out) {
    let id = known.id.clone();
    master.count(Counter::AgentReregistrations);
    if let Some(old) = known.conn() {
        master.links.remove(&old);
        out.effect(Effect::CloseAgent { conn: old });
    }
    offer::rescind_all_on(master, &id, out);
    let fresh = fresh(master, now, conn, id.clone(), &report);
    if *fresh.info != *known.info {
        master.record(Record::UpdateAgent(pb::AgentInfo::clone(&fresh.info)), out);
    }
    master.pids.remove(&known.pid);
    let named = report.operations.iter().filter_map(|named| operation::from_proto(&named.uuid)).collect();
    let agent = Agent {
        total: with_pending(known, report.total.clone(), &named),
        registered_at: known.registered_at,
        reregistered_at: Some(now.wall),
        inverse_answers: known.inverse_answers.clone(),
        tasks: known.tasks.clone(),
        executors: known.executors.clone(),
        operations: known.operations.clone(),
        ..fresh
    };
    master.allocator.update_agent(&id, allocator_spec::agent(&agent));
    match agent.is_offered() {
        true => master.allocator.activate_agent(&id),
        false => master.allocator.deactivate_agent(&id),
    }
    master.changed = true;
    connect(master, now, conn, agent, Registration::Reconnected, out);
    adopt::compare(master, now, conn, &id, report, out);
    drain::remind(master, &id, out);
}

/// An agent as it is when it has just come.
fn fresh(master: &Master, now: Now, conn: ConnId, id: AgentId, report: &Report) -> Agent {
    let deactivation = master.registry.deactivated.get(&id);
    let info = pb::AgentInfo { id: id.to_proto().into(), ..report.info.clone() };
    Agent {
        id,
        info: Arc::new(info),
        version: Arc::clone(&report.version),
        pid: Arc::clone(&report.pid),
        speaks_tls: report.speaks_tls,
        capabilities: Arc::clone(&report.capabilities),
        link: AgentLink::Connected { conn },
        deactivated: deactivation.is_some(),
        drain: deactivation.and_then(drain::shown),
        disk_pressure: report.disk_pressure.as_ref().and_then(|it| disk_pressure::reported(it, now.wall)),
        unavailability: maintenance::unavailability(&master.state, &report.info.hostname, report.ip()),
        inverse_answers: Map::new_sync(),
        registered_at: now.wall,
        reregistered_at: None,
        total: report.total.clone(),
        tasks: Set::new_sync(),
        executors: Map::new_sync(),
        operations: Map::new_sync(),
    }
}

/// Puts an agent without anything on it into the books and greets it.
fn insert(
    master: &mut Master,
    now: Now,
    conn: ConnId,
    agent: Agent,
    registration: Registration,
    out: &mut Out,
) {
    master.changed = true;
    master.allocator.add_agent(agent.id.clone(), allocator_spec::agent(&agent), alloc::vec![]);
    if !agent.is_offered() {
        master.allocator.deactivate_agent(&agent.id);
    }
    if agent.unavailability.is_some() {
        master.allocator.set_unavailable(&agent.id, true);
    }
    master.notify(|| notice::agent_added(&agent), out);
    let id = agent.id.clone();
    connect(master, now, conn, agent, registration, out);
    send_subscribed(master, conn, &id, Subscribed::default(), out);
}

fn connect(
    master: &mut Master,
    now: Now,
    conn: ConnId,
    agent: Agent,
    registration: Registration,
    out: &mut Out,
) {
    let (id, agent) = (agent.id.clone(), Arc::new(agent));
    Master::log(Transition::AgentRegistered { agent: Arc::clone(&agent), registration }, out);
    master.links.insert(conn, id.clone());
    master.pids.insert(Arc::clone(&agent.pid), id.clone());
    master.state.agents.insert_mut(id.clone(), agent);
    liveness::watch(master, now, &id);
}
