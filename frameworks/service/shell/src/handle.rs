//! What the API uses of a scheduler: the published view, and commands with their answers. Cheap to clone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tepui_service::scheduler::{Answer, Command, Input, RequestId, View};
use tokio::sync::{oneshot, watch};

/// The machine has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub inputs: tepui_runtime::Handle<Input>,
    pub views: watch::Receiver<Arc<View>>,
    pub waiting: Waiting,
}

/// Commands that wait for their answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    next: Arc<AtomicU64>,
    answers: Arc<Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>>,
}

impl Handle {
    /// The newest published snapshot.
    pub fn view(&self) -> Arc<View> {
        self.views.borrow().clone()
    }

    pub async fn command(&self, command: Command) -> Result<Answer, Stopped> {
        let (request, answer) = self.waiting.begin();
        let _entry = Entry { waiting: &self.waiting, request };
        self.inputs.send(Input::Command { request, command }).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

/// Forgets a command whose client has left.
struct Entry<'w> {
    waiting: &'w Waiting,
    request: RequestId,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.waiting.answers().remove(&self.request);
    }
}

impl Waiting {
    fn begin(&self) -> (RequestId, oneshot::Receiver<Answer>) {
        let request = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.answers().insert(request, sender);
        (request, answer)
    }

    pub fn reply(&self, request: RequestId, answer: Answer) {
        if let Some(sender) = self.answers().remove(&request) {
            let _ = sender.send(answer); // A client that has left needs no answer.
        }
    }

    /// Every command that waits gets no answer.
    pub fn close(&self) {
        self.answers().clear();
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Answer>>> {
        self.answers.lock().expect("no code panics while it holds this lock")
    }
}
