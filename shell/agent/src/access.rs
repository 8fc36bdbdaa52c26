//! Admission of requests: realms of endpoints, tokens of executors, senders of calls. What they may do, the core decides.

use std::sync::Arc;

use tepui_authz::{Action, Authorizer};
use tepui_core_agent::{
    Executor, Peer as Origin, Sender, State, authorize_operator, container_of, executor_claims,
    needs_known_user,
};
use tepui_http::auth::JwtKey;
use tepui_http::peer::{self, Peer};
use tepui_http::{Authentication, HttpError, Principal, Realm as Closed, Request};
use tepui_program::{Endpoint, Firewall, Realm, allowed};
use tepui_proto::mesos::v1::agent::Call;
use tepui_types::ContainerOp;

/// The variable with the trusted certificates for an executor; if it is set, the agent speaks TLS.
const TRUST: &str = "TEPUI_TLS_CA";

/// The variable in which an executor finds its token.
const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

/// Authentication and authorization.
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
    /// Trusted certificates for executors, if the agent speaks TLS: in PEM, or the file of them.
    pub executors_trust: Option<String>,
    /// Disabled endpoints.
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

    /// 403 unless the sender of the request is authorized.
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

    /// Passes the token and the trusted certificates to the container of an executor.
    pub(crate) fn equip(&self, state: &State, op: &mut ContainerOp) {
        let ContainerOp::Launch(spec) = op else { return };
        let Some((_, executor)) = state.executor_in(&spec.id) else { return };
        if let Some(key) = &self.key {
            spec.environment.insert(TOKEN.to_owned(), key.mint(&executor_claims(executor)));
        }
        if let Some(trusted) = &self.executors_trust {
            spec.environment.insert(TRUST.to_owned(), trusted.clone());
        }
    }

    /// Whether a call that is answered from the snapshot may be made; the machine decides about others.
    pub(crate) fn authorize(&self, state: &State, sender: &Sender, call: &Call) -> Result<(), HttpError> {
        let decided = authorize_operator(state, &self.authorizer, sender, call);
        decided.map(|_| ()).map_err(|rejection| HttpError::from(&rejection))
    }

    /// The sender of a call about a container. On an agent without authentication, processes of this machine are identified by
    /// their users, and the network is trusted.
    pub(crate) fn sender(&self, state: &State, request: &Request, call: &Call) -> Sender {
        let is_checked = !self.readwrite && needs_known_user(call);
        let peer = is_checked.then(|| peer::find(request.peer, request.local));
        if let Some(Peer::Local(uid)) = peer {
            request.note_uid(uid);
        }
        let executor = container_of(call).and_then(|id| state.executor_in(id.top()));
        let own = nix::unistd::geteuid().as_raw();
        let peer = peer.map(|peer| match peer {
            Peer::Remote => Origin::Remote,
            Peer::Local(uid) if uid == 0 || uid == own => Origin::Trusted,
            Peer::Local(uid) if executor.is_some_and(|(_, executor)| runs_as(executor, uid)) => {
                Origin::Executor
            }
            Peer::Local(_) | Peer::Unknown => Origin::Other,
        });
        Sender { peer, ..sender(request) }
    }
}

/// The authenticated sender of a request.
pub(crate) fn sender(request: &Request) -> Sender {
    let principal = request.principal.clone();
    let principal = principal.map(|Principal { name, claims }| tepui_core_agent::Principal { name, claims });
    Sender { principal, peer: None }
}

/// Whether an executor runs as this user of the machine.
fn runs_as(executor: &Executor, uid: u32) -> bool {
    let user = executor.user.as_deref().map(nix::unistd::User::from_name);
    user.is_some_and(|user| user.is_ok_and(|user| user.is_some_and(|user| user.uid.as_raw() == uid)))
}
