//! A small Docker engine in this process: as much of the API as the tests need, and every request it got.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{broadcast, watch};

use crate::body::{self, Body};

/// Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub name: String,
    pub socket: PathBuf,
    /// The oldest version of the API that it accepts.
    oldest: &'static str,
    state: Arc<Mutex<State>>,
    events: broadcast::Sender<Value>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    containers: BTreeMap<String, Container>,
    requests: Vec<String>,
    images: Vec<Value>,
    networks: Vec<Value>,
    networks_made: usize,
    loaded: Vec<u8>,
    ticks: u64,
}

#[derive(Clone, Default)]
struct Container {
    name: String,
    labels: Value,
    state: String,
    exit_code: i64,
}

impl Engine {
    pub fn start(directory: &Path, name: &str, oldest: &'static str) -> Engine {
        let socket = directory.join(format!("{name}.sock"));
        let listener = UnixListener::bind(&socket).expect("a socket");
        let images =
            vec![json!({"Id": "sha256:aa", "RepoTags": ["busybox:latest"], "Created": 1, "Size": 1})];
        let state = Arc::new(Mutex::new(State { images, ..State::default() }));
        let engine = Engine {
            name: name.to_owned(),
            socket,
            oldest,
            state,
            events: broadcast::channel(1000).0,
            changes: watch::channel(0).0,
        };
        let own = engine.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                let service = service_fn(move |request| {
                    let own = own.clone();
                    async move { Ok::<_, Infallible>(own.respond(request).await) }
                });
                let builder = http1::Builder::new();
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
            }
        });
        engine
    }

    /// Creates a container, as the executor would.
    pub fn create(&self, id: &str, name: &str, labels: Value) {
        let container =
            Container { name: name.to_owned(), labels, state: "created".to_owned(), exit_code: 0 };
        self.state.lock().unwrap().containers.insert(id.to_owned(), container);
        self.send("create", id);
    }

    pub fn exit(&self, id: &str, code: i64) {
        if let Some(container) = self.state.lock().unwrap().containers.get_mut(id) {
            (container.state, container.exit_code) = ("exited".to_owned(), code);
        }
        self.send("die", id);
    }

    pub fn remove(&self, id: &str) {
        self.state.lock().unwrap().containers.remove(id);
        self.send("destroy", id);
    }

    /// Requests so far, as `METHOD path`.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    pub fn loaded(&self) -> Vec<u8> {
        self.state.lock().unwrap().loaded.clone()
    }

    fn send(&self, action: &str, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.ticks += 1;
        let container = state.containers.get(id).cloned().unwrap_or_default();
        let mut attributes = container.labels.as_object().cloned().unwrap_or_default();
        attributes.insert("name".into(), container.name.into());
        let event = json!({"Type": "container", "Action": action, "status": action, "id": id, "from": "busybox",
            "Actor": {"ID": id, "Attributes": attributes}, "time": 1, "timeNano": state.ticks, "scope": "local"});
        let _ = self.events.send(event);
        self.changes.send_replace(state.ticks);
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        self.state.lock().unwrap().requests.push(format!("{} {path}", request.method()));
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if let Some(version) = parts.first().and_then(|part| part.strip_prefix('v')?.strip_prefix("1.")) {
            let oldest = &self.oldest[2..];
            if version.parse::<u32>().expect("a number") < oldest.parse().expect("a number") {
                let text = format!(
                    "client version 1.{version} is too old. Minimum supported API version is 1.{oldest}"
                );
                return error(StatusCode::BAD_REQUEST, &text);
            }
            parts.remove(0);
        }
        match (request.method().clone(), parts.as_slice()) {
            (Method::GET, ["info"]) => answer(
                &json!({"ID": format!("E-{}", self.name), "Name": self.name, "NCPU": 4, "MemTotal": 1 << 30, "Labels": []}),
            ),
            (Method::GET, ["version"]) => {
                let newest = self.oldest.max("1.41");
                answer(&json!({"ApiVersion": newest, "MinAPIVersion": self.oldest}))
            }
            (Method::POST, ["volumes", "prune"]) => answer(&json!({"SpaceReclaimed": 1})),
            (Method::GET, ["events"]) => self.stream_events(),
            (Method::GET, ["containers", "json"]) => answer(&Value::Array(self.list())),
            (Method::GET, ["images", "json"]) => {
                answer(&Value::Array(self.state.lock().unwrap().images.clone()))
            }
            (Method::POST, ["images", "load"]) => self.load(request).await,
            (Method::POST, ["images", "create"]) => {
                let mut failed =
                    Response::new(body::full("{\"status\":\"Pulling\"}\n{\"error\":\"no such image\"}\n"));
                if self.name != "node-1" {
                    failed = Response::new(body::full("{\"status\":\"Pulling\"}\n"));
                }
                failed
            }
            (Method::GET, ["containers", id, "json"]) => self.inspect(id),
            (Method::POST, ["containers", id, "start"]) => self.change(id, "running", "start"),
            (Method::POST, ["containers", id, "stop" | "kill"]) => self.change(id, "exited", "die"),
            (Method::POST, ["containers", id, "rename"]) => self.change(id, "", "rename"),
            (Method::DELETE, ["containers", id]) => {
                let id = (*id).to_owned();
                self.remove(&id);
                status(StatusCode::NO_CONTENT)
            }
            (Method::POST, ["containers", id, "wait"]) => self.wait(id),
            (Method::POST, ["containers", _, "attach"])
            | (Method::GET, ["containers", _, "attach", "ws"]) => upgrade(request),
            (Method::POST, ["containers", id, "exec"]) => answer(&json!({"Id": format!("exec-{id}")})),
            (Method::POST, ["exec", id, "start"]) if id.starts_with("exec-") => upgrade(request),
            (Method::GET, ["exec", id, "json"]) if self.has_exec(id) => {
                answer(&json!({"ID": id, "ExitCode": 0}))
            }
            (Method::POST, ["session" | "grpc"]) => upgrade(request),
            (Method::POST, ["build"]) => Response::new(body::full("{\"stream\":\"built\"}\n")),
            (Method::POST, ["build", "cancel"]) => status(StatusCode::OK),
            (_, ["networks", ..]) => self.network(request, &parts[1..]).await,
            (Method::GET, ["volumes"]) => {
                answer(&json!({"Volumes": [{"Name": "data", "Driver": "local"}], "Warnings": null}))
            }
            _ => error(StatusCode::NOT_FOUND, "page not found"),
        }
    }

    /// Ids are those of this engine only.
    async fn network(&self, request: Request<Incoming>, rest: &[&str]) -> Response<Body> {
        let method = request.method().clone();
        let bytes = request.into_body().collect().await.expect("a body").to_bytes();
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut state = self.state.lock().unwrap();
        let place = |state: &State, id: &str| state.networks.iter().position(|it| it["Id"] == id);
        match (method, rest) {
            (Method::GET, []) => answer(&Value::Array(state.networks.clone())),
            (Method::POST, ["create"]) if document["Driver"] == "broken" && self.name == "node-1" => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "no such driver")
            }
            (Method::POST, ["create"]) if document["Driver"] == "dying" && self.name == "node-1" => {
                let (pieces, body) = body::channel();
                let _ = pieces.try_send(Err("the engine has died".into()));
                Response::new(body)
            }
            (Method::POST, ["create"]) => {
                let id = format!("{}-{}", self.name, state.networks_made);
                state.networks_made += 1;
                let network = json!({"Id": id, "Name": document["Name"], "Scope": "local", "Driver": "bridge",
                    "Labels": document["Labels"], "Containers": {}});
                state.networks.push(network);
                answer(&json!({"Id": id, "Warning": ""}))
            }
            (method, [id, ..]) => match place(&state, id) {
                None => error(StatusCode::NOT_FOUND, &format!("network {id} not found")),
                Some(place) if method == Method::GET => answer(&state.networks[place]),
                Some(place) if method == Method::DELETE => {
                    state.networks.remove(place);
                    status(StatusCode::NO_CONTENT)
                }
                Some(place) => {
                    let container = document["Container"].as_str().unwrap_or_default().to_owned();
                    state.networks[place]["Containers"][&container] = json!({"Name": container});
                    answer(&Value::Null)
                }
            },
            (_, []) => error(StatusCode::NOT_FOUND, "page not found"),
        }
    }

    fn has_exec(&self, id: &str) -> bool {
        let state = self.state.lock().unwrap();
        id.strip_prefix("exec-").is_some_and(|id| state.containers.contains_key(id))
    }

    fn list(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let row = |(id, it): (&String, &Container)| {
            let status = match it.state.as_str() {
                "running" => "Up 1 second".to_owned(),
                "exited" => format!("Exited ({}) 1 second ago", it.exit_code),
                _ => "Created".to_owned(),
            };
            json!({"Id": id, "Names": [format!("/{}", it.name)], "Image": "busybox", "Created": 1, "State": it.state, "Status": status, "Labels": it.labels, "Ports": []})
        };
        state.containers.iter().map(row).collect()
    }

    fn inspect(&self, id: &str) -> Response<Body> {
        let state = self.state.lock().unwrap();
        match state.containers.get(id) {
            None => error(StatusCode::NOT_FOUND, &format!("No such container: {id}")),
            Some(it) => answer(&json!({"Id": id, "Name": format!("/{}", it.name),
                "State": {"Running": it.state == "running", "Error": "", "ExitCode": it.exit_code}, "Config": {"Labels": it.labels}})),
        }
    }

    fn change(&self, id: &str, to: &str, action: &str) -> Response<Body> {
        match self.state.lock().unwrap().containers.get_mut(id) {
            None => return error(StatusCode::NOT_FOUND, &format!("No such container: {id}")),
            Some(container) if !to.is_empty() => container.state = to.to_owned(),
            Some(_) => (),
        }
        self.send(action, id);
        status(StatusCode::NO_CONTENT)
    }

    /// The head at once, the body when the container has exited or is removed.
    fn wait(&self, id: &str) -> Response<Body> {
        let (pieces, body) = body::channel();
        let (own, id, mut changes) = (self.clone(), id.to_owned(), self.changes.subscribe());
        tokio::spawn(async move {
            loop {
                let found = own.state.lock().unwrap().containers.get(&id).cloned();
                let code = match found {
                    None => 7,
                    Some(container) if container.state == "exited" => container.exit_code,
                    Some(_) => {
                        if changes.changed().await.is_err() {
                            return;
                        }
                        continue;
                    }
                };
                let _ = pieces.send(Ok(Bytes::from(json!({"StatusCode": code}).to_string()))).await;
                return;
            }
        });
        Response::new(body)
    }

    async fn load(&self, request: Request<Incoming>) -> Response<Body> {
        let bytes = request.into_body().collect().await.expect("a body").to_bytes();
        self.state.lock().unwrap().loaded.extend_from_slice(&bytes);
        Response::new(body::full("{\"stream\":\"Loaded image\"}\n"))
    }

    fn stream_events(&self) -> Response<Body> {
        let (pieces, body) = body::channel();
        let mut events = self.events.subscribe();
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                if pieces.send(Ok(Bytes::from(event.to_string()))).await.is_err() {
                    return;
                }
            }
        });
        Response::new(body)
    }
}

/// Echoes in upper case what it reads; after the client's half is closed, says goodbye and closes its own.
fn upgrade(request: Request<Incoming>) -> Response<Body> {
    let protocol = request.headers().get(header::UPGRADE).cloned();
    tokio::spawn(async move {
        let mut stream = TokioIo::new(hyper::upgrade::on(request).await.expect("an upgrade"));
        let mut buffer = [0; 1024];
        loop {
            let count = stream.read(&mut buffer).await.expect("a read");
            if count == 0 {
                break;
            }
            stream.write_all(&buffer[..count].to_ascii_uppercase()).await.expect("a write");
        }
        stream.write_all(b"bye").await.expect("a write after the other half is closed");
        stream.shutdown().await.expect("a shutdown");
    });
    let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
    response.headers_mut().insert(header::CONNECTION, http::HeaderValue::from_static("Upgrade"));
    response.headers_mut().extend(protocol.map(|protocol| (header::UPGRADE, protocol)));
    response
}

fn answer(document: &Value) -> Response<Body> {
    Response::new(body::full(document.to_string()))
}

fn error(code: StatusCode, message: &str) -> Response<Body> {
    let mut response = answer(&json!({"message": message}));
    *response.status_mut() = code;
    response
}

fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(body::empty());
    *response.status_mut() = code;
    response
}
