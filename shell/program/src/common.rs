//! Endpoints that every program has: about its process, its log and its machine.

use http::StatusCode;
use tepui_authz::Action;
use tepui_http::{HttpError, MetricsForm, Request, Response, empty, json};

use crate::endpoint::{ANY, Answering, Locality::Process as Everywhere, Needs, Realm, Row};
use crate::files::{self, Attached, Verb};
use crate::help::Help;
use crate::system::System;
use crate::{Process, classic};

/// What these endpoints are answered from.
pub trait ProcessInfo: Send + Sync + 'static {
    fn process(&self) -> &Process;
    fn help(&self) -> &Help;
    /// The files that the sender of the request may read, listed where that may take its time.
    fn attached(&self, request: &Request) -> impl FnOnce() -> Vec<Attached> + Send + 'static;
    fn metrics(
        &self,
        form: MetricsForm,
        request: &Request,
    ) -> impl Future<Output = Result<Response, HttpError>> + Send;
}

/// With and without the program's prefix.
#[rustfmt::skip]
pub(crate) fn own<P: ProcessInfo, C>() -> [Row<P, C>; 2] {
    [
        ("/flags", ANY, Realm::Readonly, Needs::Action(Action::ViewFlags),
            Everywhere(|p, r, _| ready(Ok(json(&r.query, classic::flags(&p.process().info.flags))))),
            "Flags of this program."),
        ("/health", ANY, Realm::Open, Needs::Nothing, Everywhere(|_, _, _| ready(Ok(empty(StatusCode::OK)))),
            "200 if this program is healthy."),
    ]
}

/// Without the prefix only. `logs` is the action for the content of files.
#[rustfmt::skip]
pub(crate) fn shared<P: ProcessInfo, C>(logs: Needs) -> [Row<P, C>; 12] {
    [
        ("/version", ANY, Realm::Open, Needs::Nothing,
            Everywhere(|_, r, _| ready(Ok(json(&r.query, classic::version())))),
            "Version and build information."),
        ("/help", ANY, Realm::Open, Needs::Nothing, Everywhere(|p, r, rest| ready(p.help().answer(&rest, &r))),
            "List of endpoints; format=json for a complete list."),
        ("/system/stats.json", ANY, Realm::Open, Needs::Nothing,
            Everywhere(|_, r, _| ready(Ok(json(&r.query, System::now().document())))),
            "Load and memory of this machine."),
        ("/metrics", ANY, Realm::Readonly, Needs::Path("/metrics/snapshot"),
            Everywhere(|p, r, rest| Box::pin(metrics(p, MetricsForm::Text, r, rest))),
            "All metrics as Prometheus text."),
        ("/metrics/snapshot", ANY, Realm::Readonly, Needs::Path("/metrics/snapshot"),
            Everywhere(|p, r, rest| Box::pin(metrics(p, MetricsForm::Snapshot, r, rest))),
            "All metrics with v1 names, as JSON."),
        ("/logging/toggle", ANY, Realm::Readwrite, Needs::Path("/logging/toggle"),
            Everywhere(|p, r, _| ready(p.process().logging.toggle(&r))),
            "Sets the logging level for a duration."),
        ("/profiler/start", ANY, Realm::Readwrite, Needs::Nothing, Everywhere(|_, _, _| ready(profiler())),
            "Not supported: rejected with 400."),
        ("/profiler/stop", ANY, Realm::Readwrite, Needs::Nothing, Everywhere(|_, _, _| ready(profiler())),
            "Not supported: rejected with 400."),
        ("/files/debug", ANY, Realm::Readonly, Needs::Path("/files/debug"),
            Everywhere(|p, r, _| Box::pin(read_files(p, Verb::Debug, r))),
            "Which paths are shown under which names."),
        ("/files/browse", ANY, Realm::Readonly, logs, Everywhere(|p, r, _| Box::pin(read_files(p, Verb::Browse, r))),
            "Lists the directory `path`."),
        ("/files/read", ANY, Realm::Readonly, logs, Everywhere(|p, r, _| Box::pin(read_files(p, Verb::Read, r))),
            "A piece of the file path, from offset, of length bytes."),
        ("/files/download", ANY, Realm::Readonly, logs,
            Everywhere(|p, r, _| Box::pin(read_files(p, Verb::Download, r))),
            "The whole file path."),
    ]
}

/// An answer that is at hand.
pub fn ready(answer: Result<Response, HttpError>) -> Answering<'static> {
    Box::pin(std::future::ready(answer))
}

async fn metrics<P: ProcessInfo>(
    program: &P,
    form: MetricsForm,
    request: Request,
    rest: Vec<String>,
) -> Result<Response, HttpError> {
    match rest.is_empty() {
        true => program.metrics(form.negotiated(&request.headers), &request).await,
        false => Err(HttpError::not_found()),
    }
}

async fn read_files<P: ProcessInfo>(
    program: &P,
    verb: Verb,
    request: Request,
) -> Result<Response, HttpError> {
    files::answer(verb, program.attached(&request), &request).await
}

/// There is none; the words are those of a v1 that was built without its profiler.
fn profiler() -> Result<Response, HttpError> {
    Err(HttpError::bad_request(
        "Perftools is disabled. To enable perftools, configure libprocess with --enable-perftools.\n",
    ))
}
