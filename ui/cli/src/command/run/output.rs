//! Copies the output of the single task of a `tepui run` to our standard output and error.
//!
//! Retries from the current offset if the agent does not answer: agents restart under running tasks.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use tepui_client::Fault;
use tepui_client::operator::files::{FOLLOW_POLL, Tail};
use tepui_client::v1::TaskState;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::command::{Cluster, sandbox};

/// Limit for reading the rest of the output after the task has terminated.
const REST_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub struct Output {
    cluster: Cluster,
    wanted: bool,
    copying: Option<Copying>,
}

/// Two copies and the signal that the output is complete.
struct Copying {
    ended: watch::Sender<bool>,
    copies: Vec<JoinHandle<()>>,
}

impl Output {
    pub fn new(cluster: Cluster, wanted: bool) -> Self {
        Self { cluster, wanted, copying: None }
    }

    /// Starts copying when the task runs and finishes when it has terminated.
    pub async fn on_event(&mut self, task: &str, state: TaskState, ended: bool) {
        if !self.wanted {
            return;
        }
        let ran =
            matches!(state, TaskState::TASK_RUNNING | TaskState::TASK_FINISHED | TaskState::TASK_FAILED);
        if ran && self.copying.is_none() {
            self.copying = Some(self.start(task));
        }
        if let Some(copying) = self.copying.take_if(|_| ended) {
            copying.finish().await;
        }
    }

    fn start(&self, task: &str) -> Copying {
        let (ended, _) = watch::channel(false);
        let copies = ["stdout", "stderr"].map(|file| {
            let copy =
                Copy { cluster: self.cluster.clone(), task: task.to_string(), file, offset: 0, tail: None };
            tokio::spawn(copy.run(ended.subscribe()))
        });
        Copying { ended, copies: copies.into() }
    }
}

impl Copying {
    async fn finish(self) {
        self.ended.send_replace(true);
        for copy in self.copies {
            // A failed copy has printed its error; the task's status decides the exit code.
            let _ = copy.await;
        }
    }
}

/// The copy of one file.
struct Copy {
    cluster: Cluster,
    task: String,
    file: &'static str,
    offset: u64,
    /// None until the sandbox is found, and again after its agent did not answer: it may be elsewhere by then.
    tail: Option<Tail>,
}

impl Copy {
    /// Copies until the task has terminated and its output is complete.
    async fn run(mut self, mut ended: watch::Receiver<bool>) {
        let mut give_up_at = None;
        loop {
            // Read before the file, so that output written before the termination is not missed.
            let last = *ended.borrow();
            let pause = match self.more().await {
                Ok(true) => continue,
                Ok(false) if last => return,
                Ok(false) => FOLLOW_POLL,
                Err(error) => {
                    self.lost(&error);
                    let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + REST_TIMEOUT);
                    if last && Instant::now() >= give_up_at {
                        let file = self.file;
                        return eprintln!("tepui run: cannot read the rest of the task's {file}: {error:#}");
                    }
                    RETRY_PAUSE
                }
            };
            if !last {
                give_up_at = None;
            }
            // Poll again after a change or a pause.
            match last {
                true => tokio::time::sleep(pause).await,
                false => drop(tokio::time::timeout(pause, ended.changed()).await),
            }
        }
    }

    /// The agent is unreachable; one of the two copies prints it.
    fn lost(&mut self, error: &anyhow::Error) {
        if self.tail.take().is_some() && self.file == "stdout" {
            eprintln!("tepui run: cannot read the task's output, trying again: {error:#}");
        }
    }

    /// Copies the available output; false if there is none.
    async fn more(&mut self) -> Result<bool> {
        let tail = match &mut self.tail {
            Some(tail) => tail,
            None => {
                let sandbox = sandbox::find(&self.cluster, &self.task, None).await?;
                let path = format!("{}/{}", sandbox.directory, self.file);
                self.tail.insert(sandbox.agent.follow(&path, self.offset))
            }
        };
        match tail.available().await {
            Ok(data) => {
                self.offset = tail.offset();
                write(&data, self.file == "stderr");
                Ok(!data.is_empty())
            }
            Err(Fault::Refused { status: 404, .. }) => Ok(false), // Not written to yet.
            Err(fault) => Err(fault.into()),
        }
    }
}

fn write(data: &[u8], error: bool) {
    // A closed standard output does not kill the task.
    let _ = match error {
        true => std::io::stderr().lock().write_all(data),
        false => std::io::stdout().lock().write_all(data).and_then(|()| std::io::stdout().flush()),
    };
}
