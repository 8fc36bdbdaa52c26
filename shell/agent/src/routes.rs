//! Endpoints of the agent: the table of paths and the dispatch to handlers.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use tepui_http::files::{self, Verb};
use tepui_http::{
    Audit, Handler, Help, HttpError, MetricsForm, Request, Response, RouteRow, Router, System, classic,
    empty, json, profiler,
};

use crate::endpoint::Endpoint;
use crate::program::Program;
use crate::statistics::{self, View};
use crate::visible::Look;
use crate::{executor, operator, origin};

/// With and without `/slave(1)`.
const OWN: &[RouteRow<Endpoint>] = &[
    ("/api/v1", Endpoint::Operator, "Calls of operators: reads and containers."),
    (
        "/api/v1/executor",
        Endpoint::Executor,
        "Calls of executors, and the event stream that SUBSCRIBE opens.",
    ),
    ("/state", Endpoint::State, "Everything about frameworks, executors and tasks of this agent."),
    ("/containers", Endpoint::Usage(View::Containers), "Containers with their statistics and status."),
    ("/monitor/statistics", Endpoint::Usage(View::Statistics), "What executors use."),
    ("/flags", Endpoint::Flags, "Flags of this program."),
    ("/volume_drivers", Endpoint::VolumeDrivers, "Docker volume drivers of this machine."),
    ("/health", Endpoint::Health, "200 if this program is healthy."),
];

/// Only as they stand.
const SHARED: &[RouteRow<Endpoint>] = &[
    ("/version", Endpoint::Version, "Version and build information."),
    ("/containerizer/debug", Endpoint::ContainerizerDebug, "What containers wait for."),
    ("/metrics", Endpoint::Metrics(MetricsForm::Text), "All metrics as Prometheus text."),
    ("/metrics/snapshot", Endpoint::Metrics(MetricsForm::Snapshot), "All metrics with v1 names, as JSON."),
    ("/logging/toggle", Endpoint::LoggingToggle, "Sets the logging level for a duration."),
    ("/profiler/start", Endpoint::Profiler, "Not supported: rejected with 400."),
    ("/profiler/stop", Endpoint::Profiler, "Not supported: rejected with 400."),
    ("/help", Endpoint::Help, "List of endpoints; format=json for a complete list."),
    ("/system/stats.json", Endpoint::SystemStats, "Load and memory of this machine."),
    ("/files/browse", Endpoint::Files(Verb::Browse), "Lists the directory `path`."),
    ("/files/read", Endpoint::Files(Verb::Read), "A piece of the file path, from offset, of length bytes."),
    ("/files/download", Endpoint::Files(Verb::Download), "The whole file path."),
    ("/files/debug", Endpoint::Files(Verb::Debug), "Which paths are shown under which names."),
];

static ROUTER: LazyLock<Router<Endpoint>> = LazyLock::new(|| Router::new("slave(1)", OWN, SHARED));
static HELP: LazyLock<Help> = LazyLock::new(|| ROUTER.help());

impl Program {
    async fn respond(&self, mut request: Request) -> Result<Response, HttpError> {
        self.access.firewall.check(&ROUTER, &request.components)?;
        let (endpoint, rest) = ROUTER.find(&request.components).ok_or_else(HttpError::not_found)?;
        self.access.admit(endpoint, &mut request).await?;
        match endpoint {
            Endpoint::Executor => executor::call(self, request).await,
            Endpoint::Operator => operator::call(self, request).await,
            Endpoint::State => self.state_document(&request).await,
            Endpoint::Usage(view) => {
                let state = self.seen_by(&request, Look::Containers);
                statistics::answer(view, self.measuring.clone(), state, &request).await
            }
            Endpoint::Metrics(form) => match rest.is_empty() {
                true => self.metrics(form.negotiated(&request.headers), &request).await,
                false => Err(HttpError::not_found()),
            },
            Endpoint::LoggingToggle => self.logging.toggle(&request),
            Endpoint::SystemStats => Ok(json(&request.query, System::now().document())),
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.about.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Help => HELP.answer(&rest, &request),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
            Endpoint::Profiler => profiler(),
            Endpoint::Files(verb) => files::answer(verb, self.attached_for(&request), &request).await,
            Endpoint::VolumeDrivers => Ok(json(&request.query, self.volume_drivers())),
            // Nothing that a container waits for is kept from its operator.
            Endpoint::ContainerizerDebug => Ok(json(&request.query, r#"{"pending":[]}"#)),
        }
    }
}

impl Handler for Program {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        let (method, headers) = (request.method.clone(), request.headers.clone());
        let witness = Audit::witness(&request);
        let mut response = self.respond(request).await.unwrap_or_else(Response::from);
        self.audit.conclude(&witness, &response);
        origin::allow(&mut response, &method, &headers, &self.masters, self.state().master.as_deref());
        response
    }
}
