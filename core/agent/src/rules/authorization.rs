//! Authorization of calls to this agent: the objects of each call against the rules of the operator.
//!
//! Executors make calls about themselves and their own containers; the rules decide about others. An agent without
//! authentication trusts the network, and identifies processes of its machine by their users.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;

use tepui_authz::{Action, Authorizer};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::executor;
use tepui_types::{ContainerId, ExecutorId, FrameworkId, Rejection, Status, command_user};

use crate::interface::input::{Caller, Peer, Principal, Sender};
use crate::state::{Executor, State};

/// Actions whose object is the user of the new container, not that of the executor around it.
const AS_USER: [Action; 2] =
    [Action::LaunchNestedContainerAsUser, Action::LaunchNestedContainerSessionAsUser];
const LAUNCH: &[Action] = &[Action::LaunchNestedContainerAsUser, Action::LaunchNestedContainerUnderParent];
const LAUNCH_SESSION: &[Action] =
    &[Action::LaunchNestedContainerSessionAsUser, Action::LaunchNestedContainerSessionUnderParent];
const WAIT: &[Action] = &[Action::WaitNestedContainer];
const KILL: &[Action] = &[Action::KillNestedContainer];
const REMOVE: &[Action] = &[Action::RemoveNestedContainer];

/// An executor makes calls about itself only. Whether it is known is checked elsewhere.
pub(crate) fn executor(state: &State, sender: &Sender, call: &executor::Call) -> Result<(), Rejection> {
    let Some(principal) = &sender.principal else { return Ok(()) };
    let framework = state.frameworks.get(&FrameworkId::from(&*call.framework_id));
    let known =
        framework.and_then(|framework| framework.executors.get(&ExecutorId::from(&*call.executor_id)));
    match known {
        Some(known) if !is_self(principal, known) => Err(forbidden()),
        Some(_) | None => Ok(()),
    }
}

/// A call about a container may be made by its own executor, and by principals that the rules allow. The returned caller
/// decides which users a launch may have.
pub fn authorize_operator(
    state: &State,
    authorizer: &Authorizer,
    sender: &Sender,
    call: &Call,
) -> Result<Caller, Rejection> {
    let Some((id, nested, alone)) = container_access(call) else { return Ok(Caller::Operator) };
    let caller = sender.peer.map_or(Ok(Caller::Operator), caller_of)?;
    let executor = state.executor_in(ContainerId::from(id).top());
    if let Some(principal) = &sender.principal
        && principal.name.is_none()
    {
        let own = executor.is_some_and(|(_, executor)| is_self(principal, executor));
        return if own { Ok(Caller::Executor) } else { Err(forbidden()) };
    }
    let allowed = |action, user| match authorizer.allows(sender.subject(), action, user) {
        true => Ok(()),
        false => Err(forbidden()),
    };
    let Some((framework, executor)) = executor else { return allowed(alone, None).map(|()| caller) };
    let around = command_user(&executor.info.command).unwrap_or(&framework.info.user);
    let own = command_of(call).and_then(command_user).unwrap_or(around);
    for action in nested {
        allowed(*action, Some(if AS_USER.contains(action) { own } else { around }))?;
    }
    Ok(caller)
}

/// Whether a call needs a known user on an agent without authentication: it launches, kills or attaches to a container.
pub fn needs_known_user(call: &Call) -> bool {
    let waits = matches!(call.r#type, Some(Type::WAIT_CONTAINER | Type::WAIT_NESTED_CONTAINER));
    container_access(call).is_some() && !waits
}

/// The container of a call about one.
pub fn container_of(call: &Call) -> Option<ContainerId> {
    container_access(call).map(|(id, _, _)| ContainerId::from(id))
}

/// The claims of an executor's token.
pub fn executor_claims(executor: &Executor) -> BTreeMap<String, String> {
    let claims = [
        ("fid", executor.framework_id.as_str()),
        ("eid", executor.id.as_str()),
        ("cid", executor.container_id.value()),
    ];
    claims.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn is_self(principal: &Principal, executor: &Executor) -> bool {
    let own = executor_claims(executor);
    own.iter().all(|(name, value)| principal.claims.get(name) == Some(value))
}

/// A process of root or of the agent's own user makes any call, one of an executor's user calls about its containers.
fn caller_of(peer: Peer) -> Result<Caller, Rejection> {
    match peer {
        Peer::Remote | Peer::Trusted => Ok(Caller::Operator),
        Peer::Executor => Ok(Caller::Executor),
        Peer::Other => Err(Rejection::new(
            Status::Forbidden,
            "This agent has no authentication: calls about containers need root or the agent's user, or the user of \
             the executor around them",
        )),
    }
}

fn forbidden() -> Rejection {
    Rejection::new(Status::Forbidden, "")
}

/// What a call launches.
fn command_of(call: &Call) -> Option<&pb::CommandInfo> {
    match call.r#type? {
        Type::LAUNCH_NESTED_CONTAINER => call.launch_nested_container.command.as_option(),
        Type::LAUNCH_CONTAINER => call.launch_container.command.as_option(),
        Type::LAUNCH_NESTED_CONTAINER_SESSION => call.launch_nested_container_session.command.as_option(),
        _ => None,
    }
}

type ContainerAccess<'c> = (&'c pb::ContainerID, &'static [Action], Action);

/// The container of a call, what it takes below an executor, and what it takes on its own.
fn container_access(call: &Call) -> Option<ContainerAccess<'_>> {
    Some(match call.r#type? {
        Type::LAUNCH_NESTED_CONTAINER => {
            (&*call.launch_nested_container.container_id, LAUNCH, Action::LaunchStandaloneContainer)
        }
        Type::LAUNCH_CONTAINER => {
            (&*call.launch_container.container_id, LAUNCH, Action::LaunchStandaloneContainer)
        }
        Type::LAUNCH_NESTED_CONTAINER_SESSION => (
            &*call.launch_nested_container_session.container_id,
            LAUNCH_SESSION,
            Action::LaunchStandaloneContainer,
        ),
        Type::WAIT_NESTED_CONTAINER => {
            (&*call.wait_nested_container.container_id, WAIT, Action::WaitStandaloneContainer)
        }
        Type::WAIT_CONTAINER => (&*call.wait_container.container_id, WAIT, Action::WaitStandaloneContainer),
        Type::KILL_NESTED_CONTAINER => {
            (&*call.kill_nested_container.container_id, KILL, Action::KillStandaloneContainer)
        }
        Type::KILL_CONTAINER => (&*call.kill_container.container_id, KILL, Action::KillStandaloneContainer),
        Type::REMOVE_NESTED_CONTAINER => {
            (&*call.remove_nested_container.container_id, REMOVE, Action::RemoveStandaloneContainer)
        }
        Type::REMOVE_CONTAINER => {
            (&*call.remove_container.container_id, REMOVE, Action::RemoveStandaloneContainer)
        }
        Type::ATTACH_CONTAINER_OUTPUT => (
            &*call.attach_container_output.container_id,
            &[Action::AttachContainerOutput],
            Action::ViewStandaloneContainer,
        ),
        Type::ATTACH_CONTAINER_INPUT => (
            &*call.attach_container_input.container_id,
            &[Action::AttachContainerInput],
            Action::ViewStandaloneContainer,
        ),
        _ => return None,
    })
}
