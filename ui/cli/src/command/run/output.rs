//! Copies what the one task of a `tepui run` writes to our own standard output and error, until it ends.
//!
//! An agent that does not answer is asked again, from where the copy is: agents restart under running tasks.

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

/// How long the rest of the output is tried for after the task has ended.
const REST_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before an agent that did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub struct Output {
    cluster: Cluster,
    wanted: bool,
    copying: Option<Copying>,
}

/// Two copies and the signal that nothing will be added any more.
struct Copying {
    ended: watch::Sender<bool>,
    copies: Vec<JoinHandle<()>>,
}

impl Output {
    pub fn new(cluster: Cluster, wanted: bool) -> Self {
        Self { cluster, wanted, copying: None }
    }

    /// Hears of a state of the task: starts copying when it runs, finishes when it has ended.
    pub async fn hear(&mut self, task: &str, state: TaskState, ended: bool) {
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
            // A copy that failed has said why; the task's own end is what counts.
            let _ = copy.await;
        }
    }
}

/// One file of the task on its way.
struct Copy {
    cluster: Cluster,
    task: String,
    file: &'static str,
    offset: u64,
    /// None until the sandbox is found, and again after its agent did not answer: it may be elsewhere by then.
    tail: Option<Tail>,
}

impl Copy {
    /// Copies until the task has ended and everything it wrote is here.
    async fn run(mut self, mut ended: watch::Receiver<bool>) {
        let mut give_up_at = None;
        loop {
            // Read before looking at the file, so that what was written before the end is not missed.
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
            // A changed end or a little time: both lead to another look.
            match last {
                true => tokio::time::sleep(pause).await,
                false => drop(tokio::time::timeout(pause, ended.changed()).await),
            }
        }
    }

    /// The agent, or the way to it, is gone; of the two copies one says so.
    fn lost(&mut self, error: &anyhow::Error) {
        if self.tail.take().is_some() && self.file == "stdout" {
            eprintln!("tepui run: cannot read the task's output, trying again: {error:#}");
        }
    }

    /// Copies what there is now; false if there is nothing new.
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
    // Our own output being closed is no reason to end the task.
    let _ = match error {
        true => std::io::stderr().lock().write_all(data),
        false => std::io::stdout().lock().write_all(data).and_then(|()| std::io::stdout().flush()),
    };
}
