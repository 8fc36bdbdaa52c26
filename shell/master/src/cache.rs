//! Documents for readers: rendered from the newest snapshot, one rendering at a time per document.
//!
//! Readers that wait for a rendering share the next one, so that many pollers cost as much as one. A document is kept
//! only while somebody waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::StatusCode;
use tepui_core_master::State;
use tepui_http::{HttpError, Request, Response, json};
use tokio::sync::{Semaphore, watch};

use crate::document::{About, Document, Selection};

pub(crate) struct Documents {
    states: watch::Receiver<Arc<State>>,
    about: Arc<About>,
    cells: [Cell; Document::ALL.len()],
}

/// One document without a selection.
struct Cell {
    /// One permit: the right to render.
    turn: Semaphore,
    waiting: AtomicUsize,
    rendered: Mutex<Option<(u64, Bytes)>>,
}

/// Counts a waiting reader; the last one out throws the document away.
struct Waiting<'a>(&'a Cell);

impl Documents {
    pub fn new(states: watch::Receiver<Arc<State>>, about: About) -> Self {
        let cell =
            |_| Cell { turn: Semaphore::new(1), waiting: AtomicUsize::new(0), rendered: Mutex::new(None) };
        Self { states, about: Arc::new(about), cells: std::array::from_fn(cell) }
    }

    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    pub async fn answer(&self, document: Document, request: &Request) -> Result<Response, HttpError> {
        let selection = Selection::from_query(document, &request.query);
        let arrived = self.state().version;
        let cell = &self.cells[document as usize];
        let _waiting = Waiting::new(cell);
        let _turn = cell.turn.acquire().await.expect("the semaphore is never closed");
        let is_whole = selection.is_everything();
        // What was rendered since this reader came is as new as it can ask for.
        let shared = cell.lock().clone().filter(|(version, _)| is_whole && *version >= arrived);
        let bytes = match shared {
            Some((_, bytes)) => bytes,
            None => self.render(document, selection, is_whole.then_some(cell)).await?,
        };
        Ok(json(&request.query, bytes))
    }

    async fn render(
        &self,
        document: Document,
        selection: Selection,
        keep_in: Option<&Cell>,
    ) -> Result<Bytes, HttpError> {
        let (state, about) = (self.state(), self.about.clone());
        let version = state.version;
        let rendering =
            tokio::task::spawn_blocking(move || Bytes::from(document.render(&state, &about, &selection)));
        let bytes = rendering.await.map_err(|err| {
            tracing::error!(%err, ?document, "cannot render a document");
            HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
        })?;
        if let Some(cell) = keep_in {
            *cell.lock() = Some((version, bytes.clone()));
        }
        Ok(bytes)
    }
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, Option<(u64, Bytes)>> {
        self.rendered.lock().expect("no code panics while it holds this lock")
    }
}

impl<'a> Waiting<'a> {
    fn new(cell: &'a Cell) -> Self {
        cell.waiting.fetch_add(1, Ordering::Relaxed);
        Self(cell)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.0.lock() = None;
        }
    }
}
