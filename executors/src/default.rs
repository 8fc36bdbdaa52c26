//! The default executor: runs groups of tasks, each task in a nested container that the agent makes.

pub mod calls;
pub mod machine;
mod nested;

use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use nix::sys::signal::Signal;
use tepui_client::executor::Environment;
use tepui_client::operator::Client;
use tepui_client::v1::ContainerID;
use tracing::warn;

use crate::checks::{CheckKind, Probe, Target, probe};
use crate::runner::{self, Perform, Reports};
use machine::{DefaultMachine, Effect, Id, IoEvent};

/// Runs a default executor until it exits. Arguments are ignored.
pub fn main(_args: &[String]) -> ExitCode {
    runner::run(|environment, reports| {
        let client = Client::at(environment.agent.clone()).with_credential(environment.credential.clone());
        let performer = DefaultPerformer {
            client,
            sandbox: environment.sandbox.clone(),
            container_ip: container_ip(environment),
            reports,
        };
        (DefaultMachine::new(environment.shutdown_grace_period), performer)
    })
}

/// The address at which tasks, which share the executor's network, can be reached.
fn container_ip(environment: &Environment) -> String {
    let own = std::env::var("LIBPROCESS_IP").ok().filter(|ip| !ip.is_empty() && ip != "0.0.0.0");
    own.unwrap_or_else(|| environment.agent.host.clone())
}

struct DefaultPerformer {
    client: Client,
    sandbox: PathBuf,
    container_ip: String,
    reports: Reports<IoEvent>,
}

impl DefaultPerformer {
    /// `tasks/<id>` in the executor's sandbox leads to the sandbox of the task.
    fn link(&self, id: &Id, container: &ContainerID) {
        let mut components = Path::new(id).components();
        if !matches!((components.next(), components.next()), (Some(Component::Normal(_)), None)) {
            warn!(task = id, "not a file name; its sandbox has no link");
            return;
        }
        let tasks = self.sandbox.join("tasks");
        let target = self.sandbox.join("containers").join(&container.value);
        let made =
            std::fs::create_dir_all(&tasks).and_then(|()| std::os::unix::fs::symlink(target, tasks.join(id)));
        if let Err(error) = made {
            warn!(task = id, %error, "cannot link its sandbox");
        }
    }

    fn kill(&self, container: &ContainerID, signal: Signal) {
        let (client, call) = (self.client.clone(), calls::kill(container, signal as i32));
        // Retried until the agent accepts it; the answer to `Wait` reports the exit.
        tokio::spawn(async move { nested::kill(&client, &call).await });
    }

    fn probe(&self, id: Id, container: ContainerID, which: CheckKind, attempt: Probe) {
        let client = self.client.clone();
        self.reports.later(async move {
            let outcome = match &attempt.target {
                Target::Command(command) => {
                    nested::run_check(&client, &container, command, attempt.timeout).await
                }
                Target::Http { .. } | Target::Tcp { .. } => probe::make(&attempt).await,
            };
            IoEvent::Probed(id, which, outcome)
        });
    }
}

impl Perform<DefaultMachine> for DefaultPerformer {
    async fn perform(&mut self, effect: Effect) -> ControlFlow<ExitCode> {
        let client = self.client.clone();
        match effect {
            Effect::Update(status) => self.reports.update(status).await,
            Effect::Launch(task, container) => {
                let call = calls::launch(&task, &container, &self.container_ip);
                let id = task.task_id.value.clone();
                self.reports
                    .later(async move { IoEvent::Launched(id, nested::launch(&client, &call).await) });
            }
            Effect::Link(id, container) => self.link(&id, &container),
            Effect::Wait(id, container) => {
                self.reports
                    .later(async move { IoEvent::Waited(id, nested::wait(&client, &container).await) });
            }
            Effect::Kill(container, signal) => self.kill(&container, signal),
            Effect::Probe(id, container, which, attempt) => self.probe(id, container, which, attempt),
            Effect::Exit(code) => return ControlFlow::Break(ExitCode::from(code)),
        }
        ControlFlow::Continue(())
    }
}
