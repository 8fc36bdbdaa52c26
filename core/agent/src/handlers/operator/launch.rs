//! LAUNCH_CONTAINER, LAUNCH_NESTED_CONTAINER and LAUNCH_NESTED_CONTAINER_SESSION: one more container, nested or
//! standalone. A session's container is destroyed when its connection is closed.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::call::{
    LaunchContainer, LaunchNestedContainer, LaunchNestedContainerSession,
};
use tepui_resources::Resources;
use tepui_types::{Answer, ConnId, ContainerId, ContainerOp, LaunchSpec, Rejection, Status, command_user};

use super::check::check;
use super::{Answered, checked_id, executor_in, invalid, record, sandbox_of};
use crate::Caller;
use crate::agent::{Agent, Out};
use crate::rules::environment::{self, Environment};
use crate::rules::limits::LIMITED;
use crate::rules::{disk_pressure, gc, overdue, users};
use crate::state::transition::Transition;
use crate::state::{Container, ContainerStage, Phase};

pub(super) fn launch_nested_container(
    agent: &mut Agent,
    from: (ConnId, Caller),
    call: LaunchNestedContainer,
    out: &mut Out,
) -> Answered {
    if !call.container_id.parent.is_set() {
        return Err(invalid("Expecting 'launch_nested_container.container_id.parent' to be present"));
    }
    let call = LaunchContainer {
        container_id: call.container_id,
        command: call.command,
        container: call.container,
        ..Default::default()
    };
    launch(agent, from, call, false, out)
}

pub(super) fn launch_session(
    agent: &mut Agent,
    from: (ConnId, Caller),
    call: LaunchNestedContainerSession,
    out: &mut Out,
) -> Answered {
    if !call.container_id.parent.is_set() {
        return Err(invalid("Expecting 'launch_nested_container_session.container_id.parent' to be present"));
    }
    if call.container.linux_info.share_cgroups == Some(false) {
        return Err(invalid("'linux_info.share_cgroups' cannot be false for a session"));
    }
    if call.container.mesos.image.is_set() || !call.container.volumes.is_empty() {
        return Err(invalid("a session can have neither an image nor volumes of its own"));
    }
    let call = LaunchContainer {
        container_id: call.container_id,
        command: call.command,
        container: call.container,
        ..Default::default()
    };
    launch(agent, from, call, true, out)
}

pub(super) fn launch_container(
    agent: &mut Agent,
    from: (ConnId, Caller),
    call: LaunchContainer,
    out: &mut Out,
) -> Answered {
    launch(agent, from, call, false, out)
}

fn launch(
    agent: &mut Agent,
    (conn, caller): (ConnId, Caller),
    call: LaunchContainer,
    is_session: bool,
    out: &mut Out,
) -> Answered {
    let id = checked_id(&call.container_id)?;
    let requests = check(&agent.config, &id, &call)?;
    if executor_in(agent, &id).is_some() {
        return Ok(Some(Answer::Accepted));
    }
    match agent.state.containers.get(&id) {
        // The output of a closed session could not be sent.
        Some(container) if container.is_session && container.is_ended() => {
            return Err(Rejection::bad_request(format!("Container {id} has already terminated")));
        }
        // A client that repeats the call after a lost answer waits for the container next, and receives its exit
        // status.
        Some(_) => return Ok(Some(Answer::Accepted)),
        None => (),
    }
    if agent.never_launched.contains(&id) {
        return Err(Rejection::bad_request(format!("The task of container {id} has terminated")));
    }
    // The executor repeats the call, and its update arrives meanwhile. Tasks do not run in sessions.
    if !is_session && overdue::may_be_over(agent, &id) {
        let why =
            format!("Container {id} may belong to a terminated task: its executor has not named it yet");
        return Err(Rejection::new(Status::Unavailable, why));
    }
    // A session is not recorded and has no sandbox of its own; operators need it most when something is wrong.
    let rejection = disk_pressure::rejection(agent, "a container").filter(|_| !is_session);
    if let Some(why) = rejection {
        return Err(Rejection::new(Status::InsufficientStorage, why));
    }
    let user = match id.parent() {
        Some(parent) => live_parent_user(agent, parent)?,
        None if agent.state.phase == Phase::Terminating => {
            return Err(Rejection::new(Status::Unavailable, "Agent is terminating"));
        }
        None => None,
    };
    let limits = limits(agent, &id, &call, &requests);
    let mut spec = spec(agent, &id, call, limits, user);
    check_user(agent, caller, &mut spec)?;
    if is_session {
        spec.is_session = true;
        spec.environment.remove("MESOS_SANDBOX"); // It has its parent's.
        agent.requests.sessions.insert(conn, id.clone());
    }
    gc::unschedule(agent, &spec.sandbox, out);
    let sandbox = spec.sandbox.as_str().into();
    let container = Container { id: id.clone(), sandbox, stage: ContainerStage::Launching, is_session };
    let container = Arc::new(container);
    Agent::log(Transition::ContainerRequested { container: Arc::clone(&container) }, out);
    agent.state.containers.insert_mut(id.clone(), container);
    agent.state.touch();
    agent.requests.launches.insert(id.clone(), conn);
    record(agent, &id, out);
    agent.container(ContainerOp::Launch(spec.into()), out);
    Ok(None)
}

/// An executor launches containers as users that its framework may use; below an executor whose framework may not use
/// root, a caller gets root only by naming that user.
fn check_user(agent: &Agent, caller: Caller, spec: &mut LaunchSpec) -> Result<(), Rejection> {
    let Some(executor) = executor_in(agent, spec.id.top()) else { return Ok(()) };
    let user = spec.user.as_deref();
    spec.no_root = executor.no_root && (caller == Caller::Executor || user == executor.user.as_deref());
    let Some(framework) = agent.state.framework(&executor.framework_id) else { return Ok(()) };
    match caller {
        Caller::Executor if !users::may_launch_as(agent, &framework.info, executor, user) => {
            let user = user.unwrap_or_default();
            let why = format!("Not authorized to launch a container as user '{user}'");
            Err(Rejection::new(Status::Forbidden, why))
        }
        Caller::Executor | Caller::Operator => Ok(()),
    }
}

/// Default user of a nested container; an error if its parent does not run.
fn live_parent_user(agent: &Agent, parent: &ContainerId) -> Result<Option<String>, Rejection> {
    let missing = || Rejection::new(Status::NotFound, format!("Container {parent} cannot be found"));
    if let Some(container) = agent.state.containers.get(parent)
        && container.is_ended()
    {
        return Err(Rejection::bad_request(format!("Container {parent} has already terminated")));
    }
    if parent.parent().is_some() && !agent.state.containers.contains_key(parent) {
        return Err(missing());
    }
    match executor_in(agent, parent.top()) {
        Some(executor) => Ok(executor.user.as_ref().map(|user| user.to_string())),
        None if agent.state.containers.contains_key(parent.top()) => Ok(None),
        None => Err(missing()),
    }
}

/// Those of the call; without a request and with cgroups of its own a task may use what others leave.
fn limits(
    agent: &Agent,
    id: &ContainerId,
    call: &LaunchContainer,
    requests: &Resources,
) -> BTreeMap<String, f64> {
    let mut limits: BTreeMap<String, f64> =
        call.limits.iter().map(|(name, limit)| (name.clone(), limit.value)).collect();
    let own_cgroups = id.parent().is_some() && call.container.linux_info.share_cgroups == Some(false);
    if agent.config.best_effort_tasks && own_cgroups {
        for (name, _) in LIMITED.iter().filter(|(_, key)| requests.amount(key).is_zero()) {
            limits.entry((*name).into()).or_insert(f64::INFINITY);
        }
    }
    limits
}

fn spec(
    agent: &Agent,
    id: &ContainerId,
    call: LaunchContainer,
    limits: BTreeMap<String, f64>,
    inherited: Option<String>,
) -> LaunchSpec {
    let sandbox = sandbox_of(agent, id);
    let command: pb::CommandInfo = call.command.into_option().unwrap_or_default();
    let mut environment = Environment::new();
    environment.insert("MESOS_SANDBOX".into(), sandbox.clone());
    environment::add_command(&mut environment, &command);
    // Of the framework around it; a container that an operator launches alone has no secrets.
    let framework = executor_in(agent, id.top()).and_then(|own| agent.state.framework(&own.framework_id));
    let principal = framework.and_then(|framework| framework.info.principal.as_deref());
    let secrets = environment::secrets(principal, &command);
    let own = command_user(&command).map(Into::into).filter(|_| agent.config.switch_user);
    LaunchSpec {
        id: id.clone(),
        environment,
        secrets,
        user: own.or(inherited),
        no_root: false,
        sandbox,
        latest_link: None,
        container: call.container.into_option(),
        resources: call.resources,
        limits,
        volumes: Vec::new(),
        of_task: true,
        holds_tasks: true,
        task: None,
        is_session: false,
        command,
    }
}
