//! Endpoints of the master: the table of paths and the dispatch to handlers.

use std::sync::LazyLock;

use http::StatusCode;
use tepui_http::files::{self, Verb};
use tepui_http::{
    Firewall, Help, HttpError, Metrics, MetricsForm, Query, Request, Response, RouteRow, Router, System,
    classic, empty, json, profiler, typed,
};

use crate::convert::Conversion;
use crate::document::Document;
use crate::explain::SubjectKind;
use crate::maintenance::Machine;
use crate::metrics::Form;
use crate::program::{Local, Program};
use crate::{agents, convert, explain, maintenance, operator, pages, quota, scheduler, teardown, weights};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Scheduler,
    Agent,
    Operator,
    Document(Document),
    Convert(Conversion),
    Quota,
    MaintenanceSchedule,
    MaintenanceStatus,
    Machine(Machine),
    Teardown,
    Weights,
    Explain(SubjectKind),
    Metrics(MetricsForm),
    LoggingToggle,
    SystemStats,
    Flags,
    Health,
    Help,
    Version,
    Profiler,
    Redirect,
    Registry,
    Files(Verb),
    OfferConstraintsDebug,
    Pages,
}

/// With and without `/master`.
const OWN: &[RouteRow<Endpoint>] = &[
    ("/api/v1", Endpoint::Operator, "Operator API: reads, changes, event stream."),
    ("/api/v1/scheduler", Endpoint::Scheduler, "Scheduler API."),
    ("/api/v1/agent", Endpoint::Agent, "Link between agents and master."),
    ("/state", Endpoint::Document(Document::State), "Complete state: agents, frameworks, tasks."),
    ("/state-summary", Endpoint::Document(Document::Summary), "Agents and frameworks with task counts."),
    ("/slaves", Endpoint::Document(Document::Agents), "Agents; slave_id selects one."),
    (
        "/frameworks",
        Endpoint::Document(Document::Frameworks),
        "Frameworks with their tasks; framework_id selects one.",
    ),
    (
        "/tasks",
        Endpoint::Document(Document::Tasks),
        "Tasks; select with limit, offset, order=asc, framework_id, task_id; show_reasons=true adds reasons.",
    ),
    ("/roles", Endpoint::Document(Document::Roles), "Roles with frameworks, weights, quotas and resources."),
    ("/teardown", Endpoint::Teardown, "POST frameworkId=ID tears down a framework and kills its tasks."),
    (
        "/explain/framework",
        Endpoint::Explain(SubjectKind::Framework),
        "Explains the offers of a framework, given by its ID in the path.",
    ),
    (
        "/explain/role",
        Endpoint::Explain(SubjectKind::Role),
        "Explains the offers of a role, given in the path.",
    ),
    ("/quota", Endpoint::Quota, "GET returns quotas, POST sets one, DELETE /quota/ROLE removes one."),
    ("/weights", Endpoint::Weights, "GET returns the weights of roles, PUT sets them."),
    ("/weight", Endpoint::Weights, "Alias of /weights."),
    (
        "/maintenance/schedule",
        Endpoint::MaintenanceSchedule,
        "GET returns the maintenance schedule, POST replaces it.",
    ),
    ("/maintenance/status", Endpoint::MaintenanceStatus, "Draining and down machines."),
    ("/machine/down", Endpoint::Machine(Machine::Down), "POST starts the maintenance of scheduled machines."),
    ("/machine/up", Endpoint::Machine(Machine::Up), "POST ends the maintenance of machines."),
    ("/reserve", Endpoint::Convert(Conversion::Reserve), "POST reserves resources of an agent for a role."),
    ("/unreserve", Endpoint::Convert(Conversion::Unreserve), "POST unreserves resources of an agent."),
    (
        "/create-volumes",
        Endpoint::Convert(Conversion::CreateVolumes),
        "POST creates persistent volumes from reserved disk.",
    ),
    ("/destroy-volumes", Endpoint::Convert(Conversion::DestroyVolumes), "POST destroys persistent volumes."),
    ("/flags", Endpoint::Flags, "Flags of this program."),
    ("/health", Endpoint::Health, "200 if this program is healthy."),
    ("/redirect", Endpoint::Redirect, "Redirects to the leading master."),
    ("/", Endpoint::Pages, "Operator web pages."),
];

/// Only as they stand.
const SHARED: &[RouteRow<Endpoint>] = &[
    ("/version", Endpoint::Version, "Version and build information."),
    ("/metrics", Endpoint::Metrics(MetricsForm::Text), "All metrics as Prometheus text."),
    ("/metrics/snapshot", Endpoint::Metrics(MetricsForm::Snapshot), "All metrics with v1 names, as JSON."),
    ("/logging/toggle", Endpoint::LoggingToggle, "Sets the logging level for a duration."),
    ("/profiler/start", Endpoint::Profiler, "Not supported: rejected with 400."),
    ("/profiler/stop", Endpoint::Profiler, "Not supported: rejected with 400."),
    ("/help", Endpoint::Help, "List of endpoints; format=json for a complete list."),
    ("/system/stats.json", Endpoint::SystemStats, "Load and memory of this machine."),
    ("/registrar(1)/registry", Endpoint::Registry, "What outlives this master."),
    (
        "/allocator/offer_constraints_debug",
        Endpoint::OfferConstraintsDebug,
        "Which agents the constraints of frameworks leave out.",
    ),
    ("/files/debug", Endpoint::Files(Verb::Debug), "Which paths are shown under which names."),
    ("/files/browse", Endpoint::Files(Verb::Browse), "Lists the directory `path`."),
    ("/files/read", Endpoint::Files(Verb::Read), "A piece of the file path, from offset, of length bytes."),
    ("/files/download", Endpoint::Files(Verb::Download), "The whole file path."),
];

static ROUTER: LazyLock<Router<Endpoint>> = LazyLock::new(|| Router::new("master", OWN, SHARED));
static HELP: LazyLock<Help> = LazyLock::new(|| ROUTER.help());

/// The endpoint of a request and the components behind its own.
pub(crate) fn route(request: &Request, firewall: &Firewall) -> Result<(Endpoint, Vec<String>), HttpError> {
    firewall.check(&ROUTER, &request.components)?;
    ROUTER.find(&request.components).ok_or_else(HttpError::not_found)
}

impl Endpoint {
    /// Whether a standby answers by itself instead of pointing to the leader.
    pub fn is_local(self) -> bool {
        match self {
            Endpoint::Metrics(_)
            | Endpoint::LoggingToggle
            | Endpoint::SystemStats
            | Endpoint::Flags
            | Endpoint::Health
            | Endpoint::Help
            | Endpoint::Version
            | Endpoint::Profiler
            | Endpoint::Files(_)
            | Endpoint::Pages => true,
            Endpoint::Scheduler
            | Endpoint::Agent
            | Endpoint::Operator
            | Endpoint::Document(_)
            | Endpoint::Convert(_)
            | Endpoint::Quota
            | Endpoint::Weights
            | Endpoint::MaintenanceSchedule
            | Endpoint::MaintenanceStatus
            | Endpoint::Machine(_)
            | Endpoint::OfferConstraintsDebug
            | Endpoint::Explain(_)
            | Endpoint::Teardown
            | Endpoint::Registry
            | Endpoint::Redirect => false,
        }
    }
}

impl Local {
    /// Answers what needs no leader.
    pub async fn respond(
        &self,
        endpoint: Endpoint,
        rest: Vec<String>,
        request: &Request,
    ) -> Result<Response, HttpError> {
        match endpoint {
            Endpoint::Metrics(form) => Ok(standby_metrics(form.negotiated(&request.headers), &request.query)),
            Endpoint::LoggingToggle => self.logging.toggle(request),
            Endpoint::SystemStats => Ok(json(&request.query, System::now().document())),
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Help => HELP.answer(&rest, request),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
            Endpoint::Profiler => profiler(),
            Endpoint::Files(verb) => {
                let attached = self.attached.clone();
                files::answer(verb, move || attached, request).await
            }
            Endpoint::Pages => pages::page(&rest),
            Endpoint::Scheduler
            | Endpoint::Agent
            | Endpoint::Operator
            | Endpoint::Document(_)
            | Endpoint::Convert(_)
            | Endpoint::Quota
            | Endpoint::Weights
            | Endpoint::MaintenanceSchedule
            | Endpoint::MaintenanceStatus
            | Endpoint::Machine(_)
            | Endpoint::OfferConstraintsDebug
            | Endpoint::Explain(_)
            | Endpoint::Teardown
            | Endpoint::Registry
            | Endpoint::Redirect => Err(HttpError::unavailable("No leader elected")),
        }
    }
}

impl Program {
    pub async fn respond(
        &self,
        endpoint: Endpoint,
        rest: Vec<String>,
        request: Request,
    ) -> Result<Response, HttpError> {
        match endpoint {
            Endpoint::Scheduler => scheduler::call(self, request).await,
            Endpoint::Agent => agents::link(self, request).await,
            Endpoint::Operator => operator::call(self, request).await,
            Endpoint::Document(document) => self.documents.document(document, &request).await,
            Endpoint::Convert(conversion) => convert::convert(self, request, conversion).await,
            Endpoint::Quota => quota::quota(self, request, &rest).await,
            Endpoint::MaintenanceSchedule => maintenance::schedule(self, request).await,
            Endpoint::MaintenanceStatus => maintenance::status(self, &request),
            Endpoint::Machine(way) => maintenance::machine(self, request, way).await,
            Endpoint::Teardown => teardown::teardown(self, request).await,
            Endpoint::Weights => weights::weights(self, request, &rest).await,
            Endpoint::Explain(about) => explain::explain(self, about, &rest, &request).await,
            Endpoint::Metrics(form) => match rest.is_empty() {
                true => self.metrics(Form::Document(form.negotiated(&request.headers)), &request).await,
                false => Err(HttpError::not_found()),
            },
            Endpoint::Redirect => match rest.is_empty() {
                true => Ok(self.redirect()),
                false => Err(HttpError::not_found()),
            },
            Endpoint::Registry => self.documents.registry(&request).await,
            Endpoint::OfferConstraintsDebug => self.documents.excluded(&request).await,
            Endpoint::LoggingToggle
            | Endpoint::SystemStats
            | Endpoint::Flags
            | Endpoint::Health
            | Endpoint::Help
            | Endpoint::Version
            | Endpoint::Profiler
            | Endpoint::Files(_)
            | Endpoint::Pages => self.local.respond(endpoint, rest, &request).await,
        }
    }
}

/// Metrics of a standby.
fn standby_metrics(form: MetricsForm, query: &Query) -> Response {
    let mut metrics = Metrics::default();
    metrics.gauge("master/elected", 0.0);
    match form {
        MetricsForm::Snapshot => json(query, form.write(&metrics)),
        MetricsForm::Text | MetricsForm::OpenMetrics => typed(form.content_type(), form.write(&metrics)),
    }
}
