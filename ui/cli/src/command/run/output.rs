//! Copies what the one task of a `tepui run` writes to our own standard output and error, until it ends.

use std::io::Write;

use anyhow::{Context, Result};
use tepui_client::Fault;
use tepui_client::operator::files::{FOLLOW_POLL, Tail};
use tepui_client::v1::TaskState;
use tokio::task::JoinHandle;

use crate::command::{Cluster, sandbox};

pub struct Output {
    cluster: Cluster,
    wanted: bool,
    copying: Option<Copying>,
}

/// Two tails and the signal that nothing will be added any more.
struct Copying {
    ended: tokio::sync::watch::Sender<bool>,
    copies: Vec<JoinHandle<()>>,
}

impl Output {
    pub fn new(cluster: Cluster, wanted: bool) -> Self {
        Self { cluster, wanted, copying: None }
    }

    /// Hears of a state of the task: starts copying when it runs, finishes when it has ended.
    pub async fn read(&mut self, task: &str, state: TaskState) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        let running =
            matches!(state, TaskState::TASK_RUNNING | TaskState::TASK_FINISHED | TaskState::TASK_FAILED);
        if running && self.copying.is_none() {
            self.copying = Some(self.start(task).await?);
        }
        let ended =
            !matches!(state, TaskState::TASK_STARTING | TaskState::TASK_RUNNING | TaskState::TASK_KILLING);
        if let Some(copying) = self.copying.take_if(|_| ended) {
            copying.finish().await;
        }
        Ok(())
    }

    async fn start(&self, task: &str) -> Result<Copying> {
        let sandbox =
            sandbox::find(&self.cluster, task, None).await.context("cannot find the task's output")?;
        let (ended, _) = tokio::sync::watch::channel(false);
        let copies = ["stdout", "stderr"]
            .into_iter()
            .map(|file| {
                let tail = sandbox.agent.follow(&format!("{}/{file}", sandbox.directory), 0);
                tokio::spawn(copy(tail, file == "stderr", ended.subscribe()))
            })
            .collect();
        Ok(Copying { ended, copies })
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

/// Copies until the task has ended and everything it wrote is here.
async fn copy(mut tail: Tail, error: bool, mut ended: tokio::sync::watch::Receiver<bool>) {
    loop {
        // Read before looking at the file, so that what was written before the end is not missed.
        let last = *ended.borrow();
        match tail.available().await {
            Ok(data) if !data.is_empty() => write(&data, error),
            Ok(_) | Err(Fault::Refused { status: 404, .. }) if last => return,
            Ok(_) | Err(Fault::Refused { status: 404, .. }) => {
                // A changed end or a little time: both lead to another look.
                let _ = tokio::time::timeout(FOLLOW_POLL, ended.changed()).await;
            }
            Err(fault) => {
                eprintln!("tepui run: cannot read the task's output: {fault}");
                return;
            }
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
