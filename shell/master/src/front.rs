//! The one handler of the listener: it knows whether this master leads, and answers as v1 does when it does not.
//!
//! A standby redirects to the leader; what is about this process alone it answers itself. A master that has led and
//! knows no leader still shows what it saw last, and refuses to change anything.

use std::sync::{Arc, Mutex, MutexGuard};

use tepui_authz::Authorizer;
use tepui_core_master::Input;
use tepui_http::{Audit, Exchange, Handler, HttpError, Request, Response, leader_authority, redirect};
use tepui_store::etcd::Observed;

use crate::effects::STREAM_ID;
use crate::options::Access;
use crate::program::{Kind, Local, Program};
use crate::routes::{Endpoint, route};
use crate::{access, scheduler};

/// Where calls of schedulers go.
const CALL_PATHS: [&str; 2] = ["/api/v1/scheduler", "/master/api/v1/scheduler"];

pub(crate) struct Front {
    local: Local,
    access: Access,
    authorizer: Authorizer,
    standing: Mutex<Standing>,
    /// Why the election cannot be seen, as it was told of last.
    blind: Mutex<Option<String>>,
}

/// Whether this master leads.
#[derive(Clone)]
enum Standing {
    Leading(Arc<Program>),
    Standby {
        /// `host:port`.
        leader: Option<String>,
        /// The last term's; its machine has ended.
        last: Option<Arc<Program>>,
    },
}

impl Front {
    pub fn new(local: Local, access: Access, authorizer: Authorizer) -> Self {
        let standing = Mutex::new(Standing::Standby { leader: None, last: None });
        Self { local, access, authorizer, standing, blind: Mutex::default() }
    }

    pub fn lead(&self, program: Arc<Program>) {
        *self.lock() = Standing::Leading(program);
    }

    /// The term is over; nobody is known to lead.
    pub fn step_down(&self) {
        let mut standing = self.lock();
        if let Standing::Leading(program) = &*standing {
            *standing = Standing::Standby { leader: None, last: Some(program.clone()) };
        }
    }

    /// What the election showed.
    pub fn observe(&self, observed: Observed) {
        let seen = match observed {
            Observed::Leader(introduction) => leader_authority(&introduction),
            Observed::NoLeader => None,
            Observed::Unknown(why) => return self.cannot_see(why),
        };
        *self.blind.lock().expect("no code panics while it holds this lock") = None;
        if let Standing::Standby { leader, last } = &mut *self.lock()
            && *leader != seen
        {
            tracing::info!(leader = seen.as_deref(), "leading master changed");
            if seen.is_some() {
                // The leader knows better.
                *last = None;
            }
            *leader = seen;
        }
    }

    /// Told once, and not at every try.
    fn cannot_see(&self, why: String) {
        let mut blind = self.blind.lock().expect("no code panics while it holds this lock");
        if blind.as_ref() != Some(&why) {
            tracing::warn!(why, "cannot determine the leader");
            *blind = Some(why);
        }
    }

    async fn respond(&self, mut request: Request) -> Result<Response, HttpError> {
        let (endpoint, rest) = route(&request, &self.access.firewall)?;
        self.access.admit(endpoint, &mut request).await?;
        access::check(&self.authorizer, endpoint, &request)?;
        let standing = self.lock().clone();
        match standing {
            Standing::Leading(program) => program.respond(endpoint, rest, request).await,
            Standing::Standby { leader, last } => match (leader, last) {
                _ if endpoint.is_local() => self.local.respond(endpoint, rest, &request).await,
                (Some(leader), _) if endpoint == Endpoint::Redirect => Ok(redirect(&format!("//{leader}"))),
                (Some(leader), _) => Ok(redirect(&location(&leader, &request))),
                (None, Some(program)) if endpoint != Endpoint::Redirect => {
                    program.respond(endpoint, rest, request).await
                }
                (None, _) => Err(HttpError::unavailable("No leader elected")),
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().expect("no code panics while it holds this lock")
    }
}

impl Front {
    /// The master that leads, if calls of one connection may be handled together: those of a limited rate wait for each other.
    fn batching(&self) -> Option<Arc<Program>> {
        match &*self.lock() {
            Standing::Leading(program) if !self.access.throttle.is_on() => Some(program.clone()),
            Standing::Leading(_) | Standing::Standby { .. } => None,
        }
    }

    async fn begin(
        &self,
        program: &Program,
        mut request: Request,
    ) -> Result<(Exchange<Kind>, Input), HttpError> {
        let (endpoint, _) = route(&request, &self.access.firewall)?;
        self.access.admit(endpoint, &mut request).await?;
        access::check(&self.authorizer, endpoint, &request)?;
        scheduler::begin(program, &mut request).await
    }
}

impl Handler for Front {
    /// Calls of a subscribed scheduler. One without the header may be a SUBSCRIBE, whose answer is a stream.
    fn is_call(&self, head: &http::request::Parts) -> bool {
        CALL_PATHS.contains(&head.uri.path()) && head.headers.contains_key(STREAM_ID)
    }

    async fn handle_all(self: Arc<Self>, requests: Vec<Request>) -> Vec<Response> {
        let mut responses = Vec::with_capacity(requests.len());
        let Some(program) = self.batching() else {
            for request in requests {
                responses.push(self.clone().handle(request).await);
            }
            return responses;
        };
        let (mut witnesses, mut begun) = (Vec::new(), Vec::new());
        for request in requests {
            witnesses.push(Audit::witness(&request));
            begun.push(self.begin(&program, request).await);
        }
        for (witness, response) in witnesses.iter().zip(scheduler::answer_all(&program, begun).await) {
            self.local.audit.conclude(witness, &response);
            responses.push(response);
        }
        responses
    }

    async fn handle(self: Arc<Self>, request: Request) -> Response {
        let witness = Audit::witness(&request);
        let response = self.respond(request).await.unwrap_or_else(Response::from);
        self.local.audit.conclude(&witness, &response);
        response
    }
}

/// As v1 writes it: without a scheme, and always below `/master` for what is the master's own.
fn location(leader: &str, request: &Request) -> String {
    let prefixed = request.components.first().is_some_and(|first| first == "master");
    let prefix = if prefixed { "" } else { "/master" };
    format!("//{leader}{prefix}{}", request.target)
}
