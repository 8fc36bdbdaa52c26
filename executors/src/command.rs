//! The command executor: runs the command of one task, without a nested container.

pub mod machine;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::signal::Signal;
use tepui_client::v1::TaskInfo;

use crate::checks::probe;
use crate::runner::{self, Perform, Reports};
use crate::{kill, process};
use machine::{CommandMachine, Effect, Ended, IoEvent, Started};

/// Runs a command executor until it exits. `args` are the arguments after those that select it; they are ignored.
pub fn main(args: &[String]) -> ExitCode {
    if let Some(code) = process::become_task() {
        return code;
    }
    let own_args = process::args_before(args);
    runner::run(|environment, reports| {
        let machine = CommandMachine::new("command", environment.shutdown_grace_period, None);
        (machine, CommandPerformer { sandbox: environment.sandbox.clone(), own_args, reports, pid: None })
    })
}

struct CommandPerformer {
    sandbox: PathBuf,
    own_args: Vec<String>,
    reports: Reports<IoEvent>,
    /// The command's pid. The machine sends no signal after its exit.
    pid: Option<i32>,
}

impl CommandPerformer {
    async fn start(&mut self, task: &TaskInfo) {
        let spawned = process::exits()
            .and_then(|exits| Ok((process::spawn(task, &self.own_args, &self.sandbox)?, exits)));
        let outcome = match spawned {
            Ok((pid, exits)) => {
                self.pid = Some(pid);
                self.reports.later(async move {
                    let ending = process::wait(pid, exits).await;
                    IoEvent::Ended(
                        ending
                            .map(Ended::from)
                            .map_err(|error| format!("Failed to get exit status for Command: {error}")),
                    )
                });
                Ok(Started::default())
            }
            Err(error) => Err(format!("Failed to start the command: {error}")),
        };
        // An error means that the executor has exited.
        let _ = self.reports.io_events.send(IoEvent::Spawned(outcome)).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            kill::signal_tree(pid, signal);
        }
    }
}

impl Perform<CommandMachine> for CommandPerformer {
    async fn perform(&mut self, effect: Effect) -> ControlFlow<ExitCode> {
        match effect {
            Effect::Update(status) => self.reports.update(status).await,
            Effect::Spawn(task) => self.start(&task).await,
            Effect::Signal(signal) => self.signal(signal),
            Effect::Probe(which, attempt) => {
                self.reports.later(async move { IoEvent::Probed(which, probe::make(&attempt).await) });
            }
            Effect::Exit(code) => return ControlFlow::Break(ExitCode::from(code)),
        }
        ControlFlow::Continue(())
    }
}
