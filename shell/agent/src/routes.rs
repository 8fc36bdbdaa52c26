//! Which endpoint a request is for. The tables are the list of everything the agent answers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::StatusCode;
use tepui_authz::{Action, Subject};
use tepui_container::Containerizer;
use tepui_core_agent::{Input, Phase, State};
use tepui_http::auth::subject;
use tepui_http::files::{self, Verb};
use tepui_http::{
    Audit, Encoding, EntityTag, Exchanges, Handler, Help, HttpError, Logging, MetricsForm, Pen, Principal,
    Renderings, Request, Response, RouteRow, Router, System, accepts_gzip, check_timeout, classic, empty,
    json, profiler, write_json,
};
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_runtime::{Closed, Commits, Handle};
use tokio::sync::watch;

use crate::access::Access;
use crate::document::About;
use crate::image_gc::ImageGc;
use crate::read::{self, Sources};
use crate::statistics::{self, Measuring, View};
use crate::visible::{Look, visible};
use crate::{attached, document, executor, metrics, operator, origin};

/// What an exchange with the machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Executor,
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Executor,
    Operator,
    State,
    Usage(View),
    Metrics(MetricsForm),
    LoggingToggle,
    SystemStats,
    Flags,
    Health,
    Help,
    Version,
    Profiler,
    Files(Verb),
    ContainerizerDebug,
}

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
    ("/flags", Endpoint::Flags, "With which flags this program was started."),
    ("/health", Endpoint::Health, "200 while this program answers."),
];

/// Only as they stand.
const SHARED: &[RouteRow<Endpoint>] = &[
    ("/version", Endpoint::Version, "What was built, and when."),
    ("/containerizer/debug", Endpoint::ContainerizerDebug, "What containers wait for."),
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
    ("/files/browse", Endpoint::Files(Verb::Browse), "What is in the directory path."),
    ("/files/read", Endpoint::Files(Verb::Read), "A piece of the file path, from offset, of length bytes."),
    ("/files/download", Endpoint::Files(Verb::Download), "The whole file path."),
    ("/files/debug", Endpoint::Files(Verb::Debug), "Which paths are shown under which names."),
];

static ROUTER: LazyLock<Router<Endpoint>> = LazyLock::new(|| Router::new("slave(1)", OWN, SHARED));
static HELP: LazyLock<Help> = LazyLock::new(|| ROUTER.help());

/// What the handlers of requests share.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub about: Arc<About>,
    pub states: watch::Receiver<Arc<State>>,
    pub commits: Arc<Commits>,
    /// The masters of `--master`.
    pub masters: Vec<String>,
    pub logging: Logging,
    pub containerizer: Containerizer,
    pub measuring: Measuring,
    /// Of `/state`, compressed or not, as each sees it.
    pub renderings: Renderings<(bool, Option<Option<Principal>>)>,
    pub access: Access,
    pub audit: Audit,
    pub image_gc: Option<ImageGc>,
    /// How often who listens to a container hears that it is still connected.
    pub http_heartbeat_interval: Duration,
}

impl Program {
    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// The state as who sent the request may see it.
    pub fn seen_by(&self, request: &Request, look: Look) -> Arc<State> {
        visible(&self.state(), &self.access.authorizer, request.subject(), look)
    }

    /// What documents say besides the state, as who sent the request may see it.
    fn about_for(&self, request: &Request) -> Arc<About> {
        match self.access.authorizer.allows(request.subject(), Action::ViewFlags, None) {
            true => self.about.clone(),
            false => Arc::new(About {
                flags: Vec::new(),
                pid: self.about.pid.clone(),
                external_log_file: self.about.external_log_file.clone(),
                own_log_file: self.about.own_log_file.clone(),
            }),
        }
    }

    /// The files that who sent the request may read.
    pub fn attached_for(&self, request: &Request) -> impl FnOnce() -> Vec<files::Attached> + Send + 'static {
        let state = self.seen_by(request, Look::Sandboxes);
        let log_seen = self.access.authorizer.allows(request.subject(), Action::AccessMesosLog, None);
        let log = self.about.log_file().filter(|_| log_seen);
        move || attached::all(&state, log.as_deref())
    }

    /// The state, once it is known; rendered once for all who ask.
    async fn state_document(&self, request: &Request) -> Result<Response, HttpError> {
        let arrived = self.state();
        if arrived.phase == Phase::Recovering {
            return Err(HttpError::unavailable("Agent has not finished recovery"));
        }
        let tag = |version| EntityTag::new(arrived.started_at.0, version);
        if tag(arrived.version).is_known(&request.headers) {
            return Ok(tag(arrived.version).not_modified());
        }
        let is_script = request.query.get("jsonp").is_some();
        let gzip = accepts_gzip(&request.headers) && !is_script;
        let (states, about) = (self.states.clone(), self.about_for(request));
        let (authorizer, reader) = (self.access.authorizer.clone(), request.principal.clone());
        let is_limited = authorizer.is_set() || request.subject() == Subject::Claims;
        let viewer = is_limited.then(|| reader.clone());
        let rendition = self.renderings.get((gzip, viewer), arrived.version, gzip, move |pen: Pen| {
            let state = states.borrow().clone();
            pen.set_version(state.version);
            let seen = visible(&state, &authorizer, subject(reader.as_ref()), Look::Everything);
            write_json(pen, |w| document::state(w, &seen, &about));
        });
        let response = match is_script {
            true => json(&request.query, rendition.whole().await?),
            false => rendition.clone().response("application/json").await?,
        };
        Ok(tag(rendition.version()).on(response))
    }

    /// A v1 read, answered where it may take its time.
    pub async fn read(
        &self,
        call: Call,
        encoding: Encoding,
        request: &Request,
    ) -> Result<Response, HttpError> {
        let look = match call.r#type {
            Some(Type::GET_CONTAINERS) => Look::Containers,
            _ => Look::Everything,
        };
        let sources = Sources {
            room: self.commits.room(),
            state: self.seen_by(request, look),
            about: self.about_for(request),
            logging_level: self.logging.level(),
            measuring: self.measuring.clone(),
            counts: self.containerizer.counts(),
        };
        let draw = move |mut pen: Pen| {
            pen.write(read::encoded(&sources, &call, encoding).to_vec());
            pen.finish();
        };
        self.alone(encoding.name(), accepts_gzip(&request.headers), draw).await
    }

    async fn metrics(&self, form: MetricsForm, request: &Request) -> Result<Response, HttpError> {
        check_timeout(&request.query)?;
        let metrics = metrics::collect(&self.state(), &self.containerizer.counts(), self.commits.room());
        match form {
            MetricsForm::Snapshot => Ok(json(&request.query, form.write(&metrics))),
            MetricsForm::Text | MetricsForm::OpenMetrics => {
                let draw = move |pen: Pen| form.draw(&metrics, pen);
                self.alone(form.content_type(), accepts_gzip(&request.headers), draw).await
            }
        }
    }

    /// An answer for one reader.
    async fn alone(
        &self,
        content_type: &'static str,
        gzip: bool,
        draw: impl FnOnce(Pen) + Send + 'static,
    ) -> Result<Response, HttpError> {
        self.renderings.alone(gzip, draw).response(content_type).await
    }

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
                true => self.metrics(form.asked_for(&request.headers), &request).await,
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

/// The machine is ending.
pub(crate) fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This agent is stopping")
}
