//! Command checks in task groups: each attempt is a session below the container of its task, as in the default executor.
//!
//! After the answer to WAIT, or on a timeout, the connection is closed, which terminates the session. No call of an attempt
//! is repeated: an unreachable agent does not affect the health of the task.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tepui_executors::checks::{CheckKind, Outcome, Probe};
use tepui_executors::default::calls;
use tepui_executors::default::machine::Id;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::{Call, call};
use tepui_types::{ConnId, ContainerId};

use super::group::{self, Step, group};
use super::plan;
use crate::chance::{MS, SECOND};
use crate::net::{Client, End, Kind, Message, Node};
use crate::world::World;

const SIGKILL: i32 = 9;
/// Time for a timed out attempt to terminate before its cleanup is left to the agent.
const CLEANUP: u64 = 10 * SECOND;

/// One attempt.
#[derive(Debug)]
pub(super) struct CheckSession {
    task: Id,
    kind: CheckKind,
    container: pb::ContainerID,
    session: ConnId,
    /// The WAIT call; `None` before the session is accepted.
    wait: Option<ConnId>,
    /// It timed out and its outcome was reported.
    is_late: bool,
}

pub(super) fn begin(
    world: &mut World,
    agent: usize,
    id: &ContainerId,
    (task, kind): (Id, CheckKind),
    parent: &pb::ContainerID,
    probe: &Probe,
    command: &pb::CommandInfo,
) {
    world.counts.probes += 1;
    world.counts.command_probes += 1;
    if !world.agents[agent].process.is_up() {
        return report_outcome(world, agent, id, task, kind, Outcome::Skipped);
    }
    let container = pb::ContainerID {
        value: format!("check-{}", world.rng.uuid_text()),
        parent: parent.clone().into(),
        ..Default::default()
    };
    let launch = calls::check_session(&container, command);
    let call = Call {
        r#type: Some(call::Type::LAUNCH_NESTED_CONTAINER_SESSION),
        launch_nested_container_session: launch.into(),
        ..Default::default()
    };
    let session = send(world, agent, id, Kind::Session, call);
    let Some(group) = group(world, agent, id) else { return };
    let number = group.number();
    let check = CheckSession { task, kind, container, session, wait: None, is_late: false };
    group.checks.insert(number, check);
    if let Some(timeout) = probe.timeout {
        let wait = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        plan(world, agent, id, wait, super::Step::Group(Step::CheckTimeout(number)));
    }
}

fn send(world: &mut World, agent: usize, id: &ContainerId, kind: Kind, call: Call) -> ConnId {
    let client = Client::Executor { agent, container: id.clone() };
    let conn = world.open(kind, client, Node::Agent(agent));
    world.send(conn, End::Server, Message::ContainerCall(Box::new(call)));
    conn
}

fn report_outcome(
    world: &mut World,
    agent: usize,
    id: &ContainerId,
    task: Id,
    kind: CheckKind,
    outcome: Outcome,
) {
    plan(world, agent, id, MS, super::Step::Group(Step::Probed { task, kind, outcome }));
}

/// The attempt that a connection belongs to.
fn find(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) -> Option<u64> {
    let checks = &group(world, agent, id)?.checks;
    let own = |check: &CheckSession| check.session == conn || check.wait == Some(conn);
    checks.iter().find(|(_, check)| own(check)).map(|(number, _)| *number)
}

/// A connection was closed; false if it does not belong to an attempt.
pub(super) fn closed(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) -> bool {
    let Some(number) = find(world, agent, id, conn) else { return false };
    let check = group(world, agent, id).and_then(|group| group.checks.get(&number));
    // The termination of the session is reported by WAIT.
    if check.is_some_and(|check| check.wait.is_none() || check.wait == Some(conn)) {
        end(world, agent, id, number, Outcome::Skipped);
    }
    true
}

/// An answer arrived; false if it does not belong to an attempt.
pub(super) fn answered(
    world: &mut World,
    agent: usize,
    id: &ContainerId,
    conn: ConnId,
    message: &Message,
) -> bool {
    let Some(number) = find(world, agent, id, conn) else { return false };
    let Message::Answer { refused, body, .. } = message else { return true };
    let waits = group(world, agent, id).is_some_and(|group| group.checks[&number].wait == Some(conn));
    match (waits, refused, body) {
        (false, Some(_), _) => end(world, agent, id, number, Outcome::Skipped),
        (false, None, _) => wait(world, agent, id, number),
        (true, None, Some(body)) => {
            let outcome = verdict(body.wait_nested_container.exit_status);
            end(world, agent, id, number, outcome);
        }
        (true, _, _) => end(world, agent, id, number, Outcome::Skipped),
    }
    true
}

fn wait(world: &mut World, agent: usize, id: &ContainerId, number: u64) {
    let Some(group) = group(world, agent, id) else { return };
    let call = calls::wait(&group.checks[&number].container);
    let conn = send(world, agent, id, Kind::Request, call);
    if let Some(check) = group::group(world, agent, id).and_then(|group| group.checks.get_mut(&number)) {
        check.wait = Some(conn);
    }
}

fn verdict(status: Option<i32>) -> Outcome {
    let Some(status) = status.map(ExitStatus::from_raw) else { return Outcome::Skipped };
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code),
        (None, Some(SIGKILL)) => Outcome::Skipped,
        (None, _) => Outcome::Failed("the check was killed".into()),
    }
}

/// Completes the attempt and removes its container.
fn end(world: &mut World, agent: usize, id: &ContainerId, number: u64, outcome: Outcome) {
    let Some(check) = group(world, agent, id).and_then(|group| group.checks.remove(&number)) else {
        return;
    };
    for conn in [Some(check.session), check.wait].into_iter().flatten() {
        world.close(conn, End::Client);
    }
    if world.agents[agent].process.is_up() {
        // A failed removal does not matter: it is removed with the container of the task.
        send(world, agent, id, Kind::Request, calls::remove(&check.container));
    }
    if !check.is_late {
        report_outcome(world, agent, id, check.task, check.kind, outcome);
    }
}

/// The attempt timed out. Closing the connection kills it; the next attempt does not wait for that.
pub(super) fn time_out(world: &mut World, agent: usize, id: &ContainerId, number: u64) {
    let Some(check) = group(world, agent, id).and_then(|group| group.checks.get_mut(&number)) else {
        return;
    };
    if std::mem::replace(&mut check.is_late, true) {
        return end(world, agent, id, number, Outcome::Skipped);
    }
    let (task, kind, session) = (check.task.clone(), check.kind, check.session);
    let is_launched = check.wait.is_some();
    world.close(session, End::Client);
    report_outcome(world, agent, id, task, kind, Outcome::Failed("timed out".into()));
    match is_launched {
        true => plan(world, agent, id, CLEANUP, super::Step::Group(Step::CheckTimeout(number))),
        false => end(world, agent, id, number, Outcome::Skipped),
    }
}
