//! Which endpoint a request is for. The tables are the list of everything the master answers.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use tepui_core_master::{Input, State};
use tepui_http::files::{self, Attached, Verb};
use tepui_http::{
    Exchanges, Handler, HttpError, Logging, MetricsForm, Request, Response, Router, System, check_timeout,
    classic, empty, json, redirect,
};
use tepui_runtime::{Closed, Handle};

use crate::convert::Conversion;
use crate::document::Document;
use crate::documents::Documents;
use crate::maintenance::Machine;
use crate::metrics::{Form, Queues, Sensors};
use crate::{agents, convert, maintenance, operator, pages, quota, scheduler, teardown, weights};

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
    Convert(Conversion),
    Quota,
    MaintenanceSchedule,
    MaintenanceStatus,
    Machine(Machine),
    Teardown,
    Weights,
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

/// What the handlers of requests share.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub documents: Documents,
    pub flags: Vec<(String, String)>,
    pub logging: Logging,
    pub sensors: Sensors,
    /// The files that operators may read.
    pub attached: Vec<Attached>,
}

impl Program {
    pub fn state(&self) -> Arc<State> {
        self.documents.state()
    }

    async fn respond(&self, request: Request) -> Result<Response, HttpError> {
        let (endpoint, rest) = ROUTER.find(&request.components).ok_or_else(HttpError::not_found)?;
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
            Endpoint::Metrics(form) => match rest.is_empty() {
                true => self.metrics(Form::Document(form), &request).await,
                false => Err(HttpError::not_found()),
            },
            Endpoint::LoggingToggle => self.logging.toggle(&request),
            Endpoint::SystemStats => Ok(json(&request.query, System::now().document())),
            Endpoint::Flags => Ok(json(&request.query, classic::flags(&self.flags))),
            Endpoint::Health => Ok(empty(StatusCode::OK)),
            Endpoint::Version => Ok(json(&request.query, classic::version())),
            Endpoint::Redirect => match rest.is_empty() {
                true => Ok(self.redirect()),
                false => Err(HttpError::not_found()),
            },
            Endpoint::Files(verb) => {
                let attached = self.attached.clone();
                files::answer(verb, move || attached, &request).await
            }
            Endpoint::OfferConstraintsDebug => self.documents.excluded(&request).await,
            Endpoint::Pages => pages::page(&rest),
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

impl Handler for Program {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        self.respond(request).await.unwrap_or_else(Response::from)
    }
}

/// The machine is ending.
pub(crate) fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This master is stopping")
}
