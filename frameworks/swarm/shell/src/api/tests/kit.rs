//! A manager's machine, engines of this process, and the API on a socket. The test plays the master.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tepui_fsm::Rng;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Resources, Role, parse};
use tepui_runtime::{Clock, Limits, Running};
use tepui_store::Store;
use tepui_swarm::{Command, Config, EngineAddress, Input, Manage, Manager, Offer, Update};
use tepui_types::{AgentId, OfferId, TaskId};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use super::engine::Engine;
use crate::api::Api;
use crate::body::{self, Body};
use crate::driver::{MasterCall, Sink};
use crate::engine::Engines;
use crate::front::Front;
use crate::guard::Guard;
use crate::handle::{Handle, Waiting};
use crate::listen::Listener;

pub struct Kit {
    pub engines: Vec<Engine>,
    pub inputs: tepui_runtime::Handle<Input>,
    pub handle: Handle,
    pub front: Front,
    pub directory: tempfile::TempDir,
    offers: AtomicU64,
    _running: Running,
}

impl Kit {
    /// So many engines, each with an offer. The master creates what is accepted at once.
    pub async fn start(count: usize) -> Kit {
        Self::with_oldest(count, "1.12").await
    }

    /// The same with engines that reject versions of the API before this one.
    pub async fn with_oldest(count: usize, oldest: &'static str) -> Kit {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = |number| Engine::start(directory.path(), &format!("node-{number}"), oldest);
        let engines: Vec<Engine> = (0..count).map(engine).collect();
        let manage = Arc::new(manage());
        let manager = Manager::recover(config(&manage), Vec::new(), Rng::seeded(7)).expect("a manager");
        let (inputs, mailbox) = tepui_runtime::mailbox::<Input>(1024);
        let (views, published) = watch::channel(Arc::new(manager.view()));
        let (waiting, links) = (Waiting::default(), Engines::new(inputs.clone(), None));
        let (calls, queue) = mpsc::channel(1024);
        let runtime = tokio::runtime::Handle::current();
        let sink = Sink { views, waiting: waiting.clone(), engines: links.clone(), calls, runtime };
        let release = move |effects| sink.release(effects);
        let running = tepui_runtime::start(
            "swarm",
            manager,
            mailbox,
            Store::memory(),
            Clock::start(),
            Limits::default(),
            release,
        );
        let handle = Handle::new(manage.clone(), inputs.clone(), published, links, waiting);
        let front = Front::standby(None, Guard::of(&manage).expect("names"));
        front.lead(Api::new(handle.clone()));
        let host = tepui_swarm::Host::Unix(directory.path().join("api.sock").display().to_string());
        Listener::bind(&host).await.expect("a socket").serve(front.clone(), None);
        tokio::spawn(play_master(queue, inputs.clone(), engines.clone()));
        inputs.send(Input::Subscribed { framework_id: "F".into() }).await.expect("a machine");
        let kit = Kit {
            engines,
            inputs,
            handle,
            front,
            directory,
            offers: AtomicU64::new(0),
            _running: running.expect("it starts"),
        };
        for number in 0..count {
            kit.offer(number).await;
        }
        kit.wait(|view| view.agents.values().filter(|it| it.is_healthy()).count() == count).await;
        kit
    }

    pub async fn offer(&self, number: usize) {
        let id = self.offers.fetch_add(1, Ordering::Relaxed);
        let offer = Offer {
            id: OfferId::new(format!("O{id}")),
            agent: AgentId::new(format!("A{number}")),
            hostname: "127.0.0.1".into(),
            engine: EngineAddress::Unix(self.engines[number].socket.display().to_string()),
            socket: String::new(),
            resources: resources(),
        };
        self.inputs.send(Input::Offers(vec![offer])).await.expect("a machine");
    }

    /// Waits for a published view.
    pub async fn wait(&self, holds: impl Fn(&tepui_swarm::View) -> bool) {
        let mut views = self.handle.views();
        let waited = views.wait_for(|view| holds(view));
        tokio::time::timeout(Duration::from_secs(30), waited).await.expect("in time").expect("a view");
    }

    /// The task of a container has terminated.
    pub async fn end(&self, id: &str, state: TaskState, reason: Option<Reason>, message: &str) {
        let view = self.handle.view();
        let container = view.find(id).expect("a container");
        let update = Update {
            task: TaskId::new(&*container.task),
            agent: Some(AgentId::new(&*container.agent)),
            state,
            reason,
            message: message.to_owned(),
            uuid: None,
            container: None,
            missing_image: None,
            by_executor: true,
            has_executor: true,
        };
        self.inputs.send(Input::Update(update)).await.expect("a machine");
    }

    pub async fn connect(&self) -> http1::SendRequest<Body> {
        let stream = UnixStream::connect(self.directory.path().join("api.sock")).await.expect("a connection");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
        tokio::spawn(connection.with_upgrades());
        sender
    }

    /// `METHOD path`.
    pub async fn send(&self, line: &str, body: impl Into<Bytes>) -> Response<hyper::body::Incoming> {
        let (method, path) = line.split_once(' ').expect("method and path");
        let request =
            Request::builder().method(method).uri(path).header("host", "docker").body(body::full(body));
        self.connect().await.send_request(request.expect("a request")).await.expect("an answer")
    }

    /// An upgraded stream.
    pub async fn upgrade(&self, line: &str, protocol: &str, body: &'static str) -> TokioIo<Upgraded> {
        let (method, path) = line.split_once(' ').expect("method and path");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "docker")
            .header("connection", "Upgrade")
            .header("upgrade", protocol)
            .body(body::full(body))
            .expect("a request");
        let response = self.connect().await.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{path}");
        assert_eq!(response.headers()["upgrade"], protocol);
        TokioIo::new(hyper::upgrade::on(response).await.expect("an upgrade"))
    }

    /// Requests of an engine whose path ends so.
    pub fn requests(&self, engine: usize, path: &str) -> Vec<String> {
        let all = self.engines[engine].requests().into_iter();
        all.filter(|line| line.split('?').next().is_some_and(|line| line.ends_with(path))).collect()
    }

    /// Status and text.
    pub async fn text(&self, line: &str, body: impl Into<Bytes>) -> (u16, String) {
        let response = self.send(line, body).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub async fn json(&self, line: &str) -> Value {
        let (status, text) = self.text(line, "").await;
        assert!(status < 400, "{line}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }

    /// A container of this name; its id.
    pub async fn create(&self, name: &str) -> String {
        let body = r#"{"Image":"busybox","HostConfig":{"Memory":20971520}}"#;
        let (status, text) = self.text(&format!("POST /v1.41/containers/create?name={name}"), body).await;
        assert_eq!(status, 201, "{text}");
        serde_json::from_str::<Value>(&text).expect("JSON")["Id"].as_str().expect("an id").to_owned()
    }
}

fn resources() -> Resources {
    let parsed = parse::resources("cpus:4;mem:1024", "*").expect("resources");
    parsed.into_iter().collect::<Resources>().allocate(&Role::from("*"))
}

fn manage() -> Manage {
    let words =
        ["manage", "--cluster-opt", "mesos.enablerevocable=true", "127.0.0.1:5050"].map(str::to_owned);
    match Command::parse(&words, |_| None).expect("a command line") {
        Command::Manage(manage) => manage,
        other => panic!("{other:?}"),
    }
}

fn config(manage: &Manage) -> Config {
    Config {
        scheduler: manage.scheduler.clone(),
        task_timeout: Duration::from_secs(30),
        offer_timeout: Duration::from_secs(3600),
        refuse_timeout: Duration::from_secs(5),
        idle_refuse_timeout: Duration::from_secs(3600),
        revocable: true,
    }
}

/// Creates the container of each accepted task on its engine, offers again, and reports the container.
async fn play_master(
    mut queue: mpsc::Receiver<MasterCall>,
    inputs: tepui_runtime::Handle<Input>,
    engines: Vec<Engine>,
) {
    let mut count = 0u64;
    while let Some(call) = queue.recv().await {
        let MasterCall::Accept(launch) = call else { continue };
        count += 1;
        let id = format!("{count:04x}{}", "ab".repeat(30));
        let number: usize = launch.agent.as_str()[1..].parse().expect("a number");
        let document: Value = serde_json::from_str(&launch.document).expect("a document");
        let name = launch.name.clone().unwrap_or_else(|| format!("random_{count}"));
        engines[number].create(&id, &name, document["Labels"].clone());
        let offer = Offer {
            id: OfferId::new(format!("M{count}")),
            agent: launch.agent.clone(),
            hostname: "127.0.0.1".into(),
            engine: EngineAddress::Unix(engines[number].socket.display().to_string()),
            socket: String::new(),
            resources: resources(),
        };
        let update = Update {
            task: launch.task.clone(),
            agent: Some(launch.agent.clone()),
            state: TaskState::TASK_RUNNING,
            reason: None,
            message: String::new(),
            uuid: None,
            container: Some((id, name)),
            missing_image: None,
            by_executor: true,
            has_executor: true,
        };
        for input in [Input::Update(update), Input::Offers(vec![offer])] {
            if inputs.send(input).await.is_err() {
                return;
            }
        }
    }
}
