//! `tepui logs`: the output of a task.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::Fault;
use tepui_client::operator::Client;
use tepui_client::operator::files::{FOLLOW_POLL, Tail};

use super::sandbox::Sandbox;
use super::task_state::TaskState;
use super::{Cluster, block_on, files, find, sandbox};
use crate::listing::text;
use crate::output;

/// The interval of checks whether a followed task has terminated.
const END_POLL: std::time::Duration = std::time::Duration::from_secs(2);

/// The block size of backward reads.
const BACKWARD_BYTES: u64 = 64 * 1024;

/// Print a file in the sandbox of a task.
#[derive(Args)]
pub struct Logs {
    #[command(flatten)]
    cluster: Cluster,
    /// Print new output until the task terminates.
    #[arg(long, short)]
    follow: bool,
    /// Start this many lines before the end.
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u64>,
    /// Framework of the task, if the task ID is ambiguous.
    #[arg(long)]
    framework: Option<String>,
    /// Task ID, a prefix of it, or the task's name.
    task: String,
    /// File in the sandbox.
    #[arg(default_value = "stdout")]
    file: String,
}

impl Logs {
    pub fn run(self) -> Result<ExitCode> {
        block_on(self.print())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn print(&self) -> Result<()> {
        let sandbox = sandbox::find(&self.cluster, &self.task, self.framework.as_deref()).await?;
        let path = format!("{}/{}", sandbox.directory, self.file.trim_start_matches('/'));
        let offset = match self.lines {
            Some(lines) => last_lines(&sandbox.agent, &path, lines).await,
            None => Ok(0),
        };
        let mut tail = match offset {
            Ok(offset) => sandbox.agent.follow(&path, offset),
            Err(Fault::Refused { status: 404, .. }) if self.follow => sandbox.agent.follow(&path, 0),
            Err(fault) => return Err(self.explain(fault, &sandbox, &path).await),
        };
        match self.copy(&mut tail).await {
            Err(Fault::Refused { status: 404, .. }) if self.follow => {}
            Err(fault) => return Err(self.explain(fault, &sandbox, &path).await),
            Ok(written) => written?,
        }
        match self.follow {
            true => self.follow(&mut tail, &sandbox).await,
            false => Ok(()),
        }
    }

    /// Copies the available output; the inner result is that of our own output.
    async fn copy(&self, tail: &mut Tail) -> Result<Result<()>, Fault> {
        loop {
            let data = tail.available().await?;
            if data.is_empty() {
                return Ok(Ok(()));
            }
            if let Err(error) = output::bytes(&data) {
                return Ok(Err(error));
            }
        }
    }

    /// Copies output until the task has terminated and all of it is copied.
    async fn follow(&self, tail: &mut Tail, sandbox: &Sandbox) -> Result<()> {
        let mut polled_at = Instant::now();
        let mut last = !TaskState::of(&sandbox.task).is_live();
        loop {
            match self.copy(tail).await {
                Ok(written) => written?,
                Err(Fault::Refused { status: 404, .. }) => {} // Not written to yet.
                Err(fault) => return Err(fault).context("the task's agent does not answer any more"),
            }
            if last {
                return Ok(());
            }
            tokio::time::sleep(FOLLOW_POLL).await;
            if polled_at.elapsed() >= END_POLL {
                polled_at = Instant::now();
                last = self.has_ended(sandbox).await;
            }
        }
    }

    /// Whether the task has terminated; false if the master does not answer.
    async fn has_ended(&self, sandbox: &Sandbox) -> bool {
        let (id, framework) = (text(&sandbox.task, "id"), text(&sandbox.task, "framework_id"));
        match find::task(&self.cluster, id, Some(framework)).await {
            Ok(task) => !TaskState::of(&task).is_live(),
            Err(_) => false,
        }
    }

    /// The fault with an explanation; for a missing file, the existing ones.
    async fn explain(&self, fault: Fault, sandbox: &Sandbox, path: &str) -> anyhow::Error {
        match fault {
            Fault::Refused { status: 404, .. } => {
                let siblings = files::siblings(sandbox, path).await;
                anyhow::anyhow!("{}", files::missing(&self.file, &siblings, &self.task))
            }
            Fault::Refused { status: 400, .. } => {
                anyhow::anyhow!(
                    "{:?} is a directory; `tepui files {} {}` lists it",
                    self.file,
                    self.task,
                    self.file
                )
            }
            fault => anyhow::Error::from(fault).context(format!("cannot read {path}")),
        }
    }
}

/// Where the last lines of a file begin.
async fn last_lines(agent: &Client, path: &str, lines: u64) -> Result<u64, Fault> {
    let size = agent.read(path, None, None).await?.offset;
    let mut counter = LineCounter { left: lines, first: true };
    let mut end = size;
    while end > 0 {
        let start = end.saturating_sub(BACKWARD_BYTES);
        let data = agent.read(path, Some(start), Some(end - start)).await?.data;
        if let Some(begin) = counter.scan(&data) {
            return Ok(start + begin as u64);
        }
        end = start;
    }
    Ok(0)
}

/// Counts lines from the end of a file backwards.
struct LineCounter {
    left: u64,
    /// No byte was read yet: a line feed at the end of the file terminates a line.
    first: bool,
}

impl LineCounter {
    /// Looks at the piece before the last one: where in it the wanted lines begin, if they do.
    fn scan(&mut self, piece: &[u8]) -> Option<usize> {
        for (place, byte) in piece.iter().enumerate().rev() {
            let is_last = std::mem::take(&mut self.first);
            if *byte != b'\n' || (is_last && self.left > 0) {
                continue;
            }
            if self.left <= 1 {
                return Some(place + 1);
            }
            self.left -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_the_end() {
        let table = [
            ("a\nb\nc\n", 1, Some(4)),
            ("a\nb\nc", 1, Some(4)),
            ("a\nb\nc\n", 2, Some(2)),
            ("a\nb\nc\n", 3, None),
            ("a\nb\nc\n", 9, None),
            ("a\nb\nc\n", 0, Some(6)),
            ("\n\n\n", 1, Some(2)),
            ("", 1, None),
        ];
        for (text, lines, expected) in table {
            let mut whole = LineCounter { left: lines, first: true };
            assert_eq!(whole.scan(text.as_bytes()), expected, "{text:?} {lines}");
            // The result does not depend on the block size.
            let mut counter = LineCounter { left: lines, first: true };
            let bytes = text.as_bytes();
            let found = (0..bytes.len())
                .rev()
                .find_map(|place| counter.scan(&bytes[place..=place]).map(|begin| place + begin));
            assert_eq!(found, expected, "{text:?} {lines}");
        }
    }
}
