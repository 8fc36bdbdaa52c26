//! Which endpoint a request is for. The tables are the list of everything the master answers.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use tepui_core_master::{Input, State};
use tepui_http::files::{self, Attached, Verb};
use tepui_http::{
    Audit, Exchanges, Firewall, Help, HttpError, Logging, Metrics, MetricsForm, Query, Request, Response,
    RouteRow, Router, System, check_timeout, classic, empty, json, profiler, redirect, typed,
};
use tepui_runtime::{Closed, Handle};
use tepui_store::etcd::Leadership;

use crate::convert::Conversion;
use crate::document::Document;
use crate::documents::Documents;
use crate::explain::About;
use crate::maintenance::Machine;
use crate::metrics::{Form, Queues, Sensors};
use crate::{agents, convert, explain, maintenance, operator, pages, quota, scheduler, teardown, weights};

/// What an exchange with the machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Scheduler,
    Agent,
    Operator,
}

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
    Explain(About),
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
    ("/api/v1", Endpoint::Operator, "Calls of operators: reads, changes, the event stream."),
    (
        "/api/v1/scheduler",
        Endpoint::Scheduler,
        "Calls of schedulers, and the event stream that SUBSCRIBE opens.",
    ),
    ("/api/v1/agent", Endpoint::Agent, "The link between this master and its agents."),
    ("/state", Endpoint::Document(Document::State), "Everything about agents, frameworks and tasks."),
    (
        "/state-summary",
        Endpoint::Document(Document::Summary),
        "Agents and frameworks, with tasks counted instead of listed.",
    ),
    ("/slaves", Endpoint::Document(Document::Agents), "Agents; slave_id chooses one."),
    (
        "/frameworks",
        Endpoint::Document(Document::Frameworks),
        "Frameworks with their tasks; framework_id chooses one.",
    ),
    (
        "/tasks",
        Endpoint::Document(Document::Tasks),
        "Tasks; limit, offset, order=asc, framework_id and task_id choose some; show_reasons=true says why.",
    ),
    (
        "/roles",
        Endpoint::Document(Document::Roles),
        "Roles: their frameworks, weights, quotas and resources.",
    ),
    ("/teardown", Endpoint::Teardown, "POST frameworkId=ID ends a framework with all of its tasks."),
    (
        "/explain/framework",
        Endpoint::Explain(About::Framework),
        "Why the framework that is named behind it is offered what it is.",
    ),
    (
        "/explain/role",
        Endpoint::Explain(About::Role),
        "Why the role that is named behind it is offered what it is.",
    ),
    ("/quota", Endpoint::Quota, "GET shows quotas, POST sets one, DELETE of a role below it takes one away."),
    ("/weights", Endpoint::Weights, "GET shows the weights of roles, PUT sets them."),
    ("/weight", Endpoint::Weights, "The same as /weights."),
    (
        "/maintenance/schedule",
        Endpoint::MaintenanceSchedule,
        "GET shows the maintenance schedule, POST replaces it.",
    ),
    ("/maintenance/status", Endpoint::MaintenanceStatus, "Machines that drain or are down."),
    ("/machine/down", Endpoint::Machine(Machine::Down), "POST takes machines of the schedule out of use."),
    ("/machine/up", Endpoint::Machine(Machine::Up), "POST brings machines back."),
    ("/reserve", Endpoint::Convert(Conversion::Reserve), "POST reserves resources of an agent for a role."),
    ("/unreserve", Endpoint::Convert(Conversion::Unreserve), "POST gives reserved resources back."),
    (
        "/create-volumes",
        Endpoint::Convert(Conversion::CreateVolumes),
        "POST makes persistent volumes of reserved disk.",
    ),
    ("/destroy-volumes", Endpoint::Convert(Conversion::DestroyVolumes), "POST ends persistent volumes."),
    ("/flags", Endpoint::Flags, "With which flags this program was started."),
    ("/health", Endpoint::Health, "200 while this program answers."),
    ("/redirect", Endpoint::Redirect, "To the leading master."),
    ("/", Endpoint::Pages, "The operator pages."),
];

/// Only as they stand.
const SHARED: &[RouteRow<Endpoint>] = &[
    ("/version", Endpoint::Version, "What was built, and when."),
    ("/metrics", Endpoint::Metrics(MetricsForm::Text), "All metrics as Prometheus text."),
    (
        "/metrics/snapshot",
        Endpoint::Metrics(MetricsForm::Snapshot),
        "All metrics by the names of v1, as JSON.",
    ),
    ("/logging/toggle", Endpoint::LoggingToggle, "level and duration raise what is logged for a while."),
    ("/profiler/start", Endpoint::Profiler, "There is no profiler; refused."),
    ("/profiler/stop", Endpoint::Profiler, "There is no profiler; refused."),
    ("/help", Endpoint::Help, "What this program answers; format=json for all of it."),
    ("/system/stats.json", Endpoint::SystemStats, "Load and memory of this machine."),
    ("/registrar(1)/registry", Endpoint::Registry, "What outlives this master."),
    (
        "/allocator/offer_constraints_debug",
        Endpoint::OfferConstraintsDebug,
        "Which agents the constraints of frameworks leave out.",
    ),
    ("/files/debug", Endpoint::Files(Verb::Debug), "Which paths are shown under which names."),
    ("/files/browse", Endpoint::Files(Verb::Browse), "What is in the directory path."),
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

/// What is about this process and not about the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub flags: Vec<(String, String)>,
    pub logging: Logging,
    pub audit: Audit,
    /// The files that operators may read.
    pub attached: Vec<Attached>,
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
            Endpoint::Metrics(form) => Ok(standby_metrics(form.asked_for(&request.headers), &request.query)),
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

/// What the handlers of requests share while this master leads.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub documents: Documents,
    pub local: Local,
    pub sensors: Sensors,
    /// None if nobody else could lead.
    pub leadership: Option<Leadership>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

impl Program {
    pub fn state(&self) -> Arc<State> {
        self.documents.state()
    }

    /// Tells the machine something, unless another master may lead by now.
    pub async fn tell(&self, input: Input) -> Result<(), HttpError> {
        if !self.leadership.as_ref().is_none_or(Leadership::holds) {
            return Err(HttpError::unavailable("This master cannot reach the registry or leads no longer"));
        }
        self.handle.send(input).await.map_err(stopping)
    }

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
                true => self.metrics(Form::Document(form.asked_for(&request.headers)), &request).await,
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

    pub async fn metrics(&self, form: Form, request: &Request) -> Result<Response, HttpError> {
        check_timeout(&request.query)?;
        let queues = Queues {
            inputs: self.handle.waiting(),
            requests: self.exchanges.waiting(),
            operators: self.exchanges.streams(Kind::Operator),
            shared_renditions: 0,
        };
        self.documents.metrics(form, self.sensors.clone(), queues, request).await
    }

    /// To the leading master, which is this one.
    fn redirect(&self) -> Response {
        let state = self.state();
        let info = &state.master_info;
        redirect(&format!("//{}:{}", info.hostname.as_deref().unwrap_or("localhost"), info.port))
    }
}

/// What a standby has to say of itself.
fn standby_metrics(form: MetricsForm, query: &Query) -> Response {
    let mut metrics = Metrics::default();
    metrics.gauge("master/elected", 0.0);
    match form {
        MetricsForm::Snapshot => json(query, form.write(&metrics)),
        MetricsForm::Text | MetricsForm::OpenMetrics => typed(form.content_type(), form.write(&metrics)),
    }
}

/// The machine is ending.
fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This master is stopping")
}
