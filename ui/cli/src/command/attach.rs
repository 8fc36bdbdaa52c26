//! `tepui attach`: a running task's own terminal.

use std::process::ExitCode;

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use tepui_client::Fault;

use super::console::{self, Attachment, DetachKeys, Outcome, Place};
use super::run::exit_code;
use super::{Cluster, block_on};
use crate::terminal;

/// What an agent answers if a task has no terminal.
const DISABLED: &str = "I/O switchboard server was disabled for this container";

/// Attach to the terminal of a task.
#[derive(Args)]
#[command(
    rename_all = "snake_case",
    after_help = "Exits with the task's code (128+N if signal N terminated it, 125 if it was lost) when it terminates, with 0 \
                  at the detach keys or if only its output ends."
)]
pub struct Attach {
    #[command(flatten)]
    cluster: Cluster,
    /// Do not forward standard input.
    #[arg(long)]
    no_input: bool,
    /// Key sequence that detaches and leaves the task running; empty for none.
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: String,
    /// Framework of the task, if the task ID is ambiguous.
    #[arg(long)]
    framework: Option<String>,
    /// Task ID, a prefix of it, or the task's name.
    task: String,
}

impl Attach {
    pub fn run(self) -> Result<ExitCode> {
        block_on(self.attach()).map(ExitCode::from)
    }

    async fn attach(self) -> Result<u8> {
        let detach = DetachKeys::parse(&self.detach_keys).context("--detach_keys")?;
        let place = console::place(&self.cluster, &self.task, self.framework.as_deref()).await?;
        let Place { agent, container, .. } = &place;
        let output = agent.attach_output(container).await.map_err(explain)?;
        let input = match self.no_input {
            true => None,
            false => {
                let terminal = terminal::is_terminal(std::io::stdin());
                Some((agent.attach_input(container).await?, Attachment { keys: true, terminal, detach }))
            }
        };
        Ok(match console::run(output, input).await? {
            Outcome::Ended => place.end_of_task().await.as_ref().and_then(exit_code).unwrap_or(0),
            Outcome::Detached => 0,
            Outcome::Signalled(code) => code,
        })
    }
}

fn explain(fault: Fault) -> Error {
    match fault {
        Fault::Refused { message, .. } if message == DISABLED => anyhow!(
            "the task has no terminal to attach to\n\
             launch it with one (`container.tty_info`), read its output with `tepui logs`, \
             or run a command in its container with `tepui exec`"
        ),
        fault => Error::from(fault).context("cannot attach to the container"),
    }
}
