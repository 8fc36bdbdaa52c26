//! A person at a container: what it writes is shown, what is typed goes to it, its terminal is as large as ours.
//!
//! Output and input do not wait for each other: a program may want to say much before it reads.

mod detach;

use std::io::{Read, Write, stderr, stdin, stdout};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tepui_client::operator::Client;
use tepui_client::operator::attach::{Input, Output};
use tepui_client::operator::session::{Heard, Said};
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
/// So many pieces may be typed and not sent yet; then the terminal, or who writes to our input, waits.
const KEYS_QUEUE_MAX: usize = 16;

/// A task whose output ended has usually ended; its executor says so within this time.
const END_TOLD_WITHIN_MAX: Duration = Duration::from_secs(10);
const END_ASKED_EVERY: Duration = Duration::from_millis(100);

/// What a shell adds to the number of a signal.
const SIGNAL_CODE: u8 = 128;

/// A running task: who has it, and in which container it is.
pub struct Place {
    pub agent: Client,
    pub container: ContainerID,
    task: String,
    framework: String,
}

impl Place {
    /// The last status of the task, if its agent has one soon: of a task that ended, how.
    pub async fn end_of_task(&self) -> Option<TaskStatus> {
        let told = async {
            loop {
                if let Some(status) = self.terminal_status().await {
                    return status;
                }
                tokio::time::sleep(END_ASKED_EVERY).await;
            }
        };
        tokio::time::timeout(END_TOLD_WITHIN_MAX, told).await.ok()
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

/// Finds the container of the task that is meant.
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
pub struct Wish {
    /// What is typed.
    pub keys: bool,
    /// Our terminal as its own.
    pub terminal: bool,
    pub detach: Option<DetachKeys>,
}

/// How it came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// All was said.
    Ended,
    /// The person pressed the keys for it.
    Detached,
    /// The exit code of who was told to end.
    Told(u8),
}

/// Sits at a container to its end, or until the person leaves; without input only to look.
pub async fn sit(mut output: Output, input: Option<(Input, Wish)>) -> Result<Left> {
    let mut signals = Signals::listen()?;
    let wants_raw = input.as_ref().is_some_and(|(_, wish)| wish.terminal && wish.keys);
    let _raw = wants_raw.then(|| Raw::enter(stdin())).transpose()?;
    let mut typing = Typing(input.map(|(input, wish)| tokio::spawn(type_in(input, wish))));
    loop {
        tokio::select! {
            heard = output.next() => match heard.context("the connection to the container is lost")? {
                Some(Heard::Stdout(bytes)) => show(stdout(), &bytes)?,
                Some(Heard::Stderr(bytes)) => show(stderr(), &bytes)?,
                None => return Ok(Left::Ended),
            },
            typed = typing.next() => if typed? == Typed::Detached {
                return Ok(Left::Detached);
            },
            code = signals.next() => return Ok(Left::Told(code)),
        }
    }
}

fn show(mut to: impl Write, bytes: &[u8]) -> Result<()> {
    to.write_all(bytes).and_then(|()| to.flush()).context("cannot write")
}

/// How typing came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    Detached,
    /// Nobody hears any more; whether that is the end is told by the output.
    Unheard,
}

/// The task that types, until it is over.
struct Typing(Option<JoinHandle<Result<Typed, Fault>>>);

impl Typing {
    /// Its end, once. Safe to abandon.
    async fn next(&mut self) -> Result<Typed> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let typed = task.await;
        self.0 = None;
        match typed.context("typing failed")? {
            Err(Fault::Refused { status: 409, .. }) => {
                bail!("somebody else types into it; one at a time can")
            }
            Err(fault @ Fault::Refused { status: 400 | 401 | 403, .. }) => Err(fault.into()),
            // It may have ended before we came; its output tells the rest.
            Err(_) => Ok(Typed::Unheard),
            Ok(typed) => Ok(typed),
        }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn type_in(mut input: Input, wish: Wish) -> Result<Typed, Fault> {
    let mut detach = wish.detach.filter(|_| wish.terminal);
    let mut windows = wish.terminal.then(|| unix::signal(SignalKind::window_change()).ok()).flatten();
    let mut keys = wish.keys.then(keys);
    if wish.terminal {
        say_window(&input).await;
    } else if !wish.keys {
        input.say(Said::End).await;
    }
    loop {
        tokio::select! {
            ended = input.ended() => return ended.map(|()| Typed::Unheard),
            () = resized(&mut windows) => say_window(&input).await,
            typed = typed(&mut keys) => match (typed, &mut detach) {
                (Some(bytes), Some(detach)) => {
                    let (bytes, is_left) = detach.take(&bytes);
                    if !bytes.is_empty() {
                        input.say(Said::Keys(bytes)).await;
                    }
                    if is_left {
                        return Ok(Typed::Detached);
                    }
                }
                (Some(bytes), None) => input.say(Said::Keys(bytes)).await,
                (None, _) => {
                    keys = None;
                    input.say(Said::End).await;
                }
            }
        }
    }
}

async fn say_window(input: &Input) {
    if let Some((rows, columns)) = terminal::own_size() {
        input.say(Said::Window { rows, columns }).await;
    }
}

async fn resized(windows: &mut Option<unix::Signal>) {
    match windows {
        Some(windows) => drop(windows.recv().await),
        None => std::future::pending().await,
    }
}

/// The next piece of what was typed; `None` at its end, once.
async fn typed(keys: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match keys {
        Some(keys) => keys.recv().await,
        None => std::future::pending().await,
    }
}

/// Standard input, read by a thread that is left behind at the end: a read cannot be called off.
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

/// Signals that end us, as exit codes. With a terminal that passes keys on, only others send them.
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
