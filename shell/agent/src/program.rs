//! The agent as request handlers use it: the mailbox of its state machine, open exchanges, snapshots, renderings.
//!
//! Absent: endpoints and their handlers (`routes`).

use std::sync::Arc;
use std::time::Duration;

use tepui_authz::{Action, Subject};
use tepui_container::Containerizer;
use tepui_core_agent::{Input, Look, State};
use tepui_http::subject;
use tepui_http::{
    DocumentWriter, Encoding, Exchanges, HttpError, MetricsForm, Renderings, Rendition, Request, Response,
    Viewers, accepts_gzip, check_timeout, json, write_json,
};
use tepui_program::document::{is_compressed, tagged};
use tepui_program::{Process, files};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_runtime::{Closed, Commits, Handle};
use tokio::sync::watch;

use crate::access::Access;
use crate::image_gc::ImageGc;
use crate::read::{self, Sources};
use crate::statistics::{self, Measuring, View};
use crate::{attached, document, metrics};

/// The API that an exchange belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Executor,
    Operator,
}

/// State shared by request handlers.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub process: Process,
    /// As in libprocess: `slave(1)@address`.
    pub pid: Arc<str>,
    pub states: watch::Receiver<Arc<State>>,
    pub commits: Arc<Commits>,
    /// The masters of `--master`.
    pub masters: Vec<String>,
    pub containerizer: Containerizer,
    pub measuring: Measuring,
    /// Of `/state`: compressed or not, and its readers.
    pub renderings: Renderings<(bool, Viewers)>,
    pub access: Access,
    pub image_gc: Option<ImageGc>,
    pub docker_volumes: tepui_container::DockerVolumeOptions,
    /// Heartbeat interval of attached container streams.
    pub http_heartbeat_interval: Duration,
}

impl Program {
    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// The part of the state that the sender of the request may view.
    pub fn visible_to(&self, request: &Request, look: Look) -> Arc<State> {
        self.state().visible_to(&self.access.authorizer, request.subject(), look)
    }

    /// The files that the sender of the request may read.
    pub fn attached_for(&self, request: &Request) -> impl FnOnce() -> Vec<files::Attached> + Send + 'static {
        let state = self.visible_to(request, Look::Sandboxes);
        let log_seen = self.access.authorizer.allows(request.subject(), Action::AccessMesosLog, None);
        let log = self.process.log.clone().filter(|_| log_seen);
        move || attached::all(&state, log)
    }

    /// The state; rendered once for all readers.
    pub async fn state_document(&self, request: Request) -> Result<Response, HttpError> {
        let arrived = self.state();
        tagged(&request, arrived.started_at.0, arrived.version, || self.state_rendition(&request, &arrived))
            .await
    }

    fn state_rendition(&self, request: &Request, arrived: &State) -> Arc<Rendition> {
        let gzip = is_compressed(request);
        let (states, pid) = (self.states.clone(), self.pid.clone());
        let (authorizer, reader) = (self.access.authorizer.clone(), request.principal.clone());
        let info = self.process.info_for(&authorizer, request);
        let is_limited = authorizer.is_set() || request.subject() == Subject::Claims;
        let viewers = Viewers::new(is_limited, reader.clone());
        self.renderings.get((gzip, viewers), arrived.version, gzip, move |writer: DocumentWriter| {
            let state = states.borrow().clone();
            writer.set_version(state.version);
            let seen = state.visible_to(&authorizer, subject(reader.as_ref()), Look::Everything);
            write_json(writer, |w| document::state(w, &seen, &info, &pid));
        })
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
            state: self.visible_to(request, look),
            info: self.process.info_for(&self.access.authorizer, request),
            logging_level: self.process.logging.level(),
            measuring: self.measuring.clone(),
            counts: self.containerizer.counts(),
        };
        let draw = move |mut writer: DocumentWriter| {
            writer.write(read::encoded(&sources, &call, encoding).to_vec());
            writer.finish();
        };
        self.alone(encoding.name(), accepts_gzip(&request.headers), draw).await
    }

    /// `/containers` and `/monitor/statistics`.
    pub async fn usage(&self, view: View, request: Request) -> Result<Response, HttpError> {
        let state = self.visible_to(&request, Look::Containers);
        statistics::answer(view, self.measuring.clone(), state, &request).await
    }

    pub fn volume_drivers(&self) -> Vec<u8> {
        let mut w = JsonWriter::new();
        w.object(|w| w.field("drivers", &self.docker_volumes.drivers()));
        w.into_vec()
    }

    pub async fn metrics_document(
        &self,
        form: MetricsForm,
        request: &Request,
    ) -> Result<Response, HttpError> {
        check_timeout(&request.query)?;
        let metrics = metrics::collect(&self.state(), &self.containerizer.counts(), self.commits.room());
        match form {
            MetricsForm::Snapshot => Ok(json(&request.query, form.write(&metrics))),
            MetricsForm::Text | MetricsForm::OpenMetrics => {
                let draw = move |writer: DocumentWriter| form.draw(&metrics, writer);
                self.alone(form.content_type(), accepts_gzip(&request.headers), draw).await
            }
        }
    }

    /// An answer for one reader.
    async fn alone(
        &self,
        content_type: &'static str,
        gzip: bool,
        draw: impl FnOnce(DocumentWriter) + Send + 'static,
    ) -> Result<Response, HttpError> {
        self.renderings.alone(gzip, draw).response(content_type).await
    }
}

/// The state machine has stopped.
pub(crate) fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This agent is stopping")
}
