//! What the API uses of the manager: the published view, creates, and the engines. Cheap to clone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tepui_swarm::{ContainerSpec, Created, Input, Manage, Rejection, RequestId, View};
use tepui_types::{AgentId, TaskId};
use tokio::sync::{broadcast, oneshot, watch};

use crate::engine::{EngineClient, EngineMessage, Engines, Snapshot};

type Answer = Result<Created, Rejection>;

#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    manage: Arc<Manage>,
    inputs: tepui_runtime::Handle<Input>,
    views: watch::Receiver<Arc<View>>,
    engines: Engines,
    waiting: Waiting,
}

/// Creates that wait for their answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    next: Arc<AtomicU64>,
    answers: Arc<Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>>,
}

impl Handle {
    pub(crate) fn new(
        manage: Arc<Manage>,
        inputs: tepui_runtime::Handle<Input>,
        views: watch::Receiver<Arc<View>>,
        engines: Engines,
        waiting: Waiting,
    ) -> Self {
        Self { shared: Arc::new(Shared { manage, inputs, views, engines, waiting }) }
    }

    /// The command line: strategy, filters, options of the cluster.
    pub fn manage(&self) -> &Manage {
        &self.shared.manage
    }

    /// The newest published snapshot.
    pub fn view(&self) -> Arc<View> {
        self.shared.views.borrow().clone()
    }

    /// To wait for a newer snapshot.
    pub fn views(&self) -> watch::Receiver<Arc<View>> {
        self.shared.views.clone()
    }

    /// Waits until the engine has created the container. Dropping the future abandons the create: it leaves the queue, and a
    /// container that was under way is removed.
    pub async fn create(&self, name: Option<String>, spec: ContainerSpec) -> Answer {
        self.request(|request| Input::Create { request, name, spec: Box::new(spec) }).await
    }

    /// To be awaited before a container is started or restarted: if its task has terminated, another one holds its resources
    /// again then, under another task id. Waits for offers as a create does.
    pub async fn hold(&self, task: TaskId) -> Answer {
        self.request(|request| Input::Hold { request, task }).await
    }

    async fn request(&self, input: impl FnOnce(RequestId) -> Input) -> Answer {
        let (request, answer) = self.shared.waiting.begin();
        let guard = Abandon { handle: self.clone(), request: Some(request) };
        let input = input(request);
        let stopped = || Rejection::Failed("the manager is being stopped".to_owned());
        self.shared.inputs.send(input).await.map_err(|_| stopped())?;
        let answer = answer.await.unwrap_or_else(|_| Err(stopped()));
        guard.disarm();
        answer
    }

    /// The engine has removed the container. Returns when that is taken in, before it is published.
    pub async fn removed(&self, task: TaskId) {
        self.send(Input::Removed(task)).await;
    }

    /// Reserves a name for a container, or says why it cannot have it. Then the engine is asked, and `renamed` or
    /// `rename_failed` follows, whether the client is still there or not.
    pub async fn rename(&self, task: TaskId, name: String) -> Result<(), Rejection> {
        let (request, answer) = self.shared.waiting.begin();
        self.send(Input::Rename { request, task, name }).await;
        let stopped = || Rejection::Failed("the manager is being stopped".to_owned());
        answer.await.unwrap_or_else(|_| Err(stopped())).map(drop)
    }

    /// The engine has renamed the container; the name was reserved before.
    pub async fn renamed(&self, task: TaskId, name: String) {
        self.send(Input::Renamed { task, name }).await;
    }

    /// The engine has rejected the reserved name.
    pub async fn rename_failed(&self, name: String) {
        self.send(Input::RenameFailed { name }).await;
    }

    /// The client of an agent's engine; none if the agent is unknown.
    pub fn engine(&self, agent: &AgentId) -> Option<EngineClient> {
        self.shared.engines.client(agent)
    }

    /// The last lists of an agent's engine.
    pub fn snapshot(&self, agent: &AgentId) -> Option<Arc<Snapshot>> {
        self.shared.engines.snapshot(agent)
    }

    /// Waits for lists that are newer than this call: after a call that changed something on the engine.
    pub async fn refresh(&self, agent: &AgentId) {
        self.shared.engines.refresh(agent).await;
    }

    /// Events of all engines from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<EngineMessage>> {
        self.shared.engines.events()
    }

    async fn send(&self, input: Input) {
        // A machine that has ended has nothing to be told.
        let _ = self.shared.inputs.send(input).await;
    }
}

impl Waiting {
    fn begin(&self) -> (RequestId, oneshot::Receiver<Answer>) {
        let request = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.answers().insert(request, sender);
        (request, answer)
    }

    pub(crate) fn reply(&self, request: RequestId, answer: Answer) {
        if let Some(sender) = self.answers().remove(&request) {
            let _ = sender.send(answer); // The client may have left: the container stays, as with an engine.
        }
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Answer>>> {
        self.answers.lock().expect("no code panics while it holds this lock")
    }
}

/// Abandons a create whose future is dropped.
struct Abandon {
    handle: Handle,
    request: Option<RequestId>,
}

impl Abandon {
    fn disarm(mut self) {
        self.request = None;
    }
}

impl Drop for Abandon {
    fn drop(&mut self) {
        let Some(request) = self.request else { return };
        let handle = self.handle.clone();
        handle.shared.waiting.answers().remove(&request);
        // Outside of a runtime the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { handle.send(Input::Abandoned(request)).await });
        }
    }
}
