//! Which endpoint a request is for. The tables are the list of everything the master answers.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use tepui_core_master::{Input, State};
use tepui_http::files::{self, Attached, Verb};
use tepui_http::{
    Exchanges, HttpError, Logging, Metrics, MetricsForm, Query, Request, Response, Router, System,
    check_timeout, classic, empty, json, redirect, typed,
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
    Version,
    Redirect,
    Files(Verb),
    OfferConstraintsDebug,
    Pages,
}

/// With and without `/master`.
const OWN: &[(&str, Endpoint)] = &[
    ("/api/v1", Endpoint::Operator),
    ("/api/v1/scheduler", Endpoint::Scheduler),
    ("/api/v1/agent", Endpoint::Agent),
    ("/state", Endpoint::Document(Document::State)),
    ("/state-summary", Endpoint::Document(Document::Summary)),
    ("/slaves", Endpoint::Document(Document::Agents)),
    ("/frameworks", Endpoint::Document(Document::Frameworks)),
    ("/tasks", Endpoint::Document(Document::Tasks)),
    ("/roles", Endpoint::Document(Document::Roles)),
    ("/teardown", Endpoint::Teardown),
    ("/explain/framework", Endpoint::Explain(About::Framework)),
    ("/explain/role", Endpoint::Explain(About::Role)),
    ("/quota", Endpoint::Quota),
    ("/weights", Endpoint::Weights),
    ("/weight", Endpoint::Weights),
    ("/maintenance/schedule", Endpoint::MaintenanceSchedule),
    ("/maintenance/status", Endpoint::MaintenanceStatus),
    ("/machine/down", Endpoint::Machine(Machine::Down)),
    ("/machine/up", Endpoint::Machine(Machine::Up)),
    ("/reserve", Endpoint::Convert(Conversion::Reserve)),
    ("/unreserve", Endpoint::Convert(Conversion::Unreserve)),
    ("/create-volumes", Endpoint::Convert(Conversion::CreateVolumes)),
    ("/destroy-volumes", Endpoint::Convert(Conversion::DestroyVolumes)),
    ("/flags", Endpoint::Flags),
    ("/health", Endpoint::Health),
    ("/redirect", Endpoint::Redirect),
    ("/", Endpoint::Pages),
];

/// Only as they stand.
const SHARED: &[(&str, Endpoint)] = &[
    ("/version", Endpoint::Version),
    ("/metrics", Endpoint::Metrics(MetricsForm::Text)),
    ("/metrics/snapshot", Endpoint::Metrics(MetricsForm::Snapshot)),
    ("/logging/toggle", Endpoint::LoggingToggle),
    ("/system/stats.json", Endpoint::SystemStats),
    ("/allocator/offer_constraints_debug", Endpoint::OfferConstraintsDebug),
    ("/files/debug", Endpoint::Files(Verb::Debug)),
    ("/files/browse", Endpoint::Files(Verb::Browse)),
    ("/files/read", Endpoint::Files(Verb::Read)),
    ("/files/download", Endpoint::Files(Verb::Download)),
];

static ROUTER: LazyLock<Router<Endpoint>> = LazyLock::new(|| Router::new("master", OWN, SHARED));

/// The endpoint of a request and the components behind its own.
pub(crate) fn route(request: &Request) -> Option<(Endpoint, Vec<String>)> {
    ROUTER.find(&request.components)
}

/// What is about this process and not about the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub flags: Vec<(String, String)>,
    pub logging: Logging,
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
            | Endpoint::Version
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
            Endpoint::Metrics(form) => Ok(standby_metrics(form, &request.query)),
            Endpoint::LoggingToggle => self.logging.toggle(request),
            Endpoint::SystemStats => Ok(json(&request.query, System::now().document())),
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
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
                true => self.metrics(Form::Document(form), &request).await,
                false => Err(HttpError::not_found()),
            },
            Endpoint::Redirect => match rest.is_empty() {
                true => Ok(self.redirect()),
                false => Err(HttpError::not_found()),
            },
            Endpoint::OfferConstraintsDebug => self.documents.excluded(&request).await,
            Endpoint::LoggingToggle
            | Endpoint::SystemStats
            | Endpoint::Flags
            | Endpoint::Health
            | Endpoint::Version
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
        MetricsForm::Text => typed(form.content_type(), form.write(&metrics)),
    }
}

/// The machine is ending.
fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This master is stopping")
}
