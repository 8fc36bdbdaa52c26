//! Endpoints of the master: the table, and the dispatch of requests to handlers.
//!
//! A standby redirects to the leader; endpoints of the process itself are answered locally. A master that has led and
//! has no known leader still shows its last state, and rejects changes.

use std::sync::{Arc, LazyLock};

use tepui_authz::Action;
use tepui_core_master::Input;
use tepui_http::{
    Exchange, Handler, HttpError, Metrics, MetricsForm, Request, Response, json, redirect, typed,
};
use tepui_program::Locality::{Cluster, Process};
use tepui_program::Needs::{self, Nothing};
use tepui_program::Realm::{Agents, Open, Readonly, Readwrite, Schedulers};
use tepui_program::files::Attached;
use tepui_program::{ANY, Endpoint, GET, Help, POST, ProcessInfo, Router, Row, ready};

use crate::convert::Conversion;
use crate::document::Document;
use crate::effects::STREAM_ID;
use crate::explain::SubjectKind;
use crate::front::{Front, LeaderState, no_leader};
use crate::maintenance::Machine;
use crate::metrics::Form;
use crate::program::{Kind, Program};
use crate::{agents, convert, explain, maintenance, operator, pages, quota, scheduler, teardown, weights};

/// Where calls of schedulers go.
const CALL_PATHS: [&str; 2] = ["/api/v1/scheduler", "/master/api/v1/scheduler"];

/// With and without `/master`.
#[rustfmt::skip]
const OWN: [Row<Front, Program>; 25] = [
    ("/", ANY, Open, Nothing, Process(|_, _, rest| ready(pages::page(&rest))),
        "Operator web pages."),
    ("/redirect", ANY, Open, Nothing, Process(|front, _, rest| ready(front.redirect(&rest))),
        "Redirects to the leading master."),
    ("/api/v1", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(operator::call(p, r))),
        "Operator API: reads, changes, event stream."),
    ("/api/v1/scheduler", POST, Schedulers, Nothing, Cluster(|p, r, _| Box::pin(scheduler::call(p, r))),
        "Scheduler API."),
    ("/api/v1/agent", POST, Agents, Nothing, Cluster(|p, r, _| Box::pin(agents::link(p, r))),
        "Link between agents and master."),
    ("/state", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::State, r))),
        "Complete state: agents, frameworks, tasks."),
    ("/state-summary", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::Summary, r))),
        "Agents and frameworks with task counts."),
    ("/slaves", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::Agents, r))),
        "Agents; slave_id selects one."),
    ("/frameworks", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::Frameworks, r))),
        "Frameworks with their tasks; framework_id selects one."),
    ("/tasks", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::Tasks, r))),
        "Tasks; select with limit, offset, order=asc, framework_id, task_id; show_reasons=true adds reasons."),
    ("/roles", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.document(Document::Roles, r))),
        "Roles with frameworks, weights, quotas and resources."),
    ("/explain/framework", GET, Readonly, Nothing,
        Cluster(|p, r, rest| Box::pin(explain::explain(p, SubjectKind::Framework, rest, r))),
        "Explains the offers of a framework, given by its ID in the path."),
    ("/explain/role", GET, Readonly, Nothing,
        Cluster(|p, r, rest| Box::pin(explain::explain(p, SubjectKind::Role, rest, r))),
        "Explains the offers of a role, given in the path."),
    ("/teardown", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(teardown::teardown(p, r))),
        "POST frameworkId=ID tears down a framework and kills its tasks."),
    ("/quota", Some("GET, POST, DELETE"), Readwrite, Nothing, Cluster(|p, r, rest| Box::pin(quota::quota(p, r, rest))),
        "GET returns quotas, POST sets one, DELETE /quota/ROLE removes one."),
    ("/weights", ANY, Readwrite, Nothing, Cluster(|p, r, rest| Box::pin(weights::weights(p, r, rest))),
        "GET returns the weights of roles, PUT sets them."),
    ("/weight", ANY, Readwrite, Nothing, Cluster(|p, r, rest| Box::pin(weights::weights(p, r, rest))),
        "Alias of /weights."),
    ("/maintenance/schedule", Some("GET, POST"), Readwrite, Needs::Read(Action::GetMaintenanceSchedule),
        Cluster(|p, r, _| Box::pin(maintenance::schedule(p, r))),
        "GET returns the maintenance schedule, POST replaces it."),
    ("/maintenance/status", GET, Readonly, Needs::Action(Action::GetMaintenanceStatus),
        Cluster(|p, r, _| ready(Ok(maintenance::status(p, &r)))),
        "Draining and down machines."),
    ("/machine/down", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(maintenance::machine(p, r, Machine::Down))),
        "POST starts the maintenance of scheduled machines."),
    ("/machine/up", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(maintenance::machine(p, r, Machine::Up))),
        "POST ends the maintenance of machines."),
    ("/reserve", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(convert::convert(p, r, Conversion::Reserve))),
        "POST reserves resources of an agent for a role."),
    ("/unreserve", POST, Readwrite, Nothing, Cluster(|p, r, _| Box::pin(convert::convert(p, r, Conversion::Unreserve))),
        "POST unreserves resources of an agent."),
    ("/create-volumes", POST, Readwrite, Nothing,
        Cluster(|p, r, _| Box::pin(convert::convert(p, r, Conversion::CreateVolumes))),
        "POST creates persistent volumes from reserved disk."),
    ("/destroy-volumes", POST, Readwrite, Nothing,
        Cluster(|p, r, _| Box::pin(convert::convert(p, r, Conversion::DestroyVolumes))),
        "POST destroys persistent volumes."),
];

/// Only as they stand.
#[rustfmt::skip]
const SHARED: [Row<Front, Program>; 2] = [
    ("/registrar(1)/registry", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.registry(r))),
        "What outlives this master."),
    ("/allocator/offer_constraints_debug", ANY, Readonly, Nothing, Cluster(|p, r, _| Box::pin(p.documents.excluded(r))),
        "Which agents the constraints of frameworks leave out."),
];

static ROUTER: LazyLock<Router<Front, Program>> =
    LazyLock::new(|| Router::new("master", OWN, SHARED, Needs::Action(Action::AccessMesosLog)));
static HELP: LazyLock<Help> = LazyLock::new(|| ROUTER.help());

impl ProcessInfo for Front {
    fn process(&self) -> &tepui_program::Process {
        &self.process
    }

    fn help(&self) -> &Help {
        &HELP
    }

    fn attached(&self, _: &Request) -> impl FnOnce() -> Vec<Attached> + Send + 'static {
        let log = self.process.log.clone();
        move || log.into_iter().collect()
    }

    async fn metrics(&self, form: MetricsForm, request: &Request) -> Result<Response, HttpError> {
        if let LeaderState::Leading(program) = self.leader_state() {
            return program.metrics(Form::Document(form), request).await;
        }
        let mut metrics = Metrics::default();
        metrics.gauge("master/elected", 0.0);
        Ok(match form {
            MetricsForm::Snapshot => json(&request.query, form.write(&metrics)),
            MetricsForm::Text | MetricsForm::OpenMetrics => typed(form.content_type(), form.write(&metrics)),
        })
    }
}

impl Front {
    /// Lets a request in, or rejects it before its body is read.
    async fn admit(
        &self,
        request: &mut Request,
    ) -> Result<(&'static Endpoint<Front, Program>, Vec<String>), HttpError> {
        self.access.firewall.check(&ROUTER, &request.components)?;
        let (endpoint, rest) = ROUTER.find(&request.components)?;
        self.access.admit(endpoint, &self.authorizer, request).await?;
        Ok((endpoint, rest))
    }

    async fn respond(&self, mut request: Request) -> Result<Response, HttpError> {
        let (endpoint, rest) = self.admit(&mut request).await?;
        let handler = match endpoint.locality {
            Process(handler) => return endpoint.call(handler, self, request, rest).await,
            Cluster(handler) => handler,
        };
        match self.leader_state() {
            LeaderState::Leading(program) | LeaderState::Standby { leader: None, last: Some(program) } => {
                endpoint.call(handler, &*program, request, rest).await
            }
            LeaderState::Standby { leader: Some(leader), .. } => Ok(redirect(&location(&leader, &request))),
            LeaderState::Standby { leader: None, last: None } => Err(no_leader()),
        }
    }

    /// The master that leads, if calls of one connection may be handled together: those of a limited rate wait for each other.
    fn batching(&self) -> Option<Arc<Program>> {
        match self.leader_state() {
            LeaderState::Leading(program) if !self.access.throttle.is_on() => Some(program),
            LeaderState::Leading(_) | LeaderState::Standby { .. } => None,
        }
    }

    async fn begin(
        &self,
        program: &Program,
        mut request: Request,
    ) -> Result<(Exchange<Kind>, Input), HttpError> {
        self.admit(&mut request).await?;
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
            witnesses.push(request.witness(&self.process.audit));
            begun.push(self.begin(&program, request).await);
        }
        for (witness, response) in witnesses.iter().zip(scheduler::answer_all(&program, begun).await) {
            witness.conclude(&response);
            responses.push(response);
        }
        responses
    }

    async fn handle(self: Arc<Self>, request: Request) -> Response {
        let witness = request.witness(&self.process.audit);
        let response = self.respond(request).await.unwrap_or_else(Response::from);
        witness.conclude(&response);
        response
    }
}

/// As v1 writes it: without a scheme, and always below `/master` for what is the master's own.
fn location(leader: &str, request: &Request) -> String {
    let prefixed = request.components.first().is_some_and(|first| first == "master");
    let prefix = if prefixed { "" } else { "/master" };
    format!("//{leader}{prefix}{}", request.target)
}
