//! `tepui exec`: a command beside a running task, in its container, with our terminal or without.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};
use clap::Args;
use tepui_client::operator::session;
use tepui_client::random;
use tepui_client::v1::agent::call::{self, LaunchNestedContainerSession, WaitContainer};
use tepui_client::v1::agent::{Call, Response};
use tepui_client::v1::{CommandInfo, ContainerID, ContainerInfo, Environment, container_info, environment};

use super::console::{self, Attachment, DetachKeys, Outcome, Place};
use super::{Cluster, block_on};
use crate::terminal;

/// Exit codes, for the help.
const EXIT_CODES: &str =
    "Exits with the command's code, with 128+N if signal N terminated it, and with 1 if it could not run.";

/// Run a command in the container of a running task: `tepui exec -it web-1 sh`.
#[derive(Args)]
#[command(rename_all = "snake_case", after_help = EXIT_CODES)]
pub struct Exec {
    #[command(flatten)]
    cluster: Cluster,
    /// Forward standard input.
    #[arg(long, short)]
    interactive: bool,
    /// Allocate a terminal.
    #[arg(long, short)]
    tty: bool,
    /// User to run as [default: the user of the task].
    #[arg(long)]
    user: Option<String>,
    /// Environment variable, KEY=VALUE; may be repeated.
    #[arg(long = "env", value_name = "KEY=VALUE")]
    environment: Vec<String>,
    /// Key sequence that exits and kills the command; empty for none.
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: String,
    /// Framework of the task, if the task ID is ambiguous.
    #[arg(long)]
    framework: Option<String>,
    /// Task ID, a prefix of it, or the task's name.
    task: String,
    /// Command with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Exec {
    pub fn run(self) -> Result<ExitCode> {
        if self.tty && self.interactive && !terminal::is_terminal(std::io::stdin()) {
            bail!("standard input is not a terminal; leave -t out to pass it on as it is");
        }
        block_on(self.execute()).map(ExitCode::from)
    }

    async fn execute(self) -> Result<u8> {
        let detach = DetachKeys::parse(&self.detach_keys).context("--detach_keys")?;
        let Place { agent, container, .. } =
            console::place(&self.cluster, &self.task, self.framework.as_deref()).await?;
        let own = ContainerID {
            value: random::uuid_text(&random::uuid()),
            parent: container.into(),
            ..Default::default()
        };
        let output = agent
            .launch_session(self.launch(&own)?)
            .await
            .context("cannot run the command in the container")?;
        let (waiting, call) = (agent.clone(), wait(&own));
        let ended = tokio::spawn(async move { waiting.agent(&call).await });
        let input = agent.attach_input(&own).await?;
        let attachment = Attachment { keys: self.interactive, terminal: self.tty, detach };
        match console::run(output, Some((input, attachment))).await? {
            Outcome::Ended => exit_code(&ended.await?.context("the agent reported no exit status")?),
            Outcome::Detached => Ok(0),
            Outcome::Signalled(code) => Ok(code),
        }
    }

    fn launch(&self, container: &ContainerID) -> Result<LaunchNestedContainerSession> {
        let tty = terminal::own_size().map(|(rows, columns)| session::terminal(rows, columns));
        let info = self.tty.then(|| ContainerInfo {
            r#type: container_info::Type::MESOS,
            tty_info: tty.unwrap_or_default().into(),
            ..Default::default()
        });
        Ok(LaunchNestedContainerSession {
            container_id: container.clone().into(),
            command: self.command()?.into(),
            container: info.into(),
            ..Default::default()
        })
    }

    fn command(&self) -> Result<CommandInfo> {
        let variable = |text: &String| -> Result<environment::Variable> {
            let (name, value) =
                text.split_once('=').with_context(|| format!("--env {text:?} must be KEY=VALUE"))?;
            Ok(environment::Variable {
                name: name.to_owned(),
                value: Some(value.to_owned()),
                ..Default::default()
            })
        };
        let variables: Vec<_> = self.environment.iter().map(variable).collect::<Result<_>>()?;
        Ok(CommandInfo {
            shell: Some(false),
            value: self.command.first().cloned(),
            arguments: self.command.clone(),
            environment: (!variables.is_empty())
                .then(|| Environment { variables, ..Default::default() })
                .into(),
            user: self.user.clone(),
            ..Default::default()
        })
    }
}

fn wait(container: &ContainerID) -> Call {
    let wait = WaitContainer { container_id: container.clone().into(), ..Default::default() };
    Call { r#type: Some(call::Type::WAIT_CONTAINER), wait_container: wait.into(), ..Default::default() }
}

fn exit_code(answer: &Response) -> Result<u8> {
    let wait = &answer.wait_container;
    let Some(status) = wait.exit_status.map(ExitStatus::from_raw) else {
        bail!("it was killed: {}", wait.message.as_deref().unwrap_or("the agent reported no reason"));
    };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use tepui_client::v1::agent::response::WaitContainer;

    use super::*;

    #[test]
    fn exit_code_is_that_of_the_command() {
        let code = |exit_status: Option<i32>| {
            let wait = WaitContainer { exit_status, ..Default::default() };
            exit_code(&Response { wait_container: wait.into(), ..Default::default() }).ok()
        };
        assert_eq!(code(Some(0)), Some(0));
        assert_eq!(code(Some(7 << 8)), Some(7));
        assert_eq!(code(Some(9)), Some(137));
        assert_eq!(code(None), None);
    }
}
