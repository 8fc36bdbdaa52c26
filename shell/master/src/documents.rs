//! Documents and the large v1 reads: requested here, rendered once for all that share them, never on the machine's thread.

use std::sync::Arc;

use tepui_authz::{Action, Authorizer};
use tepui_core_master::State;
use tepui_http::subject;
use tepui_http::{
    DocumentWriter, Encoding, HttpError, MetricsForm, Renderings, Rendition, Request, Response, UNVERSIONED,
    Viewers, write_json,
};
use tepui_program::document::{is_compressed, respond, tagged};
use tepui_program::{Process, allowed};
use tokio::sync::watch;

use crate::document::{self, Document, DocumentInfo, Selection};
use crate::metrics::{self, Form, Queues, Sensors};
use crate::read::{self, Part};

pub(crate) struct Documents {
    pub states: watch::Receiver<Arc<State>>,
    pub process: Process,
    /// The cluster's name.
    pub cluster: Option<String>,
    pub renderings: Renderings<Key>,
    pub authorizer: Authorizer,
}

/// What readers share: a whole answer, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    answer: Answer,
    gzip: bool,
    viewers: Viewers,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Document(Document, Selection),
    Part(Part, Encoding),
    Metrics(Form),
    OfferConstraints,
    Registry,
}

impl Documents {
    /// 403 unless the sender of the request is authorized.
    pub fn allowed(&self, request: &Request, action: Action, object: Option<&str>) -> Result<(), HttpError> {
        allowed(&self.authorizer, request, action, object)
    }

    /// The newest state as the sender of the request may view it.
    pub fn visible_to(&self, request: &Request) -> State {
        self.state().visible_to(&self.authorizer, request.subject())
    }

    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// A classic document.
    pub async fn document(&self, document: Document, request: Request) -> Result<Response, HttpError> {
        let selection = Selection::from_query(document, &request.query);
        let server = self.process.info_for(&self.authorizer, &request);
        let (info, page) = (DocumentInfo { cluster: self.cluster.clone(), server }, selection.page);
        let draw = move |state: &State, writer: DocumentWriter| document.render(state, &info, page, writer);
        self.tagged(Answer::Document(document, selection.clone()), selection, &request, draw).await
    }

    /// A part of the state as a v1 answer.
    pub async fn part(
        &self,
        part: Part,
        encoding: Encoding,
        request: &Request,
    ) -> Result<Response, HttpError> {
        let draw = move |state: &State, writer: DocumentWriter| match encoding {
            Encoding::Json => read::write(part, state, writer),
            Encoding::Protobuf => read::encode(part, state, writer),
        };
        let (answer, arrived) = (Answer::Part(part, encoding), self.state().version);
        let rendition = self.rendition(answer, arrived, Selection::default(), request, draw);
        rendition.response(encoding.name()).await
    }

    /// `/allocator/offer_constraints_debug`: why frameworks are not offered agents.
    pub async fn excluded(&self, request: Request) -> Result<Response, HttpError> {
        let draw =
            move |state: &State, writer: DocumentWriter| write_json(writer, |w| document::excluded(w, state));
        self.tagged(Answer::OfferConstraints, Selection::default(), &request, draw).await
    }

    /// `/registrar(1)/registry`: what outlives this master.
    pub async fn registry(&self, request: Request) -> Result<Response, HttpError> {
        let draw =
            move |state: &State, writer: DocumentWriter| write_json(writer, |w| document::registry(w, state));
        self.tagged(Answer::Registry, Selection::default(), &request, draw).await
    }

    /// Metrics of the newest state, and of the moment of their rendering.
    pub async fn metrics(
        &self,
        form: Form,
        sensors: Sensors,
        queues: Queues,
        request: &Request,
    ) -> Result<Response, HttpError> {
        let queues = Queues { shared_renditions: self.renderings.hits(), ..queues };
        let draw = move |state: &State, writer: DocumentWriter| {
            form.draw(&metrics::collect(state, &sensors, queues), writer);
        };
        let all = Selection::default();
        let rendition = self.rendition(Answer::Metrics(form), UNVERSIONED, all, request, draw);
        match form {
            Form::Document(MetricsForm::Snapshot) => respond(&rendition, form.content_type(), request).await,
            Form::Document(_) | Form::List(_) => rendition.response(form.content_type()).await,
        }
    }

    /// A JSON document with the tag of its version; 304 if the sender of the request has that version.
    async fn tagged(
        &self,
        answer: Answer,
        selection: Selection,
        request: &Request,
        draw: impl FnOnce(&State, DocumentWriter) + Send + 'static,
    ) -> Result<Response, HttpError> {
        let arrived = self.state();
        let render = || self.rendition(answer, arrived.version, selection, request, draw);
        tagged(request, arrived.started_at.0, arrived.version, render).await
    }

    /// The newest state, as the sender of the request may see it, as `draw` draws it.
    fn rendition(
        &self,
        answer: Answer,
        arrived: u64,
        selection: Selection,
        request: &Request,
        draw: impl FnOnce(&State, DocumentWriter) + Send + 'static,
    ) -> Arc<Rendition> {
        let gzip = is_compressed(request);
        let (authorizer, reader) = (self.authorizer.clone(), request.principal.clone());
        let key = Key { answer, gzip, viewers: Viewers::new(authorizer.is_set(), reader.clone()) };
        let states = self.states.clone();
        self.renderings.get(key, arrived, gzip, move |writer| {
            let state = states.borrow().clone();
            if arrived != UNVERSIONED {
                writer.set_version(state.version);
            }
            draw(&selection.of(&state).visible_to(&authorizer, subject(reader.as_ref())), writer);
        })
    }
}
