//! Documents and the large v1 reads: asked for here, rendered once for all who ask, never on the machine's thread.
//!
//! An answer that depends on a query is computed for its reader alone, and without the rest.

use std::sync::Arc;

use tepui_authz::{Action, Authorizer};
use tepui_core_master::State;
use tepui_http::auth::subject;
use tepui_http::{
    Encoding, EntityTag, HttpError, MetricsForm, Order, Pen, Principal, Renderings, Rendition, Request,
    Response, accepts_gzip, json, write_json,
};
use tokio::sync::watch;

use crate::document::{self, About, Document, Page, Selection};
use crate::metrics::{self, Form, Queues, Sensors};
use crate::read::{self, Part};

pub(crate) struct Documents {
    states: watch::Receiver<Arc<State>>,
    about: Arc<About>,
    renderings: Renderings<Key>,
    authorizer: Authorizer,
}

/// What may be shared: whole documents and answers, as they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    what: What,
    gzip: bool,
    /// By whom it is seen; the same for all if there are no rules.
    viewer: Option<Principal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Document(Document),
    Part(Part, Encoding),
}

impl Documents {
    pub fn start(
        states: watch::Receiver<Arc<State>>,
        about: About,
        authorizer: Authorizer,
    ) -> std::io::Result<Self> {
        Ok(Self { states, about: Arc::new(about), renderings: Renderings::start()?, authorizer })
    }

    /// 403 unless who sent the request may do this.
    pub fn allowed(&self, request: &Request, action: Action, object: Option<&str>) -> Result<(), HttpError> {
        match self.authorizer.allows(request.subject(), action, object) {
            true => Ok(()),
            false => Err(HttpError::forbidden()),
        }
    }

    /// The newest state as who sent the request may see it.
    pub fn seen_by(&self, request: &Request) -> State {
        self.state().visible_to(&self.authorizer, request.subject())
    }

    /// For whom something is rendered, if that matters.
    fn viewer(&self, request: &Request) -> Option<Principal> {
        self.authorizer.is_set().then(|| request.principal.clone().unwrap_or_default())
    }

    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// A classic document.
    pub async fn document(&self, document: Document, request: &Request) -> Result<Response, HttpError> {
        let arrived = self.state();
        let tag = |version| EntityTag::new(arrived.started_at.0, version);
        if tag(arrived.version).is_known(&request.headers) {
            return Ok(tag(arrived.version).not_modified());
        }
        let selection = Selection::from_query(document, &request.query);
        let is_script = request.query.get("jsonp").is_some();
        let gzip = accepts_gzip(&request.headers) && !is_script;
        let draw = self.draw(document, selection.page, request);
        let order = || self.order_part(gzip, request, selection.clone(), draw.clone());
        let rendition = match selection.is_usual(document) {
            true => {
                let key = Key { what: What::Document(document), gzip, viewer: self.viewer(request) };
                self.renderings.get(key, arrived.version, order).await
            }
            false => self.renderings.alone(order()),
        };
        let tag = tag(rendition.version);
        let response = match is_script {
            true => json(&request.query, rendition.whole().await?),
            false => rendition.response("application/json").await?,
        };
        Ok(tag.on(response))
    }

    /// A part of the state as a v1 answer.
    pub async fn part(
        &self,
        part: Part,
        encoding: Encoding,
        request: &Request,
    ) -> Result<Response, HttpError> {
        let gzip = accepts_gzip(&request.headers);
        let key = Key { what: What::Part(part, encoding), gzip, viewer: self.viewer(request) };
        let draw = || {
            move |state: &State, pen: Pen| match encoding {
                Encoding::Json => read::write(part, state, pen),
                Encoding::Protobuf => read::encode(part, state, pen),
            }
        };
        let order = || self.order(gzip, request, draw());
        let rendition: Arc<Rendition> = self.renderings.get(key, self.state().version, order).await;
        rendition.response(encoding.name()).await
    }

    /// `/allocator/offer_constraints_debug`: why frameworks are not offered agents.
    pub async fn excluded(&self, request: &Request) -> Result<Response, HttpError> {
        let draw = move |state: &State, pen: Pen| write_json(pen, |w| document::excluded(w, state));
        let rendition = self.renderings.alone(self.order(false, request, draw));
        Ok(json(&request.query, rendition.whole().await?))
    }

    /// `/registrar(1)/registry`: what outlives this master.
    pub async fn registry(&self, request: &Request) -> Result<Response, HttpError> {
        let draw = move |state: &State, pen: Pen| write_json(pen, |w| document::registry(w, state));
        let rendition = self.renderings.alone(self.order(false, request, draw));
        Ok(json(&request.query, rendition.whole().await?))
    }

    /// Metrics of the newest state, computed by one of the renderers.
    pub async fn metrics(
        &self,
        form: Form,
        sensors: Sensors,
        queues: Queues,
        request: &Request,
    ) -> Result<Response, HttpError> {
        let queues = Queues { shared_renditions: self.renderings.shared(), ..queues };
        let is_script = form == Form::Document(MetricsForm::Snapshot) && request.query.get("jsonp").is_some();
        let gzip = accepts_gzip(&request.headers) && !is_script;
        let rendition = self.renderings.alone(self.order(gzip, request, move |state, pen| {
            form.draw(&metrics::collect(state, &sensors, queues), pen);
        }));
        match is_script {
            true => Ok(json(&request.query, rendition.whole().await?)),
            false => rendition.response(form.content_type()).await,
        }
    }

    fn draw(
        &self,
        document: Document,
        page: Page,
        request: &Request,
    ) -> impl FnOnce(&State, Pen) + Send + Clone + 'static {
        let flags_seen = self.authorizer.allows(request.subject(), Action::ViewFlags, None);
        let about = match flags_seen {
            true => self.about.clone(),
            false => Arc::new(About {
                flags: Vec::new(),
                cluster: self.about.cluster.clone(),
                external_log_file: self.about.external_log_file.clone(),
                own_log_file: self.about.own_log_file.clone(),
            }),
        };
        move |state: &State, pen: Pen| document.render(state, &about, page, pen)
    }

    /// The newest state, as its reader may see it, to be drawn by one of the renderers.
    fn order(&self, gzip: bool, request: &Request, draw: impl FnOnce(&State, Pen) + Send + 'static) -> Order {
        self.order_part(gzip, request, Selection::default(), draw)
    }

    /// The same of the part that is asked for.
    fn order_part(
        &self,
        gzip: bool,
        request: &Request,
        selection: Selection,
        draw: impl FnOnce(&State, Pen) + Send + 'static,
    ) -> Order {
        let state = self.state();
        let version = state.version;
        let (authorizer, reader) = (self.authorizer.clone(), request.principal.clone());
        let render = move |pen: Pen| {
            let part = selection.of(&state);
            draw(&part.visible_to(&authorizer, subject(reader.as_ref())), pen);
        };
        Order { version, gzip, render: Box::new(render) }
    }
}
