//! An interactive session with a container: output, input, window size.
//!
//! Output and input are independent: a program may write much before it reads.

mod detach;

use std::io::{Read, Write, stderr, stdin, stdout};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tepui_client::operator::Client;
use tepui_client::operator::attach::{Input, Output};
use tepui_client::operator::session::{ContainerInput, ContainerOutput};
use tepui_client::v1::agent::{Call, call};
use tepui_client::v1::{ContainerID, Task, TaskStatus};
use tepui_client::{Fault, shorthand};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use detach::DetachKeys;

use super::task_state::TaskState;
use super::{Cluster, find, sandbox};
use crate::listing::{lists, text};
use crate::terminal::{self, Raw};

/// How much is read from standard input at once.
const KEYS_BYTES_MAX: usize = 4096;
/// Pending pieces of input; then reading from standard input blocks.
const KEYS_QUEUE_MAX: usize = 16;

/// Limit of the wait for the terminal status after the output of a task ended.
const TERMINAL_STATUS_TIMEOUT: Duration = Duration::from_secs(10);
const TERMINAL_STATUS_POLL: Duration = Duration::from_millis(100);

/// What a shell adds to the number of a signal.
const SIGNAL_CODE: u8 = 128;

/// A running task with its agent and container.
pub struct Place {
    pub agent: Client,
    pub container: ContainerID,
    task: String,
    framework: String,
}

impl Place {
    /// The terminal status of the task, if it arrives in time.
    pub async fn end_of_task(&self) -> Option<TaskStatus> {
        let status = async {
            loop {
                if let Some(status) = self.terminal_status().await {
                    return status;
                }
                tokio::time::sleep(TERMINAL_STATUS_POLL).await;
            }
        };
        tokio::time::timeout(TERMINAL_STATUS_TIMEOUT, status).await.ok()
    }

    async fn terminal_status(&self) -> Option<TaskStatus> {
        let call = Call { r#type: Some(call::Type::GET_TASKS), ..Default::default() };
        let answer = self.agent.agent(&call).await.ok()?;
        let mut tasks = answer.get_tasks.terminated_tasks.iter().chain(&answer.get_tasks.completed_tasks);
        let is_ours =
            |task: &&Task| task.task_id.value == self.task && task.framework_id.value == self.framework;
        tasks.rfind(is_ours)?.statuses.last().cloned()
    }
}

/// Finds the container of a task.
pub async fn place(cluster: &Cluster, task: &str, framework: Option<&str>) -> Result<Place> {
    let task = find::task(cluster, task, framework).await?;
    let state = TaskState::of(&task);
    if !state.is_live() {
        bail!("task {} does not run any more: it is {}", text(&task, "id"), state.shown());
    }
    let statuses: Vec<&Value> = lists(&task, &["statuses"]).collect();
    let last = statuses.iter().rev().map(|status| &status["container_status"]["container_id"]);
    let container = last.filter_map(container).next().with_context(|| {
        format!("task {} has no container yet: it is {}", text(&task, "id"), state.shown())
    })?;
    let (id, framework) = (text(&task, "id").to_owned(), text(&task, "framework_id").to_owned());
    Ok(Place { agent: sandbox::agent_of(cluster, &task).await?, container, task: id, framework })
}

/// A container's id with all of its parents.
fn container(id: &Value) -> Option<ContainerID> {
    let mut found = shorthand::container_id(id["value"].as_str()?);
    found.parent = container(&id["parent"]).into();
    Some(found)
}

/// What of ours a container gets.
pub struct Attachment {
    /// What is typed.
    pub keys: bool,
    /// Our terminal as its own.
    pub terminal: bool,
    pub detach: Option<DetachKeys>,
}

/// The outcome of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The output ended.
    Ended,
    /// The person pressed the keys for it.
    Detached,
    /// Interrupted by a signal; the exit code.
    Signalled(u8),
}

/// Runs a session until the output ends or the user detaches; without input it is read-only.
pub async fn run(mut output: Output, input: Option<(Input, Attachment)>) -> Result<Outcome> {
    let mut signals = Signals::listen()?;
    let wants_raw = input.as_ref().is_some_and(|(_, attachment)| attachment.terminal && attachment.keys);
    let _raw = wants_raw.then(|| Raw::enter(stdin())).transpose()?;
    let mut input_task =
        InputTask(input.map(|(input, attachment)| tokio::spawn(send_input(input, attachment))));
    loop {
        tokio::select! {
            heard = output.next() => match heard.context("the connection to the container is lost")? {
                Some(ContainerOutput::Stdout(bytes)) => show(stdout(), &bytes)?,
                Some(ContainerOutput::Stderr(bytes)) => show(stderr(), &bytes)?,
                None => return Ok(Outcome::Ended),
            },
            typed = input_task.next() => if typed? == InputEnd::Detached {
                return Ok(Outcome::Detached);
            },
            code = signals.next() => return Ok(Outcome::Signalled(code)),
        }
    }
}

fn show(mut to: impl Write, bytes: &[u8]) -> Result<()> {
    to.write_all(bytes).and_then(|()| to.flush()).context("cannot write")
}

/// The outcome of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputEnd {
    Detached,
    /// The input stream is closed; the output determines the outcome.
    Closed,
}

/// The background task that sends input.
struct InputTask(Option<JoinHandle<Result<InputEnd, Fault>>>);

impl InputTask {
    /// Its outcome, once. Cancel safe.
    async fn next(&mut self) -> Result<InputEnd> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let typed = task.await;
        self.0 = None;
        match typed.context("typing failed")? {
            Err(Fault::Refused { status: 409, .. }) => {
                bail!("another client is attached to its input")
            }
            Err(fault @ Fault::Refused { status: 400 | 401 | 403, .. }) => Err(fault.into()),
            // The container may have terminated already; the output determines the outcome.
            Err(_) => Ok(InputEnd::Closed),
            Ok(typed) => Ok(typed),
        }
    }
}

impl Drop for InputTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn send_input(mut input: Input, attachment: Attachment) -> Result<InputEnd, Fault> {
    let mut detach = attachment.detach.filter(|_| attachment.terminal);
    let mut windows = attachment.terminal.then(|| unix::signal(SignalKind::window_change()).ok()).flatten();
    let mut keys = attachment.keys.then(keys);
    if attachment.terminal {
        send_window_size(&input).await;
    } else if !attachment.keys {
        input.send(ContainerInput::End).await;
    }
    loop {
        tokio::select! {
            ended = input.ended() => return ended.map(|()| InputEnd::Closed),
            () = resized(&mut windows) => send_window_size(&input).await,
            typed = typed(&mut keys) => match (typed, &mut detach) {
                (Some(bytes), Some(detach)) => {
                    let (bytes, is_left) = detach.take(&bytes);
                    if !bytes.is_empty() {
                        input.send(ContainerInput::Keys(bytes)).await;
                    }
                    if is_left {
                        return Ok(InputEnd::Detached);
                    }
                }
                (Some(bytes), None) => input.send(ContainerInput::Keys(bytes)).await,
                (None, _) => {
                    keys = None;
                    input.send(ContainerInput::End).await;
                }
            }
        }
    }
}

async fn send_window_size(input: &Input) {
    if let Some((rows, columns)) = terminal::own_size() {
        input.send(ContainerInput::Window { rows, columns }).await;
    }
}

async fn resized(windows: &mut Option<unix::Signal>) {
    match windows {
        Some(windows) => drop(windows.recv().await),
        None => std::future::pending().await,
    }
}

/// The next piece of input; `None` at its end, once.
async fn typed(keys: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match keys {
        Some(keys) => keys.recv().await,
        None => std::future::pending().await,
    }
}

/// Standard input, read by a thread that is detached on exit: a blocking read cannot be cancelled.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (sender, keys) = mpsc::channel(KEYS_QUEUE_MAX);
    std::thread::spawn(move || {
        let mut piece = [0; KEYS_BYTES_MAX];
        let mut stdin = stdin().lock();
        while let Ok(length @ 1..) = stdin.read(&mut piece) {
            if sender.blocking_send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    keys
}

/// Terminating signals as exit codes. With a raw terminal they come from other processes only.
struct Signals {
    hangup: unix::Signal,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let listen = |kind| unix::signal(kind).context("cannot wait for signals");
        Ok(Self {
            hangup: listen(SignalKind::hangup())?,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.hangup.recv() => SIGNAL_CODE + 1,
            _ = self.interrupt.recv() => SIGNAL_CODE + 2,
            _ = self.terminate.recv() => SIGNAL_CODE + 15,
        }
    }
}
