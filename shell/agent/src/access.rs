//! Who is let in, and what they may do here: realms of endpoints, tokens of executors, rules about containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use tepui_authz::{Action, Authorizer};
use tepui_core_agent::{Caller, Executor, Framework, State};
use tepui_http::auth::JwtKey;
use tepui_http::{Authentication, HttpError, Principal, Realm as Closed, Request};
use tepui_program::{Endpoint, Firewall, Realm, allowed};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, command_user};

use crate::peer::Peer;

/// The variable in which an executor finds whom to trust; if it is set, the agent speaks TLS.
const TRUST: &str = "TEPUI_TLS_CA";

/// The variable in which an executor finds its token.
const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

/// Who must prove who they are, and what they may do.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub authentication: Authentication,
    /// Documents and other reads.
    pub readonly: bool,
    /// Operators' calls.
    pub readwrite: bool,
    pub executors: bool,
    pub authorizer: Authorizer,
    /// Makes the tokens of executors.
    pub key: Option<Arc<JwtKey>>,
    /// Whom executors should trust, if the agent speaks TLS: certificates in PEM, or the file of them.
    pub executors_trust: Option<String>,
    /// Endpoints that nobody may use.
    pub firewall: Firewall,
}

impl Access {
    /// Whether every realm is closed.
    pub fn authenticates_all_realms(&self) -> bool {
        self.readonly && self.readwrite && self.executors
    }

    /// Lets a request in, or rejects it before its body is read.
    pub(crate) async fn admit<P, C>(
        &self,
        endpoint: &Endpoint<P, C>,
        request: &mut Request,
    ) -> Result<(), HttpError> {
        if let Some(realm) = self.realm(endpoint.realm) {
            self.authentication.admit(realm, request).await?;
        }
        endpoint.authorize(&self.authorizer, request)
    }

    /// 403 unless who sent the request may do this.
    pub(crate) fn allowed(
        &self,
        request: &Request,
        action: Action,
        object: Option<&str>,
    ) -> Result<(), HttpError> {
        allowed(&self.authorizer, request, action, object)
    }

    fn realm(&self, realm: Realm) -> Option<Closed> {
        let (name, is_closed) = match realm {
            Realm::Open => return None,
            Realm::Readonly => ("mesos-agent-readonly", self.readonly),
            Realm::Readwrite => ("mesos-agent-readwrite", self.readwrite),
            Realm::Executors => ("mesos-agent-executor", self.executors),
            Realm::Schedulers | Realm::Agents => unreachable!("an agent has endpoints of executors only"),
        };
        // Built-in executors launch nested containers through the operator API, with the token they have.
        Some(Closed { name, is_closed, takes_tokens: self.key.is_some(), is_for_agents: false })
    }

    /// Gives the container of an executor its token, and whom to trust.
    pub(crate) fn equip(&self, state: &State, op: &mut ContainerOp) {
        let ContainerOp::Launch(spec) = op else { return };
        let Some((_, executor)) = find_executor(state, &spec.id) else { return };
        if let Some(key) = &self.key {
            spec.environment.insert(TOKEN.to_owned(), key.mint(&claims(executor)));
        }
        if let Some(trusted) = &self.executors_trust {
            spec.environment.insert(TRUST.to_owned(), trusted.clone());
        }
    }

    /// An executor speaks for itself only.
    pub(crate) fn check_executor(
        &self,
        state: &State,
        principal: Option<&Principal>,
        framework: &pb::FrameworkID,
        executor: &pb::ExecutorID,
    ) -> Result<(), HttpError> {
        let Some(principal) = principal.filter(|_| self.executors) else { return Ok(()) };
        let framework = state.frameworks.get(&FrameworkId::from(framework));
        let known = framework.and_then(|framework| framework.executors.get(&ExecutorId::from(executor)));
        // Of one that is not known the machine says so.
        match known {
            Some(known) if !is_self(principal, known) => Err(HttpError::forbidden()),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a call about a container may be made: by its own executor, or by whom the rules allow. On whose behalf it
    /// is decides which users the machine accepts.
    pub(crate) fn check_container(
        &self,
        state: &State,
        request: &Request,
        call: &Call,
    ) -> Result<Caller, HttpError> {
        let Some((id, nested, alone)) = container_access(call) else { return Ok(Caller::Operator) };
        let executor = find_executor(state, ContainerId::from(id).top());
        if let Some(principal) = &request.principal
            && principal.name.is_none()
        {
            let own = executor.is_some_and(|(_, executor)| is_self(principal, executor));
            return if own { Ok(Caller::Executor) } else { Err(HttpError::forbidden()) };
        }
        let Some((framework, executor)) = executor else {
            return self.allowed(request, alone, None).map(|()| Caller::Operator);
        };
        let around = command_user(&executor.info.command).unwrap_or(&framework.info.user);
        let own = command_of(call).and_then(command_user).unwrap_or(around);
        for action in nested {
            let is_own = AS_USER.contains(action);
            self.allowed(request, *action, Some(if is_own { own } else { around }))?;
        }
        Ok(Caller::Operator)
    }

    /// Whether a call needs to come from a known user if nobody is authenticated: it runs something, or ends or reaches what
    /// runs.
    pub(crate) fn is_for_known_users(call: &Call) -> bool {
        let waits = matches!(call.r#type, Some(Type::WAIT_CONTAINER | Type::WAIT_NESTED_CONTAINER));
        container_access(call).is_some() && !waits
    }

    /// Whether a process may make such a call: one of root or of the agent's own user any, one of an executor's user calls
    /// about containers of that executor.
    pub(crate) fn check_peer(&self, state: &State, call: &Call, peer: Peer) -> Result<Caller, HttpError> {
        let Some((id, _, _)) = container_access(call) else { return Ok(Caller::Operator) };
        let executor = find_executor(state, ContainerId::from(id).top());
        let own = nix::unistd::geteuid().as_raw();
        match peer {
            Peer::Remote => Ok(Caller::Operator),
            Peer::Local(uid) if uid == 0 || uid == own => Ok(Caller::Operator),
            Peer::Local(uid) if executor.is_some_and(|(_, executor)| runs_as(executor, uid)) => {
                Ok(Caller::Executor)
            }
            Peer::Local(_) | Peer::Unknown => Err(HttpError::new(
                StatusCode::FORBIDDEN,
                "This agent authenticates nobody: calls about containers need root or the agent's user, or the user of \
                 the executor around them",
            )),
        }
    }
}

/// Whether an executor runs as this user of the machine.
fn runs_as(executor: &Executor, uid: u32) -> bool {
    let user = executor.user.as_deref().map(nix::unistd::User::from_name);
    user.is_some_and(|user| user.is_ok_and(|user| user.is_some_and(|user| user.uid.as_raw() == uid)))
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

fn claims(executor: &Executor) -> BTreeMap<String, String> {
    let claims = [
        ("fid", executor.framework_id.as_str()),
        ("eid", executor.id.as_str()),
        ("cid", executor.container_id.value()),
    ];
    claims.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn is_self(principal: &Principal, executor: &Executor) -> bool {
    let own = claims(executor);
    own.iter().all(|(name, value)| principal.claims.get(name) == Some(value))
}

/// The executor whose container this is.
pub(crate) fn find_executor<'s>(state: &'s State, id: &ContainerId) -> Option<(&'s Framework, &'s Executor)> {
    let of =
        |framework: &'s Framework| framework.executors.values().map(move |executor| (framework, &**executor));
    state.frameworks.values().flat_map(|one| of(one)).find(|(_, executor)| executor.container_id == *id)
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

/// Actions whose object is the user of the new container, not that of the executor around it.
const AS_USER: [Action; 2] =
    [Action::LaunchNestedContainerAsUser, Action::LaunchNestedContainerSessionAsUser];
const LAUNCH: &[Action] = &[Action::LaunchNestedContainerAsUser, Action::LaunchNestedContainerUnderParent];
const LAUNCH_SESSION: &[Action] =
    &[Action::LaunchNestedContainerSessionAsUser, Action::LaunchNestedContainerSessionUnderParent];
const WAIT: &[Action] = &[Action::WaitNestedContainer];
const KILL: &[Action] = &[Action::KillNestedContainer];
const REMOVE: &[Action] = &[Action::RemoveNestedContainer];
