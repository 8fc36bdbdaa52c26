//! The Engine API, as far as containers of tasks need it: one method per call, each with a limit of time and size.
//!
//! Each call has a connection of its own: a slow one delays no other, and dropping a future closes the connection.

mod answers;
mod events;
mod fault;
mod logs;
mod transport;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use self::answers::{Address, Created, Image, Inspected, Listed, Network, State};
pub use self::events::{ContainerEvent, ContainerEvents};
pub use self::fault::EngineFault;
pub use self::logs::{Logs, Stream};
use self::transport::Call;

/// The versions of the API that this client can speak; the engine's own is taken if it lies between.
const VERSION_MIN: (u32, u32) = (1, 30);
const VERSION_MAX: (u32, u32) = (1, 44);

/// How long the engine may take for anything but what waits by its nature.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// A download of an image that brings nothing for so long has failed.
const PULL_STALL_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest answer that is read; `inspect` of a container takes some kilobytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest line of progress while an image is pulled.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Limit of the start of a command's process.
const PID_LOOKS_MAX: u32 = 50;
const PID_LOOK_EVERY: Duration = Duration::from_millis(20);
const EXECUTING: &str = "run a command in the container";
/// Limit of the delay between a termination and the event of its OOM kill.
const OOM_EVENT_DELAY_SECS: u64 = 1;

/// Characters that need no encoding in a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A Docker engine, by its socket. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    socket: Arc<PathBuf>,
    version: Arc<OnceCell<String>>,
}

/// A command to run in a container that runs already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    pub arguments: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
}

/// A command that was started in a container.
#[derive(Debug)]
pub struct Execution {
    engine: Engine,
    id: String,
    output: transport::Answer,
}

/// Read before a container starts, so that the shortest life is not missed.
#[derive(Debug)]
pub struct Waiting(transport::Answer);

impl Engine {
    pub fn at(socket: &Path) -> Engine {
        Engine { socket: Arc::new(socket.to_owned()), version: Arc::new(OnceCell::new()) }
    }

    /// The version of the API, negotiated once.
    pub async fn version(&self) -> Result<&str, EngineFault> {
        let negotiate = async {
            let call =
                Call { doing: "ask for the version", method: Method::GET, path: "/_ping".into(), body: None };
            let theirs = transport::send_call(&self.socket, &call, CALL_TIMEOUT).await?.api_version();
            choose_version(theirs.as_deref().unwrap_or_default())
        };
        self.version.get_or_try_init(|| negotiate).await.map(String::as_str)
    }

    /// The engine's information about itself and its machine.
    pub async fn info(&self) -> Result<Value, EngineFault> {
        self.json("ask for the engine's ways", Method::GET, "/info", None).await
    }

    /// Makes a container from a document of the API. Without a name, the engine chooses one.
    pub async fn create(&self, name: &str, document: &Value) -> Result<Created, EngineFault> {
        let name = if name.is_empty() { String::new() } else { format!("?name={}", escaped(name)) };
        let path = format!("/containers/create{name}");
        self.json("create the container", Method::POST, &path, Some(document)).await
    }

    /// One that runs already is left alone.
    pub async fn start(&self, name: &str) -> Result<(), EngineFault> {
        self.done("start the container", &format!("/containers/{}/start", escaped(name))).await
    }

    /// `None` if there is none.
    pub async fn inspect(&self, name: &str) -> Result<Option<Inspected>, EngineFault> {
        let path = format!("/containers/{}/json", escaped(name));
        let found = self.json::<Value>("inspect the container", Method::GET, &path, None).await;
        match fault::unless_missing(found)? {
            Some(raw) => Inspected::new(raw).map(Some),
            None => Ok(None),
        }
    }

    /// Begins to wait for the next end of a container. What is returned answers then.
    pub async fn wait(&self, name: &str) -> Result<Waiting, EngineFault> {
        let path = format!("/containers/{}/wait?condition=next-exit", escaped(name));
        self.open("wait for the container", Method::POST, &path, None).await.map(Waiting)
    }

    /// What a container writes from now on; nothing is missed if it has not started yet.
    pub async fn attach(&self, name: &str, has_terminal: bool) -> Result<Logs, EngineFault> {
        let path = format!("/containers/{}/attach?stream=1&stdout=1&stderr=1", escaped(name));
        let answer = self.open("attach to the container", Method::POST, &path, None).await?;
        Ok(Logs::new(answer, has_terminal))
    }

    /// Kills a container politely, and by force after `grace`. A missing or terminated container is a success.
    pub async fn stop(&self, name: &str, grace: Duration) -> Result<(), EngineFault> {
        let path = format!("/containers/{}/stop?t={}", escaped(name), grace.as_secs());
        let call = self.call("stop the container", Method::POST, &path, None).await?;
        let done = transport::send_call(&self.socket, &call, CALL_TIMEOUT.saturating_add(grace)).await;
        fault::unless_missing(done).map(drop)
    }

    /// Sends a signal, by its name, to a container's first process. One that is not there or does not run is fine.
    pub async fn kill(&self, name: &str, signal: &str) -> Result<(), EngineFault> {
        let path = format!("/containers/{}/kill?signal={}", escaped(name), escaped(signal));
        let done = self.done("signal the container", &path).await;
        fault::unless_missing(fault::unless_conflict(done)).map(drop)
    }

    /// Removes a container with its anonymous volumes, running or not. One that is not there is fine.
    pub async fn remove(&self, name: &str) -> Result<(), EngineFault> {
        let path = format!("/containers/{}?force=1&v=1", escaped(name));
        let call = self.call("remove the container", Method::DELETE, &path, None).await?;
        let done = transport::send_call(&self.socket, &call, CALL_TIMEOUT).await.map(drop);
        // In conflict with another removal that is under way already.
        fault::unless_missing(fault::unless_conflict(done)).map(drop)
    }

    /// Changes the limits of a running container.
    pub async fn update(&self, name: &str, limits: &Value) -> Result<(), EngineFault> {
        let path = format!("/containers/{}/update", escaped(name));
        self.json::<Value>("update the container", Method::POST, &path, Some(limits)).await.map(drop)
    }

    /// Every container whose name begins with `prefix`, running or not.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Listed>, EngineFault> {
        let filters = json!({"name": [format!("^/{prefix}")]}).to_string();
        let path = format!("/containers/json?all=1&filters={}", escaped(&filters));
        self.json("list containers", Method::GET, &path, None).await
    }

    /// Every container with a label, given as `key=value`, running or not.
    pub async fn list_labelled(&self, label: &str) -> Result<Vec<Listed>, EngineFault> {
        let filters = json!({"label": [label]}).to_string();
        let path = format!("/containers/json?all=1&filters={}", escaped(&filters));
        self.json("list containers", Method::GET, &path, None).await
    }

    /// What happens to a container from now on.
    pub async fn events(&self, id: &str) -> Result<ContainerEvents, EngineFault> {
        let filters = json!({"type": ["container"], "container": [id]}).to_string();
        let path = format!("/events?filters={}", escaped(&filters));
        self.open("subscribe to events of the container", Method::GET, &path, None)
            .await
            .map(ContainerEvents::new)
    }

    /// `None` if it is not there.
    pub async fn image(&self, image: &str) -> Result<Option<Image>, EngineFault> {
        // Slashes are part of the path here.
        let escaped: Vec<String> = image.split('/').map(escaped).collect();
        let path = format!("/images/{}/json", escaped.join("/"));
        fault::unless_missing(self.json("inspect the image", Method::GET, &path, None).await)
    }

    /// Brings an image from its registry. Without a tag or digest, `latest`. `auth` is what `X-Registry-Auth` takes.
    pub async fn pull(&self, image: &str, auth: Option<&str>) -> Result<(), EngineFault> {
        let (doing, (name, tag)) = ("pull the image", reference(image));
        let path = format!("/images/create?fromImage={}&tag={}", escaped(name), escaped(tag));
        let call = self.call(doing, Method::POST, &path, None).await?;
        let mut answer = transport::open(&self.socket, &call, auth, PULL_STALL_TIMEOUT).await?;
        let mut line = Vec::new();
        while let Some(chunk) = answer.chunk(PULL_STALL_TIMEOUT).await? {
            for byte in chunk {
                match byte {
                    b'\n' => progress(doing, &std::mem::take(&mut line))?,
                    byte if line.len() < LINE_BYTES_MAX => line.push(byte),
                    _ => return Err(EngineFault::TooLarge { doing, bytes_max: LINE_BYTES_MAX }),
                }
            }
        }
        progress(doing, &line)
    }

    /// Starts a command in a running container.
    pub async fn exec(&self, name: &str, exec: &Exec) -> Result<Execution, EngineFault> {
        let doing = EXECUTING;
        let document = json!({"Cmd": exec.arguments, "Env": exec.environment, "AttachStdout": true, "AttachStderr": true});
        let path = format!("/containers/{}/exec", escaped(name));
        let made: Created = self.json(doing, Method::POST, &path, Some(&document)).await?;
        let path = format!("/exec/{}/start", escaped(&made.id));
        let document = json!({"Detach": false, "Tty": false});
        let output = self.open(doing, Method::POST, &path, Some(&document)).await?;
        Ok(Execution { engine: self.clone(), id: made.id, output })
    }

    /// Whether a process of a container was OOM-killed since a time, in seconds. For terminations that `inspect` does
    /// not explain: the engine may have observed the exit before the kill.
    pub async fn was_out_of_memory(&self, name: &str, since: u64, now: u64) -> Result<bool, EngineFault> {
        let doing = "watch events of the container";
        let filters = json!({"container": [name], "event": ["oom"]}).to_string();
        let until = now + OOM_EVENT_DELAY_SECS;
        let path = format!("/events?since={since}&until={until}&filters={}", escaped(&filters));
        let mut answer = self.open(doing, Method::GET, &path, None).await?;
        Ok(answer.chunk(CALL_TIMEOUT).await?.is_some())
    }

    async fn call(
        &self,
        doing: &'static str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Call, EngineFault> {
        let path = format!("/v{}{path}", self.version().await?);
        Ok(Call { doing, method, path, body: body.map(Value::to_string) })
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        doing: &'static str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, EngineFault> {
        let call = self.call(doing, method, path, body).await?;
        let answer = transport::send_call(&self.socket, &call, CALL_TIMEOUT).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|err| EngineFault::Garbled { doing, why: err.to_string() })
    }

    async fn done(&self, doing: &'static str, path: &str) -> Result<(), EngineFault> {
        let call = self.call(doing, Method::POST, path, None).await?;
        transport::send_call(&self.socket, &call, CALL_TIMEOUT).await.map(drop)
    }

    async fn open(
        &self,
        doing: &'static str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<transport::Answer, EngineFault> {
        let call = self.call(doing, method, path, body).await?;
        transport::open(&self.socket, &call, None, CALL_TIMEOUT).await
    }
}

impl Execution {
    /// The exit code, once it has ended. Cancel safe.
    pub async fn exit_code(&mut self) -> Result<i64, EngineFault> {
        while self.output.endless_chunk().await?.is_some() {} // The output is not used.
        let garbled = || EngineFault::Garbled { doing: EXECUTING, why: "no exit code".into() };
        self.inspect().await?["ExitCode"].as_i64().ok_or_else(garbled)
    }

    /// The process, as the engine sees it; none if it has ended.
    pub async fn pid(&self) -> Result<Option<i32>, EngineFault> {
        for _ in 0..PID_LOOKS_MAX {
            let found = self.inspect().await?;
            let pid = found["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
            match (found["Running"] == true, pid.filter(|pid| *pid > 0)) {
                (true, Some(pid)) => return Ok(Some(pid)),
                _ if found["ExitCode"].is_number() => return Ok(None),
                // The engine answers before it has started anything.
                _ => tokio::time::sleep(PID_LOOK_EVERY).await,
            }
        }
        Ok(None)
    }

    async fn inspect(&self) -> Result<Value, EngineFault> {
        let path = format!("/exec/{}/json", escaped(&self.id));
        self.engine.json(EXECUTING, Method::GET, &path, None).await
    }
}

impl Waiting {
    /// The exit code, as soon as there is one.
    pub async fn exit_code(mut self) -> Result<i64, EngineFault> {
        let mut body = Vec::new();
        while let Some(chunk) = self.0.endless_chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(EngineFault::TooLarge { doing: self.0.doing, bytes_max: ANSWER_BYTES_MAX });
            }
        }
        let garbled = |why: String| EngineFault::Garbled { doing: self.0.doing, why };
        let ended: Value = serde_json::from_slice(&body).map_err(|err| garbled(err.to_string()))?;
        ended["StatusCode"].as_i64().ok_or_else(|| garbled(ended.to_string()))
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// An image's name, and its tag or digest.
fn reference(image: &str) -> (&str, &str) {
    if let Some((name, digest)) = image.split_once('@') {
        return (name, digest);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        Some(_) | None => (image, "latest"),
    }
}

/// A line of progress; the last one may report a failure.
fn progress(doing: &'static str, line: &[u8]) -> Result<(), EngineFault> {
    let told: Value = serde_json::from_slice(line).unwrap_or_default();
    match told["error"].as_str() {
        Some(message) => Err(EngineFault::Refused { doing, status: 0, message: message.to_owned() }),
        None => Ok(()),
    }
}

/// The newest version that both sides speak.
fn choose_version(theirs: &str) -> Result<String, EngineFault> {
    let parsed =
        theirs.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match parsed {
        Some(version) if version >= VERSION_MIN => {
            let (major, minor) = version.min(VERSION_MAX);
            Ok(format!("{major}.{minor}"))
        }
        Some(_) | None => Err(EngineFault::Version { theirs: theirs.to_owned(), min: VERSION_MIN }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_version_is_negotiated_and_image_references_are_split() {
        for (theirs, chosen) in [
            ("1.41", Some("1.41")),
            ("1.52", Some("1.44")),
            ("2.0", Some("1.44")),
            ("1.24", None),
            ("", None),
            ("x.y", None),
        ] {
            assert_eq!(choose_version(theirs).ok().as_deref(), chosen, "{theirs}");
        }
        for (image, expected) in [
            ("busybox", ("busybox", "latest")),
            ("busybox:1.36", ("busybox", "1.36")),
            ("host:5000/a/b", ("host:5000/a/b", "latest")),
            ("host:5000/a/b:c", ("host:5000/a/b", "c")),
            ("a/b@sha256:00ff", ("a/b", "sha256:00ff")),
        ] {
            assert_eq!(reference(image), expected);
        }
    }
}
