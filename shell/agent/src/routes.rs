//! Endpoints of the agent: the table, and the dispatch of requests to handlers.

use std::sync::{Arc, LazyLock};

use tepui_authz::Action;
use tepui_core_agent::Phase;
use tepui_http::{Handler, HttpError, MetricsForm, Request, Response, json};
use tepui_program::Locality::{Cluster, Process};
use tepui_program::Needs::{self, Nothing};
use tepui_program::Realm::{Executors, Readonly, Readwrite};
use tepui_program::files::Attached;
use tepui_program::{ANY, Help, POST, ProcessInfo, Router, Row, ready};

use crate::program::Program;
use crate::statistics::View;
use crate::{executor, operator, origin};

/// With and without `/slave(1)`.
#[rustfmt::skip]
const OWN: [Row<Program, Program>; 6] = [
    ("/api/v1", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(operator::call(p, r))),
        "Calls of operators: reads and containers."),
    ("/api/v1/executor", POST, Executors, Nothing, Process(|p, r, _| Box::pin(executor::call(p, r))),
        "Calls of executors, and the event stream that SUBSCRIBE opens."),
    ("/state", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.state_document(r))),
        "Everything about frameworks, executors and tasks of this agent."),
    ("/containers", ANY, Readonly, Needs::Path("/containers"),
        Process(|p, r, _| Box::pin(p.usage(View::Containers, r))),
        "Containers with their statistics and status."),
    ("/monitor/statistics", ANY, Readonly, Needs::Path("/monitor/statistics"),
        Process(|p, r, _| Box::pin(p.usage(View::Statistics, r))),
        "What executors use."),
    ("/volume_drivers", ANY, Readonly, Needs::Action(Action::ViewFlags),
        Process(|p, r, _| ready(Ok(json(&r.query, p.volume_drivers())))),
        "Docker volume drivers of this machine."),
];

/// Only as they stand.
#[rustfmt::skip]
const SHARED: [Row<Program, Program>; 1] = [
    // Nothing that a container waits for is kept from its operator.
    ("/containerizer/debug", ANY, Readonly, Needs::Path("/containerizer/debug"),
        Process(|_, r, _| ready(Ok(json(&r.query, r#"{"pending":[]}"#)))),
        "What containers wait for."),
];

static ROUTER: LazyLock<Router<Program, Program>> =
    LazyLock::new(|| Router::new("slave(1)", OWN, SHARED, Nothing));
static HELP: LazyLock<Help> = LazyLock::new(|| ROUTER.help());

impl ProcessInfo for Program {
    fn process(&self) -> &tepui_program::Process {
        &self.process
    }

    fn help(&self) -> &Help {
        &HELP
    }

    fn attached(&self, request: &Request) -> impl FnOnce() -> Vec<Attached> + Send + 'static {
        self.attached_for(request)
    }

    async fn metrics(&self, form: MetricsForm, request: &Request) -> Result<Response, HttpError> {
        self.metrics_document(form, request).await
    }
}

impl Program {
    async fn respond(&self, mut request: Request) -> Result<Response, HttpError> {
        self.access.firewall.check(&ROUTER, &request.components)?;
        let (endpoint, rest) = ROUTER.find(&request.components)?;
        self.access.admit(endpoint, &mut request).await?;
        match endpoint.locality {
            Cluster(_) if self.state().phase == Phase::Recovering => {
                Err(HttpError::unavailable("Agent has not finished recovery"))
            }
            Process(handler) | Cluster(handler) => endpoint.call(handler, self, request, rest).await,
        }
    }
}

impl Handler for Program {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        let (method, headers) = (request.method.clone(), request.headers.clone());
        let witness = request.witness(&self.process.audit);
        let mut response = self.respond(request).await.unwrap_or_else(Response::from);
        witness.conclude(&response);
        origin::allow(&mut response, &method, &headers, &self.masters, self.state().master.as_deref());
        response
    }
}
