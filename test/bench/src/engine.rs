//! A simulated Docker engine on a Unix socket: as much of its API as a manager of `tepui swarm` reads.
//!
//! Containers are created by the simulated agent beside it, as an executor would. They are listed the way an engine lists
//! them, and every change is an event.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::mpsc;

/// Events that a subscriber may be behind.
const EVENTS_MAX: usize = 1024;
const MIB: u64 = 1 << 20;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    number: usize,
    socket: PathBuf,
    state: Mutex<State>,
    requests: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// As they are listed.
    containers: Vec<Value>,
    subscribers: Vec<mpsc::Sender<Bytes>>,
    /// When the task of each container arrived, by the container's name.
    launches: Vec<(String, Instant)>,
}

impl Engine {
    /// Must be called inside a tokio runtime; listens as long as that lives.
    pub fn start(folder: &Path, number: usize) -> Result<Engine> {
        let socket = folder.join(format!("engine-{number}.sock"));
        let listener = UnixListener::bind(&socket).context("cannot bind the socket of an engine")?;
        let shared = Shared { number, socket, state: Mutex::default(), requests: AtomicU64::new(0) };
        let engine = Engine { shared: Arc::new(shared) };
        let own = engine.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                let service = service_fn(move |request| {
                    let response = own.respond(&request);
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(engine)
    }

    pub fn socket(&self) -> &Path {
        &self.shared.socket
    }

    /// When the task of each container arrived, by the container's name.
    pub fn launches(&self) -> Vec<(String, Instant)> {
        self.state().launches.clone()
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Creates the container of a task from the task's data; what its executor reports of it.
    pub fn create(&self, data: &[u8]) -> Result<Vec<u8>> {
        let task: Value = serde_json::from_slice(data).context("the data of the task is no container")?;
        let began = Instant::now();
        let mut state = self.state();
        let count = state.containers.len();
        let id = format!("{:08x}{:056x}", self.shared.number, count + 1);
        let name = task["name"].as_str().unwrap_or_default().to_owned();
        state.launches.push((name.clone(), began));
        let (document, labels) = (&task["document"], &task["document"]["Labels"]);
        state.containers.push(json!({
            "Id": id,
            "Names": [format!("/{name}")],
            "Image": document["Image"],
            "ImageID": format!("sha256:{:064x}", 1),
            "Command": "sleep 1000",
            "Created": 1_700_000_000 + count,
            "Ports": [],
            "Labels": labels,
            "State": "running",
            "Status": "Up 3 minutes",
            "HostConfig": {"NetworkMode": "default"},
            "NetworkSettings": {"Networks": {"bridge": {"NetworkID": "n1", "IPAddress": "172.17.0.2"}}},
            "Mounts": [],
        }));
        let actor = json!({"ID": id, "Attributes": labels});
        let event = json!({"Type": "container", "Action": "create", "id": id, "Actor": actor, "time": 1});
        let line = Bytes::from(format!("{event}\n"));
        state.subscribers.retain(|subscriber| subscriber.try_send(line.clone()).is_ok());
        Ok(serde_json::to_vec(&json!({"id": id, "name": name}))?)
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Body> {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        match request.uri().path().trim_start_matches("/v1.41") {
            "/info" => json_answer(&self.info()),
            "/version" => json_answer(&json!({"Version": "20.10.24", "ApiVersion": "1.41"})),
            "/containers/json" => json_answer(&Value::Array(self.state().containers.clone())),
            "/images/json" => json_answer(&json!([
                {"Id": format!("sha256:{:064x}", 1), "RepoTags": ["busybox:latest"], "Created": 1, "Size": 1},
            ])),
            "/events" => Response::new(self.subscribe().boxed_unsync()),
            _ => {
                let mut response = json_answer(&json!({"message": "page not found"}));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }
    }

    fn info(&self) -> Value {
        let number = self.shared.number;
        json!({
            "ID": format!("engine-{number}"),
            "Name": format!("node-{number}"),
            "NCPU": 64,
            "MemTotal": 256 * 1024 * MIB,
            "Driver": "overlay2",
            "KernelVersion": "6.1",
            "OperatingSystem": "Linux",
            "OSType": "linux",
            "ServerVersion": "20.10.24",
            "Labels": [format!("rack=r{}", number % 40)],
            "Containers": self.state().containers.len(),
        })
    }

    fn subscribe(&self) -> Events {
        let (subscriber, events) = mpsc::channel(EVENTS_MAX);
        self.state().subscribers.push(subscriber);
        Events(events)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().expect("no code panics while it holds this lock")
    }
}

fn json_answer(document: &Value) -> Response<Body> {
    Response::new(Full::new(Bytes::from(document.to_string())).boxed_unsync())
}

struct Events(mpsc::Receiver<Bytes>);

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
