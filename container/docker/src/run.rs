//! A container from its document to its exit code, with its output passed on: the work of the process that represents
//! it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::{Engine, EngineFault, Logs, Stream, Waiting};

/// The environment variable that holds a [`Setup`], as JSON.
const SETUP: &str = "TEPUI_DOCKER";

/// An engine that is being replaced may be away for so long; its containers may go on meanwhile.
const ENGINE_AWAY_MAX: Duration = Duration::from_secs(60);
const ENGINE_LOOK_EVERY: Duration = Duration::from_millis(500);
/// What a container wrote last may be so much later than its end.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);

/// Parameters of the process that represents a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    pub socket: PathBuf,
    /// Of the container.
    pub name: String,
    /// Of which the container is made.
    pub document: Value,
    /// Default grace period of a container.
    pub stop_timeout: Duration,
    /// Where our cgroups are, below each mount.
    pub cgroups_root: PathBuf,
    /// A file for an [`OutOfMemory`](crate::OutOfMemory), if the process has no other way to report it.
    pub end: Option<PathBuf>,
}

impl Setup {
    /// The environment variable to give to the process.
    pub fn to_env(&self) -> (String, String) {
        let text = serde_json::to_string(self).expect("names are text");
        (String::from(SETUP), text)
    }

    /// The parameters of this process, or a complete error message.
    pub fn from_env() -> Result<Setup, String> {
        let text = std::env::var(SETUP).map_err(|err| format!("{SETUP} is not set: {err}"))?;
        serde_json::from_str(&text).map_err(|err| format!("{SETUP} is invalid: {err}"))
    }
}

/// What a container runs, in the words of the engine; what is not given is the image's own.
pub fn command(shell: bool, value: Option<&str>, arguments: &[String]) -> Value {
    match value {
        Some(value) if shell => json!({"Entrypoint": ["/bin/sh"], "Cmd": ["-c", value]}),
        value => {
            let words: Vec<&str> = value.into_iter().chain(arguments.iter().map(String::as_str)).collect();
            if words.is_empty() { json!({}) } else { json!({"Cmd": words}) }
        }
    }
}

/// Where this process writes to, without waiting for it.
#[derive(Debug)]
pub struct Output {
    stdout: File,
    stderr: File,
}

impl Output {
    pub fn own() -> io::Result<Output> {
        let file = |own: BorrowedFd<'_>| Ok::<_, io::Error>(File::from_std(own.try_clone_to_owned()?.into()));
        Ok(Output { stdout: file(io::stdout().as_fd())?, stderr: file(io::stderr().as_fd())? })
    }
}

/// A container that was started.
#[derive(Debug)]
pub struct Running {
    engine: Engine,
    name: String,
    logs: Logs,
    waiting: Waiting,
    has_terminal: bool,
}

/// Makes and starts a container. One that cannot be started is removed again.
pub async fn start(engine: &Engine, name: &str, document: &Value) -> Result<Running, EngineFault> {
    engine.create(name, document).await?;
    let started = async {
        let has_terminal = document["Tty"].as_bool().unwrap_or(false);
        let logs = engine.attach(name, has_terminal).await?;
        let waiting = engine.wait(name).await?;
        engine.start(name).await?;
        Ok(Running { engine: engine.clone(), name: name.to_owned(), logs, waiting, has_terminal })
    };
    let started = started.await;
    if started.is_err() {
        engine.remove(name).await.ok(); // The caller retries when it destroys the container.
    }
    started
}

impl Running {
    /// Passes the output on to our own until the container has ended, and gives its exit code.
    pub async fn follow(self, output: Output) -> Result<i64, EngineFault> {
        let Output { mut stdout, mut stderr } = output;
        let Running { engine, name, mut logs, waiting, has_terminal } = self;
        let mut ended = Box::pin(exit_code(&engine, &name, waiting));
        let mut pass_on = async |(stream, piece): (Stream, Vec<u8>)| match stream {
            Stream::Stdout => write(&mut stdout, &piece).await,
            Stream::Stderr => write(&mut stderr, &piece).await,
        };
        let code = loop {
            tokio::select! {
                code = &mut ended => break code,
                more = logs.next() => match more {
                    Ok(Some(piece)) => pass_on(piece).await,
                    Ok(None) | Err(_) => tokio::select! {
                        code = &mut ended => break code,
                        again = attach_again(&engine, &name, has_terminal) => logs = again,
                    },
                },
            }
        };
        let rest = async {
            while let Ok(Some(piece)) = logs.next().await {
                pass_on(piece).await;
            }
        };
        tokio::time::timeout(LAST_WORDS_MAX, rest).await.ok();
        code
    }
}

/// What cannot be written is lost: the container must not stand still for it.
async fn write(to: &mut File, piece: &[u8]) {
    if to.write_all(piece).await.is_ok() {
        to.flush().await.ok();
    }
}

/// The engine may come back after a restart. A container that closed its output writes nothing more.
async fn attach_again(engine: &Engine, name: &str, has_terminal: bool) -> Logs {
    loop {
        tokio::time::sleep(ENGINE_LOOK_EVERY).await;
        if let Ok(logs) = engine.attach(name, has_terminal).await {
            return logs;
        }
    }
}

/// The exit code, also from an engine that was replaced while the container ran.
async fn exit_code(engine: &Engine, name: &str, waiting: Waiting) -> Result<i64, EngineFault> {
    let mut fault = match waiting.exit_code().await {
        Ok(code) => return Ok(code),
        Err(fault) => fault,
    };
    let mut away = Duration::ZERO;
    while away < ENGINE_AWAY_MAX {
        match engine.inspect(name).await {
            Ok(Some(found)) if !found.state.running => return Ok(found.state.exit_code),
            Ok(Some(_)) => away = Duration::ZERO,
            Ok(None) => return Err(fault),
            Err(err) => {
                fault = err;
                away += ENGINE_LOOK_EVERY;
            }
        }
        tokio::time::sleep(ENGINE_LOOK_EVERY).await;
    }
    Err(fault)
}
