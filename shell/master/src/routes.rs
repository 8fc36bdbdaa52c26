//! Which endpoint a request is for. The tables are the list of everything the master answers.

use std::sync::Arc;

use http::StatusCode;
use tepui_core_master::{Input, State};
use tepui_http::{
    Exchanges, Handler, HttpError, Request, Response, Router, classic, empty, json, redirect, text,
};
use tepui_runtime::{Closed, Handle};
use tokio::sync::watch;

use crate::cache::Documents;
use crate::document::{About, Document};
use crate::{agents, operator, pages, scheduler};

/// What an exchange with the machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Scheduler,
    Agent,
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Scheduler,
    Agent,
    Operator,
    Document(Document),
    Flags,
    Health,
    Version,
    Redirect,
    Files,
    Pages,
}

/// With and without `/master`.
const OWN: &[(&str, Endpoint)] = &[
    ("/api/v1", Endpoint::Operator),
    ("/api/v1/scheduler", Endpoint::Scheduler),
    ("/api/v1/agent", Endpoint::Agent),
    ("/state", Endpoint::Document(Document::State)),
    ("/slaves", Endpoint::Document(Document::Agents)),
    ("/frameworks", Endpoint::Document(Document::Frameworks)),
    ("/tasks", Endpoint::Document(Document::Tasks)),
    ("/flags", Endpoint::Flags),
    ("/health", Endpoint::Health),
    ("/redirect", Endpoint::Redirect),
    ("/", Endpoint::Pages),
];

/// Only as they stand.
const SHARED: &[(&str, Endpoint)] = &[
    ("/version", Endpoint::Version),
    ("/files/browse", Endpoint::Files),
    ("/files/read", Endpoint::Files),
    ("/files/download", Endpoint::Files),
];

/// What the handlers of requests share.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub documents: Documents,
    pub flags: Vec<(String, String)>,
    router: Router<Endpoint>,
}

impl Program {
    pub fn new(
        handle: Handle<Input>,
        exchanges: Exchanges<Kind>,
        states: watch::Receiver<Arc<State>>,
        flags: Vec<(String, String)>,
        cluster: Option<String>,
    ) -> Self {
        let documents = Documents::new(states, About { flags: flags.clone(), cluster });
        Self { handle, exchanges, documents, flags, router: Router::new("master", OWN, SHARED) }
    }

    pub fn state(&self) -> Arc<State> {
        self.documents.state()
    }

    async fn respond(&self, request: Request) -> Result<Response, HttpError> {
        let (endpoint, rest) = self.router.find(&request.components).ok_or_else(HttpError::not_found)?;
        match endpoint {
            Endpoint::Scheduler => scheduler::call(self, request).await,
            Endpoint::Agent => agents::link(self, request).await,
            Endpoint::Operator => operator::call(self, request).await,
            Endpoint::Document(document) => self.documents.answer(document, &request).await,
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
            Endpoint::Redirect => match rest.is_empty() {
                true => Ok(self.redirect()),
                false => Err(HttpError::not_found()),
            },
            Endpoint::Files => files(&request),
            Endpoint::Pages => pages::page(&rest),
        }
    }

    /// To the leading master, which is this one.
    fn redirect(&self) -> Response {
        let state = self.state();
        let info = &state.master_info;
        redirect(&format!("//{}:{}", info.hostname.as_deref().unwrap_or("localhost"), info.port))
    }
}

impl Handler for Program {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        self.respond(request).await.unwrap_or_else(Response::from)
    }
}

/// The machine is ending.
pub(crate) fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This master is stopping")
}

/// The master keeps no files that peers may read.
fn files(request: &Request) -> Result<Response, HttpError> {
    match request.query.get("path") {
        None | Some("") => Err(HttpError::bad_request("Expecting 'path=value' in query.\n")),
        Some(_) => Ok(text(StatusCode::NOT_FOUND, "")),
    }
}
