//! The leading master as request handlers use it: the mailbox of its state machine, open exchanges, documents, sensors.
//!
//! Absent: endpoints and their handlers (`routes`).

use std::sync::Arc;

use tepui_core_master::{Input, State};
use tepui_http::{Exchanges, HttpError, Request, Response, check_timeout, redirect};
use tepui_program::Process;
use tepui_runtime::{Closed, Handle};
use tepui_store::etcd::Leadership;

use crate::documents::Documents;
use crate::metrics::{Form, Queues, Sensors};

/// The API that an exchange belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Scheduler,
    Agent,
    Operator,
}

/// State shared by request handlers while this master leads.
pub(crate) struct Program {
    pub handle: Handle<Input>,
    pub exchanges: Exchanges<Kind>,
    pub documents: Documents,
    pub process: Process,
    pub sensors: Sensors,
    /// None without other candidates.
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

    /// Sends an input to the state machine, unless another master may lead by now.
    pub async fn send(&self, input: Input) -> Result<(), HttpError> {
        self.send_all(vec![input]).await
    }

    /// As `send`, for inputs that came together.
    pub async fn send_all(&self, inputs: Vec<Input>) -> Result<(), HttpError> {
        if !self.leadership.as_ref().is_none_or(Leadership::holds) {
            return Err(HttpError::unavailable("This master cannot reach the registry or leads no longer"));
        }
        self.handle.send_all(inputs).await.map_err(stopping)
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
    pub fn redirect(&self) -> Response {
        let state = self.state();
        let info = &state.master_info;
        redirect(&format!("//{}:{}", info.hostname.as_deref().unwrap_or("localhost"), info.port))
    }
}

/// The state machine has stopped.
fn stopping(_: Closed) -> HttpError {
    HttpError::unavailable("This master is stopping")
}
