//! Which endpoint a request is for. The tables are the list of everything the agent answers.

use std::sync::Arc;

use http::StatusCode;
use tepui_core_agent::{Input, Phase, State};
use tepui_http::{Exchanges, Handler, HttpError, Request, Response, Router, classic, empty, json};
use tepui_runtime::{Closed, Handle};
use tokio::sync::watch;

use crate::document::About;
use crate::files::{self, Verb};
use crate::{document, executor, operator, origin};

/// What an exchange with the machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Executor,
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Executor,
    Operator,
    State,
    Flags,
    Health,
    Version,
    Files(Verb),
}

/// With and without `/slave(1)`.
const OWN: &[(&str, Endpoint)] = &[
    ("/api/v1", Endpoint::Operator),
    ("/api/v1/executor", Endpoint::Executor),
    ("/state", Endpoint::State),
    ("/flags", Endpoint::Flags),
    ("/health", Endpoint::Health),
];

/// Only as they stand.
const SHARED: &[(&str, Endpoint)] = &[
    ("/version", Endpoint::Version),
    ("/files/browse", Endpoint::Files(Verb::Browse)),
    ("/files/read", Endpoint::Files(Verb::Read)),
    ("/files/download", Endpoint::Files(Verb::Download)),
    ("/files/debug", Endpoint::Files(Verb::Debug)),
];

/// What the handlers of requests share.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub about: About,
    states: watch::Receiver<Arc<State>>,
    /// The masters of `--master`.
    masters: Vec<String>,
    router: Router<Endpoint>,
}

impl Program {
    pub fn new(
        handle: Handle<Input>,
        exchanges: Exchanges<Kind>,
        states: watch::Receiver<Arc<State>>,
        about: About,
        masters: Vec<String>,
    ) -> Self {
        Self { handle, exchanges, about, states, masters, router: Router::new("slave(1)", OWN, SHARED) }
    }

    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    async fn respond(&self, request: Request) -> Result<Response, HttpError> {
        let (endpoint, _) = self.router.find(&request.components).ok_or_else(HttpError::not_found)?;
        match endpoint {
            Endpoint::Executor => executor::call(self, request).await,
            Endpoint::Operator => operator::call(self, request).await,
            Endpoint::State => {
                let state = self.state();
                if state.phase == Phase::Recovering {
                    return Err(HttpError::unavailable("Agent has not finished recovery"));
                }
                Ok(json(&request.query, document::state(&state, &self.about)))
            }
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.about.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
            Endpoint::Files(verb) => files::answer(verb, self.state(), &request).await,
        }
    }
}

impl Handler for Program {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        let (method, headers) = (request.method.clone(), request.headers.clone());
        let mut response = self.respond(request).await.unwrap_or_else(Response::from);
        origin::allow(&mut response, &method, &headers, &self.masters, self.state().master.as_deref());
        response
    }
}

/// The machine is ending.
pub(crate) fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This agent is stopping")
}
